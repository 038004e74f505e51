"""The server is killed in the middle of a drawing: the page goes on, and nothing is paid twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer


@pytest.mark.slow
def test_a_killed_drawing_is_shown_as_an_open_job_and_is_paid_at_most_once(
    studio: Any, page: Any, drawer: OpenAIServer, shot: Callable[..., None]
) -> None:
    from playwright.sync_api import expect

    never = Gate()
    drawer.script("generate", Reply(hold=never))
    studio.connect(drawer)
    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/draw")
    page.get_by_label("What to draw").fill("a fox")
    page.get_by_label("Model").last.select_option("openai-image/gpt-image-2.5-flare")
    page.get_by_role("button", name="Draw for $0.").click()
    expect(page.get_by_label("Activity").get_by_label("Progress")).to_be_visible()
    with ThreadPoolExecutor(1) as other:
        # Playwright has the event loop of this thread.
        other.submit(asyncio.run, drawer.wait_until("generate")).result()
    studio.stop(signal.SIGKILL)
    expect(page.get_by_text("The server does not answer.").first).to_be_visible()
    studio.start()
    # The page connects by itself, with its old cookie, and says what became of the drawing.
    expect(page.get_by_text("The server does not answer.")).to_have_count(0)
    tray = page.get_by_label("Activity")
    expect(tray).to_contain_text("The server was restarted.")
    shot(page, "restart")
    tray.get_by_role("link", name="Look at open jobs").click()
    row = page.locator("tbody tr").filter(has_text="job_")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("openai-image")
    expect(page.locator(".sum").first).to_contain_text("may not have been charged")
    shot(page, "restart-jobs")
    row.get_by_role("button", name="Recover").click()
    expect(tray).to_contain_text("It stays counted")
    assert len(drawer.requests) == 1
    row.get_by_role("button", name="Settle").click()
    page.get_by_label("What the provider charged").fill("0.01342")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No job is open.")).to_be_visible()
    with studio.api() as api:
        spent = api.get("/api/money").json()
    assert (spent["total_usd"], spent["unknown_usd"]) == (PRICE_NANO / 1e9, 0)
    assert len(drawer.requests) == 1
