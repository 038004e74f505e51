"""Pictures with captions -> the layout of one sheet: where each goes, and what is written there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from limner.imaging.facts import SheetRequest
from limner.imaging.fit.request import Region
from limner.rendering.canvas import Canvas
from limner.rendering.text import shorten
from limner.rendering.text import width as text_width

PAPER, INK, FAINT, LINE, MARKED = "#f3f4f6", "#111827", "#4b5563", "#d1d5db", "#dc2626"
MARGIN = 20
_TEXT, _ROW, _TAG = 15.0, 21, 13.0


class SheetCell(msgspec.Struct, frozen=True, kw_only=True):
    """One picture on a sheet.

    Attributes:
        size: the width and height of the picture.
        title: the first line below it, in bold.
        lines: more lines below it.
        marks: parts of it that get a frame and a short label, in pixels of the picture.
    """

    size: tuple[int, int]
    title: str
    lines: tuple[str, ...] = ()
    marks: tuple[tuple[Region, str], ...] = ()


class SheetLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of text below all pictures; ``color`` is that of the dot before it."""

    text: str
    color: str


class SheetLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Where the pictures of a sheet go, and the SVG document that is drawn over them."""

    request: SheetRequest
    overlay: str


def lay_out(
    cells: Sequence[SheetCell],
    *,
    columns: int,
    cell_edge: int,
    footer: Sequence[SheetLine] = (),
) -> SheetLayout:
    """A grid of cells; no picture is wider or higher than ``cell_edge``, nor enlarged."""
    rooms = [_scaled(cell.size, cell_edge) for cell in cells]
    wide = max(*(room[0] for room in rooms), min(cell_edge, 240))
    high = max(room[1] for room in rooms)
    texts = max(1 + len(cell.lines) for cell in cells) * _ROW + 10
    columns = min(columns, len(cells))
    rows = math.ceil(len(cells) / columns)
    width = columns * (wide + MARGIN) + MARGIN
    grid = rows * (high + texts + MARGIN) + MARGIN
    canvas = Canvas(width, grid + len(footer) * _ROW + (MARGIN if footer else 0))
    places: list[Region] = []
    for number, (cell, room) in enumerate(zip(cells, rooms, strict=True)):
        left = MARGIN + (number % columns) * (wide + MARGIN)
        top = MARGIN + (number // columns) * (high + texts + MARGIN)
        place = Region(x=left, y=top, width=room[0], height=room[1])
        places.append(place)
        _draw_cell(canvas, cell, place, room_for_text=wide, text_top=top + high)
    for number, line in enumerate(footer):
        y = grid + number * _ROW + 10
        canvas.ellipse(MARGIN + 6, y, 5, 5, line.color)
        _draw_text(canvas, MARGIN + 20, y + 5, line.text, width - 2 * MARGIN - 20)
    request = SheetRequest(
        width=canvas.width, height=canvas.height, background=PAPER, places=tuple(places)
    )
    return SheetLayout(request=request, overlay=canvas.document())


def _draw_cell(
    canvas: Canvas, cell: SheetCell, place: Region, *, room_for_text: int, text_top: int
) -> None:
    frame = {"stroke": LINE, "stroke_width": "1"}
    canvas.rect(place.x - 0.5, place.y - 0.5, place.width + 1, place.height + 1, "none", **frame)
    across, down = place.width / cell.size[0], place.height / cell.size[1]
    for part, label in cell.marks:
        on_sheet = Region(
            x=place.x + round(part.x * across),
            y=place.y + round(part.y * down),
            width=round(part.width * across),
            height=round(part.height * down),
        )
        _draw_mark(canvas, on_sheet, label)
    for number, text in enumerate((cell.title, *cell.lines)):
        y = text_top + _ROW * (number + 1)
        _draw_text(canvas, place.x, y, text, room_for_text, bold=number == 0)


def _draw_text(
    canvas: Canvas, x: float, y: float, text: str, room: float, *, bold: bool = False
) -> None:
    words = shorten(text, _TEXT, room, bold=bold)
    canvas.text(x, y, _TEXT, INK if bold else FAINT, words, anchor="start", bold=bold)


def _draw_mark(canvas: Canvas, part: Region, label: str) -> None:
    """A frame around a part, and a tag at its top left corner."""
    frame = {"stroke": MARKED, "stroke_width": "2", "rx": "2"}
    # A little larger than the part, so that the line hides nothing.
    canvas.rect(part.x - 4, part.y - 4, part.width + 8, part.height + 8, "none", **frame)
    left, top = part.x - 5, max(part.y - _TAG - 8, 0)
    canvas.rect(left, top, text_width(label, _TAG, bold=True) + 8, _TAG + 5, MARKED, rx="2")
    canvas.text(left + 4, top + _TAG, _TAG, "#ffffff", label, anchor="start")


def _scaled(size: tuple[int, int], most: int) -> tuple[int, int]:
    scale = min(1.0, most / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
