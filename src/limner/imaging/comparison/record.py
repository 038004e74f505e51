"""What differs between two pictures, as the worker sends it to the host."""

from __future__ import annotations

from typing import Literal

import msgspec

from limner.imaging.evidence.record import Box


class ChangedArea(msgspec.Struct, frozen=True, kw_only=True):
    """A part of two pictures that differs, and what can be said about it from its pixels.

    ``before`` and ``after`` are colours as ``#rrggbb`` if the kind is "colour". ``moved_by`` is
    right and down in pixels if the kind is "moved".
    """

    box: Box
    kind: Literal["changed", "colour", "moved", "added", "removed"]
    pixels: int
    before: str = ""
    after: str = ""
    moved_by: tuple[int, int] | None = None


class PixelComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of two upright pictures and, if they are the same, the areas that differ.

    The areas are in reading order, and without anti-aliasing. ``left_out`` counts those beyond the
    most that are listed.
    """

    before_size: tuple[int, int]
    after_size: tuple[int, int]
    areas: tuple[ChangedArea, ...] = ()
    left_out: int = 0
