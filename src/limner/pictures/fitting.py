"""A picture and the model it is for -> the bytes that model should get, and what looking costs."""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Literal

import msgspec
from msgspec.structs import replace

from limner.catalogue.sizes import Size
from limner.catalogue.vision import VisionModel, cost, largest_useful, limits_for, tokens
from limner.content import Picture
from limner.errors import NANO_PER_USD
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.pictures.take import Pictures

# Neighbours share this much of the box, so that what lies on a border is whole in one of them.
OVERLAP_SHARE = 16
# A picture that is shrunk less than this stays readable in one piece.
READABLE_SHRINK = 2
MAX_TILES = 16


def tiles(part: Region, *, box: Size) -> tuple[Region, ...]:
    """The parts in reading order; none where the picture stays readable in one piece.

    Each part fits the box as it is. Where that would take more than ``MAX_TILES`` the parts are
    larger, all by the same factor, and are shrunk to the box.
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


def _count(length: int, most: int) -> int:
    if length <= most:
        return 1
    overlap = most // OVERLAP_SHARE
    return ceil((length - overlap) / (most - overlap))


def _spans(length: int, most: int) -> list[tuple[int, int]]:
    """Starts and lengths along one edge: all of one length, no longer than it takes."""
    count = _count(length, most)
    if count == 1:
        return [(0, length)]
    span = ceil((length + (count - 1) * (most // OVERLAP_SHARE)) / count)
    return [((length - span) * number // (count - 1), span) for number in range(count)]


# Services that state no limit still shrink what they get; more than this is only slower to send.
GENEROUS_EDGE = 3072
GENEROUS_BYTES = 5_000_000
# The page of a document after its first, whose size nobody has measured.
UNKNOWN_SIZE = Size(GENEROUS_EDGE, GENEROUS_EDGE)


class FittedImage(msgspec.Struct, frozen=True, kw_only=True):
    """A picture as one model should get it.

    Attributes:
        data: the bytes to send.
        fit: their type and size, and how their pixels map to those of the original.
        model: the model it was made for, as ``provider/id``.
        tokens: what looking at it takes; None where nobody says how the model counts.
        tokens_exact: False where the vendor has published no rule and this is an upper bound.
        cost_nano: what those tokens cost in nano-dollars; None where that is unknown.
        tiles: the same picture in parts at full detail, where the setting asks for them.
    """

    data: bytes
    fit: Fitted
    model: str | None = None
    tokens: int | None = None
    tokens_exact: bool = False
    cost_nano: int | None = None
    tiles: tuple[FittedImage, ...] = ()

    @property
    def mime(self) -> str:
        """The type of the bytes."""
        return self.fit.mime

    @property
    def width(self) -> int:
        """Pixels across, as sent."""
        return self.fit.width

    @property
    def height(self) -> int:
        """Pixels down, as sent."""
        return self.fit.height

    @property
    def cost_usd(self) -> float | None:
        """What looking at it costs in dollars."""
        return None if self.cost_nano is None else self.cost_nano / NANO_PER_USD

    def to_original(self, x: float, y: float) -> tuple[float, float]:
        """A point in what was sent -> the same point in the upright original."""
        part = self.fit.part
        return part.x + x * self.fit.scale_x, part.y + y * self.fit.scale_y


class Fitting(msgspec.Struct, frozen=True, kw_only=True):
    """How pictures are made ready for models here, as the settings `images.*` say."""

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
        in_conversation: bool = False,
    ) -> FittedImage:
        """The picture, or a region of it, as the model should get it.

        Args:
            picture: which one.
            model: who it is for; None is nobody in particular.
            region: the part of it that is wanted.
            page: counts from 1, and is for documents.
            images_in_request: how many may go out together, since some services then take less.
            in_conversation: whether somebody waits for the answer to more than this picture: what
                is specified for a question about one takes ten times as long as one encoding.

        Raises:
            ImageError: the region lies outside the picture, or there is no such page.
            StorageError: its bytes are gone.
        """
        ask = partial(request_for, mode=self.mode, model=model, images_in_request=images_in_request)
        size = Size(picture.width, picture.height) if page == 1 else UNKNOWN_SIZE
        request = replace(ask(size), page=page)
        if in_conversation and request.mode == "seed":
            request = replace(request, mode="quick")
        whole = await self._one(picture, replace(request, region=region), model)
        if self.tile == "off":
            return whole
        largest = ask(UNKNOWN_SIZE)
        parts = [
            await self._one(picture, replace(largest, page=page, region=part), model)
            for part in tiles(whole.fit.part, box=Size(largest.max_width, largest.max_height))
        ]
        return replace(whole, tiles=tuple(parts))

    async def _one(
        self, picture: Picture, request: FitRequest, model: VisionModel | None
    ) -> FittedImage:
        fitted, data = await self.pictures.give(picture, request)
        if model is None:
            return FittedImage(data=data, fit=fitted)
        sent = Size(fitted.width, fitted.height)
        look = tokens(model, sent)
        return FittedImage(
            data=data,
            fit=fitted,
            model=model.name,
            tokens=None if look is None else look.tokens,
            tokens_exact=look is not None and look.exact,
            cost_nano=cost(model, sent),
        )


def request_for(
    size: Size,
    *,
    mode: Literal["seed", "fast", "model"],
    model: VisionModel | None,
    images_in_request: int = 1,
) -> FitRequest:
    """What to ask of the engine for a picture of that size under the setting `images.fit`.

    ``seed`` and ``fast`` have the same limits for every model; ``model`` sends as much as the
    model can use. In each of them a model is sent no type that it cannot read.
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
