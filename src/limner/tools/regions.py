"""A part of a picture as an argument of a tool: a `Region` with its bounds."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from limner.imaging.fit import Region


class RegionArgument(Region, frozen=True, kw_only=True):
    """A part of a picture, in pixels."""

    x: Annotated[int, Meta(ge=0)]
    y: Annotated[int, Meta(ge=0)]
    width: Annotated[int, Meta(ge=1)]
    height: Annotated[int, Meta(ge=1)]
