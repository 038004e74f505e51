"""Keys, caps, trusted folders and health, as the page of the settings shows and changes them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.conftest import Studio
from tests.servers.studio_server import RunningStudio, running

from limner.errors import BudgetExceeded
from limner.settings.trust import PROJECT_FILE, TrustedFolders, folder_record
from limner.testing.servers.openai_server import OpenAIServer

SECRET = "sk-a-value-that-nothing-shows-0123456789"


@pytest.fixture
async def page(studio: Studio) -> AsyncGenerator[RunningStudio]:
    async with studio.open() as lim, running(lim) as server:
        yield server


async def test_a_key_is_stored_used_and_never_shown(page: RunningStudio) -> None:
    keys = {one["name"]: one for one in (await page.http.get("/api/keys")).json()["keys"]}
    assert keys["BFL_API_KEY"] == {
        "name": "BFL_API_KEY",
        "source": None,
        "is_stored": False,
        "adds": ["bfl-flux"],
    }
    models = "/api/models"
    before = {one["missing_key"] for one in (await page.http.get(models)).json()["models"]}
    stored = await page.http.put("/api/keys/BFL_API_KEY", json={"value": f" {SECRET}\n"})
    assert stored.status_code == 200
    assert page.lim.keys.get("BFL_API_KEY") == SECRET
    after = {one["missing_key"] for one in (await page.http.get(models)).json()["models"]}
    assert before - after == {"BFL_API_KEY"}
    for path in ("/api/keys", models, "/api/health", "/api/caps"):
        assert SECRET[-8:] not in (await page.http.get(path)).text
    assert SECRET not in stored.text
    removed = (await page.http.delete("/api/keys/BFL_API_KEY")).json()["keys"]
    assert not any(one["is_stored"] for one in removed)
    assert (await page.http.delete("/api/keys/BFL_API_KEY")).status_code == 400


async def test_what_is_no_key_is_refused_without_its_value(page: RunningStudio) -> None:
    for name, value in (("lower", "x"), ("A B", "x"), ("OPENAI_API_KEY", "a\nb"), ("X", "")):
        answer = await page.http.put(f"/api/keys/{name}", json={"value": value})
        assert answer.status_code == 400
    wrong = await page.http.put("/api/keys/X_KEY", json={"value": f"{SECRET}\n{SECRET}"})
    assert (wrong.status_code, SECRET in wrong.text) == (400, False)
    assert not page.lim.home.keys.exists()


async def test_caps_are_stored_and_hold_at_once(studio: Studio, openai: OpenAIServer) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        answer = await page.http.put("/api/caps", json={"call_usd": "0.000001", "day_usd": "2.50"})
        caps = {one["name"]: one["amount_usd"] for one in answer.json()["caps"]}
        assert caps == {"call_usd": 0.000001, "session_usd": None, "day_usd": 2.5}
        with pytest.raises(BudgetExceeded):
            await lim.generate("a fox", provider="openai-image")
        await page.http.put("/api/caps", json={"call_usd": ""})
        await lim.generate("a fox", provider="openai-image")
        report = (await page.http.get("/api/money")).json()
        assert report["caps"] == {"call_usd": None, "session_usd": None, "day_usd": 2.5}
        kept = lim.home.config.read_text()
        for wrong in ("-1", "many", "1e99", "nan"):
            refused = await page.http.put("/api/caps", json={"day_usd": wrong})
            assert refused.status_code == 400
        assert lim.home.config.read_text() == kept


async def test_trust_in_a_folder_is_shown_and_removed(page: RunningStudio, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / PROJECT_FILE).write_text("")
    trusted = TrustedFolders(page.lim.home.folder)
    record = folder_record(folder, {PROJECT_FILE: b""})
    trusted.path(folder).parent.mkdir(parents=True)
    trusted.path(folder).write_bytes(msgspec.json.encode(record))
    trusted.path(folder).chmod(0o600)
    (one,) = (await page.http.get("/api/trust")).json()["folders"]
    assert (one["folder"], one["files"], one["changed"]) == (
        os.path.realpath(folder),
        [PROJECT_FILE],
        [],
    )
    for name in (str(folder), "..", "0" * 64):
        assert (await page.http.delete(f"/api/trust/{name}")).status_code in (400, 404)
    assert trusted.trusts(folder)
    assert (await page.http.delete(f"/api/trust/{one['id']}")).json() == {"folders": []}
    assert not trusted.trusts(folder)
    # No request gives trust.
    assert (await page.http.put(f"/api/trust/{one['id']}")).status_code == 405


async def test_the_page_has_the_checks_of_the_doctor(page: RunningStudio) -> None:
    report = (await page.http.get("/api/health")).json()
    names = [one["name"] for one in report["checks"]]
    assert names[:4] == ["version", "settings", "home", "database"]
    assert names[-1] == "pictures"
    assert (report["ok"], "draws" in report["usable"]) == (True, True)
    assert {one["name"] for one in report["sandbox"]} >= {"reading", "network"}
