"""What a worker tells the host about a picture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is true of bytes that decoded: measured from them, never taken from a name or a claim.

    Width and height are the stored ones; an EXIF rotation is not applied. ``frames`` is 1 for a
    still picture.
    """

    mime: str
    width: int
    height: int
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A thumbnail as raw pixels: three bytes each, rows from top to bottom."""

    width: int
    height: int
    rgb: bytes
