"""What is known of one picture when a question about it is answered."""

from __future__ import annotations

from itertools import groupby

import msgspec

from limner.imaging.evidence import Measurements, TextLine


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements and text; ``unread`` says why there is no text where it could not be read."""

    measured: Measurements
    lines: tuple[TextLine, ...] = ()
    unread: str | None = None

    @property
    def rows(self) -> tuple[str, ...]:
        """The text line by line, as a person would copy it."""
        return tuple(
            "  ".join(piece.text for piece in pieces)
            for _, pieces in groupby(self.lines, key=lambda piece: piece.row)
        )


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, and a question about it in small letters and single spaces."""

    picture: Evidence
    question: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to one thing that was asked: the answer, what it rests on, what to keep in mind."""

    answer: str
    evidence: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
