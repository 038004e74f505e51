"""What a worker tells the host about a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# How a mask marks what may change: by what is transparent in it, or by what is white.
MaskWay = Literal["alpha", "white"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is true of bytes that decoded: measured from them, never taken from a name or a claim.

    Width and height are those of the upright picture. ``frames`` is 1 for a still picture. Of a
    file with several ``pages`` they are those of the first.
    """

    mime: str
    width: int
    height: int
    frames: int
    pages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A thumbnail as raw pixels: three bytes each, rows from top to bottom."""

    width: int
    height: int
    rgb: bytes
