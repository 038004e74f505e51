"""A studio with pictures of limner's own illustrator -> the screenshots of docs/images.

``python scripts/studio_pictures.py`` needs Playwright and Chromium, as ``make browser`` does.
Nothing is paid: the price on one of them is computed, and no service is asked to draw.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.acceptance.conftest import picture  # noqa: E402
from tests.browser.conftest import installed_chromium  # noqa: E402
from tests.browser.studio_process import StudioProcess  # noqa: E402

from limner import Limner  # noqa: E402
from limner.testing.servers.openai_server import OpenAIServer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SCENES = [
    "a tree on a hill",
    "a teapot on a table",
    "a robot in a garden",
    "three birds over the sea",
    "a hot air balloon over mountains",
    "a camel in the desert",
    "a train beside a lake",
    "a snowman beside a tree in winter",
    "a cat on a roof under the moon",
    "a whale under the sea",
    "a castle on a cliff",
    "a lighthouse in a storm at night",
    "a farm with a barn and two cows",
    "a cake with candles on a table",
    "an owl in a forest at night",
    "a bicycle in a city street",
    "a rocket on the moon",
    "a dog with a ball on the beach",
    "a windmill in a field",
    "a desert with a cactus",
    "a red boat on a calm lake at sunset",
]
CHART = '{"type": "bar", "title": "Sales", "labels": ["Mon", "Tue", "Wed"], "values": [3, 5, 9]}'
FOXES, BOAT = "two foxes and a house on a hill at sunset", "add a boat on the left"


async def fill(studio: StudioProcess) -> dict[str, str]:
    """Draw everything; the handles of two pictures."""
    async with Limner(env=studio.env, cwd=studio.cwd) as lim:
        for words in SCENES:
            drawn = await lim.generate(words, provider="illustrator")
        chart = await lim.render(CHART)
        return {"boat": drawn.image.handle, "chart": chart.image.handle}


class Photographer:
    """A page of the studio, and the files that its screenshots become."""

    def __init__(self, page: Any, origin: str) -> None:
        self.page, self._origin = page, origin

    def go(self, path: str) -> None:
        self.page.goto(f"{self._origin}/#/{path}")

    def keep(self, name: str) -> None:
        self.page.mouse.move(2, 2)
        self.page.wait_for_timeout(800)
        image = Image.open(io.BytesIO(self.page.screenshot()))
        image.convert("RGB").save(IMAGES / f"studio-{name}.webp", quality=80, method=6)
        print(name)

    def draw(self, words: str, name: str) -> None:
        self.page.locator("form textarea").first.fill(words)
        self.page.get_by_label("Model").last.select_option("illustrator/limner-illustrator")
        self.page.locator(".order .main:enabled").click()
        self.page.get_by_alt_text(f"The picture for: {words}").wait_for()
        self.keep(name)


def take(photo: Photographer, handles: dict[str, str]) -> None:
    """The screenshots without a key."""
    page = photo.page
    photo.go("draw")
    photo.draw(FOXES, "draw")
    drawn = page.locator(".result a").first.get_attribute("href").rpartition("/")[2]
    photo.go(f"draw/change/{drawn}")
    photo.draw(BOAT, "change")
    photo.go(f"inspect/{handles['chart']}")
    page.get_by_label("Model").last.select_option("limner/eyes")
    page.get_by_label("Question").fill("What does it say?")
    page.get_by_alt_text("The picture as the model gets it").wait_for()
    page.wait_for_timeout(1000)
    box = page.locator(".region-layer").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + box["height"] * 0.1)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.5, steps=5)
    page.mouse.up()
    page.locator(".order .main:enabled").click()
    page.locator(".answer .prompt").wait_for()
    photo.keep("inspect")
    photo.go(f"picture/{handles['chart']}")
    page.locator(".picture textarea").fill("shows 'Sales'\nshows 'Refund'\nhas 3 bars")
    page.get_by_role("button", name="Check, for free").click()
    page.locator(".verdicts").wait_for()
    page.locator(".verdicts li").last.scroll_into_view_if_needed()
    photo.keep("check")
    photo.go("talk")
    page.get_by_label("Model").last.select_option("limner/offline")
    for number, words in enumerate(
        ("Draw a fox in the snow, and tell me what you drew", "Make it night")
    ):
        page.get_by_label("Message").fill(words)
        page.keyboard.press("Enter")
        page.get_by_text("Here it is").nth(number).wait_for()
    photo.keep("talk")
    photo.go("")
    photo.keep("gallery")


def take_price(photo: Photographer, handles: dict[str, str]) -> None:
    """The screenshot with a price: a key is set, and nothing is sent."""
    page = photo.page
    photo.go(f"draw/change/{handles['boat']}")
    page.get_by_label("What to change").fill("two seagulls in the sky; keep the boat as it is")
    page.get_by_role("button", name="Only a part").click()
    box = page.locator(".mask-frame canvas").bounding_box()
    for x in (0.2, 0.6):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * 0.2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * (x + 0.15), box["y"] + box["height"] * 0.15)
        page.mouse.up()
    page.get_by_role("button", name="Change for $").wait_for()
    photo.keep("mask")


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="ana-") as folder,
        OpenAIServer(picture(8, 8)) as drawer,
    ):
        studio = StudioProcess(Path(folder))
        handles = asyncio.run(fill(studio))
        studio.start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=installed_chromium(), args=["--no-sandbox"]
                )
                context = browser.new_context(
                    viewport={"width": 1280, "height": 800}, locale="en-GB"
                )
                page = context.new_page()
                page.set_default_timeout(90_000)
                page.goto(studio.url)
                photo = Photographer(page, studio.origin)
                take(photo, handles)
                studio.stop()
                studio.connect(drawer)
                studio.start()
                page.goto(studio.url)
                take_price(photo, handles)
                browser.close()
        finally:
            studio.stop()


if __name__ == "__main__":
    main()
