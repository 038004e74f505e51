"""What a worker tells the host of the pixels it measured: plain values, no image library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in pixels of the upright picture, from its top left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Colour:
    """A basic colour word, the commonest shade of it here, and how much of the picture has it."""

    name: str
    hex: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Texture:
    """What tells a photo from a screenshot from line art, in percent of all pixels.

    ``equal`` have exactly the colour of the pixel beside them: many in flat graphics, few in
    photos. ``sharp`` differ from it strongly, as at the edge of a letter or a line. ``two_colours``
    have one of the two commonest colours, and ``grey`` have next to no hue.
    """

    equal: int
    sharp: int
    two_colours: int
    grey: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the camera says it was, in degrees north and east."""

    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What EXIF claims about how the picture was made; anyone may have written it."""

    camera: str | None
    taken: str | None
    software: str | None
    place: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A QR code or barcode, and what it holds."""

    kind: str
    text: str
    box: Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Legible:
    """Raw pixels to read from, three bytes each, and the size of the picture they show."""

    width: int
    height: int
    original_width: int
    original_height: int
    rgb: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A piece of text on one line.

    Pieces with the same ``row`` stand beside each other; rows count from 0, top to bottom.
    ``confidence`` is the reader's own, in percent.
    """

    text: str
    box: Box
    confidence: int
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
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
