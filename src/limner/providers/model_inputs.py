"""A request -> the fields of one model's input: size or aspect ratio, pictures, seed."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from limner.base64_text import encode_base64
from limner.errors import ProviderBadRequest
from limner.pictures.request import ImageRequest, SourceImage

COMMON_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")


def nearest_aspect_ratio(width: int, height: int, ratios: Iterable[str]) -> str:
    """The ratio, such as ``16:9``, that is nearest to a size; the same rule for tall and wide."""
    wanted = math.log(width / height)
    return min(ratios, key=lambda ratio: abs(math.log(aspect_of(ratio)) - wanted))


def aspect_of(ratio: str) -> float:
    """Width divided by height."""
    across, down = map(float, ratio.split(":"))
    return across / down


SEEDS = 2**31


class ModelInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What one model takes besides its prompt.

    Attributes:
        ratios: the aspect ratios it draws, if it takes an aspect ratio.
        edges: how it takes width and height: ``apart`` in two fields, ``together`` in one field
            ``image_size``, or None if it takes neither.
        source: the field of the source picture.
        several: how it takes more than one: as a ``list``, or ``numbered`` with ``_2`` behind the
            name of the second field; None if it takes only one.
        mask: the field of the mask.
        needs_mask: whether it can only fill the area of a mask.
        seed: whether it takes a seed.
        negative_prompt: whether it takes a negative prompt.
        fixed: fields that are always sent.
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

    def prepare(self, request: ImageRequest) -> ImageRequest:
        """Add a seed if the model takes one, and remove it if not.

        Raises:
            ProviderBadRequest: the model cannot do what is asked; nothing was sent.
        """
        if problem := self._unsupported(request):
            raise ProviderBadRequest(f"{request.model} {problem}; nothing was sent")
        if not self.seed:
            return replace(request, seed=None)
        if request.seed is None:
            # The caller gets it, to repeat the picture; a lost job is found by it.
            return replace(request, seed=secrets.randbelow(SEEDS))
        return request

    def fill(
        self, request: ImageRequest, *, encode: Callable[[SourceImage], str]
    ) -> dict[str, Any]:
        """The fields for a request; ``encode`` writes a picture in the form the service takes."""
        fields = {"prompt": request.prompt, **self._size(request), **self.fixed}
        fields |= request.vendor_fields
        if self.seed and request.seed is not None:
            fields["seed"] = request.seed
        if self.negative_prompt and request.negative_prompt is not None:
            fields["negative_prompt"] = request.negative_prompt
        fields |= self._sources([encode(picture) for picture in request.sources])
        if self.mask is not None and request.mask is not None:
            fields[self.mask] = encode(request.mask)
        return fields

    def _unsupported(self, request: ImageRequest) -> str | None:
        """What the model cannot do, if the catalogue did not know it."""
        if self.needs_mask and request.mask is None:
            return "only fills the area that a mask marks in a picture"
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
    """The bytes of a picture in base64."""
    return encode_base64(picture.data)


def as_data_url(picture: SourceImage) -> str:
    """A picture as a ``data:`` URL."""
    return f"data:{picture.mime};base64,{as_base64(picture)}"
