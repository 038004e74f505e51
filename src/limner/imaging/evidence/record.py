"""The measurements and the text that a worker sends to the host, without an image library."""

from __future__ import annotations

from importlib.util import find_spec

import msgspec

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
    """A basic colour word, its most common shade in the picture, and its share of the picture."""

    name: str
    hex: str
    percent: int


class Texture(msgspec.Struct, frozen=True, kw_only=True):
    """What separates photos, screenshots and line art, in percent of all pixels.

    ``equal`` pixels have exactly the colour of the next pixel: many in flat graphics, few in
    photos. ``sharp`` pixels differ strongly from it, as at the edge of a letter or a line.
    ``two_colours`` pixels have one of the two most common colours, and ``grey`` ones almost no hue.
    """

    equal: int
    sharp: int
    two_colours: int
    grey: int


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
    ``confidence`` is that of the OCR model, in percent.
    """

    text: str
    box: Box
    confidence: int
    row: int


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
