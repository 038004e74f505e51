"""The picture pack -> anchors.tsv: the points of each picture at which relations join it to others.

``scripts/build_assets.py`` calls it after it wrote the pack. Alone, from the repository root::

    .venv/bin/python scripts/asset_anchors.py

Each line has the name of a picture and its anchors as ``kind x y ...`` in hundredths of the square.
Every picture has ``top``, the highest drawn point of its middle. People, animals and faces have
``head`` (middle and width of the lower edge of a hat), ``face`` (middle and width of the eyes),
``mouth`` and ``hand``; some have an ``arm`` (shoulder, and the colour of the coat) that is drawn to
the hand. Animals, furniture and vehicles have a ``seat``, containers an ``inside`` (left, top,
right, bottom), things for the hand a ``grip`` (a point and a turn). Rules measure most of them in
the picture; anchor_corrections.py has the others.
"""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

import resvg_py
from anchor_corrections import GRIPS, INSIDES, LIVING, SEATS, SHOULDERS
from PIL import Image

from limner.illustrator import assets, figures
from limner.illustrator.assets import AssetInfo

DATA = Path(assets.__file__).with_name("data")
PX = 100
SOLID = 60

Anchors = dict[str, tuple[int | str, ...]]
Box = tuple[int, int, int, int]


def main() -> None:
    """Write the anchors of all pictures of the pack."""
    lines: list[str] = []
    # One pass over the pack: to unpack each picture alone takes minutes.
    bodies = lzma.decompress((DATA / "pictures.xz").read_bytes()).decode().splitlines()
    boxes = [line.split("\t")[6] for line in (DATA / "index.tsv").read_text().splitlines()]
    for info, body, view_box in zip(assets.all_infos(), bodies, boxes, strict=True):
        found = measured(info, _rendered(view_box, body))
        cells = (" ".join(map(str, (kind, *numbers))) for kind, numbers in found.items())
        lines.append("\t".join((info.name, *cells)))
    (DATA / "anchors.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(info: AssetInfo, image: Image.Image) -> Anchors:
    """The anchors that a picture of its kind needs."""
    alpha = image.getchannel("A")
    left, top, right, bottom = box = _hundredths(info.box)
    middle = (left + right) // 2
    found: Anchors = {"top": (middle, _top_of(alpha, middle, max((right - left) // 6, 1), box))}
    if figures.is_alive(info) or figures.is_face(info):
        found |= _living(info, box) | LIVING.get(info.name, {})
    if info.name in SHOULDERS:
        x, y, *coat = SHOULDERS[info.name]
        found["arm"] = (x, y, _colour(image, *coat))
    if figures.has_seat(info) and "seat" not in found:
        back = left + round((right - left) * (0.6 if figures.looks_left(info) else 0.5))
        found["seat"] = SEATS.get(info.name) or (back, _top_of(alpha, back, 3, box) + 2)
    if info.name in figures.CONTAINERS:
        found["inside"] = INSIDES.get(info.name) or (left + 10, top, right - 10, top + 8)
    if figures.can_be_held(info):
        low = top + round((bottom - top) * 0.72)
        found["grip"] = GRIPS.get(info.name) or (middle, low, 0)
    return {kind: _within(kind, numbers, box) for kind, numbers in found.items()}


def _living(info: AssetInfo, box: Box) -> Anchors:
    """Where most pictures of the kind have head, eyes, mouth and hand: fractions of their box."""
    if figures.is_face(info):
        points = ((0.5, 0.14, 0.62), (0.5, 0.42, 0.6), (0.5, 0.7), (0.85, 0.85))
    elif figures.looks_left(info):
        points = ((0.22, 0.12, 0.3), (0.16, 0.3, 0.2), (0.05, 0.42), (0.05, 0.44))
    else:
        points = ((0.5, 0.1, 0.44), (0.5, 0.32, 0.3), (0.5, 0.46), (0.85, 0.72))
    left, top, right, bottom = box
    wide, tall = right - left, bottom - top
    return {
        kind: (
            round(left + wide * x),
            round(top + tall * y),
            *(round(wide * share) for share in width),
        )
        for kind, (x, y, *width) in zip(("head", "face", "mouth", "hand"), points, strict=True)
    }


def _top_of(alpha: Image.Image, middle: int, half: int, box: Box) -> int:
    """The highest drawn point near a column."""
    for y in range(PX):
        if any(_at(alpha, x, y) > SOLID for x in range(middle - half, middle + half + 1)):
            return y
    return box[1]


def _at(image: Image.Image, x: int, y: int) -> Any:
    return image.getpixel((min(max(x, 0), PX - 1), min(max(y, 0), PX - 1)))


def _colour(image: Image.Image, x: int, y: int) -> str:
    red, green, blue, _ = _at(image, x, y)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _within(kind: str, numbers: tuple[int | str, ...], box: Box) -> tuple[int | str, ...]:
    """The point, or the two corners of the inside, moved into the drawn box."""
    points = 4 if kind == "inside" else 2
    low, high = box[:2], box[2:]
    kept = (
        min(max(int(value), low[place % 2]), high[place % 2])
        for place, value in enumerate(numbers[:points])
    )
    return (*kept, *numbers[points:])


def _hundredths(box: tuple[float, float, float, float]) -> Box:
    left, top, right, bottom = (round(edge * 100) for edge in box)
    return left, top, right, bottom


def _rendered(view_box: str, body: str) -> Image.Image:
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" width="{PX}" '
        f'height="{PX}">{body}</svg>'
    )
    png = resvg_py.svg_to_bytes(svg_string=document)
    return Image.open(io.BytesIO(png)).convert("RGBA")


if __name__ == "__main__":
    main()
