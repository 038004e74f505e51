"""The request to the fit engine and its result; both cross the pipe to the worker."""

from __future__ import annotations

from typing import Literal

import msgspec

Size = tuple[int, int]


Mode = Literal["seed", "fast", "sharp"]

PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a picture, in pixels of the upright original."""

    x: int
    y: int
    width: int
    height: int


class FitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The box and the byte limit that a picture has to fit, and the way to reach them.

    ``seed`` is the specified ladder, ``fast`` one encoding with about its size. ``sharp`` keeps
    every detail that the model can use: a picture within the limits is sent unchanged, any other
    one without visible loss, or with as little as makes it no larger than the original.

    ``formats`` are the types that may be sent. GIF cannot be the only one: a GIF is sent unchanged
    or not at all. With ``region`` only that part of the original is sent, at its full detail.
    ``page`` counts from 1 and is for documents, such as PDF. ``max_edge_unchanged`` is for
    ``sharp``: a picture outside of the box, with no longer edge, may be sent unchanged if it would
    have more bytes inside of it. The service then shrinks it.
    """

    mode: Mode = "seed"
    max_width: int = 1568
    max_height: int = 1568
    max_bytes: int = 500 * 1024
    quality: int = 75
    formats: tuple[str, ...] = (PNG, JPEG, WEBP, GIF)
    region: Region | None = None
    page: int = 1
    max_edge_unchanged: int = 0

    def allows_unchanged(self, mime: str, size_bytes: int) -> bool:
        """Whether a file of that type and length may be sent unchanged, if its picture may."""
        most_bytes = self.max_bytes if self.mode == "sharp" else self.max_bytes // 4
        return mime in self.formats and size_bytes <= most_bytes

    def box_contains(self, size: tuple[int, int]) -> bool:
        """Whether a picture of that width and height is within the box."""
        width, height = size
        return width <= self.max_width and height <= self.max_height

    def size_for(self, part: Region) -> Size:
        """The size at which that part of a picture is sent, unless the byte limit is lower."""
        return scale_into((part.width, part.height), self.max_width, self.max_height)


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine did with a picture.

    Width and height are those of the bytes to send; ``part`` is the part of the upright original
    that they show. If the original is ``animated``, they show its first frame. ``untouched`` means
    that the bytes are those of the original. ``pages`` is the number of pages of the original.
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
        """Original pixels for each sent one, horizontally; add ``part.x`` to map a point back."""
        return self.part.width / self.width

    @property
    def scale_y(self) -> float:
        """Original pixels for each sent one, vertically; add ``part.y`` to map a point back."""
        return self.part.height / self.height


def scale_into(size: Size, max_width: int, max_height: int) -> Size:
    """The largest size of the same proportions within the box; never larger than the original.

    The width is limited first, then the height, each rounded half up.
    """
    width, height = size
    if width > max_width:
        width, height = max_width, _round_half_up(height * max_width, width)
    if height > max_height:
        width, height = _round_half_up(width * max_height, height), max_height
    return width, height


def scale_by_percent(size: Size, percent: int) -> Size:
    """A size scaled by ``percent``, rounded half up."""
    width, height = size
    return _round_half_up(width * percent, 100), _round_half_up(height * percent, 100)


def _round_half_up(amount: int, by: int) -> int:
    return max(1, (2 * amount + by) // (2 * by))
