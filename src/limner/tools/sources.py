"""Paths and handles of pictures to draw from -> the pictures, as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limner.catalogue.images import EditRule
from limner.content import Picture
from limner.errors import InputInvalid
from limner.imaging.fit import FitRequest, Region
from limner.pictures.request import SourceImage
from limner.pictures.take import Pictures
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file
from limner.tools.handles import Handles

Mask = Picture | Region
"""Which part of a picture may change: as another picture marks it, or a region."""


class SourceLoader(msgspec.Struct, frozen=True, kw_only=True):
    """Loads the pictures that a picture is drawn from."""

    pictures: Pictures
    handles: Handles

    async def take(self, name: str, context: ToolContext) -> Picture:
        """The picture of a handle, or in a file within reach.

        Raises:
            ReachDenied: the caller may not read the path.
            StorageError: there is no such picture.
            ImageError: the file is not a picture.
        """
        if (known := await self.handles.find(name, session_id=context.session_id)) is not None:
            return known
        return await self.pictures.take_file(find_file(name, context))

    async def mask(
        self, name: str | None, region: Region | None, source: Picture, context: ToolContext
    ) -> Mask | None:
        """The mask for a picture, from a file or a region; raises as `take`.

        Raises:
            InputInvalid: it has another size than the picture, or lies outside it.
        """
        if name is not None and region is not None:
            raise InputInvalid("give mask or region, not both", field="mask")
        size = f"{source.width}x{source.height}"
        if region is not None:
            if region.x + region.width > source.width or region.y + region.height > source.height:
                raise InputInvalid(
                    f"region lies outside the picture, which is {size}", field="region"
                )
            return region
        if name is None:
            return None
        drawn = await self.take(name, context)
        if (drawn.width, drawn.height) != (source.width, source.height):
            raise InputInvalid(
                f"mask is {drawn.width}x{drawn.height}, and the picture {size}",
                field="mask",
                hint="Draw the mask at the size of the picture.",
            )
        return drawn

    async def are_drawn_here(self, sources: Sequence[Picture], mask: Mask | None) -> bool:
        """Whether limner drew all of it from words alone, so that nothing came from outside."""
        pictures = [*sources, *([mask] if isinstance(mask, Picture) else [])]
        return await self.pictures.drawn_here(picture.handle for picture in pictures)

    async def fit(self, sources: Sequence[Picture], rule: EditRule) -> tuple[SourceImage, ...]:
        """The pictures within the limits of a model."""
        request = FitRequest(
            mode="fast",
            max_width=rule.max_edge,
            max_height=rule.max_edge,
            max_bytes=rule.max_bytes,
            formats=rule.formats,
        )
        fitted: list[SourceImage] = []
        for picture in sources:
            fit, data = await self.pictures.give(picture, request)
            fitted.append(
                SourceImage(
                    handle=picture.handle,
                    mime=fit.mime,
                    width=fit.width,
                    height=fit.height,
                    data=data,
                )
            )
        return tuple(fitted)

    async def fit_mask(
        self, mask: Mask, source: Picture, fitted: SourceImage, rule: EditRule
    ) -> SourceImage:
        """The mask at the size of its picture, in the form that the model reads."""
        assert rule.mask is not None, "a model that takes no mask is not chosen for one"
        size = (fitted.width, fitted.height)
        if isinstance(mask, Region):
            data = await self.pictures.mask_of_region(mask, of=source, size=size, way=rule.mask)
        else:
            data = await self.pictures.mask(mask, size=size, way=rule.mask)
        return SourceImage(
            handle=source.handle if isinstance(mask, Region) else mask.handle,
            mime="image/png",
            width=fitted.width,
            height=fitted.height,
            data=data,
        )
