"""What is to be done with a picture, and what was done; both cross the pipe to the worker."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limner.imaging.fit.request import Region
from limner.imaging.formats import OutputFormat

Flip = Literal["horizontal", "vertical"]
_MARK_COLOUR = "#e5173f"


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something drawn over a picture. ``at`` is in pixels of the original."""

    shape: Literal["box", "arrow", "point"]
    at: Annotated[
        list[Annotated[int, Meta(ge=-100_000, le=100_000)]],
        Meta(
            description="box: x, y, width, height; arrow: from x, y to x, y; point: x, y.",
            min_length=2,
            max_length=4,
        ),
    ]
    label: Annotated[str, Meta(max_length=80)] = ""
    color: Annotated[str, Meta(max_length=40)] = _MARK_COLOUR


class TransformRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The steps in their order: blur, overlay, crop, rotate, flip, grey, cut out, resize,
    pad, encode.

    All positions are pixels of the upright original.

    Attributes:
        overlay: an SVG document of the size of the original, drawn over it.
        blur: the parts that are made unreadable.
        crop: the part that stays.
        rotate: degrees clockwise.
        flip: mirror it.
        grey: shades of grey instead of colours.
        cut_out: make a flat or checkered background transparent.
        width: the new width; without a height, in proportion.
        height: the new height; without a width, in proportion.
        scale: the new size in parts of the old one.
        margin: pixels to add on each side.
        canvas: the size to pad to, with the picture in the middle.
        background: the colour of what is added, as ``#rrggbb``; None is transparent.
        max_bytes: the most that the file may have.
        to: the format of the file.
    """

    overlay: str | None = None
    blur: tuple[Region, ...] = ()
    crop: Region | None = None
    rotate: float = 0.0
    flip: Flip | None = None
    grey: bool = False
    cut_out: bool = False
    width: int | None = None
    height: int | None = None
    scale: float | None = None
    margin: int = 0
    canvas: tuple[int, int] | None = None
    background: str | None = None
    max_bytes: int | None = None
    to: OutputFormat = "png"


class Transformed(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the new picture, and what the caller should know about it."""

    width: int
    height: int
    notes: tuple[str, ...] = ()
