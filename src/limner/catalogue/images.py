"""Image models as dated data: sizes, qualities, prices, lifecycles, each row with its source.

The rows live in ``image_models/``, a file for each provider. What a model may be asked for and
what it will cost is decided here, from data alone, before anything is sent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from limner.catalogue.prices import PerSizePrice, PriceRequest, PriceRule, Quote, cost_of_tokens
from limner.catalogue.sizes import ListedSizes, Size, SizeRule, parse_size
from limner.errors import InvalidSize

__all__ = [
    "EditRule",
    "ImageModel",
    "Needs",
    "Quote",
    "Size",
    "Status",
    "all_image_models",
    "cost_of_usage",
    "image_models",
    "other_image_model",
    "parse_size",
]

_FOLDER = Path(__file__).with_name("image_models")

Status = Literal["current", "retiring", "retired"]


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks of a model besides size and quality.

    ``options`` are the drawing options that the caller gave, by name.
    """

    sources: int = 0
    mask: bool = False
    partial_pictures: int = 0
    options: Mapping[str, object] = {}


class EditRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model takes that can draw from pictures.

    Attributes:
        max_sources: the most pictures in one request, the one to change included.
        mask: how it is told which part to change, where it can be: by what is transparent in a
            mask (``alpha``), or by what is white in it (``white``).
        formats: the types it reads.
        max_edge: the longest edge; a larger picture is shrunk before it is sent.
        max_bytes: the largest file.
    """

    max_sources: int
    mask: Literal["alpha", "white"] | None = None
    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp")
    max_edge: int = 4096
    max_bytes: int = 20_000_000


class ImageModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of one service.

    Attributes:
        provider: the service's name in the table of providers.
        id: the vendor's own name of the model.
        title: the name people know it by.
        sizes: what it can be asked to draw.
        qualities: the tool's quality -> the vendor's word; empty where quality is ignored.
        price: how a picture is charged.
        max_prompt_chars: the longest prompt the service takes.
        retired: the first day it no longer works at the vendor, where that is known.
        successor: the ``provider/id`` to use instead.
        edit: what it takes where it can draw from pictures.
        backgrounds: the backgrounds that can be asked for.
        negative_prompt: whether it can be told what to leave out.
        seeds: whether the same seed gives the same picture.
        partial_pictures: the most unfinished pictures it can show on the way.
        options: the names of further drawing options that it honours.
        fit_to_size: the service may answer with other dimensions than asked for, and the picture
            has to be brought to the size.
        source: where the row was read.
        read: when it was read.
    """

    provider: str
    id: str
    title: str
    sizes: SizeRule
    price: PriceRule
    max_prompt_chars: int
    source: str
    read: date
    qualities: dict[str, str] = {}
    retired: date | None = None
    successor: str | None = None
    edit: EditRule | None = None
    backgrounds: tuple[str, ...] = ()
    negative_prompt: bool = False
    seeds: bool = False
    partial_pictures: int = 0
    options: tuple[str, ...] = ()
    fit_to_size: bool = False

    def __post_init__(self) -> None:
        """Refuse a row that offers what it has no price for."""
        if isinstance(self.price, PerSizePrice):
            priced = {(row.size, quality) for row in self.price.rows for quality in row.usd}
            listed = self.sizes.sizes if isinstance(self.sizes, ListedSizes) else ()
            if priced != {(size, word) for size in listed for word in self.qualities.values()}:
                raise ValueError("a per_size price needs exactly the listed sizes and qualities")

    @property
    def name(self) -> str:
        """``provider/id``, as people and successors name it."""
        return f"{self.provider}/{self.id}"

    def status(self, on: date) -> Status:
        """Where the model is in its life on that day."""
        if self.retired is None:
            return "current"
        return "retired" if on >= self.retired else "retiring"

    def is_retired(self, on: date) -> bool:
        """Whether the vendor has switched it off by that day."""
        return self.status(on) == "retired"

    def can_draw(self, size: Size, quality: str) -> bool:
        """Whether the model takes this size at the tool's quality."""
        return self.sizes.allows(size) and self._has_quality(quality)

    def lacks(self, needs: Needs) -> str | None:
        """Why the model cannot do what is asked, in words that follow its name; None if it can."""
        if needs.sources or needs.mask:
            return self._lacks_for_edit(needs)
        for name, value in needs.options.items():
            if (lack := self._lacks_option(name, value)) is not None:
                return lack
        if needs.partial_pictures > self.partial_pictures:
            return f"shows at most {self.partial_pictures} unfinished pictures"
        return None

    def _lacks_option(self, name: str, value: object) -> str | None:
        match name:
            case "quality" | "seed":
                # The quality is checked with the size. A seed that a model ignores is no reason to
                # refuse: the result says so.
                return None
            case "background":
                return None if value in self.backgrounds else f"has no {value} background"
            case "negative_prompt":
                return None if self.negative_prompt else "takes no negative prompt"
            case _:
                return None if name in self.options else f"does not take the option {name}"

    def _lacks_for_edit(self, needs: Needs) -> str | None:
        edit = self.edit
        if edit is None:
            return "does not draw from pictures"
        if needs.sources > edit.max_sources:
            return f"draws from at most {edit.max_sources}, not from {needs.sources} pictures"
        if needs.mask and edit.mask is None:
            return "takes no mask"
        return self.lacks(replace(needs, sources=0, mask=False))

    def nearest_size(self, size: Size) -> Size:
        """The legal size nearest to this one: in shape first, then in area."""
        return size if self.sizes.allows(size) else self.sizes.nearest(size)

    def quote(
        self,
        size: Size,
        quality: str,
        prompt: str,
        *,
        sources: Sequence[Size] = (),
        partial_pictures: int = 0,
    ) -> Quote:
        """The price of one picture, before asking for it.

        Args:
            size: what to draw.
            quality: the tool's word.
            prompt: in words.
            sources: the sizes of the pictures to draw from.
            partial_pictures: how many unfinished pictures are shown on the way.

        Raises:
            InvalidSize: the model does not draw this size or quality.
        """
        if not self.can_draw(size, quality):
            raise self.invalid_size(size, quality)
        word = self.qualities.get(quality, quality)
        return self.price.quote(
            PriceRequest(
                size=size,
                quality=word,
                prompt=prompt,
                sources=sources,
                partial_pictures=partial_pictures,
            )
        )

    def invalid_size(self, size: Size, quality: str) -> InvalidSize:
        """The error that says what cannot be drawn, and the nearest that can."""
        if not self._has_quality(quality):
            return InvalidSize(
                f"{self.name} has no quality {quality[:40]!r}",
                field="quality",
                hint=f"Use {' or '.join(self.qualities)}.",
            )
        return InvalidSize(
            f"{self.name} cannot draw {size} at {quality} quality",
            field="size",
            hint=f"The nearest size it can draw is {self.nearest_size(size)}.",
        )

    def _has_quality(self, quality: str) -> bool:
        return not self.qualities or quality in self.qualities


class _Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: tuple[ImageModel, ...] = ()
    other_model: ImageModel | None = None


@cache
def _catalogue(provider: str) -> _Catalogue:
    file = _FOLDER / f"{provider}.toml"
    if not file.is_file():
        return _Catalogue()
    text = file.read_text(encoding="utf-8")
    # Prices stay decimal from the file to the nano-dollar: no binary float in between.
    rows = tomllib.loads(text, parse_float=Decimal)
    return msgspec.convert(rows, _Catalogue)


def image_models(provider: str) -> tuple[ImageModel, ...]:
    """The models of one provider, its default first."""
    return _catalogue(provider).model


def other_image_model(provider: str) -> ImageModel | None:
    """What holds for the provider's models that have no row of their own, where it has such."""
    return _catalogue(provider).other_model


def all_image_models() -> tuple[ImageModel, ...]:
    """Every row of every provider; within a provider the first is its default."""
    providers = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    return tuple(model for provider in providers for model in image_models(provider))


def cost_of_usage(model: ImageModel, usage: object) -> int | None:
    """What the service's usage report says the picture cost, in nano-dollars.

    None where the model is not priced by usage or the report cannot be trusted.
    """
    return cost_of_tokens(model.price, usage)
