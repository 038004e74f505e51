"""The style of a prompt -> drawings in lines, or colours that are changed as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from limner.imaging.svg import Asset

# Style -> the words for it.
STYLES = {
    "line": "line art, line drawing, minimalist line drawing, outline, sketch, pencil drawing, "
    "ink drawing, coloring page, colouring page",
    "blueprint": "blueprint, technical drawing",
    "black and white": "black and white, noir, monochrome, greyscale, grayscale",
    "sepia": "sepia, vintage photo, old photo",
    "pixel": "pixel art, pixel, pixelated, 8 bit, 8bit, 16 bit",
}
STYLE_OF = {words: style for style, listed in STYLES.items() for words in listed.split(", ")}
# Style -> ink and paper of a drawing in lines.
INKS: Mapping[str, tuple[str, str]] = {
    "line": ("#2b2936", "#fdfcf8"),
    "blueprint": ("#e8f1ff", "#1f4e9a"),
}
SQUARES = 96
_GREY = "0.3 0.59 0.11 0 0"
# Style -> the colour matrix of its filter.
MATRICES: Mapping[str, str] = {
    "black and white": f"{_GREY} {_GREY} {_GREY} 0 0 0 1 0",
    "sepia": "0.39 0.77 0.19 0 0 0.35 0.69 0.17 0 0 0.27 0.53 0.13 0 0 0 0 0 1 0",
}
_FILL = re.compile(r' fill="(?!none)[^"]*"')
_DROPPED = re.compile(r' (?:filter|stroke|stroke-width|(?:fill-|stroke-)?opacity)="[^"]*"')


def as_lines(asset: Asset, style: str) -> Asset:
    """A picture as an outline drawing."""
    ink, paper = INKS[style]
    width = float(asset.view_box.split()[2]) / 110
    line = f' fill="{paper}" stroke="{ink}" stroke-width="{width:.2f}"'
    return replace(asset, body=_FILL.sub(line, _DROPPED.sub("", asset.body)))
