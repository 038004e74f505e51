"""A conversation on the page, with an approval, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer

PAID = ("image_generate", '{"prompt": "a fox", "provider": "openai-image"}')


@pytest.mark.slow
def test_a_paid_tool_of_a_conversation_asks_and_its_picture_is_shown(
    studio: Any, page: Any, drawer: OpenAIServer, talker: Any, shot: Callable[..., None]
) -> None:
    from playwright.sync_api import expect

    talker.script = [calls(PAID), says("**Here** it is.\n\n- a fox\n- in `snow`")]
    studio.connect(drawer, talker)
    studio.start()
    page.goto(studio.url)
    page.get_by_role("link", name="Talk").click()
    page.get_by_label("Ask me").select_option("before every paid call")
    page.get_by_label("Message").fill("Draw a fox.")
    page.keyboard.press("Enter")
    question = page.get_by_role("alertdialog")
    expect(question).to_contain_text("costs $")
    expect(question).to_contain_text("image_generate")
    expect(page.locator(".talk-tool")).to_have_text("image_generate waits for your answer")
    shot(page, "talk-approval")
    assert drawer.requests == []
    question.get_by_role("button", name="Yes", exact=True).click()
    log = page.get_by_role("log")
    expect(log.get_by_role("listitem")).to_have_text(["a fox", "in snow"])
    expect(log.locator(".talk-call dd").first).to_have_text("a fox")
    expect(log.locator(".talk-call .talk-price").first).to_have_text("Tool: $0.013")
    expect(log.locator(".talk-model .talk-price")).to_contain_text(
        "Model: 1,200 tokens in, 45 out · $"
    )
    expect(log.get_by_role("img")).to_have_count(1)
    shot(page, "talk")
    assert len(drawer.requests) == 1
    # The list has it, and after a reload all of it is there.
    expect(page.get_by_label("All conversations").get_by_role("link")).to_have_count(2)
    page.reload()
    expect(log.get_by_role("listitem")).to_have_text(["a fox", "in snow"])
    expect(log.get_by_role("img")).to_have_count(1)


@pytest.mark.browser
def test_a_no_spends_nothing_and_a_running_turn_is_steered_and_stopped(
    studio: Any, page: Any, drawer: OpenAIServer, talker: Any
) -> None:
    from playwright.sync_api import expect

    first, never = Gate(), Gate()
    talker.script = [calls(PAID), says("As", gate=first), says("More", gate=never), says("Bye.")]
    studio.connect(drawer, talker)
    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/talk")
    page.get_by_label("Ask me").select_option("before every paid call")
    page.get_by_label("Message").fill("Draw a fox.")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("alertdialog").get_by_role("button", name="No", exact=True).click()
    log = page.get_by_role("log")
    expect(log.locator(".talk-call")).to_contain_text("failed")
    expect(log.get_by_text("As", exact=True)).to_be_visible()
    page.get_by_label("Say more while it works").fill("Be quick.")
    page.get_by_role("button", name="Add").click()
    first.open()
    expect(log.get_by_text("Be quick.")).to_be_visible()
    expect(log.get_by_text("More", exact=True)).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(log.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_label("Ask me")).to_have_value("untrusted")
    page.get_by_label("Message").fill("Goodbye.")
    page.keyboard.press("Enter")
    expect(log.get_by_text("Bye.", exact=True)).to_be_visible()
    assert drawer.requests == []


@pytest.mark.browser
def test_a_conversation_goes_on_after_the_server_was_started_again(
    studio: Any, page: Any, shot: Callable[..., None]
) -> None:
    from playwright.sync_api import expect

    # Without a key: limner's own rules answer.
    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/talk")
    expect(page.locator(".composer").get_by_label("Model")).to_have_value("limner/offline")
    page.get_by_label("Message").fill("Draw a red fox.")
    page.keyboard.press("Enter")
    log = page.get_by_role("log")
    expect(log.get_by_text("Here it is")).to_be_visible()
    studio.stop()
    expect(page.locator(".talk-thread .lost")).to_be_visible()
    shot(page, "talk-lost")
    studio.start()
    expect(page.locator(".talk-thread .lost")).to_be_hidden()
    page.get_by_label("Message").fill("Draw a blue boat.")
    page.keyboard.press("Enter")
    expect(log.get_by_text("Here it is")).to_have_count(2)
    expect(log.get_by_role("img")).to_have_count(2)


@pytest.mark.browser
def test_the_newest_answer_is_in_view_also_if_it_comes_at_once(studio: Any, page: Any) -> None:
    from playwright.sync_api import expect

    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/talk")
    log = page.get_by_role("log")
    for number, words in enumerate(("Draw a fox, and tell me what you drew.", "Make it night.")):
        page.get_by_label("Message").fill(words)
        page.get_by_role("button", name="Send").click()
        expect(log.get_by_role("img")).to_have_count(number + 1)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(log.get_by_text("Changed: scene", exact=False)).to_be_in_viewport()
