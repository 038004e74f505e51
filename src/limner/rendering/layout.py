"""A page of elements -> where each one goes: columns, rows and cards that share the room."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limner.rendering.brush import SHARES, Brush, Rect
from limner.rendering.charts import draw_chart
from limner.rendering.colours import parse_colour, readable_on
from limner.rendering.commit_graphs import draw_commits, measure_commits
from limner.rendering.diagrams import draw_diagram, measure_diagram
from limner.rendering.elements import (
    Align,
    AreaChart,
    AssetPicture,
    Badge,
    BarChart,
    Button,
    Card,
    Chart,
    ColumnBox,
    CommitGraph,
    Container,
    DataTable,
    Diagram,
    Divider,
    DocumentElement,
    GanttChart,
    LineChart,
    Page,
    PieChart,
    RowBox,
    ScatterPlot,
    SequenceDiagram,
    Spacer,
    TextBlock,
    Timeline,
)
from limner.rendering.gantt import draw_gantt, measure_gantt
from limner.rendering.sequences import draw_sequence, measure_sequence
from limner.rendering.tables import draw_table, measure_table
from limner.rendering.timelines import draw_timeline, measure_timeline
from limner.rendering.widgets import DRAWINGS, Drawing, Extent

# The least height of a chart and of a picture, in parts of the body size.
_MIN_CHART, _MIN_PICTURE = 11.0, 4.0
# A picture in a row of short texts is an icon.
_ICON, _MAX_ICON_CHARS = 2.4, 60


def measure(element: DocumentElement, brush: Brush, max_width: float) -> Extent:
    """The room that an element needs within a width."""
    key = (id(element), max_width, brush.style.base, brush.style.font)
    if key not in brush.extents:
        brush.extents[key] = _measure(element, brush, max_width)
    return brush.extents[key]


def _measure(element: DocumentElement, brush: Brush, max_width: float) -> Extent:
    wide, high = _drawing(element).measure(
        element, brush, min(element.width or max_width, max_width)
    )
    return min(element.width or wide, max_width), element.height or high


def draw(element: DocumentElement, brush: Brush, box: Rect) -> None:
    """Draw an element into a box."""
    _drawing(element).draw(element, brush, box)


def draw_page(page: Page, brush: Brush, box: Rect) -> None:
    """Draw the elements of a page, from top to bottom."""
    room = brush.style.base * 1.6 if page.padding is None else page.padding
    _draw_children(page, brush, box.inset(room), justify=page.justify)


def fits(page: Page, brush: Brush, box: Rect) -> bool:
    """Whether the elements of a page fit into a box at this text size."""
    room = brush.style.base * 1.6 if page.padding is None else page.padding
    return _stack_height(page, brush, box.width - 2 * room) <= box.height - 2 * room + 1


def _measure_chart(_: Chart, brush: Brush, max_width: float) -> Extent:
    return max_width, brush.style.base * _MIN_CHART


def _gap(container: Container, brush: Brush) -> float:
    return brush.style.base * 0.9 if container.gap is None else container.gap


def _padding(container: Container, brush: Brush) -> float:
    if container.padding is not None:
        return container.padding
    return brush.style.base * 1.1 if isinstance(container, Card) or container.background else 0.0


def _stack_height(container: Container, brush: Brush, width: float) -> float:
    heights = [_least_height(child, brush, width) for child in container.children]
    return sum(heights) + _gap(container, brush) * max(len(heights) - 1, 0)


def _least_height(child: DocumentElement, brush: Brush, width: float) -> float:
    if isinstance(child, AssetPicture) and child.size is None and child.height is None:
        return brush.style.base * _MIN_PICTURE
    return measure(child, brush, width)[1]


def _measure_column(column: Container, brush: Brush, max_width: float) -> Extent:
    room = _padding(column, brush)
    inner = max_width - 2 * room
    widths = [measure(child, brush, inner)[0] for child in column.children]
    high = _stack_height(column, brush, inner) + 2 * room + _title_height(column, brush, inner)
    return min(max(widths, default=0) + 2 * room, max_width), high


def _title_height(column: Container, brush: Brush, width: float) -> float:
    if not isinstance(column, Card) or not column.title:
        return 0.0
    return brush.wrap(column.title, "heading", width, bold=True).height + brush.style.base * 0.5


def _draw_column(column: Container, brush: Brush, box: Rect) -> None:
    brush = _on_ground(column, brush, box)
    inner = box.inset(_padding(column, brush))
    if isinstance(column, Card) and column.title:
        lines = brush.wrap(column.title, "heading", inner.width, bold=True)
        brush.lines(inner, lines, bold=True)
        inner = inner.below(lines.height + brush.style.base * 0.5)
    _draw_children(column, brush, inner, justify="start")


def _on_ground(container: Container, brush: Brush, box: Rect) -> Brush:
    """Draw the background of a container; returns the brush for what is on it."""
    theme, base = brush.style.theme, brush.style.base
    is_card = isinstance(container, Card)
    colors = ground_colours(container) or ([theme.surface] if is_card else [])
    if colors:
        border = theme.line if is_card else None
        if isinstance(container, Card) and container.accent:
            border = theme.accent
            brush.panel(box.inset(-base * 0.16), theme.accent, radius=base * 0.7)
        fill = brush.canvas.fade(*colors) if len(colors) > 1 else colors[0]
        round_by = (
            base * (0.6 if is_card else 0.3) if container.radius is None else container.radius
        )
        brush.panel(box, fill, radius=round_by, stroke=border)
        ink = readable_on(colors[-1], dark=theme.ink, light="#ffffff")
        if container.background is not None:
            theme = msgspec.structs.replace(theme, background=colors[-1])
        brush = brush.with_style(ink=ink, theme=theme)
    return brush.with_style(ink=parse_colour(container.color)) if container.color else brush


def ground_colours(container: Container) -> list[str]:
    """The colours of a container's background, from top to bottom."""
    ground = container.background
    names = ground if isinstance(ground, list) else [ground]
    return [parse_colour(name, field="background") for name in names if name]


def _draw_children(container: Container, brush: Brush, box: Rect, *, justify: str) -> None:
    children = container.children
    if container.align is not None:
        brush = brush.with_style(align=container.align)
    gap = _gap(container, brush)
    heights = [_least_height(child, brush, box.width) for child in children]
    spare = box.height - sum(heights) - gap * max(len(children) - 1, 0)
    weights = [_weight(child) for child in children]
    y = box.y
    if spare > 0 and sum(weights):
        heights = [
            high + spare * weight / sum(weights)
            for high, weight in zip(heights, weights, strict=True)
        ]
    elif spare > 0 and justify == "spread" and len(children) > 1:
        gap += spare / (len(children) - 1)
    elif spare > 0 and justify in ("center", "spread"):
        y += spare / 2
    for child, high in zip(children, heights, strict=True):
        wide = min(
            measure(child, brush, box.width)[0] if _keeps_width(child) else box.width, box.width
        )
        x = box.x + (box.width - wide) * SHARES[_own_align(child) or container.align or "start"]
        draw(child, brush, Rect(x, y, wide, high))
        y += high + gap


def _own_align(child: DocumentElement) -> Align | None:
    """Where an element wants to be; the `align` of a wide container is for what is in it."""
    return None if isinstance(child, Container) and child.width is None else child.align


def _keeps_width(child: DocumentElement) -> bool:
    if child.width is not None or (isinstance(child, Button) and child.align is not None):
        return True
    return _drawing(child).compact and not _weight(child)


def _weight(child: DocumentElement) -> float:
    """The share of spare room that an element takes in a column."""
    if child.grow is not None:
        return child.grow
    if child.height is not None or (isinstance(child, AssetPicture) and child.size is not None):
        return 0.0
    if isinstance(child, RowBox):
        # The shares of its children are shares of its width.
        others = [one for one in child.children if not _is_icon(one, child)]
        below = (msgspec.structs.replace(one, grow=None) for one in others)
        return 1.0 if any(map(_weight, below)) else 0.0
    if isinstance(child, Container):
        return 1.0 if any(_weight(below) for below in child.children) else 0.0
    return 1.0 if _drawing(child).flexible else 0.0


def _row_widths(row: RowBox, brush: Brush, width: float) -> list[float]:
    """Compact elements keep their width; the others share what is left."""
    room = width - _gap(row, brush) * max(len(row.children) - 1, 0)
    fixed: list[float | None] = []
    for child in row.children:
        if child.width is None and (isinstance(child, Divider) or _is_icon(child, row)):
            fixed.append(brush.style.base * (0.3 if isinstance(child, Divider) else _ICON))
            continue
        keeps = child.width is not None or (_keeps_own_width(child, row) and child.grow is None)
        fixed.append(measure(child, brush, room)[0] if keeps else None)
    fixed = _beside_spacers(row, brush, fixed, room)
    if None not in fixed and any(isinstance(child, Spacer) for child in row.children):
        fixed = [
            None if isinstance(child, Spacer) and child.width is None else wide
            for child, wide in zip(row.children, fixed, strict=True)
        ]
    left = max(room - sum(wide or 0 for wide in fixed), 1.0)
    fixed = _widths_of_texts(row, brush, fixed, left)
    shares = [
        (child.grow or 1.0) if wide is None else 0.0
        for child, wide in zip(row.children, fixed, strict=True)
    ]
    return [
        left * share / sum(shares) if wide is None else wide
        for wide, share in zip(fixed, shares, strict=True)
    ]


def _beside_spacers(
    row: RowBox, brush: Brush, fixed: list[float | None], room: float
) -> list[float | None]:
    """Texts beside a spacer keep the width of their words, so that the spacer takes the rest."""
    pairs = list(zip(row.children, fixed, strict=True))
    free = [child for child, wide in pairs if wide is None and child.grow is None]
    is_pushed = any(isinstance(child, Spacer) and child.width is None for child in row.children)
    if not is_pushed or not all(isinstance(child, TextBlock) for child in free):
        return fixed
    kept = [
        measure(child, brush, room)[0] if wide is None and child.grow is None else wide
        for child, wide in pairs
    ]
    return kept if sum(wide or 0 for wide in kept) <= room else fixed


def _widths_of_texts(
    row: RowBox, brush: Brush, fixed: list[float | None], left: float
) -> list[float | None]:
    """Give each text the width of its words, if one is wider than an equal share of the room."""
    pairs = list(zip(row.children, fixed, strict=True))
    texts = [child for child, wide in pairs if wide is None and child.grow is None]
    if not all(isinstance(child, TextBlock) for child in texts) or fixed.count(None) != len(texts):
        return fixed
    needs = [measure(child, brush, left)[0] for child in texts]
    if not texts or max(needs) <= left / len(texts):
        return fixed
    # If not all have room, one word cannot be broken, and several can.
    words = [isinstance(one, TextBlock) and " " not in one.text.strip() for one in texts]
    keeps = [True] * len(texts) if sum(needs) <= left else words
    spare = left - sum(need for need, keep in zip(needs, keeps, strict=True) if keep)
    if spare <= 0 or not any(keeps):
        return fixed
    share = spare / (len(texts) if all(keeps) else keeps.count(False))
    widths = iter(
        (need + (share if all(keeps) else 0.0)) if keep else share
        for need, keep in zip(needs, keeps, strict=True)
    )
    return [next(widths) if wide is None else wide for wide in fixed]


def _is_icon(child: DocumentElement, row: RowBox) -> bool:
    """Whether a picture without a size is as small as the short texts beside it."""
    if not isinstance(child, AssetPicture) or child.size or child.height or child.grow:
        return False
    others = [one for one in row.children if not isinstance(one, AssetPicture | Spacer | Badge)]
    return bool(others) and all(
        isinstance(one, TextBlock) and len(one.text) <= _MAX_ICON_CHARS for one in others
    )


def _keeps_own_width(child: DocumentElement, row: RowBox) -> bool:
    """Whether an element keeps its width; buttons beside other things do, buttons alone share."""
    if isinstance(child, Button):
        return not all(isinstance(one, Button) for one in row.children)
    return _is_compact(child)


def _is_compact(child: DocumentElement) -> bool:
    """Whether an element keeps its width in a row; a picture without a size takes its share."""
    if isinstance(child, AssetPicture) and child.size is None:
        return False
    return _drawing(child).compact


def _measure_row(row: RowBox, brush: Brush, max_width: float) -> Extent:
    room = _padding(row, brush)
    inner = max_width - 2 * room
    widths = _row_widths(row, brush, inner)
    heights = [
        wide if _is_icon(child, row) else _least_height(child, brush, wide)
        for child, wide in zip(row.children, widths, strict=True)
    ]
    used = sum(widths) + _gap(row, brush) * max(len(widths) - 1, 0)
    return min(used + 2 * room, max_width), max(heights, default=0) + 2 * room


def _draw_row(row: RowBox, brush: Brush, box: Rect) -> None:
    brush = _on_ground(row, brush, box)
    inner = box.inset(_padding(row, brush))
    widths = _row_widths(row, brush, inner.width)
    used = sum(widths) + _gap(row, brush) * max(len(widths) - 1, 0)
    share = SHARES[row.align or "start"]
    x = inner.x + max(inner.width - used, 0) * share
    for child, wide in zip(row.children, widths, strict=True):
        spare = inner.height - _least_height(child, brush, wide)
        # A column that does not fill the row is placed in it as the row is aligned.
        is_placed = row.align is not None and type(child) is ColumnBox and not _weight(child)
        down = max(spare, 0) * share if is_placed else 0.0
        draw(child, brush, Rect(x, inner.y + down, wide, inner.height - down))
        x += wide + _gap(row, brush)


def _drawing(element: DocumentElement) -> Drawing:
    return _ALL_DRAWINGS[type(element)]


_CHART = Drawing(_measure_chart, draw_chart, flexible=True)
_ALL_DRAWINGS: Mapping[type[DocumentElement], Drawing] = {
    **DRAWINGS,
    **dict.fromkeys((BarChart, LineChart, AreaChart, PieChart, ScatterPlot), _CHART),
    DataTable: Drawing(measure_table, draw_table),
    Diagram: Drawing(measure_diagram, draw_diagram, flexible=True),
    SequenceDiagram: Drawing(measure_sequence, draw_sequence, flexible=True),
    CommitGraph: Drawing(measure_commits, draw_commits, flexible=True),
    GanttChart: Drawing(measure_gantt, draw_gantt, flexible=True),
    Timeline: Drawing(measure_timeline, draw_timeline, flexible=True),
    ColumnBox: Drawing(_measure_column, _draw_column),
    Card: Drawing(_measure_column, _draw_column),
    RowBox: Drawing(_measure_row, _draw_row),
}
