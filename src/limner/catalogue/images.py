"""A provider's name -> its image models as data: sizes, qualities, prices and lifecycles.

The rows are in ``image_models/``, one file for each provider, and each row has its source and its
date. What a model can draw and what it will cost follows from this data, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from msgspec.structs import replace

from limner.catalogue.data_file import read_rows
from limner.catalogue.prices import PerSizePrice, PriceRequest, PriceRule, Quote, cost_of_tokens
from limner.catalogue.sizes import ListedSizes, Size, SizeRule, parse_size
from limner.errors import InvalidSize

__all__ = [
    "EditRule",
    "ImageModel",
    "Needs",
    "PictureHost",
    "Quote",
    "Size",
    "Status",
    "all_image_models",
    "cost_of_usage",
    "image_models",
    "other_image_model",
    "parse_size",
    "picture_hosts",
]

_FOLDER = Path(__file__).with_name("image_models")

# Below these, any customer of a cloud can have a name.
_SHARED_DOMAINS = (
    *("windows.net", "azureedge.net", "azurefd.net", "azure.com", "amazonaws.com", "aws.dev"),
    *("cloudfront.net", "googleapis.com", "googleusercontent.com", "appspot.com", "run.app"),
    *("r2.dev", "workers.dev", "pages.dev", "cloudflarestorage.com", "digitaloceanspaces.com"),
    *("backblazeb2.com", "b-cdn.net", "fastly.net", "akamaized.net", "github.io", "vercel.app"),
)

Status = Literal["current", "retiring", "retired"]


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a request needs of a model besides size and quality.

    ``options`` are the drawing options of the caller, by name.
    """

    sources: int = 0
    mask: bool = False
    partial_pictures: int = 0
    options: Mapping[str, object] = {}


class EditRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model takes if it can draw from pictures.

    Attributes:
        max_sources: the most pictures in one request, with the one to change.
        mask: which part of a mask marks the area to change: the transparent one (``alpha``) or the
            white one (``white``); None if the model takes no mask.
        formats: the media types it accepts.
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
        id: the vendor's name of the model.
        title: its name for users.
        sizes: the sizes it can draw.
        qualities: the tool's quality (``standard``, ``hd``) -> the vendor's word; empty if the
            model has no qualities. The provider sends it: ``qualities[request.quality]``.
        price: the price rule.
        max_prompt_chars: the longest prompt the service takes.
        retired: the first day on which it no longer works at the vendor, if that is known.
        successor: the ``provider/id`` to use instead.
        edit: what it takes if it can draw from pictures.
        backgrounds: the backgrounds it can draw.
        negative_prompt: whether it takes a negative prompt.
        seeds: whether the same seed gives the same picture.
        partial_pictures: the most partial pictures it can show.
        options: the other drawing options that it supports, each with the vendor's name for it.
        fit_to_size: the service may return other dimensions than the requested ones, and limner
            brings the picture to the size.
        source: where the facts come from.
        read: when they were checked.
    """

    # Not for programs.
    _internal: ClassVar = frozenset({"lacks"})

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
    options: dict[str, str] = {}
    fit_to_size: bool = False

    def __post_init__(self) -> None:
        """Check that the row has a price for everything it offers."""
        if isinstance(self.price, PerSizePrice):
            priced = {(row.size, quality) for row in self.price.rows for quality in row.usd}
            listed = self.sizes.sizes if isinstance(self.sizes, ListedSizes) else ()
            if priced != {(size, word) for size in listed for word in self.qualities.values()}:
                raise ValueError("a per_size price needs exactly the listed sizes and qualities")

    @property
    def name(self) -> str:
        """``provider/id``."""
        return f"{self.provider}/{self.id}"

    def status(self, on: date) -> Status:
        """The lifecycle status on a day."""
        if self.retired is None:
            return "current"
        return "retired" if on >= self.retired else "retiring"

    def is_retired(self, on: date) -> bool:
        """Whether the vendor has retired it by that day."""
        return self.status(on) == "retired"

    def can_draw(self, size: Size, quality: str) -> bool:
        """Whether the model can draw this size at the tool's quality."""
        return self.sizes.allows(size) and self._has_quality(quality)

    def lacks(self, needs: Needs) -> str | None:
        """Why the model cannot do it, as a text that follows its name; None if it can."""
        if needs.sources or needs.mask:
            return self._lacks_for_edit(needs)
        for name, value in needs.options.items():
            if (lack := self._lacks_option(name, value)) is not None:
                return lack
        if needs.partial_pictures > self.partial_pictures:
            return f"shows at most {self.partial_pictures} unfinished pictures"
        return None

    def vendor_fields(self, options: Mapping[str, object]) -> dict[str, object]:
        """The options that the row names, under the vendor's names."""
        return {self.options[name]: options[name] for name in self.options if name in options}

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
        """The nearest size that the model can draw: by shape first, then by area."""
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
            size: the size of the picture.
            quality: the tool's quality.
            prompt: the prompt.
            sources: the sizes of the source pictures.
            partial_pictures: how many partial pictures are shown.

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
        """The error for a size or quality that the model cannot draw, with the nearest one."""
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


class PictureHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host that a service's picture URLs may lead to.

    Attributes:
        name: the exact name, or ``*.name`` for a name and its subdomains.
        source: where the service's own words or responses name it.
        read: when that was checked.
    """

    name: str
    source: str
    read: date

    def __post_init__(self) -> None:
        """Check that everything below the name belongs to the service."""
        domain = self.name.removeprefix("*.")
        if self.name != domain and domain.endswith(_SHARED_DOMAINS):
            raise ValueError(f"{self.name} belongs to every customer of that cloud: name accounts")


class ProviderFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of ``image_models/`` has."""

    model: tuple[ImageModel, ...] = ()
    other_model: ImageModel | None = None
    host: tuple[PictureHost, ...] = ()


@cache
def _catalogue(provider: str) -> ProviderFile:
    file = _FOLDER / f"{provider}.toml"
    return read_rows(file, ProviderFile) if file.is_file() else ProviderFile()


def image_models(provider: str) -> tuple[ImageModel, ...]:
    """The models of one provider, its default first."""
    return _catalogue(provider).model


def other_image_model(provider: str) -> ImageModel | None:
    """The row for the provider's models that have no row of their own; None if it has none."""
    return _catalogue(provider).other_model


def picture_hosts(provider: str) -> tuple[str, ...]:
    """The hosts that a provider's picture URLs may lead to, besides that of its base URL."""
    return tuple(host.name for host in _catalogue(provider).host)


def all_image_models() -> tuple[ImageModel, ...]:
    """All rows of all providers; the first of a provider is its default."""
    providers = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    return tuple(model for provider in providers for model in image_models(provider))


def cost_of_usage(model: ImageModel, usage: object) -> int | None:
    """The cost of a picture by the service's usage report, in nano-dollars.

    None if the model is not priced by usage, or the report is not valid.
    """
    return cost_of_tokens(model.price, usage)
