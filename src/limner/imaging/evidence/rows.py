"""Pieces of text wherever they were found -> lines in the order a person reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from limner.imaging.evidence.record import TextLine

# Two pieces stand in one row where they share so much of the taller one's height.
_SHARED_HEIGHT = 0.4


@dataclass
class _Row:
    """A row that is being gathered: its first piece decides what belongs to it."""

    first: TextLine
    pieces: list[TextLine]


def in_reading_order(pieces: Iterable[TextLine]) -> tuple[TextLine, ...]:
    """Rows from top to bottom, the pieces of each from left to right, with their row numbers."""
    rows: list[_Row] = []
    for piece in sorted(pieces, key=lambda piece: (_middle(piece), piece.box.x)):
        row = next((row for row in rows[-3:] if _beside(row.first, piece)), None)
        if row is None:
            rows.append(_Row(piece, [piece]))
        else:
            row.pieces.append(piece)
    return tuple(
        replace(piece, row=number)
        for number, row in enumerate(rows)
        for piece in sorted(row.pieces, key=lambda piece: (piece.box.x, piece.box.y))
    )


def _middle(piece: TextLine) -> float:
    return piece.box.y + piece.box.height / 2


def _beside(one: TextLine, other: TextLine) -> bool:
    first, second = one.box, other.box
    top, bottom = max(first.y, second.y), min(first.y + first.height, second.y + second.height)
    return bottom - top >= _SHARED_HEIGHT * max(first.height, second.height, 1)
