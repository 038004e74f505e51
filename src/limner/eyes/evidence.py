"""Measurements and text of a picture -> the evidence for answers, and the kind of picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import msgspec

from limner.imaging.evidence import Measurements, PageReading, TextLine


class RecordedThing(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of thing that limner drew, and how many of it."""

    name: str
    count: int = 1


class DrawingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What limner recorded when it drew a picture; none of it was measured.

    ``source`` says whether the record is in the store or in the label of the file. ``texts`` are
    the texts that were drawn, ``values`` the numbers of a chart by their labels.
    """

    source: Literal["store", "label"]
    model: str
    prompt: str
    things: tuple[RecordedThing, ...] = ()
    texts: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that limner measured and read in a picture, and its own record of it.

    Attributes:
        measured: size, colours, sharpness, codes and camera data.
        page: text, layout, controls, tables, charts, shapes and objects.
        no_text_reason: why OCR did not run or failed; ``page`` is empty then.
        record: limner's own record, if limner drew the picture.
    """

    measured: Measurements
    page: PageReading = PageReading()
    no_text_reason: str | None = None
    record: DrawingRecord | None = None

    @property
    def lines(self) -> tuple[TextLine, ...]:
        """The pieces of text in reading order."""
        return self.page.lines

    @property
    def rows(self) -> tuple[str, ...]:
        """The text line by line."""
        rows = groupby(self.lines, key=lambda piece: piece.row)
        return tuple(_joined(list(pieces)) for _, pieces in rows)


def _joined(pieces: Sequence[TextLine]) -> str:
    """The text of a row; monospaced pieces stand in their columns."""
    if any(piece.column < 0 for piece in pieces):
        return "  ".join(piece.text for piece in pieces)
    text = ""
    for piece in pieces:
        text = text.ljust(piece.column) + piece.text
    return text


class EyesQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, and a question about it in lower case with single spaces."""

    picture: Evidence
    question: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one part of a question, with its evidence and caveats."""

    answer: str
    evidence: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


Name = Literal["photo", "screenshot", "line art", "drawing", "flat colour"]

# In a photo few neighbouring pixels are exactly equal; in computer graphics most are.
LEAST_EQUAL = 45
# If two colours fill half of the picture, they are paper and ink, or the background of a window.
MOSTLY_TWO_COLOURS = 50
# With text, a third is enough.
TEXT_TWO_COLOURS = 30
NEARLY_GREY = 97


class Kind(msgspec.Struct, frozen=True):
    """A kind in one or two words, and the measurement that supports it."""

    name: Name
    reason: str


def kind(evidence: Evidence) -> Kind:
    """What the picture most likely is."""
    measured, texture = evidence.measured, evidence.measured.texture
    if measured.origin is not None and measured.origin.camera is not None:
        return Kind("photo", "EXIF names the camera")
    if len(measured.colours) == 1 and texture.two_colours == 100 and texture.sharp == 0:
        return Kind("flat colour", f"all of it is {measured.colours[0].name}")
    flat = f"{texture.equal} % of the pixels equal their neighbour"
    if texture.equal < LEAST_EQUAL:
        return Kind("photo", f"only {flat}, as in photos and scans")
    return _graphics(evidence, flat)


def _graphics(evidence: Evidence, flat: str) -> Kind:
    """The kind of a computer graphic: text on paper, line art, or a drawing."""
    texture, rows = evidence.measured.texture, len(evidence.rows)
    two = f"{flat}, and {texture.two_colours} % have one of two colours"
    if rows >= 2 and texture.two_colours >= TEXT_TWO_COLOURS:
        return Kind("screenshot", f"{two}; it has {rows} lines of text")
    if texture.two_colours < MOSTLY_TWO_COLOURS or texture.sharp == 0:
        return Kind("drawing", flat)
    if evidence.no_text_reason is None:
        return Kind("line art", f"{two}; it has no more than a line of text")
    if texture.grey >= NEARLY_GREY:
        return Kind("line art", f"{two}; it may also be a page of text: OCR did not run")
    return Kind("screenshot", two)
