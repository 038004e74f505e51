"""The facts about a picture that a worker sends to the host, and where a sheet has pictures."""

from __future__ import annotations

from typing import Literal

import msgspec

from limner.imaging.fit.request import Region

# How a mask marks the pixels that may change: they are transparent, or they are white.
MaskWay = Literal["alpha", "white"]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts measured from the decoded picture, never taken from a file name or a header's claim.

    Width and height are those of the upright picture. ``frames`` is 1 for a still picture. If the
    file has several ``pages``, width and height are those of the first.
    """

    mime: str
    width: int
    height: int
    frames: int
    pages: int = 1


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """A thumbnail as raw pixels: three bytes each, rows from top to bottom."""

    width: int
    height: int
    rgb: bytes


class SheetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The size and the colour of a sheet, and where each picture goes."""

    width: int
    height: int
    background: str
    places: tuple[Region, ...]
