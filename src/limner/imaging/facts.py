"""What a worker tells the host about a picture."""

from __future__ import annotations

from typing import Literal

import msgspec

# How a mask marks what may change: by what is transparent in it, or by what is white.
MaskWay = Literal["alpha", "white"]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of bytes that decoded: measured from them, never taken from a name or a claim.

    Width and height are those of the upright picture. ``frames`` is 1 for a still picture. Of a
    file with several ``pages`` they are those of the first.
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
