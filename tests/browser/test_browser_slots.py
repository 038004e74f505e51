"""Pictures that are pasted or dropped anywhere on a page, and forms that stay as they were left."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from tests.acceptance.conftest import picture

# A file on the clipboard, or dragged in from the desktop.
GIVE = """([name, where, data]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "shot.png", {type: "image/png"}));
  const target = document.querySelector(where);
  const event = name === "paste"
    ? new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true, cancelable: true})
    : new DragEvent(name, {dataTransfer: transfer, bubbles: true, cancelable: true});
  target.dispatchEvent(event);
  return event.defaultPrevented;
}"""


def give(page: Any, name: str, where: str, data: bytes) -> bool:
    return page.evaluate(GIVE, [name, where, base64.b64encode(data).decode()])


@pytest.mark.browser
def test_a_picture_is_pasted_or_dropped_anywhere_on_the_page(studio: Any, page: Any) -> None:
    from playwright.sync_api import expect

    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/inspect")
    expect(page.get_by_text("Drop, paste or choose a picture.")).to_be_visible()
    assert give(page, "paste", "body", picture(60, 60))
    expect(page.get_by_label("The picture", exact=True)).to_be_visible()
    page.goto(studio.origin + "/#/compare")
    expect(page.get_by_text("Choose two pictures.")).to_be_visible()
    assert give(page, "dragover", ".result", picture(60, 60))
    assert give(page, "drop", ".result", picture(60, 60))
    expect(page.locator(".slot").first.locator(".chip")).to_have_count(1)
    assert give(page, "paste", "body", picture(61, 60))
    expect(page.locator(".slot").last.locator(".chip")).to_have_count(1)
    # A page that takes no picture is not left for the dropped file.
    page.goto(studio.origin + "/#/money")
    expect(page.get_by_role("heading", name="Money")).to_be_visible()
    assert give(page, "dragover", "main", picture(60, 60))
    assert give(page, "drop", "main", picture(60, 60))
    # In the gallery it is a new picture.
    page.goto(studio.origin + "/#/")
    expect(page.locator(".cell a")).to_have_count(2)
    assert give(page, "drop", ".gallery", picture(62, 60))
    expect(page.locator(".cell a")).to_have_count(3)


@pytest.mark.browser
def test_what_was_written_is_there_after_a_look_at_another_page(
    studio: Any, page: Any, shot: Callable[..., None]
) -> None:
    from playwright.sync_api import expect

    studio.start()
    handle = studio.add("flag.png", picture(80, 80))
    page.goto(studio.url)
    for path, label in (("draw", "What to draw"), ("talk", "Message"), ("inspect", "Question")):
        page.goto(f"{studio.origin}/#/{path}")
        page.get_by_label(label).fill(f"words for {path}")
        page.get_by_role("link", name="Money").click()
        expect(page.get_by_role("heading", name="Money")).to_be_visible()
        page.goto(f"{studio.origin}/#/{path}")
        expect(page.get_by_label(label)).to_have_value(f"words for {path}")
    # The page of a picture gives a new form.
    page.goto(f"{studio.origin}/#/draw/change/{handle}")
    expect(page.get_by_label("What to change")).to_have_value("")


@pytest.mark.browser
def test_a_key_is_stored_by_keyboard_and_never_shown_again(studio: Any, page: Any) -> None:
    from playwright.sync_api import expect

    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/settings")
    page.get_by_role("button", name="Set BFL_API_KEY").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Value of BFL_API_KEY")).to_be_focused()
    page.keyboard.type("sk-never-shown-again-0123456789")
    page.keyboard.press("Enter")
    # The keyboard stays at this key.
    expect(page.get_by_role("button", name="Replace BFL_API_KEY")).to_be_focused()
    expect(page.locator(".key").filter(has_text="BFL_API_KEY")).to_contain_text("stored")
    page.reload()
    expect(page.get_by_role("button", name="Replace BFL_API_KEY")).to_be_visible()
    assert "sk-never-shown-again" not in page.content()
    with studio.api() as api:
        assert "sk-never-shown-again" not in api.get("/api/keys").text


@pytest.mark.browser
def test_what_the_model_gets_has_its_tokens_without_a_choice_of_the_model(
    studio: Any, page: Any, talker: Any
) -> None:
    from playwright.sync_api import expect

    studio.connect(None, talker)
    studio.start()
    handle = studio.add("flag.png", picture(400, 300))
    page.goto(studio.url)
    page.goto(f"{studio.origin}/#/inspect/{handle}")
    expect(page.locator(".view figcaption")).to_contain_text("What anthropic/claude-opus-4-8 gets")
    expect(page.locator(".view figcaption")).to_contain_text(" tokens · $")


@pytest.mark.browser
def test_a_price_that_changed_is_asked_for_again(studio: Any, page: Any) -> None:
    from playwright.sync_api import expect

    message = "It costs $0.02 now, and you agreed to $0."
    refused = {"error": {"code": "PRICE_CHANGED", "message": message, "hint": None}}
    page.route("**/api/drawings", lambda route: route.fulfill(status=403, json=refused))
    studio.start()
    page.goto(studio.url)
    page.goto(studio.origin + "/#/draw")
    page.get_by_label("What to draw").fill("a red fox")
    draw = page.locator(".order button")
    expect(draw).to_be_enabled()
    with page.expect_request("**/api/quotes"):
        draw.click()
    expect(page.get_by_text(message)).to_be_visible()
    expect(draw).to_be_enabled()
