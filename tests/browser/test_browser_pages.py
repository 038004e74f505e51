"""The pages of the studio in a real browser, as a person uses them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from tests.acceptance.conftest import picture
from tests.servers.npm_peers import installed_file

from limner import Limner
from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer, read_form

AXE = ("axe-core@4.14.0", "axe-core/axe.min.js")
SERIOUS = """axe.run().then(({violations}) => violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .map(({id, nodes}) => [id, nodes.map(({html}) => html.slice(0, 150))]))"""
TOO_WIDE = """Math.max(...["html", ".desk", ".pad", ".talk"].map((name) => {
  const found = document.querySelector(name);
  return found ? found.scrollWidth - found.clientWidth : 0;
}))"""
Shot = Callable[..., None]


def opened(studio: Any, page: Any, path: str = "") -> None:
    """Start the studio and go to one of its pages."""
    studio.start()
    page.goto(studio.url)
    go(studio, page, path)


def go(studio: Any, page: Any, path: str) -> None:
    page.goto(f"{studio.origin}/#/{path}")


def with_square(data: bytes) -> bytes:
    """The same picture with a green square in it."""
    image = Image.open(io.BytesIO(data))
    image.paste("green", (40, 40, 90, 90))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def drag(page: Any, target: Any, *, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag the mouse over an element, by parts of its size."""
    box = target.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=8)
    page.mouse.up()


def run_batch(studio: Any) -> None:
    """A batch with a row that is done and one that failed."""

    async def run() -> None:
        async with Limner(env=studio.env, cwd=studio.cwd) as lim:
            edit = {"tool": "image_edit", "prompt": "blue", "image": "missing.png"}
            rows = [{"key": "tree", "prompt": "a tree"}, {"key": "edit", **edit}]
            await lim.batch([{**row, "provider": "illustrator"} for row in rows], budget_usd=1)

    with ThreadPoolExecutor(1) as other:
        # Playwright has the event loop of this thread.
        other.submit(asyncio.run, run()).result()


@pytest.mark.slow
def test_a_picture_is_drawn_with_its_price_before_and_its_progress_meanwhile(
    studio: Any, page: Any, drawer: OpenAIServer, shot: Shot
) -> None:
    from playwright.sync_api import expect

    gate = Gate()
    drawer.draft = lambda number: picture(128, 128)  # pyright: ignore[reportAttributeAccessIssue]
    events = drawer.streamed(2, kind="image_generation")
    drawer.script(
        "generate", replace(events, pieces=(*events.pieces[:-1], gate, events.pieces[-1]))
    )
    studio.connect(drawer)
    opened(studio, page, "draw")
    page.get_by_label("What to draw").fill("a fox in the snow")
    page.get_by_label("Model").last.select_option("openai-image/gpt-image-2.5-flare")
    button = page.get_by_role("button", name="Draw for $0.")
    expect(button).to_be_visible()
    assert drawer.requests == []
    page.get_by_text("More options").click()
    page.get_by_label("Show it while it is drawn").check()
    expect(button).to_be_enabled()
    button.click()
    expect(page.get_by_alt_text("The unfinished picture")).to_be_visible()
    expect(page.get_by_label("Progress").first).to_be_visible()
    shot(page, "draw-progress")
    gate.open()
    expect(page.get_by_alt_text("The picture for: a fox in the snow")).to_be_visible()
    shot(page, "draw-done")
    assert len(drawer.requests) == 1


@pytest.mark.browser
def test_a_painted_part_of_a_picture_is_changed_and_the_family_shows_it(
    studio: Any, page: Any, drawer: OpenAIServer, shot: Shot
) -> None:
    from playwright.sync_api import expect

    studio.connect(drawer)
    studio.start()
    handle = studio.add("room.png", picture(400, 400))
    page.goto(studio.url)
    go(studio, page, f"draw/change/{handle}")
    page.get_by_label("What to change").fill("a lamp")
    page.get_by_label("Model").last.select_option("openai-image/gpt-image-2.5-flare")
    page.get_by_role("button", name="Only a part").click()
    drag(page, page.locator(".mask-frame canvas"), start=(0.2, 0.3), end=(0.5, 0.3))
    shot(page, "edit-mask")
    button = page.get_by_role("button", name="Change for $0.")
    expect(button).to_be_enabled()
    button.click()
    result = page.get_by_alt_text("The picture for: a lamp")
    expect(result).to_be_visible()
    (sent,) = drawer.sent("edit")
    files = {file.field: file for file in read_form(sent).files}
    mask = Image.open(io.BytesIO(files["mask"].data))
    assert mask.size == (400, 400)
    # What may change is transparent, as the provider wants it.
    alpha = mask.convert("RGBA").getchannel("A")
    assert (alpha.getpixel((140, 120)), alpha.getpixel((300, 300))) == (0, 255)
    result.click()
    family = page.get_by_label("Family of the picture")
    expect(family.get_by_role("link")).to_have_count(2)
    shot(page, "lineage")
    family.get_by_role("link", name="room.png, from a file").click()
    expect(page.locator(".picture h1")).to_have_text("room.png")


@pytest.mark.browser
def test_a_document_is_rendered_while_it_is_written(studio: Any, page: Any, shot: Shot) -> None:
    from playwright.sync_api import expect

    opened(studio, page, "draw/render")
    preview = page.get_by_alt_text("Preview of the document")
    expect(preview).to_be_visible()
    before = preview.get_attribute("src")
    page.get_by_role("button", name="Diagram").click()
    expect(preview).not_to_have_attribute("src", before)
    shot(page, "render")
    page.get_by_label("Document").fill("flowchart LR\n A -->")
    page.get_by_label("Document").fill('{"type": "bar", "labels": ["a"], "values": ')
    expect(page.get_by_role("alert").first).to_be_visible()
    page.get_by_role("button", name="Chart").click()
    save = page.get_by_role("button", name="Save to the gallery")
    expect(save).to_be_enabled()
    save.click()
    expect(page.get_by_label("Activity").get_by_text("Done")).to_be_visible()
    page.get_by_role("link", name="Gallery").click()
    expect(page.locator(".cell a")).to_have_count(1)


@pytest.mark.browser
def test_a_dragged_part_of_a_picture_is_inspected(studio: Any, page: Any, shot: Shot) -> None:
    from playwright.sync_api import expect

    studio.start()
    handle = studio.add("flag.png", picture(400, 400))
    page.goto(studio.url)
    go(studio, page, f"inspect/{handle}")
    drag(page, page.locator(".region-layer"), start=(0.6, 0.2), end=(0.9, 0.6))
    expect(page.get_by_label("Left")).not_to_have_value("")
    left, width = (float(page.get_by_label(name).input_value()) for name in ("Left", "Width"))
    assert abs(left - 240) < 8
    assert abs(width - 120) < 8
    expect(page.get_by_text("What limner/eyes gets")).to_be_visible()
    page.get_by_label("Question").fill("What colours are there?")
    page.get_by_role("button", name="Ask").click()
    answer = page.locator(".answer")
    expect(answer).to_contain_text("blue")
    expect(answer).to_contain_text("free")
    expect(answer).not_to_contain_text("#ff0000")
    shot(page, "inspect")


@pytest.mark.browser
def test_two_pictures_are_compared_with_a_slider(studio: Any, page: Any, shot: Shot) -> None:
    from playwright.sync_api import expect

    studio.start()
    first = studio.add("before.png", picture(400, 400))
    second = studio.add("after.png", with_square(picture(400, 400)))
    page.goto(studio.url)
    go(studio, page, f"compare/{first}/{second}")
    expect(page.get_by_text("1 difference", exact=True)).to_be_visible()
    expect(page.locator(".difference")).to_have_count(1)
    slider = page.get_by_label("First and second")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator(".edge")).to_have_attribute("style", "left: 100%;")
    page.keyboard.press("Home")
    expect(page.locator(".edge")).to_have_attribute("style", "left: 0%;")
    edge = page.locator(".edge")
    drag(page, edge, start=(0.5, 0.5), end=(8, 0.5))
    assert 30 < float(slider.input_value()) < 90
    shot(page, "compare")


@pytest.mark.browser
def test_pictures_are_found_by_words_model_and_cost_and_money_has_its_charts(
    studio: Any, page: Any, drawer: OpenAIServer, shot: Shot
) -> None:
    from playwright.sync_api import expect

    studio.connect(drawer)
    studio.start()
    for number, name in enumerate(("harbour.png", "castle.png", "garden.png")):
        studio.add(name, picture(100 + number, 100))
    with studio.api() as api:
        order = {"prompt": "a paid fox", "model": "openai-image/gpt-image-2.5-flare"}
        assert api.post("/api/drawings", json={**order, "agreed_usd": 1}).status_code == 200
    page.goto(studio.url)
    cells = page.locator(".cell a")
    expect(cells).to_have_count(4)
    search = page.get_by_role("searchbox")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("cast")
    expect(cells).to_have_count(1)
    expect(cells.first).to_have_attribute("aria-label", "castle.png, seen, free")
    page.get_by_role("button", name="Clear").click()
    expect(cells).to_have_count(4)
    page.get_by_label("Cost").select_option("Paid")
    expect(cells).to_have_count(1)
    page.get_by_label("Cost").select_option("Any cost")
    page.locator(".filters").get_by_label("Model").select_option("openai-image")
    expect(cells).to_have_count(1)
    shot(page, "filter")
    page.get_by_role("link", name="Money").click()
    expect(page.locator(".chart")).to_be_visible()
    expect(page.get_by_text("By provider")).to_be_visible()
    expect(page.locator(".sum dd").first).to_contain_text("$0.013")
    shot(page, "money")


@pytest.mark.browser
def test_everything_works_without_a_mouse(studio: Any, page: Any) -> None:
    from playwright.sync_api import expect

    studio.start()
    for number in range(5):
        studio.add(f"file{number}.png", picture(100 + number, 100))
    page.goto(studio.url)
    expect(page.locator(".cell a")).to_have_count(5)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.locator(".cell a").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator('[data-index="2"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".picture h1")).to_have_text("file2.png")
    page.keyboard.press("Escape")
    expect(page.locator(".gallery")).to_be_visible()
    page.get_by_role("link", name="Draw").focus()
    page.keyboard.press("Enter")
    page.get_by_label("What to draw").focus()
    page.keyboard.type("a red boat")
    expect(page.get_by_role("button", name="Draw", exact=True)).to_be_enabled()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_alt_text("The picture for: a red boat")).to_be_visible()


@pytest.mark.browser
def test_two_fingers_zoom_a_picture_on_a_phone(
    studio: Any, chromium: Any, drawer: OpenAIServer
) -> None:
    from playwright.sync_api import expect

    studio.start()
    handle = studio.add("room.png", picture(900, 900))
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(studio.url)
    go(studio, page, f"picture/{handle}")
    scale = page.get_by_title("Fit to the window")
    expect(scale).to_have_text("43 %")
    box = page.locator(".viewer").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = context.new_cdp_session(page)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80), ("touchEnd", 0)):
        points = [{"x": x - apart, "y": y, "id": 1}, {"x": x + apart, "y": y, "id": 2}]
        points = points if apart else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    expect(scale).to_have_text("87 %")
    context.close()


PATHS = {
    "gallery": "",
    "picture": "picture/{handle}",
    "draw": "draw",
    "mask": "draw/change/{handle}",
    "render": "draw/render",
    "talk": "talk",
    "conversation": "talk/{thread}",
    "inspect": "inspect/{handle}",
    "compare": "compare/{handle}/{other}",
    "money": "money",
    "settings": "settings",
}


@pytest.mark.browser
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_axe_finds_nothing_serious_on_any_page_in_dark_and_light(
    studio: Any, page: Any, drawer: OpenAIServer, shot: Shot, size: str
) -> None:
    from playwright.sync_api import expect

    axe = installed_file(*AXE).read_text(encoding="utf-8")
    if size == "phone":
        page.set_viewport_size({"width": 390, "height": 844})
    studio.connect(drawer)
    studio.env["LIMNER_MODEL_ROLES_DEFAULT"] = "limner/offline"
    run_batch(studio)
    studio.start()
    page.goto(studio.url)
    handles = [studio.add(f"{at}.png", picture(200 + at, 200)) for at in range(2)]
    with studio.api() as api:
        order = {"prompt": "a fox", "model": "openai-image/gpt-image-2.5-flare", "agreed_usd": 1}
        assert api.post("/api/drawings", json=order).status_code == 200
    go(studio, page, "talk/new")
    page.get_by_label("Message").fill("Draw a red fox with illustrator.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log").locator(".talk-model")).to_be_visible()
    thread = page.url.rpartition("/")[2]
    found: dict[str, Any] = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name, path in PATHS.items():
            handle, other = handles
            go(studio, page, path.format(handle=handle, other=other, thread=thread))
            page.wait_for_load_state("networkidle")
            if name == "mask":
                page.get_by_role("button", name="Only a part").click()
            page.wait_for_timeout(300)
            shot(page, f"{size}-{scheme}-{name}")
            page.evaluate(axe)
            if serious := page.evaluate(SERIOUS):
                found[f"{name}, {scheme}"] = serious
            assert page.evaluate(TOO_WIDE) <= 0, f"{name} is wider than the window"
    assert found == {}
