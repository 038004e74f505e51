"""An SVG document -> PNG bytes, at the size asked for or its own, with resvg. Worker only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import resvg_py

from limner.errors import ImageTooLarge
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import Asset
from limner.imaging.svg.assets import place_assets
from limner.imaging.svg.expansion import check_expansion
from limner.imaging.svg.natural import natural_size
from limner.imaging.svg.read import SVG_NAMESPACE, Element, read

_FONT = "Inter"
_FONT_FILES = [
    str(Path(__file__).parent.parent / "fonts" / name)
    for name in ("Inter-Regular.ttf", "Inter-Bold.ttf")
]
_LENGTH = re.compile(r"\s*\+?(\d+(?:\.\d*)?|\.\d+)(?:px)?\s*")


def render(
    document: str,
    *,
    width: int,
    height: int,
    assets: Mapping[str, Asset],
    limits: WorkerLimits,
) -> bytes:
    """Draw a document from outside.

    The ``viewBox`` and ``preserveAspectRatio`` of the document place it within width x height; a
    document without ``viewBox`` is scaled from its own width and height, and one without those
    is drawn in output pixels. What it leaves bare is transparent.

    Raises:
        UnsafeSvg: it asks for more than drawing, or for an asset that is not there.
        ImageTooLarge: it, or the picture asked for, is over a limit.
        CorruptImage: it is not an SVG document that can be drawn.
    """
    edge = limits.max_svg_edge
    if not (1 <= width <= edge and 1 <= height <= edge):
        raise ImageTooLarge(f"{width}x{height}: a drawing may be 1 to {edge} pixels on each side")
    root = _checked(document, assets, limits)
    _set_size(root, width=width, height=height)
    return _draw(root.to_text())


def render_alone(document: str, limits: WorkerLimits) -> bytes:
    """Draw a document that stands alone, in proportion, at the size `natural_size` finds.

    Raises:
        ImageError: as `render`.
    """
    root = _checked(document, {}, limits)
    width, height = natural_size(root)
    _set_size(root, width=width, height=height)
    return _draw(root.to_text())


def _checked(document: str, assets: Mapping[str, Asset], limits: WorkerLimits) -> Element:
    if len(document.encode()) > limits.max_svg_bytes:
        raise ImageTooLarge(f"the SVG document has more than {limits.max_svg_bytes:,} bytes")
    root = read(document, limits)
    place_assets(root, assets, limits)
    check_expansion(root, limits)
    return root


def _set_size(root: Element, *, width: int, height: int) -> None:
    own = root.attributes
    if "viewBox" not in own:
        across = _LENGTH.fullmatch(own.get("width", ""))
        down = _LENGTH.fullmatch(own.get("height", ""))
        if across and down:
            own["viewBox"] = f"0 0 {across[1]} {down[1]}"
    root.attributes = {
        "xmlns": SVG_NAMESPACE,
        **own,
        "width": str(width),
        "height": str(height),
    }


def _draw(text: str) -> bytes:
    return resvg_py.svg_to_bytes(
        svg_string=text,
        skip_system_fonts=True,
        font_files=_FONT_FILES,
        font_family=_FONT,
        serif_family=_FONT,
        sans_serif_family=_FONT,
        cursive_family=_FONT,
        fantasy_family=_FONT,
        monospace_family=_FONT,
    )
