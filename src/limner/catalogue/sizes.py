"""Text or numbers -> a size, whether a model can draw it, and the nearest size that it can."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import msgspec

from limner.errors import InputInvalid

MAX_EDGE = 16_384
MAX_SHAPE = 16
SHAPE_PIXELS = 1024 * 1024
_SHAPE = r"\s*([1-9][0-9]{0,3})\s*:\s*([1-9][0-9]{0,3})\s*"
_SIZE = r"\s*([1-9][0-9]{0,4})\s*[xX\u00d7*]\s*([1-9][0-9]{0,4})\s*"


class Size(NamedTuple):
    """Width and height in pixels; as text ``1024x1024``."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    @property
    def pixels(self) -> int:
        """The area."""
        return self.width * self.height


def parse_size(text: str) -> Size:
    """Parse ``<width>x<height>``, also with spaces, a capital X or a times sign.

    Raises:
        InputInvalid: the text is anything else, or an edge is not between 1 and 16384.
    """
    match = re.fullmatch(_SIZE, text)
    size = Size(int(match[1]), int(match[2])) if match else None
    if size is None or max(size) > MAX_EDGE:
        raise InputInvalid(
            f"{text[:40]!r} is not a size",
            field="size",
            hint=f"Write width and height in pixels, each 1 to {MAX_EDGE}, as 1024x1024; or a "
            "shape, as 1:1 or 16:9.",
        )
    return size


def parse_shape(text: str) -> Size | None:
    """A size of about a megapixel with the aspect ratio ``16:9``; None if the text is not one.

    Raises:
        InputInvalid: the aspect ratio is too extreme.
    """
    match = re.fullmatch(_SHAPE, text)
    if match is None:
        return None
    across, down = int(match[1]), int(match[2])
    if max(across, down) > MAX_SHAPE * min(across, down):
        raise InputInvalid(
            f"{text.strip()} is too long and thin", field="size", hint=f"Stay within {MAX_SHAPE}:1."
        )
    width = math.sqrt(SHAPE_PIXELS * across / down)
    return Size(_to_16(width), _to_16(width * down / across))


def _to_16(edge: float) -> int:
    return max(16, round(edge / 16) * 16)


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The base of the size rules, with their form in the TOML data."""


class ListedSizes(_Rule, frozen=True, tag="listed"):
    """Only the sizes in the list."""

    sizes: tuple[Size, ...]

    def allows(self, size: Size) -> bool:
        """Whether the model can draw the size."""
        return size in self.sizes

    def nearest(self, size: Size) -> Size:
        """The listed size with the nearest shape, then the nearest area."""
        return min(self.sizes, key=lambda listed: _distance(listed, size))


class SizeRange(_Rule, frozen=True, tag="range"):
    """Edges in steps of ``multiple_of``, within limits on edge, area and shape."""

    multiple_of: int
    max_edge: int
    min_pixels: int
    max_pixels: int
    max_ratio: int

    def allows(self, size: Size) -> bool:
        """Whether the model can draw the size."""
        return (
            size.width % self.multiple_of == 0
            and size.height % self.multiple_of == 0
            and 0 < max(size) <= self.max_edge
            and max(size) <= self.max_ratio * min(size)
            and self.min_pixels <= size.pixels <= self.max_pixels
        )

    def nearest(self, size: Size) -> Size:
        """The allowed size with the nearest shape, then the nearest area."""
        ratio = min(max(size) / min(size), self.max_ratio)
        area = min(max(size.pixels, self.min_pixels), self.max_pixels)
        # If the longer edge is over its limit, both edges shrink, because the shape matters more.
        ideal_long = min(math.sqrt(area * ratio), self.max_edge)
        around = (
            Size(long, short) if size.width >= size.height else Size(short, long)
            for long in self._steps_around(ideal_long)
            for short in self._steps_around(ideal_long / ratio)
        )
        return min(filter(self.allows, around), key=lambda legal: _distance(legal, size))

    def _steps_around(self, edge: float) -> set[int]:
        """The steps just below and just above an edge; only one step if the edge is a step."""
        steps = round(edge / self.multiple_of, 6)  # a square root is not exact
        return {math.floor(steps) * self.multiple_of, math.ceil(steps) * self.multiple_of}


class AnySize(_Rule, frozen=True, tag="any"):
    """Every size whose edges are within two limits."""

    min_edge: int
    max_edge: int

    def allows(self, size: Size) -> bool:
        """Whether the model can draw the size."""
        return self.min_edge <= min(size) and max(size) <= self.max_edge

    def nearest(self, size: Size) -> Size:
        """The size scaled into the limits; the shape changes only if it is too long for both."""
        grow = max(1.0, self.min_edge / min(size))
        scale = min(grow, self.max_edge / max(size))
        return Size(self._clamp(size.width * scale), self._clamp(size.height * scale))

    def _clamp(self, edge: float) -> int:
        return min(max(round(edge), self.min_edge), self.max_edge)


SizeRule = ListedSizes | SizeRange | AnySize


def _distance(candidate: Size, wanted: Size) -> tuple[float, float]:
    """The distance of two sizes: in shape first, then in area (1.0 means equal)."""
    return (
        _ratio(candidate.width * wanted.height, candidate.height * wanted.width),
        _ratio(candidate.pixels, wanted.pixels),
    )


def _ratio(one: int, other: int) -> float:
    return max(one, other) / min(one, other)
