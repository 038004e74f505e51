"""Text or numbers -> a size a model can draw: what is legal, and what is the nearest legal one."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import msgspec

from limner.errors import InputInvalid

MAX_EDGE = 16_384
MAX_SHAPE = 16
SHAPE_PIXELS = 1024 * 1024
_SHAPE = r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})"
_SIZE = r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})"


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
    """Read ``<width>x<height>``.

    Raises:
        InputInvalid: the text is anything else, or an edge is not between 1 and 16384.
    """
    match = re.fullmatch(_SIZE, text)
    size = Size(int(match[1]), int(match[2])) if match else None
    if size is None or max(size) > MAX_EDGE:
        raise InputInvalid(
            f"{text[:40]!r} is not a size",
            field="size",
            hint=f'Write width, "x" and height in pixels, each 1 to {MAX_EDGE}: 1024x1024.',
        )
    return size


def parse_shape(text: str) -> Size | None:
    """A size of about a megapixel in the shape ``16:9``; None where the text is no shape.

    Raises:
        InputInvalid: nothing is that long and thin.
    """
    match = re.fullmatch(_SHAPE, text)
    if match is None:
        return None
    across, down = int(match[1]), int(match[2])
    if max(across, down) > MAX_SHAPE * min(across, down):
        raise InputInvalid(
            f"{text} is too long and thin", field="size", hint=f"Stay within {MAX_SHAPE}:1."
        )
    width = math.sqrt(SHAPE_PIXELS * across / down)
    return Size(_to_16(width), _to_16(width * down / across))


def _to_16(edge: float) -> int:
    return max(16, round(edge / 16) * 16)


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What the size rules share: how they are written in the data."""


class ListedSizes(_Rule, frozen=True, tag="listed"):
    """The sizes in the list and no other."""

    sizes: tuple[Size, ...]

    def allows(self, size: Size) -> bool:
        """Whether the size can be asked for."""
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
        """Whether the size can be asked for."""
        return (
            size.width % self.multiple_of == 0
            and size.height % self.multiple_of == 0
            and 0 < max(size) <= self.max_edge
            and max(size) <= self.max_ratio * min(size)
            and self.min_pixels <= size.pixels <= self.max_pixels
        )

    def nearest(self, size: Size) -> Size:
        """The legal size of nearest shape, then area, around this one scaled into the limits."""
        ratio = min(max(size) / min(size), self.max_ratio)
        area = min(max(size.pixels, self.min_pixels), self.max_pixels)
        # Where the longer edge would pass its limit, both shrink: the shape is worth more.
        ideal_long = min(math.sqrt(area * ratio), self.max_edge)
        around = (
            Size(long, short) if size.width >= size.height else Size(short, long)
            for long in self._steps_around(ideal_long)
            for short in self._steps_around(ideal_long / ratio)
        )
        return min(filter(self.allows, around), key=lambda legal: _distance(legal, size))

    def _steps_around(self, edge: float) -> set[int]:
        """The steps just below and just above an edge; an edge that is one is both."""
        steps = round(edge / self.multiple_of, 6)  # a square root is off by a hair
        return {math.floor(steps) * self.multiple_of, math.ceil(steps) * self.multiple_of}


class AnySize(_Rule, frozen=True, tag="any"):
    """Every size whose edges are within two limits."""

    min_edge: int
    max_edge: int

    def allows(self, size: Size) -> bool:
        """Whether the size can be asked for."""
        return self.min_edge <= min(size) and max(size) <= self.max_edge

    def nearest(self, size: Size) -> Size:
        """This size scaled until it fits; only a shape too long for both limits is changed."""
        grow = max(1.0, self.min_edge / min(size))
        scale = min(grow, self.max_edge / max(size))
        return Size(self._clamp(size.width * scale), self._clamp(size.height * scale))

    def _clamp(self, edge: float) -> int:
        return min(max(round(edge), self.min_edge), self.max_edge)


SizeRule = ListedSizes | SizeRange | AnySize


def _distance(candidate: Size, wanted: Size) -> tuple[float, float]:
    """How far apart two sizes are: in shape first, then in area (1.0 means not at all)."""
    return (
        _apart(candidate.width * wanted.height, candidate.height * wanted.width),
        _apart(candidate.pixels, wanted.pixels),
    )


def _apart(one: int, other: int) -> float:
    return max(one, other) / min(one, other)
