"""What a worker tells the host of the pixels it measured: plain values, no image library."""

from __future__ import annotations

from importlib.util import find_spec

import msgspec

INSTALL = "pip install 'limner[eyes]'"


def can_read_text() -> bool:
    """Whether the models and what runs them are here; neither is loaded to find out."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle in pixels of the upright picture, from its top left corner."""

    x: int
    y: int
    width: int
    height: int


class Colour(msgspec.Struct, frozen=True, kw_only=True):
    """A basic colour word, the commonest shade of it here, and how much of the picture has it."""

    name: str
    hex: str
    percent: int


class Texture(msgspec.Struct, frozen=True, kw_only=True):
    """What tells a photo from a screenshot from line art, in percent of all pixels.

    ``equal`` have exactly the colour of the pixel beside them: many in flat graphics, few in
    photos. ``sharp`` differ from it strongly, as at the edge of a letter or a line. ``two_colours``
    have one of the two commonest colours, and ``grey`` have next to no hue.
    """

    equal: int
    sharp: int
    two_colours: int
    grey: int


class GpsPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the camera says it was, in degrees north and east."""

    latitude: float
    longitude: float


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What EXIF claims about how the picture was made; anyone may have written it."""

    camera: str | None
    taken: str | None
    software: str | None
    place: GpsPosition | None


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A QR code or barcode, and what it holds."""

    kind: str
    text: str
    box: Box


class Legible(msgspec.Struct, frozen=True, kw_only=True):
    """Raw pixels to read from, three bytes each, and the size of the picture they show."""

    width: int
    height: int
    original_width: int
    original_height: int
    rgb: bytes


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text on one line.

    Pieces with the same ``row`` stand beside each other; rows count from 0, top to bottom.
    ``confidence`` is the reader's own, in percent.
    """

    text: str
    box: Box
    confidence: int
    row: int


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that pixels and header tell without reading text.

    Width and height are those of the upright picture; ``turned`` says that the file stores it
    another way up and relies on EXIF. ``background`` is the commonest colour along the border, with
    its share of the border. ``codes`` is None where nothing is installed that reads them.
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
