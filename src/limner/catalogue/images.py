"""Image models as dated data: sizes, qualities, prices, lifecycles, each row with its source.

The rows live in ``images.toml``. What a model may be asked for and what it will cost is decided
here, from data alone, before anything is sent.
"""

from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from limner.catalogue.prices import PerSizePrice, PriceRule, Quote, cost_of_tokens, quote_picture
from limner.catalogue.sizes import ListedSizes, Size, SizeRule, parse_size
from limner.errors import InvalidSize

__all__ = [
    "ImageModel",
    "Quote",
    "Size",
    "Status",
    "all_image_models",
    "cost_of_usage",
    "image_models",
    "parse_size",
]

Status = Literal["current", "retiring", "retired"]


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

    def nearest_size(self, size: Size) -> Size:
        """The legal size nearest to this one: in shape first, then in area."""
        return size if self.sizes.allows(size) else self.sizes.nearest(size)

    def quote(self, size: Size, quality: str, prompt: str) -> Quote:
        """The price of one picture, before asking for it.

        Raises:
            InvalidSize: the model does not draw this size or quality.
        """
        if not self.can_draw(size, quality):
            raise self.invalid_size(size, quality)
        word = self.qualities.get(quality, quality)
        return quote_picture(self.price, size, quality=word, prompt=prompt)

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
    model: tuple[ImageModel, ...]


@cache
def all_image_models() -> tuple[ImageModel, ...]:
    """Every row; within a provider the first is its default."""
    text = Path(__file__).with_name("images.toml").read_text(encoding="utf-8")
    # Prices stay decimal from the file to the nano-dollar: no binary float in between.
    rows = tomllib.loads(text, parse_float=Decimal)
    return msgspec.convert(rows, _Catalogue).model


def image_models(provider: str) -> tuple[ImageModel, ...]:
    """The models of one provider, its default first."""
    return tuple(model for model in all_image_models() if model.provider == provider)


def cost_of_usage(model: ImageModel, usage: object) -> int | None:
    """What the service's usage report says the picture cost, in nano-dollars.

    None where the model is not priced by usage or the report cannot be trusted.
    """
    return cost_of_tokens(model.price, usage)
