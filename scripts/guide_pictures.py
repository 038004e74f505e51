"""Draw the pictures of the guides from the examples in their text.

usage: python scripts/guide_pictures.py

A source comes out of its guide, so that a picture shows what the text above it says.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from limner import Limner, Mark, Region

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images"
WIDTH = 640
SEED = 1
# The picture, and a word of the source in the guide.
RENDERED = {
    "render-chart": '"Sales"',
    "render-diagram": "flowchart LR",
    "render-vega-lite": '"Temperature"',
    "render-typst": "= Euler",
    "render-page": '"Crumb & Co"',
    "render-svg": "Good night",
}
EDITS = {
    "no-tree": "remove the tree",
    "night": "make it night and add two ducks",
    "blue": "paint the house blue, and let it snow",
}
FORM = {
    "type": "page",
    "size": "640x360",
    "children": [
        {"type": "text", "text": "Settings", "size": "title"},
        {"type": "field", "label": "Name", "value": "Ada Lovelace"},
        {"type": "toggle", "text": "Dark mode", "on": False},
        {"type": "button", "text": "Save"},
    ],
}


async def main() -> None:
    """Draw all of them."""
    with tempfile.TemporaryDirectory() as folder:
        async with Limner(env={"LIMNER_HOME": f"{folder}/home"}, cwd=IMAGES) as lim:
            await _render(lim, Path(folder))
            await _edit(lim, Path(folder))
            await _check(lim, Path(folder))
            await _mark(lim, Path(folder))


async def _render(lim: Limner, folder: Path) -> None:
    text = (DOCS / "guides" / "rendering.md").read_text(encoding="utf-8")
    sources = re.findall(r"^```[a-z-]+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for name, word in RENDERED.items():
        source = next(source for source in sources if word in source)
        made = await lim.render(source, output_path=folder / f"{name}.png")
        await _keep(lim, made.path, name)


async def _edit(lim: Limner, folder: Path) -> None:
    first = await lim.generate(
        "a house and a tree in a meadow", seed=SEED, output_path=folder / "house.png"
    )
    paths = [first.path]
    for name, words in EDITS.items():
        edited = await lim.edit(first.path, words, output_path=folder / f"{name}.png")
        paths.append(edited.path)
    sheet = await lim.sheet(paths, output_path=folder / "edits.png")
    await _keep(lim, sheet.path, "editing")


async def _check(lim: Limner, folder: Path) -> None:
    before = await lim.render(FORM, output_path=folder / "before.png")
    changed = [{**child, "on": True} if "on" in child else child for child in FORM["children"]]
    changed[-1] = {"type": "button", "text": "Send"}
    after = await lim.render({**FORM, "children": changed}, output_path=folder / "after.png")
    await lim.check(after.path, against=before.path, sheet=folder / "check.png")
    await _keep(lim, folder / "check.png", "checking")


async def _mark(lim: Limner, folder: Path) -> None:
    children = [child for child in FORM["children"] if child["type"] != "toggle"]
    form = await lim.render({**FORM, "children": children}, output_path=folder / "form.png")
    made = await lim.transform(
        form.image,
        blur=[Region(x=24, y=176, width=150, height=28)],
        marks=[Mark(shape="box", at=[18, 212, 604, 40], label="Press this")],
        output_path=folder / "marked.png",
    )
    await _keep(lim, made.path, "transforming")


async def _keep(lim: Limner, path: Path, name: str) -> None:
    await lim.transform(
        path, resize=f"{WIDTH}x", output_path=IMAGES / f"{name}.webp", overwrite=True
    )


if __name__ == "__main__":
    asyncio.run(main())
