"""Upright pixels and text lines -> a `PageReading`: the one place that combines the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from limner.imaging.evidence.charts import find_bars, find_slices
from limner.imaging.evidence.colour_names import hex_code
from limner.imaging.evidence.layout import (
    MAX_VALUES,
    find_tables,
    find_values,
    label_of,
    reading_order,
    rows_of,
)
from limner.imaging.evidence.monospace import align
from limner.imaging.evidence.record import (
    Box,
    Control,
    OcrPage,
    PageReading,
    Panel,
    Shape,
    Table,
    TextLine,
)
from limner.imaging.evidence.surfaces import Flat, Surfaces, shapes

_MAX_SHAPES = 200
# A panel that is this high and this narrow is a column of its own, such as a side bar.
_COLUMN_HEIGHT, _COLUMN_WIDTH = 0.6, 0.45


def interpret(
    pixels: Any, lines: Sequence[TextLine], *, turned: int, recognize: Callable[[Any], str]
) -> PageReading:
    """Everything that the layout of a page says; boxes are in its pixels.

    ``recognize`` reads the text in the pixels of one row.
    """
    surfaces = Surfaces(pixels)
    styled = [surfaces.style(line) for line in lines]
    styled = reading_order(align(pixels, styled, recognize=recognize))
    panels = surfaces.panels(styled)
    columns = [panel.box for panel, _ in panels if _is_column(panel, surfaces)]
    rows = [part for row in rows_of(styled) for part in _split(row, columns)]
    rows = [row for column in (*columns, None) for row in rows if _home(row, columns) == column]
    cells = {inside[0]: panel.box for panel, inside in panels if len(inside) == 1}
    tables = find_tables(rows, cells)
    flats = surfaces.flats(styled)
    toggles = _toggles(surfaces, flats, styled)
    flats = [flat for flat in flats if flat.shade != surfaces.page_shade]
    charted = [
        *find_bars(flats, styled),
        *find_slices(flats, styled, pixels=surfaces.width * surfaces.height),
    ]
    # The numbers of a chart stand between its grid lines, which look like buttons.
    written = {value.value for value in charted}
    boxed = _controls(surfaces, panels, styled, tables)
    controls = [*(one for one in boxed if one.label not in written), *toggles]
    values = [*charted, *find_values(rows, controls, tables)]
    used = {_key(control.box) for control in controls}
    return PageReading(
        lines=tuple(replace(line, row=at) for at, row in enumerate(rows) for line in row),
        turned=turned,
        panels=tuple(panel for panel, _ in panels),
        controls=tuple(controls),
        shapes=_shapes(flats, styled, used, surfaces),
        values=tuple(values[:MAX_VALUES]),
        tables=tuple(tables),
    )


def _is_column(panel: Panel, surfaces: Surfaces) -> bool:
    high = panel.box.height >= _COLUMN_HEIGHT * surfaces.height
    return high and panel.box.width <= _COLUMN_WIDTH * surfaces.width


def _split(row: Sequence[TextLine], columns: Sequence[Box]) -> list[list[TextLine]]:
    """The pieces of a row by the column that they are in."""
    parts: dict[int, list[TextLine]] = {}
    for line in row:
        home = next((n for n, box in enumerate(columns) if _is_in(line.box, box)), len(columns))
        parts.setdefault(home, []).append(line)
    return list(parts.values())


def _home(row: Sequence[TextLine], columns: Sequence[Box]) -> Box | None:
    return next((box for box in columns if _is_in(row[0].box, box)), None)


def _is_in(inner: Box, outer: Box) -> bool:
    x, y = inner.x + inner.width / 2, inner.y + inner.height / 2
    return outer.x <= x <= outer.x + outer.width and outer.y <= y <= outer.y + outer.height


def _controls(
    surfaces: Surfaces,
    panels: Sequence[tuple[Panel, list[TextLine]]],
    lines: Sequence[TextLine],
    tables: Sequence[Table],
) -> list[Control]:
    """Buttons and fields around a text, checkboxes and radio buttons left of it."""
    found: list[Control] = []
    # The text of one button is not the label of the next.
    boxed = {inside[0] for panel, inside in panels if len(inside) == 1 and _fits(panel, inside[0])}
    for panel, inside in panels:
        in_table = any(_is_in(inside[0].box, table.box) for table in tables)
        control = surfaces.boxed_control(panel, inside[0]) if len(inside) == 1 else None
        if control is None or in_table:
            continue
        if control.kind == "field" or surfaces.is_bordered(control.box, control.colour):
            # A button with a label right above it is a list to choose from.
            free = [line for line in lines if line not in boxed]
            label = label_of(control.box, free, most_apart=1.6)
            if control.kind == "field" or label is not None:
                text = inside[0].text
                name = label.text if label is not None else ""
                control = replace(control, kind="field", state=text, label=name)
        found.append(control)
    boxes = [control.box for control in found]
    for line in lines:
        # Cells of a table are close to each other: a round letter is no mark of the next cell.
        if any(_is_in(line.box, box) for box in (*boxes, *(table.box for table in tables))):
            continue
        mark = surfaces.mark(line)
        if mark is not None and not any(
            _is_in(mark.box, other.box)
            for other in lines
            if other is not line and len(other.text) > 2
        ):
            found.append(mark)
    return sorted(found, key=lambda control: (control.box.y, control.box.x))


def _fits(panel: Panel, line: TextLine) -> bool:
    """Whether a panel is as close around its text as a button."""
    return panel.box.height <= 4 * line.box.height and panel.box.width <= 6 * line.box.width


def _toggles(surfaces: Surfaces, flats: Sequence[Flat], lines: Sequence[TextLine]) -> list[Control]:
    found: list[Control] = []
    for flat in flats:
        state = surfaces.toggle(flat)
        label = _beside(flat.box, lines)
        if state is None or label is None or any(_is_in(flat.box, one.box) for one in found):
            continue
        found.append(
            Control(
                kind="toggle",
                label=label.text,
                state=state,
                colour=hex_code(flat.shade),
                box=flat.box,
            )
        )
    return found


def _beside(box: Box, lines: Sequence[TextLine]) -> TextLine | None:
    """The text in the row of a control: the nearest on its left, or else on its right."""
    middle = box.y + box.height / 2
    row = [
        line
        for line in lines
        if line.box.y - 0.4 * line.box.height <= middle <= line.box.y + 1.4 * line.box.height
        and not _is_in(line.box, box)
    ]
    left = [line for line in row if line.box.x + line.box.width <= box.x + 2]
    if left:
        return max(left, key=lambda line: line.box.x)
    return min(
        (line for line in row if line.box.x > box.x), key=lambda one: one.box.x, default=None
    )


def _shapes(
    flats: Sequence[Flat],
    lines: Sequence[TextLine],
    used: set[tuple[int, ...]],
    surfaces: Surfaces,
) -> tuple[Shape, ...]:
    pixels = surfaces.width * surfaces.height
    found = [shape for shape in shapes(flats, lines, pixels=pixels) if _key(shape.box) not in used]
    found.sort(key=lambda shape: (shape.box.y, shape.box.x))
    return tuple(found[:_MAX_SHAPES])


def _key(box: Box) -> tuple[int, ...]:
    return msgspec.structs.astuple(box)


def map_boxes(reading: PageReading, page: OcrPage) -> PageReading:
    """The reading with boxes of the original instead of those of the turned and scaled page."""
    across, down = page.original_width / page.width, page.original_height / page.height

    def back(box: Box) -> Box:
        return scaled(_turn_back(box, reading.turned, page.width, page.height), across, down)

    def walk(value: object) -> Any:
        if isinstance(value, Box):
            return back(value)
        if isinstance(value, tuple):
            return tuple(walk(one) for one in cast("tuple[object, ...]", value))
        if isinstance(value, msgspec.Struct):
            fields = msgspec.structs.asdict(value)
            return replace(value, **{name: walk(one) for name, one in fields.items()})
        return value

    return walk(reading)


def scaled(box: Box, across: float, down: float) -> Box:
    """A box in pixels of a picture that is so many times as wide and as high."""
    return Box(
        x=round(box.x * across),
        y=round(box.y * down),
        width=round(box.width * across),
        height=round(box.height * down),
    )


def _turn_back(box: Box, degrees: int, width: int, height: int) -> Box:
    """A box of the picture turned by ``degrees`` counterclockwise, in the picture itself."""
    if degrees == 90:
        return Box(x=width - box.y - box.height, y=box.x, width=box.height, height=box.width)
    if degrees == 180:
        x, y = width - box.x - box.width, height - box.y - box.height
        return Box(x=x, y=y, width=box.width, height=box.height)
    if degrees == 270:
        return Box(x=box.y, y=height - box.x - box.width, width=box.height, height=box.width)
    return box
