"""A size -> the nearest of the shapes that a service draws, where it takes shapes and no sizes."""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from limner.errors import ProviderBadRequest
from limner.pictures.request import ImageRequest, SourceImage

COMMON_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")


def nearest_aspect_ratio(width: int, height: int, ratios: Iterable[str]) -> str:
    """The ratio, such as ``16:9``, that is nearest to a size; as near when both are turned."""
    wanted = math.log(width / height)
    return min(ratios, key=lambda ratio: abs(math.log(aspect_of(ratio)) - wanted))


def aspect_of(ratio: str) -> float:
    """The width of a shape that is one high."""
    across, down = map(float, ratio.split(":"))
    return across / down


SEEDS = 2**31


class ModelInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What one model takes besides its prompt.

    Attributes:
        ratios: the aspect ratios it draws, where it is told a shape.
        edges: how it is told width and height, where it is: ``apart`` in two fields, or
            ``together`` in one that is called ``image_size``.
        source: the field of the picture to draw from.
        several: how more than one goes in: as a ``list``, or ``numbered``, where the second has a
            field of its own with ``_2`` behind the name; None where only one does.
        mask: the field of the mask.
        needs_mask: whether it does nothing but fill what a mask marks.
        seed: whether it has a seed.
        negative_prompt: whether it can be told what to leave out.
        fixed: what it is always told.
    """

    ratios: tuple[str, ...] = ()
    edges: Literal["apart", "together"] | None = None
    source: str | None = None
    several: Literal["list", "numbered"] | None = None
    mask: str | None = None
    needs_mask: bool = False
    seed: bool = True
    negative_prompt: bool = False
    fixed: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def prepared(self, request: ImageRequest) -> ImageRequest:
        """The request with a seed exactly where the model takes one.

        Raises:
            ProviderBadRequest: the model cannot do what is asked; nothing was sent.
        """
        if lack := self._lack(request):
            raise ProviderBadRequest(f"{request.model} {lack}; nothing was sent")
        if not self.seed:
            return replace(request, seed=None)
        if request.seed is None:
            # Told to the caller, for the same picture again; a lost job is found by it.
            return replace(request, seed=secrets.randbelow(SEEDS))
        return request

    def fill(
        self, request: ImageRequest, *, encode: Callable[[SourceImage], str]
    ) -> dict[str, Any]:
        """The fields for a request; ``encode`` writes a picture as the service reads it."""
        fields = {"prompt": request.prompt, **self._size(request), **self.fixed}
        if self.seed and request.seed is not None:
            fields["seed"] = request.seed
        if self.negative_prompt and request.negative_prompt is not None:
            fields["negative_prompt"] = request.negative_prompt
        fields |= self._sources([encode(picture) for picture in request.sources])
        if self.mask is not None and request.mask is not None:
            fields[self.mask] = encode(request.mask)
        return fields

    def _lack(self, request: ImageRequest) -> str | None:
        """What is asked that the catalogue could not know the model lacks, in words."""
        if self.needs_mask and request.mask is None:
            return "only fills what a mask marks in a picture"
        if request.sources and self.source is None:
            return "does not draw from pictures"
        if len(request.sources) > 1 and self.several is None:
            return "draws from one picture"
        if request.mask is not None and self.mask is None:
            return "takes no mask"
        if request.negative_prompt is not None and not self.negative_prompt:
            return "takes no negative prompt"
        return None

    def _size(self, request: ImageRequest) -> dict[str, Any]:
        edges = {"width": request.width, "height": request.height}
        if self.edges is not None:
            return edges if self.edges == "apart" else {"image_size": edges}
        if self.ratios:
            nearest = nearest_aspect_ratio(request.width, request.height, self.ratios)
            return {"aspect_ratio": nearest}
        return {}

    def _sources(self, pictures: list[str]) -> dict[str, Any]:
        if self.source is None or not pictures:
            return {}
        if self.several == "list":
            return {self.source: pictures}
        first, *others = pictures
        numbered = {f"{self.source}_{number}": one for number, one in enumerate(others, start=2)}
        return {self.source: first, **numbered}


def as_base64(picture: SourceImage) -> str:
    """The bytes of a picture in base64 and nothing else."""
    return base64.b64encode(picture.data).decode("ascii")


def as_data_url(picture: SourceImage) -> str:
    """A picture as a ``data:`` address."""
    return f"data:{picture.mime};base64,{as_base64(picture)}"
