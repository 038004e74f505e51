"""Batches and checks on the page: how far they are, what they found, and what they may cost."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, picture
from tests.frontends.studio.test_studio_drawings import until_ended
from tests.servers.studio_server import running

from limner.testing.servers.openai_server import OpenAIServer

USD = PRICE_NANO / 1e9
ROWS = [
    {"key": "fox", "prompt": "a fox", "provider": "openai-image"},
    {"key": "cut", "tool": "image_edit", "image": "later.png", "prompt": "x", "provider": "fal"},
]


@pytest.mark.slow
async def test_a_batch_is_shown_cancelled_and_resumed_within_its_budget(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        assert (await page.http.get("/api/batches")).json() == {"batches": []}
        await lim.batch(ROWS, budget_usd=1)
        (batch,) = (await page.http.get("/api/batches")).json()["batches"]
        assert (batch["rows"], batch["done"], batch["failed"], batch["state"]) == (2, 1, 1, "done")
        assert (batch["spent_usd"], batch["budget_usd"], batch["left_usd"]) == (USD, 1, 1 - USD)
        (failure,) = batch["failures"]
        assert (failure["key"], bool(failure["message"])) == ("cut", True)
        listed = await page.http.get("/api/pictures", params={"session": batch["id"]})
        assert [one["title"] for one in listed.json()["pictures"]] == ["a fox"]
        path = f"/api/batches/{batch['id']}"
        refused = await page.http.post(f"{path}/resume", json={"agreed_usd": 0.5})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "PRICE_CHANGED")
        cancelled = (await page.http.post(f"{path}/cancel")).json()["batches"]
        assert [one["state"] for one in cancelled] == ["cancelled"]
        run = (await page.http.post(f"{path}/resume", json={"agreed_usd": 1})).json()
        ended = await until_ended(page, run["id"])
        assert (ended["state"], ended["cost_usd"]) == ("done", 0)
        assert ended["text"] == "1 of 2 rows done, 1 failed"
        assert len(openai.requests) == 1


async def test_what_is_no_batch_changes_nothing(studio: Studio) -> None:
    async with studio.open() as lim, running(lim) as page:
        for name in ("batch_0", "rows.jsonl", "..", "batch_'; --"):
            for action in ("cancel", "resume"):
                answer = await page.http.post(
                    f"/api/batches/{name}/{action}", json={"agreed_usd": 1}
                )
                assert answer.status_code in (400, 404)


@pytest.mark.slow
async def test_a_check_measures_for_free_and_says_what_a_model_would_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        names = [f"/api/pictures?name={number}.png" for number in range(2)]
        first, second = [
            (await page.http.post(name, content=picture(64, size))).json()["handle"]
            for name, size in zip(names, (64, 32), strict=True)
        ]
        order = {"handle": first, "against": second, "expect": ["is 64 x 64", "it looks friendly"]}
        run = (await page.http.post("/api/checks", json=order)).json()
        ended = await until_ended(page, run["id"])
        verdicts = ended["details"]["verdicts"]
        assert [one["verdict"] for one in verdicts["criteria"]] == ["pass", "cannot tell"]
        assert (verdicts["pass"], verdicts["difference"]["boxes"][0]["kind"]) == (False, "size")
        assert (ended["cost_usd"], ended["details"]["asks_usd"] > 0) == (0, True)
        assert openai.requests == []
        nothing = (await page.http.post("/api/checks", json={"handle": first})).json()
        assert (await until_ended(page, nothing["id"]))["state"] == "failed"
        wrong = await page.http.post("/api/checks", json={"handle": "/etc/passwd"})
        assert wrong.status_code == 400
