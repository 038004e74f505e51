"""What was spent and what is open, as the studio shows it."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio
from tests.frontends.studio.test_studio_drawings import until_ended
from tests.servers.studio_server import running

from limner.errors import LimnerError
from limner.testing.servers.openai_server import OpenAIServer, error_reply

USD = PRICE_NANO / 1e9
MODEL = "openai-image/gpt-image-2.5-flare"


async def test_the_report_has_sums_caps_and_calls(studio: Studio, openai: OpenAIServer) -> None:
    studio.connect(openai)
    async with studio.open(flags={"budget.day_usd": 2}) as lim, running(lim) as page:
        await lim.generate("a fox", provider="openai-image")
        report = (await page.http.get("/api/money")).json()
        assert (report["total_usd"], report["today_usd"], report["unknown_usd"]) == (USD, USD, 0)
        assert report["caps"] == {"call_usd": None, "session_usd": None, "day_usd": 2.0}
        part = {"cost_usd": USD, "calls": 1}
        assert report["by_day"] == [{"name": "2026-11-15", **part}]
        assert report["by_model"] == [{"name": MODEL, **part}]
        assert report["by_session"] == [{"name": lim.session_id, **part}]
        assert [call["tool"] for call in report["recent"]] == ["image_generate"]
        assert (await page.http.get("/api/jobs")).json() == {"jobs": []}


@pytest.mark.slow
async def test_an_open_job_is_recovered_settled_or_forgotten(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        for _ in range(3):
            openai.script("generate", error_reply(500, "Oops."))
            with pytest.raises(LimnerError):
                await lim.generate("a fox", provider="openai-image")
        jobs = (await page.http.get("/api/jobs")).json()["jobs"]
        assert [job["state"] for job in jobs] == ["open"] * 3
        first, second, third = (job["id"] for job in jobs)
        sent = len(openai.requests)
        run = (await page.http.post(f"/api/jobs/{first}/recover")).json()
        ended = await until_ended(page, run["id"])
        assert (ended["state"], ended["pictures"]) == ("done", [])
        assert "stays counted" in ended["text"]
        settled = await page.http.post(f"/api/jobs/{second}/settle", json={"cost_usd": "0.02"})
        assert [job["id"] for job in settled.json()["jobs"]] == [first, third]
        forgotten = await page.http.post(f"/api/jobs/{third}/forget")
        assert [job["id"] for job in forgotten.json()["jobs"]] == [first]
        assert len(openai.requests) == sent


async def test_what_is_no_open_job_changes_nothing(studio: Studio) -> None:
    async with studio.open() as lim, running(lim) as page:
        for name in ("job_0", "..", "job_'; --", "x"):
            for action in ("recover", "settle", "forget"):
                body = {"cost_usd": "1"} if action == "settle" else {}
                answer = await page.http.post(f"/api/jobs/{name}/{action}", json=body)
                assert answer.status_code in (400, 404)
        wrong = await page.http.post("/api/jobs/job_0/settle", json={"cost_usd": 0.04})
        assert wrong.status_code == 400
