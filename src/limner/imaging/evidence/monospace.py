"""Pixels and text lines -> the lines of terminals and editors, on the grid of their font.

All letters of a monospaced font are equally wide. OCR loses indentation, blanks and single marks
of such text, and takes "1" for "l". On the grid, each cell has one letter: cells without ink are
blanks, and a cell that looks like other cells of the page has the same letter. Runs in the OCR
worker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_cell
from importlib import import_module
from itertools import groupby
from statistics import median
from typing import Any

from msgspec.structs import replace

from limner.imaging.evidence.record import Box, TextLine

# Lines with fewer letters say little about the width of a letter.
_LEAST_LETTERS = 6
_LEAST_LINES = 3
# The width of a letter, in parts of the height of the box around a line.
_NARROWEST, _WIDEST = 0.28, 0.75
# Between two letters of the grid is at most this part of the ink that is elsewhere.
_MOST_INK_BETWEEN = 0.5
# From one piece of a row to the next are more columns than this.
_GAP = 2
_LEAST_INK = 0.35
# How much two cells with the same letter are alike; by how much more another letter has to be.
# Ink that OCR did not find has to be even more alike.
_ALIKE, _MORE_ALIKE, _SURE = 0.94, 0.05, 0.97
_CONFUSED = ("1lIi|", "Oo", "5S", "8B", "2Z", "'`", ".,", ":;")
# Less ink than this part of the usual may be the edge of a neighbour.
_SPECK = 0.3
_MOST_LOOKS = 4
# Cells are compared at this width.
_WIDTH = 12


_Templates = dict[str, list[Any]]


@dataclass(frozen=True)
class _Grid:
    """The width of a letter, and where the first column begins."""

    pitch: float
    left: float


@dataclass(frozen=True)
class _Cell:
    """What one cell looks like, and whether OCR found text there."""

    look: Any
    seen: bool


@dataclass(frozen=True)
class _Row:
    """A row of text, what OCR read in it without blanks, and its cells by their columns."""

    pieces: Sequence[TextLine]
    letters: str
    cells: dict[int, _Cell]


def align(
    pixels: Any, lines: Sequence[TextLine], *, recognize: Callable[[Any], str]
) -> list[TextLine]:
    """The lines with exact blanks and their columns, if the page is set in a monospaced font.

    ``recognize`` reads the text in the pixels of one row.
    """
    rows = [list(row) for _, row in groupby(lines, key=lambda line: line.row)]
    inks = [_ink(pixels, row) for row in rows]
    grid = _find_grid(rows, [_within(ink, row) for ink, row in zip(inks, rows, strict=True)])
    if grid is None:
        return list(lines)
    on = [_is_on(_within(ink, row), grid) for ink, row in zip(inks, rows, strict=True)]
    block = [line for row, is_on in zip(rows, on, strict=True) if is_on for line in row]
    span = min(line.box.x for line in block), max(line.box.x + line.box.width for line in block)
    aligned = [
        _Row(pieces=row, letters=_letters(row), cells=_cells(ink, grid, row, span))
        for row, ink, is_on in zip(rows, inks, on, strict=True)
        if is_on
    ]
    known = _templates(aligned)
    aligned = [_read_again(row, known, pixels, grid, recognize) for row in aligned]
    known = _templates(aligned)
    texts = {id(row.pieces): _read(row, known) for row in aligned}
    margin = min((read[0][0] for read in texts.values() if read), default=0)
    found: list[TextLine] = []
    for row in rows:
        read = texts.get(id(row))
        found.extend(_pieces(row, read, grid, margin) if read else row)
    return found


def _letters(row: Sequence[TextLine]) -> str:
    return "".join("".join(piece.text.split()) for piece in row)


def _read_again(
    row: _Row, known: _Templates, pixels: Any, grid: _Grid, recognize: Callable[[Any], str]
) -> _Row:
    """The row with what OCR reads in all of it, if there is ink that OCR did not find at first."""
    unread = [
        cell
        for cell in row.cells.values()
        if not cell.seen and _recognize(cell.look, known, None) is None
    ]
    if not unread:
        return row
    top = min(piece.box.y for piece in row.pieces)
    bottom = max(piece.box.y + piece.box.height for piece in row.pieces)
    first, last = min(row.cells), max(row.cells)
    left, right = (round(grid.left + column * grid.pitch) for column in (first, last + 1))
    letters = "".join(recognize(pixels[top:bottom, max(0, left - 4) : right + 4]).split())
    if len(letters) != len(row.cells):
        return row
    own = iter(row.letters)
    if len(row.letters) == sum(cell.seen for cell in row.cells.values()):
        pairs = zip(row.cells.values(), letters, strict=True)
        letters = "".join(next(own) if cell.seen else letter for cell, letter in pairs)
    cells = {column: replace_cell(cell, seen=True) for column, cell in row.cells.items()}
    return _Row(pieces=row.pieces, letters=letters, cells=cells)


def _ink(pixels: Any, row: Sequence[TextLine]) -> Any:
    """How far each pixel of a row, as wide as the page, is from the paper: from 0 to 1."""
    np = _np()
    # The box of OCR often cuts off underscores.
    top = max(0, min(line.box.y for line in row) - 2)
    bottom = max(line.box.y + line.box.height for line in row) + 2
    strip = pixels[top:bottom].astype(np.int16)
    paper = np.frombuffer(bytes.fromhex(row[0].paper.lstrip("#")), np.uint8).astype(np.int16)
    far = np.abs(strip - paper).max(axis=2).astype(np.float32)
    return _without_neighbours(far / max(1.0, float(_within(far, row).max())))


def _without_neighbours(ink: Any) -> Any:
    """The ink of a row without the feet of the row above and the heads of the row below."""
    cv, np = import_module("cv2"), _np()
    mask = (ink > _LEAST_INK / 3).astype(np.uint8)
    height = ink.shape[0]
    _, labels, stats, _ = cv.connectedComponentsWithStats(mask, connectivity=8)
    tops, heights = stats[:, 1], stats[:, 3]
    at_edge = (tops == 0) | (tops + heights == height)
    # The underscore of the row above is a thin line right below the upper edge.
    above = (heights <= 3) & (tops + heights <= 0.25 * height)
    cut = (at_edge & (heights < 0.3 * height)) | above
    cut[0] = False
    return np.where(cut[labels], 0, ink)


def _within(ink: Any, row: Sequence[TextLine]) -> Any:
    """The ink of a row without what is left and right of what OCR found."""
    left = max(0, min(line.box.x for line in row) - 2)
    right = max(line.box.x + line.box.width for line in row) + 2
    inside = _np().zeros_like(ink)
    inside[:, left:right] = ink[:, left:right]
    return inside


def _find_grid(rows: Sequence[Sequence[TextLine]], inks: Sequence[Any]) -> _Grid | None:
    """The grid of the most lines; None if the font is not monospaced."""
    samples = [
        (piece, ink, _tight(ink, piece))
        for row, ink in zip(rows, inks, strict=True)
        for piece in row
        if len(piece.text) >= _LEAST_LETTERS
    ]
    widths = [
        (right - left) / (len(piece.text) - 0.2)
        for piece, _, (left, right) in samples
        if right > left
    ]
    if len(widths) < _LEAST_LINES:
        return None
    middle = median(widths)
    near = [one for one in widths if abs(one / middle - 1) <= 0.05]
    height = median(piece.box.height for piece, _, _ in samples)
    if 2 * len(near) < len(widths) or not _NARROWEST <= middle / height <= _WIDEST:
        return None
    chosen = [
        (ink, *span)
        for piece, ink, span in samples
        if abs((span[1] - span[0]) / (len(piece.text) - 0.2) / middle - 1) <= 0.05
    ]
    return _fit([_profile(*one) for one in chosen], median(near))


def _tight(ink: Any, piece: TextLine) -> tuple[int, int]:
    """The first and the last column with ink in the box of a piece."""
    np = _np()
    left = max(0, piece.box.x - 2)
    columns = np.flatnonzero(ink[:, left : piece.box.x + piece.box.width + 2].max(axis=0) > 0.35)
    return (left + int(columns[0]), left + int(columns[-1]) + 1) if len(columns) else (0, 0)


def _profile(ink: Any, left: int, right: int) -> Any:
    """The ink of each column of the page, outside of one piece not a number."""
    np = _np()
    profile = np.full(ink.shape[1], np.nan, np.float32)
    profile[left:right] = ink[:, left:right].mean(axis=0)
    return profile


def _fit(profiles: Sequence[Any], pitch: float) -> _Grid | None:
    """The pitch and the phase with the least ink between the letters of all lines."""
    np = _np()
    ink = np.nan_to_num(np.array(profiles)).sum(axis=0)
    count = (~np.isnan(np.array(profiles))).sum(axis=0)
    mean = ink.sum() / max(1, count.sum())
    xs = np.flatnonzero(count)
    first, last = int(xs[0]), int(xs[-1]) + 1
    best: tuple[float, float, float] = (np.inf, 0.0, 0.0)
    for step in np.arange(0.94, 1.0601, 0.001):
        width = pitch * float(step)
        for phase in np.arange(0, width, 0.5):
            at = np.arange(first - width + phase, last, width).round().astype(int)
            at = at[(at >= first) & (at < last) & (count[np.clip(at, first, last - 1)] > 0)]
            if len(at):
                between = float(ink[at].sum() / count[at].sum())
                best = min(best, (between, width, first - width + float(phase)))
    between, width, left = best
    if between > _MOST_INK_BETWEEN * mean:
        return None
    return _Grid(pitch=width, left=left - width * int(left / width))


def _is_on(ink: Any, grid: _Grid) -> bool:
    """Whether the letters of a row stand on the grid."""
    np = _np()
    columns = ink.mean(axis=0)
    xs = np.flatnonzero(ink.max(axis=0) > 0.35)
    if not len(xs):
        return False
    edges = np.arange(grid.left, len(columns), grid.pitch).round().astype(int)
    edges = edges[(edges >= xs[0]) & (edges <= xs[-1])]
    inside = float(columns[xs[0] : xs[-1] + 1].mean())
    # A line across the whole cell, as "_" or "=", has ink between the letters too.
    return not len(edges) or median(columns[edges].tolist()) <= 0.6 * inside


def _cells(
    ink: Any, grid: _Grid, row: Sequence[TextLine], span: tuple[int, int]
) -> dict[int, _Cell]:
    """Each cell of a row that is not blank, by its column."""
    width = round(grid.pitch)
    spans = [(piece.box.x, piece.box.x + piece.box.width) for piece in row]
    found: dict[int, _Cell] = {}
    for column in range(int((ink.shape[1] - grid.left) / grid.pitch)):
        left = round(grid.left + column * grid.pitch)
        cell = ink[:, left : left + width]
        middle = left + width / 2
        if not span[0] - 3 * width <= middle <= span[1] + 3 * width or cell.shape[1] != width:
            continue
        # The marks of the neighbours may reach a little into a cell.
        if float(cell[:, 1:-1].max()) > _LEAST_INK:
            seen = any(one - width / 4 <= middle <= other + width / 4 for one, other in spans)
            found[column] = _Cell(look=_look(cell), seen=seen)
    return found


def _templates(rows: Sequence[_Row]) -> _Templates:
    """Some looks of each letter, from the rows in which OCR read one letter for each cell."""
    looks: _Templates = defaultdict(list)
    for row in rows:
        seen = [cell for cell in row.cells.values() if cell.seen]
        if len(row.letters) == len(seen):
            for letter, cell in zip(row.letters, seen, strict=True):
                if len(looks[letter]) < _MOST_LOOKS:
                    looks[letter].append(cell.look)
    return looks


def _look(ink: Any) -> Any:
    """The ink of a cell with a border, so that it can be compared at several places."""
    cv = import_module("cv2")
    height = max(1, round(ink.shape[0] * _WIDTH / ink.shape[1]))
    scaled = cv.resize(ink, (_WIDTH, height), interpolation=cv.INTER_AREA)
    return cv.blur(scaled, (2, 2))


def _likeness(look: Any, other: Any) -> float:
    """How much two cells are alike, from 0 to 1, at the best of some places."""
    cv = import_module("cv2")
    pad = _WIDTH // 3
    around = cv.copyMakeBorder(look, pad, pad, 1, 1, cv.BORDER_CONSTANT, value=0.0)
    part = other
    if part.shape[0] > around.shape[0]:
        part = part[: around.shape[0]]
    return float(cv.matchTemplate(around, part, cv.TM_CCORR_NORMED).max())


def _read(row: _Row, templates: _Templates) -> list[tuple[int, str]] | None:
    """The letters of a row with their columns; None if the grid does not tell them."""
    letters, cells = row.letters, _without_specks(row, templates)
    counted = len(letters) == sum(cell.seen for cell in cells.values())
    at = 0
    read: list[tuple[int, str]] = []
    for column, cell in cells.items():
        own = letters[at] if counted and cell.seen else None
        at += cell.seen
        letter = _recognize(cell.look, templates, own, least=_ALIKE if cell.seen else _SURE)
        if letter is None and cell.seen:
            return None
        if letter is not None:
            read.append((column, letter))
    return read


def _without_specks(row: _Row, templates: _Templates) -> dict[int, _Cell]:
    """The cells of a row without faint ones that look like no letter, if there are too many."""
    usual = median([float(cell.look.sum()) for cell in row.cells.values()] or [0.0])
    more = sum(cell.seen for cell in row.cells.values()) - len(row.letters)
    faint = [
        column
        for column, cell in row.cells.items()
        if cell.look.sum() < _SPECK * usual and _recognize(cell.look, templates, None) is None
    ]
    drop = {*faint} if 0 < more == len(faint) else set[int]()
    return {column: cell for column, cell in row.cells.items() if column not in drop}


def _recognize(
    look: Any, known: _Templates, own: str | None, *, least: float = _ALIKE
) -> str | None:
    """The letter of a cell: what OCR read, unless a letter that it confuses is more alike."""
    if own is not None:
        others = next((group for group in _CONFUSED if own in group), own)
        known = {letter: known[letter] for letter in others if letter in known}
        if len(known) < 2 or len(known.get(own, ())) < 2:
            return own
    # A cell must not be compared with itself.
    likeness = {
        letter: max((_likeness(look, one) for one in looks if one is not look), default=0.0)
        for letter, looks in known.items()
    }
    best = max(likeness, key=likeness.__getitem__, default=None)
    if best is None or likeness[best] < least:
        return own
    # A digit stays a digit unless there is no doubt: the letters around it do not help.
    more = _MORE_ALIKE if own is None or not own.isdigit() else 2 * _MORE_ALIKE
    if own is not None and likeness[best] - likeness.get(own, 0.0) < more:
        return own
    return best


def _pieces(
    row: Sequence[TextLine], read: Sequence[tuple[int, str]], grid: _Grid, margin: int
) -> Iterator[TextLine]:
    """The row in pieces, divided at wide gaps; each has its text with exact blanks."""
    start = 0
    for number in range(1, len(read) + 1):
        if number < len(read) and read[number][0] - read[number - 1][0] <= _GAP:
            continue
        part = read[start:number]
        start = number
        first, last = part[0][0], part[-1][0]
        text = [" "] * (last - first + 1)
        for column, letter in part:
            text[column - first] = letter
        left = round(grid.left + first * grid.pitch)
        width = round((last - first + 1) * grid.pitch)
        near = min(row, key=lambda line: abs(line.box.x - left))
        box = Box(x=max(0, left), y=near.box.y, width=width, height=near.box.height)
        yield replace(near, text="".join(text), box=box, column=first - margin)


def _np() -> Any:
    return import_module("numpy")
