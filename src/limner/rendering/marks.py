"""Boxes, arrows and numbered points -> an SVG overlay for a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from limner.errors import InputInvalid
from limner.imaging.transform import Mark
from limner.rendering.canvas import Canvas, closed, number
from limner.rendering.colours import parse_colour, readable_on
from limner.rendering.text import width

_NUMBERS = {"box": 4, "arrow": 4, "point": 2}
# Sizes in parts of the shorter edge of the picture, and the least of each in pixels.
_STROKE, _MIN_STROKE = 0.005, 2.0
_TEXT, _MIN_TEXT = 0.032, 13.0
_MAX_DISC_CHARS = 2


def draw_marks(marks: Sequence[Mark], wide: int, high: int) -> str:
    """Draw marks for a picture of a size.

    Raises:
        InputInvalid: a mark has too few or too many numbers, or an unknown colour.
    """
    canvas = Canvas(wide, high)
    for mark in marks:
        if len(mark.at) != _NUMBERS[mark.shape]:
            raise InputInvalid(
                f"{mark.shape}: at needs {_NUMBERS[mark.shape]} numbers, and has {len(mark.at)}",
                field="marks",
            )
        _DRAWERS[mark.shape](canvas, mark, parse_colour(mark.color, field="marks"))
    return canvas.document()


def _stroke(canvas: Canvas) -> float:
    return max(canvas.unit * _STROKE, _MIN_STROKE)


def _draw_box(canvas: Canvas, mark: Mark, color: str) -> None:
    x, y, wide, high = mark.at
    canvas.rect(
        x, y, wide, high, "none", stroke=color, stroke_width=number(_stroke(canvas)), rx="2"
    )
    if mark.label:
        _draw_tag(canvas, mark.label, color, x, y, above=True)


def _draw_arrow(canvas: Canvas, mark: Mark, color: str) -> None:
    x0, y0, x1, y1 = mark.at
    line = _stroke(canvas)
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    head = min(line * 5, length)
    across, down = (x1 - x0) / length, (y1 - y0) / length
    back = x1 - across * head, y1 - down * head
    side = head * 0.5
    canvas.line(
        f"M{number(x0)} {number(y0)}L{number(back[0])} {number(back[1])}", color, line * 1.3
    )
    points = [
        (x1, y1),
        (back[0] - down * side, back[1] + across * side),
        (back[0] + down * side, back[1] - across * side),
    ]
    canvas.path(closed(points), color)
    if mark.label:
        _draw_tag(canvas, mark.label, color, x0, y0, above=y0 <= y1)


def _draw_point(canvas: Canvas, mark: Mark, color: str) -> None:
    x, y = mark.at
    size = max(canvas.unit * _TEXT, _MIN_TEXT)
    is_short = len(mark.label) <= _MAX_DISC_CHARS
    radius = size * 0.85 if mark.label and is_short else size * 0.4
    edge = {"stroke": "#ffffff", "stroke_width": number(_stroke(canvas) * 0.7)}
    canvas.ellipse(x, y, radius, radius, color, **edge)
    if mark.label and is_short:
        canvas.text(x, y + size * 0.35, size, readable_on(color), mark.label)
    elif mark.label:
        _draw_tag(canvas, mark.label, color, x + radius * 1.6, y + size * 0.8, above=True)


def _draw_tag(canvas: Canvas, label: str, color: str, x: float, y: float, *, above: bool) -> None:
    """Words on a ground of the mark's colour, within the picture."""
    size = max(canvas.unit * _TEXT, _MIN_TEXT)
    wide, high = width(label, size, bold=True) + size * 0.8, size * 1.5
    left = min(max(x, 0), max(canvas.width - wide, 0))
    top = y - high if above else y
    top = min(max(top, 0), max(canvas.height - high, 0))
    canvas.rect(left, top, wide, high, color, rx=number(size * 0.2))
    canvas.text(
        left + size * 0.4, top + size * 1.1, size, readable_on(color), label, anchor="start"
    )


_DRAWERS = {"box": _draw_box, "arrow": _draw_arrow, "point": _draw_point}
