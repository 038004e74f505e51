"""What is known of one picture when a question about it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from limner.imaging.evidence import Measurements, TextLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A picture, and a question about it in small letters and single spaces."""

    picture: Evidence
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An answer to one thing that was asked: the answer, what it rests on, what to keep in mind."""

    answer: str
    evidence: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
