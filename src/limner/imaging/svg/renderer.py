"""An SVG document -> PNG bytes, at the size asked for or its own, with resvg. Worker only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import resvg_py

from limner.errors import ImageTooLarge, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import Asset, rules
from limner.imaging.svg.assets import place_assets
from limner.imaging.svg.parser import SVG_NAMESPACE, Element, read


def check_expansion(root: Element, limits: WorkerLimits) -> None:
    """Refuse a document that refers to itself, or grows too large or too deep.

    Where several elements share an id the first one keeps it, as in a browser, so that what is
    counted here is what the renderer follows.

    Raises:
        UnsafeSvg: a reference leads back to where it came from.
        ImageTooLarge: the expanded document is over a limit.
    """
    targets: dict[str, Element] = {}
    for element in root.elements():
        identifier = element.attributes.get("id")
        if identifier is not None and targets.setdefault(identifier, element) is not element:
            del element.attributes["id"]
    _Survey(targets, limits).measure(root, depth=1)


class _Survey(msgspec.Struct):
    targets: dict[str, Element]
    limits: WorkerLimits
    # By identity: what an element becomes, as (elements, levels); None while it is being measured.
    known: dict[int, tuple[int, int] | None] = msgspec.field(
        default_factory=dict[int, "tuple[int, int] | None"]
    )

    def measure(self, element: Element, *, depth: int) -> tuple[int, int]:
        """Count the elements and levels that an element stands for."""
        key = id(element)
        if key in self.known:
            measured = self.known[key]
            if measured is None:
                name = element.attributes.get("id", "")
                raise UnsafeSvg(f"<{element.tag} id={name!r}> refers to itself")
            self._check(depth - 1 + measured[1])
            return measured
        self.known[key] = None
        self._check(depth)
        count, levels = 1, 0
        for part in self._parts(element):
            more, deeper = self.measure(part, depth=depth + 1)
            count, levels = count + more, max(levels, deeper)
        if count > self.limits.max_svg_expanded:
            limit = self.limits.max_svg_expanded
            raise ImageTooLarge(f"the document stands for more than {limit:,} elements")
        self.known[key] = count, levels + 1
        return count, levels + 1

    def _parts(self, element: Element) -> list[Element]:
        """What is drawn for an element: its children, and what its attributes refer to."""
        parts = [child for child in element.children if isinstance(child, Element)]
        for name, value in element.attributes.items():
            names = [value[1:]] if name == "href" else rules.local_references(value)
            parts += [self.targets[found] for found in names if found in self.targets]
        return parts

    def _check(self, depth: int) -> None:
        if depth > self.limits.max_svg_depth:
            message = f"elements nest more than {self.limits.max_svg_depth} deep"
            raise ImageTooLarge(f"{message} once references are followed")


# The longer edge of a drawing that names no size, and the most that any may have.
DEFAULT_EDGE = 1024
MAX_EDGE = 2048

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NATURAL_LENGTH = re.compile(rf"\s*({_NUMBER})(px|pt|pc|mm|cm|in)?\s*")
_VIEW_BOX = re.compile(
    rf"\s*({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})\s*"
)
_PIXELS = {"px": 1.0, "pt": 96 / 72, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}


def natural_size(root: Element) -> tuple[int, int]:
    """Width and height that show the whole drawing in proportion, within `MAX_EDGE`.

    A root that names a width and a height but no view box gets the one they imply, so that it can
    be drawn at any size.
    """
    width, height = _length(root, "width"), _length(root, "height")
    box = _view_box(root)
    if box is None:
        if width and height:
            root.attributes["viewBox"] = f"0 0 {width} {height}"
        return _within(width or height or DEFAULT_EDGE, height or width or DEFAULT_EDGE)
    if width and height:
        return _within(width, height)
    if width or height:
        scale = width / box[0] if width else (height or 0) / box[1]
    else:
        scale = DEFAULT_EDGE / max(box)
    return _within(box[0] * scale, box[1] * scale)


def _within(width: float, height: float) -> tuple[int, int]:
    scale = min(1.0, MAX_EDGE / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _length(root: Element, name: str) -> float | None:
    """A length of the root in pixels; None where it is relative to something outside."""
    found = _NATURAL_LENGTH.fullmatch(root.attributes.get(name, ""))
    return _positive(float(found[1]) * _PIXELS[found[2] or "px"]) if found else None


def _view_box(root: Element) -> tuple[float, float] | None:
    found = _VIEW_BOX.fullmatch(root.attributes.get("viewBox", ""))
    if found is None:
        return None
    width, height = _positive(float(found[3])), _positive(float(found[4]))
    return (width, height) if width and height else None


def _positive(number: float) -> float | None:
    # Beyond these no drawing is meant, and quotients of them would overflow.
    return number if 1e-9 <= number <= 1e9 else None


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
