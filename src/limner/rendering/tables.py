"""A table -> columns as wide as their words need, rows as high as their lines need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from limner.rendering.brush import Brush, Rect, format_number
from limner.rendering.canvas import mix, number
from limner.rendering.colours import readable_on
from limner.rendering.elements import Align, Cell, DataTable
from limner.rendering.text import TextLines

_WORDS = {True: "yes", False: "no", None: ""}


def measure_table(table: DataTable, brush: Brush, max_width: float) -> tuple[float, float]:
    """Width and height of a table, its title included."""
    rows = _rows(table, brush, _widths(table, brush, max_width))
    height = sum(_row_height(row, brush) for row in rows)
    return max_width, height + brush.title_height(table, max_width)


def draw_table(table: DataTable, brush: Brush, box: Rect) -> None:
    """Draw a table at the top of a box."""
    base, theme = brush.style.base, brush.style.theme
    top = brush.title(box, table)
    widths = _widths(table, brush, box.width)
    rows = _rows(table, brush, widths)
    extra = max(top.height - sum(_row_height(row, brush) for row in rows), 0)
    # Spare room makes the rows higher, up to a point.
    more = min(extra / max(len(rows), 1), base * 1.2)
    y = top.y
    stripe = mix(theme.background, theme.surface, 0.8)
    aligns: list[Align] = [_align(table, column) for column in range(len(widths))]
    for place, row in enumerate(rows):
        is_head = place == 0 and _has_head(table)
        high = _row_height(row, brush) + more
        band = Rect(box.x, y, box.width, high)
        fill = theme.accent if is_head else (stripe if place % 2 == 0 else theme.background)
        brush.panel(band, fill, radius=base * 0.3 if is_head else 0)
        x = box.x
        heats = _heats(table, place - _has_head(table), brush) if table.heat else {}
        for column, (cell, wide, align) in enumerate(zip(row, widths, aligns, strict=True)):
            ink = readable_on(theme.accent) if is_head else None
            if column in heats and not is_head:
                ink = readable_on(heats[column])
                brush.panel(Rect(x, y, wide, high).inset(1), heats[column])
            brush.lines(
                Rect(x + base * 0.7, y, wide - base * 1.4, high),
                cell,
                align=align,
                bold=is_head,
                color=ink,
                centred=True,
            )
            x += wide
        y += high
        brush.canvas.line(
            f"M{number(box.x)} {number(y)}H{number(box.right)}", theme.line, max(base / 16, 1)
        )


def _heats(table: DataTable, place: int, brush: Brush) -> dict[int, str]:
    """The colours of the numbers in a row: pale for the least, strong for the most."""
    numbers = [cell for row in table.rows for cell in row if _is_plain_number(cell)]
    if not numbers or not 0 <= place < len(table.rows):
        return {}
    low, high = min(numbers), max(numbers)
    theme = brush.style.theme
    return {
        column: mix(
            theme.background, theme.accent, 0.08 + 0.92 * (cell - low) / ((high - low) or 1)
        )
        for column, cell in enumerate(table.rows[place])
        if _is_plain_number(cell)
    }


def _is_plain_number(cell: Cell) -> TypeGuard[float]:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _has_head(table: DataTable) -> bool:
    return any(column.strip() for column in table.columns)


def _columns(table: DataTable) -> int:
    return max([len(table.columns), *(len(row) for row in table.rows)])


def _texts(table: DataTable) -> list[list[str]]:
    count = _columns(table)
    rows = [[*table.columns]] if _has_head(table) else []
    rows += [[_text(cell) for cell in row] for row in table.rows]
    return [[*row, *[""] * (count - len(row))] for row in rows]


def _text(cell: Cell) -> str:
    if cell is None or isinstance(cell, bool):
        return _WORDS[cell]
    return cell if isinstance(cell, str) else format_number(cell)


def _widths(table: DataTable, brush: Brush, max_width: float) -> list[float]:
    """Natural widths; wide columns give way if they do not fit, narrow ones grow if they do."""
    columns = zip(*_texts(table), strict=True)
    room = brush.style.base * 1.4
    natural = [max(brush.width(text, "body", bold=True) for text in c) + room for c in columns]
    total = sum(natural)
    if total <= max_width:
        spare = (max_width - total) / len(natural)
        return [wide + spare for wide in natural]
    fair = max_width / len(natural)
    narrow = sum(wide for wide in natural if wide <= fair)
    wide_total = sum(wide for wide in natural if wide > fair)
    scale = (max_width - narrow) / wide_total
    return [wide if wide <= fair else wide * scale for wide in natural]


def _rows(table: DataTable, brush: Brush, widths: Sequence[float]) -> list[list[TextLines]]:
    room = brush.style.base * 1.4
    return [
        [
            brush.wrap(text, "body", max(wide - room, 1), bold=place == 0 and _has_head(table))
            for text, wide in zip(row, widths, strict=True)
        ]
        for place, row in enumerate(_texts(table))
    ]


def _row_height(row: Sequence[TextLines], brush: Brush) -> float:
    return max(cell.height for cell in row) + brush.style.base * 0.9


def _align(table: DataTable, column: int) -> Align:
    """How a column is aligned: as its author says, or numbers to the right."""
    if column < len(table.column_align):
        return table.column_align[column]
    if table.heat and column:
        return "center"
    return "end" if _is_number_column(table, column) else "start"


def _is_number_column(table: DataTable, column: int) -> bool:
    cells = [row[column] for row in table.rows if column < len(row)]
    plain = [cell for cell in cells if cell is not None and cell != ""]
    return bool(plain) and all(_looks_like_number(cell) for cell in plain)


def _looks_like_number(cell: Cell) -> bool:
    if not isinstance(cell, str):
        return not isinstance(cell, bool)
    digits = (
        cell.strip()
        .strip("$€£¥%+-\N{MINUS SIGN}")
        .replace(",", "")
        .replace(".", "")
        .replace(" ", "")
    )
    return digits.isdigit()
