"""What is asked of the fit engine, and what it answers; these values cross to the worker."""

from __future__ import annotations

from typing import Literal

import msgspec

Size = tuple[int, int]


def inside(size: Size, max_width: int, max_height: int) -> Size:
    """The largest size of the same proportions within the box; never larger than the original.

    The width is brought in first, then the height, each rounded half up.
    """
    width, height = size
    if width > max_width:
        width, height = max_width, _round_half_up(height * max_width, width)
    if height > max_height:
        width, height = _round_half_up(width * max_height, height), max_height
    return width, height


def scaled(size: Size, percent: int) -> Size:
    """A size at so many percent, rounded half up."""
    width, height = size
    return _round_half_up(width * percent, 100), _round_half_up(height * percent, 100)


def _round_half_up(amount: int, by: int) -> int:
    return max(1, (2 * amount + by) // (2 * by))


Mode = Literal["seed", "fast", "quick"]

PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a picture, in pixels of the upright original."""

    x: int
    y: int
    width: int
    height: int


class FitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The box and the byte limit a picture has to fit, and how to get it there.

    ``formats`` are the types that may be sent; GIF is only ever sent as it came, so it cannot be
    the only one. With ``region`` only that part of the original is sent, at its full detail.
    ``page`` counts from 1 and is for documents, such as PDF.
    """

    mode: Mode = "seed"
    max_width: int = 1568
    max_height: int = 1568
    max_bytes: int = 500 * 1024
    quality: int = 75
    formats: tuple[str, ...] = (PNG, JPEG, WEBP, GIF)
    region: Region | None = None
    page: int = 1

    def passes(self, mime: str, size_bytes: int) -> bool:
        """Whether a file of that type and length may go out unchanged, if its picture does."""
        return mime in self.formats and size_bytes * 4 <= self.max_bytes

    def holds(self, size: tuple[int, int]) -> bool:
        """Whether a picture of that width and height is within the box."""
        width, height = size
        return width <= self.max_width and height <= self.max_height


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine made of a picture.

    Width and height are those of the bytes that are sent; ``part`` is the part of the upright
    original they show. Of an ``animated`` one they are the first frame. ``untouched`` says that the
    bytes are the original's own. ``pages`` is how many pages the original has to choose from.
    """

    mime: str
    width: int
    height: int
    original_width: int
    original_height: int
    part: Region
    animated: bool
    untouched: bool
    pages: int = 1

    @property
    def scale_x(self) -> float:
        """Original pixels across for each sent one; add ``part.x`` to map a point back."""
        return self.part.width / self.width

    @property
    def scale_y(self) -> float:
        """Original pixels down for each sent one; add ``part.y`` to map a point back."""
        return self.part.height / self.height
