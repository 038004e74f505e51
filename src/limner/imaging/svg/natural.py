"""The root element of a drawing -> the size it gives itself, in pixels."""

from __future__ import annotations

import re

from limner.imaging.svg.read import Element

# The longer edge of a drawing that names no size, and the most that any may have.
DEFAULT_EDGE = 1024
MAX_EDGE = 2048

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LENGTH = re.compile(rf"\s*({_NUMBER})(px|pt|pc|mm|cm|in)?\s*")
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
    found = _LENGTH.fullmatch(root.attributes.get(name, ""))
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
