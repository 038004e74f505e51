"""Text lines with boxes -> labels with their values, and tables: geometry only, no pixels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from msgspec.structs import replace

from limner.imaging.evidence.record import Box, Control, LabelledValue, Table, TextLine

_NUMBER = re.compile(r"[-+(]?\s*[$€£¥]?\s*\d[\d.,  ']*\s*(?:[%€$£¥)]|[A-Za-z]{1,3})?")
_CHANGE = re.compile(r"[-+\u2212▲▼↑↓]\s*[\d.,]+\s*%?.*")
_INLINE = re.compile(
    r"(?P<label>[^\W\d][^:\uff1a=]{0,40}?)(?::\s+|\s*\uff1a\s*|\s+=\s+)(?P<value>\S.*)"
)
_PERIOD = re.compile(r"(?:19|20)\d\d|[QHW]\d{1,2}", re.IGNORECASE)
_TIME = re.compile(r"\d{1,2}$")
_MAX_TABLES = 20
# A label above a value is no table yet.
_LEAST_ROWS = 3
# Rows of one table are at most this many line heights apart.
_ROW_GAP = 3.2
MAX_VALUES = 400
# A column of an article has so many lines, and half of these so many letters.
_LEAST_COLUMN_LINES, _LEAST_COLUMN_LETTERS = 3, 28


def is_number(text: str) -> bool:
    """Whether a text is a number, perhaps with a unit or a currency."""
    return bool(_NUMBER.fullmatch(text.strip()))


def to_number(text: str) -> float | None:
    """The only number in a text; None if there is none, or more than one."""
    found = re.findall(r"-?\d[\d.,]*", text.replace("\u2212", "-"))
    if len(found) != 1:
        return None
    digits = found[0].rstrip(".,")
    digits = re.sub(r",(?=\d{3}(?:\D|$))", "", digits).replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None


def rows_of(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """The lines grouped by their row."""
    return [list(row) for _, row in groupby(lines, key=lambda line: line.row)]


def surrounding(boxes: Iterable[Box]) -> Box:
    """The smallest box around several."""
    known = list(boxes)
    left, top = min(box.x for box in known), min(box.y for box in known)
    right = max(box.x + box.width for box in known)
    bottom = max(box.y + box.height for box in known)
    return Box(x=left, y=top, width=right - left, height=bottom - top)


def reading_order(lines: Sequence[TextLine]) -> list[TextLine]:
    """The lines with the columns of an article one after the other, and new row numbers."""
    columns = _text_columns(lines)
    if len(columns) < 2:
        return list(lines)
    top = min(line.box.y for column in columns for line in column)
    bottom = max(line.box.y + line.box.height for column in columns for line in column)
    edges = [min(line.box.x for line in column) for column in columns]
    slack = columns[0][0].box.height

    def place(line: TextLine) -> tuple[int, int]:
        """The part of the page, and the column in it."""
        if line.box.y + line.box.height <= top:
            return 0, 0
        if line.box.y >= bottom:
            return 2, 0
        return 1, sum(line.box.x >= edge - slack for edge in edges[1:])

    crossing = any(
        place(line)[0] == 1
        and any(line.box.x < edge - slack < _right(line.box) - slack for edge in edges[1:])
        for line in lines
    )
    if crossing:
        return list(lines)
    ordered = sorted(lines, key=lambda line: (*place(line), line.row, line.box.x))
    numbers: dict[tuple[int, int, int], int] = {}
    return [
        replace(line, row=numbers.setdefault((*place(line), line.row), len(numbers)))
        for line in ordered
    ]


def _text_columns(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """The paragraphs that stand side by side, from left to right, by the left edges of lines."""
    groups: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda line: line.box.x):
        group = groups[-1] if groups else None
        if group and line.box.x - group[0].box.x <= 0.7 * line.box.height:
            group.append(line)
        else:
            groups.append([line])
    found = [sorted(group, key=lambda line: line.box.y) for group in groups]
    found = [group for group in map(_paragraph_lines, found) if len(group) >= _LEAST_COLUMN_LINES]
    side_by_side = all(
        max(_right(line.box) for line in left) < min(line.box.x for line in right)
        and _shared_height(left, right) > 0.5
        for left, right in pairwise(found)
    )
    return found if side_by_side else []


def _paragraph_lines(group: Sequence[TextLine]) -> list[TextLine]:
    """The lines of a group that follow closely on each other and are as long as in a paragraph."""
    close = [
        line
        for line in group
        if any(
            0 < abs(line.box.y - other.box.y) <= 2.2 * min(line.box.height, other.box.height)
            for other in group
        )
    ]
    long = sum(len(line.text) >= _LEAST_COLUMN_LETTERS for line in close)
    return close if 2 * long >= len(close) else []


def _shared_height(left: Sequence[TextLine], right: Sequence[TextLine]) -> float:
    """The part of the shorter column that is beside the other one."""
    spans = [
        (column[0].box.y, column[-1].box.y + column[-1].box.height) for column in (left, right)
    ]
    shared = min(span[1] for span in spans) - max(span[0] for span in spans)
    return shared / max(1, min(end - start for start, end in spans))


def find_tables(
    rows: Sequence[Sequence[TextLine]], cells: Mapping[TextLine, Box] | None = None
) -> list[Table]:
    """Consecutive rows whose pieces stand in the same columns.

    ``cells`` are the boxes of a ruled table, by the text in them.
    """
    known = cells or {}
    tables = list(_find_tables([[_placed(line, known) for line in row] for row in rows]))
    return tables[:_MAX_TABLES]


def _placed(line: TextLine, cells: Mapping[TextLine, Box]) -> TextLine:
    """The line, as wide as its cell."""
    cell = cells.get(line)
    if cell is None:
        return line
    return replace(line, box=replace(line.box, x=cell.x, width=cell.width))


def _find_tables(rows: Sequence[Sequence[TextLine]]) -> Iterator[Table]:
    run: list[Sequence[TextLine]] = []
    for row in rows:
        if run and not (
            _continues(run[-1], row) and _is_regular(run, row) and _shares_columns(run, row)
        ):
            yield from _table(run)
            run = []
        run = [*run, row] if len(row) >= 2 else []
    yield from _table(run)


def _continues(above: Sequence[TextLine], row: Sequence[TextLine]) -> bool:
    gap = row[0].box.y - above[0].box.y - above[0].box.height
    return len(row) >= 2 and gap <= _ROW_GAP * above[0].box.height


def _is_regular(run: Sequence[Sequence[TextLine]], row: Sequence[TextLine]) -> bool:
    """Whether a row follows as closely as the rows before it."""
    steps = [below[0].box.y - above[0].box.y for above, below in pairwise([*run, row])]
    return len(steps) < 2 or steps[-1] <= 1.7 * min(steps[:-1])


def _shares_columns(run: Sequence[Sequence[TextLine]], row: Sequence[TextLine]) -> bool:
    """Whether each piece of a row stands in a column of its own."""
    columns = _columns(run)
    places = [_column(columns, piece.box) for piece in row]
    hits = [place for place in places if place is not None]
    if len(hits) != len(set(hits)):
        return False
    if len(columns) > 2 and _is_in_order(places, columns):
        return True
    return len(hits) >= 2 and len(hits) >= len(row) - 1


def _is_in_order(places: Sequence[int | None], columns: Sequence[tuple[int, int]]) -> bool:
    """Whether a row has one piece for each column, and none stands in another one.

    A number at the right of its column need not be below a heading at the left.
    """
    right = [place is None or place == number for number, place in enumerate(places)]
    return len(places) == len(columns) and all(right) and any(one is not None for one in places)


def _columns(run: Sequence[Sequence[TextLine]]) -> list[tuple[int, int]]:
    """The left and the right edge of each column, by the rows with the most pieces."""
    most = max(map(len, run))
    full = [row for row in run if len(row) == most]
    return [
        (min(row[index].box.x for row in full), max(_right(row[index].box) for row in full))
        for index in range(most)
    ]


def _column(columns: Sequence[tuple[int, int]], box: Box) -> int | None:
    """The column that a box overlaps most; None if it overlaps none, or two of them."""
    shared = [min(_right(box), right) - max(box.x, left) for left, right in columns]
    best = max(range(len(columns)), key=shared.__getitem__)
    if shared[best] <= 0 or sum(one > 0.3 * box.width for one in shared) > 1:
        return None
    return best


def _table(run: Sequence[Sequence[TextLine]]) -> Iterator[Table]:
    if len(run) < _LEAST_ROWS:
        return
    columns = _columns(run)
    cells: list[tuple[str, ...]] = []
    for row in run:
        texts = [""] * len(columns)
        places = [_column(columns, piece.box) for piece in row]
        if _is_in_order(places, columns):
            places = [*range(len(columns))]
        for piece, place in zip(row, places, strict=True):
            if place is not None:
                texts[place] = f"{texts[place]} {piece.text}".strip()
        cells.append(tuple(texts))
    header = _has_header(run, cells)
    body = cells[1:] if header else cells
    if len(columns) == 2 and (not header or _are_pairs(cells)):
        return  # labels with their values, or numbered lines as in an editor
    # Cards of a dashboard are columns of numbers; without words a row cannot be named.
    if not any(cell and not is_number(cell) for row in body for cell in row):
        return
    boxes = tuple(surrounding(piece.box for piece in row) for row in run)
    yield Table(rows=tuple(cells), header=header, box=surrounding(boxes), row_boxes=boxes)


def _are_pairs(cells: Sequence[tuple[str, ...]]) -> bool:
    first = [row[0] for row in cells]
    return all(map(str.isdigit, first)) or all(text.endswith((":", "\uff1a")) for text in first)


def _has_header(run: Sequence[Sequence[TextLine]], cells: Sequence[tuple[str, ...]]) -> bool:
    first, body = cells[0], cells[1:]
    if sum(_has_digit(cell) and not _PERIOD.fullmatch(cell) for cell in first) * 2 > len(first):
        return False
    if any(is_number(cell) and not _PERIOD.fullmatch(cell) for cell in first):
        return False
    if sum(map(bool, first)) < max(2, len(first) - 1):
        return False
    numeric = any(
        sum(is_number(row[index]) or _has_digit(row[index]) for row in body) * 2 > len(body)
        for index in range(len(first))
        if not is_number(first[index])
    )
    style, other = run[0][0], run[1][0]
    return numeric or (len(cells) > 2 and (style.paper, style.ink) != (other.paper, other.ink))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def find_values(
    rows: Sequence[Sequence[TextLine]], controls: Sequence[Control], tables: Sequence[Table]
) -> Iterator[LabelledValue]:
    """Labels with the value after a colon, to the right, below, or in a field."""
    lines = [line for row in rows for line in row]
    fields = [control for control in controls if control.kind == "field"]
    for field in fields:
        if field.label:
            yield LabelledValue(label=field.label, value=field.state, found="field", box=field.box)
    taken = [*(control.box for control in controls), *(table.box for table in tables)]
    marks = [control.box for control in controls if control.kind != "field"]
    for row in rows:
        yield from _inline(row)
        # The next button is not the value of a button, and a tick is no label.
        right = list(
            _to_the_right([line for line in row if not any(_inside(line, box) for box in marks)])
        )
        yield from right
        if right:
            taken.append(surrounding(line.box for line in row))
    yield from _below([line for line in lines if not any(_inside(line, box) for box in taken)])


def _inline(row: Sequence[TextLine]) -> Iterator[LabelledValue]:
    for line in row:
        found = _INLINE.fullmatch(line.text.strip())
        if found and not _TIME.search(found["label"]):
            yield LabelledValue(
                label=found["label"].strip(), value=found["value"], found="inline", box=line.box
            )


def _to_the_right(row: Sequence[TextLine]) -> Iterator[LabelledValue]:
    for left, right in pairwise(row):
        wordy = not is_number(left.text)
        if wordy and (len(row) == 2 or left.text.rstrip().endswith((":", "\uff1a"))):
            label = left.text.strip().rstrip(":\uff1a ")
            yield LabelledValue(label=label, value=right.text, found="right", box=right.box)


def _below(lines: Sequence[TextLine]) -> Iterator[LabelledValue]:
    for label in lines:
        value = _next_below(label, lines)
        if is_number(label.text) or value is None or not _looks_like_value(label, value):
            continue
        change = _next_below(value, lines)
        signed = change is not None and _CHANGE.fullmatch(change.text.strip())
        yield LabelledValue(
            label=label.text.strip().rstrip(":\uff1a "),
            value=value.text,
            found="below",
            box=value.box,
            change=change.text if change is not None and signed else "",
        )


def _next_below(line: TextLine, lines: Sequence[TextLine]) -> TextLine | None:
    box = line.box
    near = [
        other
        for other in lines
        if other.box.y >= box.y + 0.6 * box.height
        and other.box.y - box.y - box.height <= 0.9 * max(box.height, other.box.height)
        and _aligned(box, other.box)
    ]
    return min(near, key=lambda other: other.box.y, default=None)


def _aligned(one: Box, other: Box) -> bool:
    slack = 0.7 * min(one.height, other.height)
    centres = abs(one.x + one.width / 2 - other.x - other.width / 2)
    return abs(one.x - other.x) <= slack or centres <= slack


def _looks_like_value(label: TextLine, value: TextLine) -> bool:
    """Whether a text is the value of the label above it, and not the next line of a paragraph."""
    if label.text.rstrip().endswith((":", "\uff1a")):
        return True
    if len(label.text) > 40 or label.text.rstrip().endswith((".", "!", "?")):
        return False
    inline = any(_INLINE.fullmatch(line.text.strip()) for line in (label, value))
    if inline or label.box.height > 1.1 * value.box.height:
        return False
    more = 1.12 if _has_digit(value.text) else 1.25
    larger = value.box.height >= more * label.box.height
    dimmer = label.contrast < 0.75 * value.contrast
    return (larger or dimmer) and (_has_digit(value.text) or len(label.text) <= 24)


def label_of(box: Box, lines: Sequence[TextLine], *, most_apart: float = 2.2) -> TextLine | None:
    """The text right above a field, or else left of it in its row.

    ``most_apart`` is the distance from the top of the text to the field, in heights of the text.
    """
    outside = [line for line in lines if not _inside(line, box)]
    above = [
        line
        for line in outside
        if 0.5 * line.box.height <= box.y - line.box.y <= most_apart * line.box.height
        and len(line.text) <= 40
        and not line.text.rstrip().endswith((".", "?", "!"))
        and abs(line.box.x - box.x) <= 1.5 * line.box.height
    ]
    left = [
        line
        for line in outside
        if 0 <= box.x - _right(line.box) <= 12 * line.box.height
        and box.y <= line.box.y + line.box.height / 2 <= box.y + box.height
    ]
    if above:
        return max(above, key=lambda line: line.box.y)
    return max(left, key=lambda line: line.box.x, default=None)


def _inside(line: TextLine, box: Box) -> bool:
    x, y = line.box.x + line.box.width / 2, line.box.y + line.box.height / 2
    return box.x <= x <= _right(box) and box.y <= y <= box.y + box.height


def _right(box: Box) -> int:
    return box.x + box.width
