"""A picture and a model -> the bytes to send to that model, and what they cost in tokens."""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Literal

import msgspec
from msgspec.structs import replace

from limner.catalogue.sizes import Size
from limner.catalogue.vision import (
    VisionModel,
    cost,
    largest_useful,
    limits_for,
    sees_every_pixel,
    tokens,
)
from limner.content import Discreet, Picture
from limner.errors import NANO_PER_USD
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.pictures.take import Pictures

# Neighbouring tiles share this part of the box, so that a detail on a border is whole in one.
OVERLAP_SHARE = 16
# A picture that is shrunk by less than this factor stays readable in one piece.
READABLE_SHRINK = 2
MAX_TILES = 16


# Services without a stated limit still shrink pictures; more than this is only slower to send.
GENEROUS_EDGE = 3072
GENEROUS_BYTES = 5_000_000
# No service refuses a picture with such edges; most shrink it.
ACCEPTED_EDGE = 4096
# Only the first page of a document is measured; the size of other pages is unknown.
UNKNOWN_SIZE = Size(GENEROUS_EDGE, GENEROUS_EDGE)


class FittedImage(Discreet, frozen=True, kw_only=True):
    """A picture as one model should get it.

    Attributes:
        data: the bytes to send.
        fit: their type and size, and how their pixels map to those of the original.
        model: the model it was made for, as ``provider/id``.
        tokens: the tokens that it costs; None if the counting rule of the model is unknown.
        tokens_exact: False if the vendor has published no rule and this is an upper bound.
        cost_nano: the price of those tokens in nano-dollars; None if it is unknown.
        tiles: the same picture in parts at full detail, if the setting asks for them.
    """

    unshown = ("data",)

    data: bytes
    fit: Fitted
    model: str | None = None
    tokens: int | None = None
    tokens_exact: bool = False
    cost_nano: int | None = None
    tiles: tuple[FittedImage, ...] = ()

    @property
    def mime(self) -> str:
        """The media type of the bytes."""
        return self.fit.mime

    @property
    def width(self) -> int:
        """The width in pixels, as sent."""
        return self.fit.width

    @property
    def height(self) -> int:
        """The height in pixels, as sent."""
        return self.fit.height

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars."""
        return None if self.cost_nano is None else self.cost_nano / NANO_PER_USD

    def to_original(self, x: float, y: float) -> tuple[float, float]:
        """A point in the sent picture -> the same point in the upright original."""
        part = self.fit.part
        return part.x + x * self.fit.scale_x, part.y + y * self.fit.scale_y


class Fitting(msgspec.Struct, frozen=True, kw_only=True):
    """Prepares pictures for models, as the settings `images.*` say."""

    pictures: Pictures
    mode: Literal["seed", "fast", "model"]
    tile: Literal["off", "auto"]

    async def fit(
        self,
        picture: Picture,
        *,
        model: VisionModel | None,
        region: Region | None = None,
        page: int = 1,
        images_in_request: int = 1,
        to: str | None = None,
    ) -> FittedImage:
        """Prepare the picture, or a region of it, for a model.

        Args:
            picture: the picture.
            model: the model that gets it; None for no model in particular.
            region: the part to send.
            page: the page of a document, from 1.
            images_in_request: how many pictures one request may carry, since some services then
                accept less for each.
            to: the media type of the result; None for the smallest that the model accepts.

        Raises:
            ImageError: the region lies outside the picture, or the page does not exist.
            StorageError: its bytes are missing.
        """
        make_request = partial(
            request_for, mode=self.mode, model=model, images_in_request=images_in_request
        )
        size = Size(picture.width, picture.height) if page == 1 else UNKNOWN_SIZE
        request = replace(make_request(size), page=page)
        if to is not None:
            request = replace(request, formats=(to,))
        whole = await self._fit_one(picture, replace(request, region=region), model)
        if self.tile == "off":
            return whole
        largest = make_request(UNKNOWN_SIZE)
        parts = [
            await self._fit_one(picture, replace(largest, page=page, region=part), model)
            for part in tiles(whole.fit.part, box=Size(largest.max_width, largest.max_height))
        ]
        return replace(whole, tiles=tuple(parts))

    async def _fit_one(
        self, picture: Picture, request: FitRequest, model: VisionModel | None
    ) -> FittedImage:
        fitted, data = await self.pictures.give(picture, request)
        if model is None:
            return FittedImage(data=data, fit=fitted)
        sent = Size(fitted.width, fitted.height)
        count = tokens(model, sent)
        return FittedImage(
            data=data,
            fit=fitted,
            model=model.name,
            tokens=None if count is None else count.tokens,
            tokens_exact=count is not None and count.exact,
            cost_nano=cost(model, sent),
        )


def request_for(
    size: Size,
    *,
    mode: Literal["seed", "fast", "model"],
    model: VisionModel | None,
    images_in_request: int = 1,
) -> FitRequest:
    """The request to the fit engine for a picture of that size under the setting `images.fit`.

    ``seed`` and ``fast`` have the same limits for every model; ``model`` sends as many pixels as
    the model can use. Every mode sends only media types that the model accepts.
    """
    request = FitRequest(mode="seed" if mode == "seed" else "fast")
    if model is None:
        return request
    readable = tuple(kind for kind in request.formats if kind in model.formats)
    if mode != "model":
        return replace(request, formats=readable)
    limits = limits_for(model, images_in_request=images_in_request)
    edge = min(limits.max_edge or GENEROUS_EDGE, GENEROUS_EDGE)
    useful = largest_useful(model, size)
    return replace(
        request,
        max_width=min(useful.width, edge),
        max_height=min(useful.height, edge),
        max_bytes=min(limits.max_image_bytes or GENEROUS_BYTES, GENEROUS_BYTES),
        formats=readable,
    )


def conversation_request(
    size: Size, *, model: VisionModel, detail: str, images_in_request: int
) -> FitRequest:
    """The request to the fit engine for a picture in a conversation, whatever the settings say."""
    limits = limits_for(model, images_in_request=images_in_request)
    is_seen_whole = sees_every_pixel(model, size, detail)
    edge = limits.max_edge or (max(size) if is_seen_whole else GENEROUS_EDGE)
    useful = largest_useful(model, size, detail)
    request = FitRequest(
        mode="sharp",
        max_width=min(useful.width, edge),
        max_height=min(useful.height, edge),
        max_bytes=limits.max_image_bytes or GENEROUS_BYTES,
        max_edge_unchanged=min(limits.max_edge or ACCEPTED_EDGE, ACCEPTED_EDGE),
    )
    return replace(
        request, formats=tuple(kind for kind in request.formats if kind in model.formats)
    )


def tiles(part: Region, *, box: Size) -> tuple[Region, ...]:
    """The tiles in reading order; none if the picture stays readable in one piece.

    Each tile fits the box at full detail. If that would take more than ``MAX_TILES``, all tiles
    are larger by the same factor, and are shrunk to the box.
    """
    if part.width <= box.width * READABLE_SHRINK and part.height <= box.height * READABLE_SHRINK:
        return ()
    width, height = box
    while _count(part.width, width) * _count(part.height, height) > MAX_TILES:
        width, height = ceil(width * 1.1), ceil(height * 1.1)
    return tuple(
        Region(x=part.x + x, y=part.y + y, width=across, height=down)
        for y, down in _spans(part.height, height)
        for x, across in _spans(part.width, width)
    )


def _count(length: int, max_length: int) -> int:
    if length <= max_length:
        return 1
    overlap = max_length // OVERLAP_SHARE
    return ceil((length - overlap) / (max_length - overlap))


def _spans(length: int, max_length: int) -> list[tuple[int, int]]:
    """Starts and lengths along one edge: all of one length, as short as possible."""
    count = _count(length, max_length)
    if count == 1:
        return [(0, length)]
    span = ceil((length + (count - 1) * (max_length // OVERLAP_SHARE)) / count)
    return [((length - span) * number // (count - 1), span) for number in range(count)]
