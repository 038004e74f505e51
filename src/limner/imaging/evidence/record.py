"""The measurements and the text that a worker sends to the host, without an image library."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Literal

import msgspec

# The only text with a sign at its start that no spreadsheet runs as a formula.
_SIGNED_NUMBER = re.compile(r"[+-]?\s?[$€£¥]?\s?\d[\d.,]*\s?[%$€£¥]?|[+-]")
INSTALL_OCR = "pip install 'limner[eyes]'"


def has_ocr() -> bool:
    """Whether the OCR models and their runtime are installed; this does not load them."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle in pixels of the upright picture, from its top left corner."""

    x: int
    y: int
    width: int
    height: int


class Colour(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a colour, its most common shade in the picture, and its share of the picture."""

    name: str
    hex: str
    percent: int


class Texture(msgspec.Struct, frozen=True, kw_only=True):
    """What separates photos, screenshots and line art, in percent of all pixels.

    ``equal`` pixels have exactly the colour of the next pixel: many in flat graphics, few in
    photos. ``sharp`` pixels differ strongly from it, as at the edge of a letter or a line.
    ``two_colours`` pixels have one of the two most common colours, and ``grey`` ones almost no hue.
    ``focus`` compares the steepest edges with those of the picture at half its size: about 100 in
    a sharp picture, below 65 in a blurred one, and 0 if it has no edges.
    """

    equal: int
    sharp: int
    two_colours: int
    grey: int
    focus: int = 0


class GpsPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position of the camera as EXIF claims, in degrees north and east."""

    latitude: float
    longitude: float


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What EXIF claims about how the picture was made; anyone can edit it."""

    camera: str | None
    taken: str | None
    software: str | None
    place: GpsPosition | None


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A QR code or barcode, and its content."""

    kind: str
    text: str
    box: Box


class OcrPage(msgspec.Struct, frozen=True, kw_only=True):
    """Raw pixels for OCR, three bytes each, and the size of the picture they show."""

    width: int
    height: int
    original_width: int
    original_height: int
    rgb: bytes


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text on one line.

    Pieces with the same ``row`` are next to each other; rows count from 0, top to bottom.
    ``confidence`` is that of the OCR model, in percent. ``ink`` and ``paper`` are the colours of
    the letters and of what is behind them; ``contrast`` is their ratio by WCAG, from 1 to 21.
    In a monospaced font ``column`` counts the letters from the left edge of the text; else it is
    -1.
    """

    text: str
    box: Box
    confidence: int
    row: int
    ink: str = ""
    paper: str = ""
    contrast: float = 0.0
    column: int = -1


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """A flat rectangle that is the paper of some text: a button, a card, a header, a bubble."""

    colour: str
    box: Box
    texts: tuple[str, ...]


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A control of a user interface, with its label and its state.

    A button is enabled or disabled; a checkbox, a radio button and a toggle are on or off; the
    state of a field is the text in it. ``colour`` is what fills it.
    """

    kind: Literal["button", "field", "checkbox", "radio", "toggle"]
    label: str
    state: str
    colour: str
    box: Box


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A flat area of one colour that is not a letter."""

    kind: str
    colour: str
    box: Box


class LabelledValue(msgspec.Struct, frozen=True, kw_only=True):
    """A label and the value that belongs to it; ``found`` says how they are placed.

    ``change`` is a signed number below the value, as on the cards of a dashboard.
    """

    label: str
    value: str
    found: Literal["inline", "right", "below", "field", "bar", "slice"]
    box: Box
    change: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Text in rows and columns. If ``header`` is true, the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]
    header: bool
    box: Box
    row_boxes: tuple[Box, ...]

    @property
    def csv(self) -> str:
        """The rows as CSV text.

        A cell that a spreadsheet would run as a formula begins with an apostrophe.
        """
        return "".join(",".join(map(_csv_cell, row)) + "\n" for row in self.rows)


def _csv_cell(text: str) -> str:
    if text[:1] in {"=", "+", "-", "@", "\t", "\r"} and not _SIGNED_NUMBER.fullmatch(text):
        text = f"'{text}"
    if any(char in text for char in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


class DetectedObject(msgspec.Struct, frozen=True, kw_only=True):
    """A thing or a person on a photo, as a detector names it; ``confidence`` is in percent."""

    name: str
    confidence: int
    box: Box


class PageReading(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a picture and what its layout means.

    Attributes:
        lines: pieces of text in reading order.
        turned: by how many degrees clockwise the text is turned: 0, 90, 180 or 270.
        panels: the flat rectangles behind some text.
        controls: buttons, fields, checkboxes, radio buttons and toggles with their states.
        shapes: flat areas without text.
        values: labels with their values, also of the bars and slices of charts.
        tables: text in rows and columns.
        objects: things and people, only on photos.

    Boxes are in pixels of the picture as it is.
    """

    lines: tuple[TextLine, ...] = ()
    turned: int = 0
    panels: tuple[Panel, ...] = ()
    controls: tuple[Control, ...] = ()
    shapes: tuple[Shape, ...] = ()
    values: tuple[LabelledValue, ...] = ()
    tables: tuple[Table, ...] = ()
    objects: tuple[DetectedObject, ...] = ()


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be measured in pixels and header without OCR.

    Width and height are those of the upright picture; ``turned`` means that the file stores it
    rotated and relies on EXIF. ``background`` is the most common colour along the border, with its
    share of the border. ``codes`` is None if the library that finds codes is not installed.
    """

    mime: str
    size_bytes: int
    width: int
    height: int
    turned: bool
    animated: bool
    transparent_percent: int
    brightness_percent: int
    colours: tuple[Colour, ...]
    background: Colour | None
    texture: Texture
    origin: Origin | None
    codes: tuple[Code, ...] | None
