"""Vision models as dated data: what they accept, what a look at a picture takes, what it costs.

The rows live in ``vision.toml``. What a model may be sent and what that will cost is decided here,
from data alone, before anything is sent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from limner.catalogue.rates import LongPromptRate, Rate
from limner.catalogue.sizes import Size
from limner.catalogue.tokens import ImageTokens, TokenRule
from limner.errors import InputInvalid

__all__ = [
    "ImageTokens",
    "Limits",
    "LongPromptRate",
    "ManyImages",
    "ModelService",
    "Rate",
    "Size",
    "VisionModel",
    "cost",
    "largest_useful",
    "limits_for",
    "services",
    "tokens",
    "unlisted",
    "vision_model",
    "vision_models",
]


class _Struct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all parts of the file share: a word nobody knows is an error."""


class ManyImages(_Struct, frozen=True):
    """Above so many pictures in one request, each has to be smaller."""

    above: int
    max_edge: int


class Limits(_Struct, frozen=True):
    """What a service refuses; None where it states no limit.

    Attributes:
        max_edge: the longest edge of a picture, in pixels.
        max_base64_bytes: the largest picture, counted as the base64 text that carries it.
        max_request_bytes: the largest request, everything in it counted as sent.
        max_images: the most pictures in one request, those of earlier turns included.
        many_images: the narrower limit for requests with many pictures.
    """

    max_edge: int | None = None
    max_base64_bytes: int | None = None
    max_request_bytes: int | None = None
    max_images: int | None = None
    many_images: ManyImages | None = None

    @property
    def max_image_bytes(self) -> int | None:
        """The largest picture, counted as the file it is: base64 makes four bytes of three."""
        return None if self.max_base64_bytes is None else self.max_base64_bytes // 4 * 3


class ModelService(_Struct, frozen=True):
    """Who runs models, and how they are reached.

    Attributes:
        title: the name people know it by.
        api: the wire it speaks.
        base_url: its address, as the vendor's own client wants it.
        base_url_env: the variable that names another one.
        key_env: the variable that holds its key; None where it needs none.
        account_url: where one sees what was spent.
        formats: the MIME types that its models read.
        limits: what it refuses.
        source: where all this was read.
        read: when it was read.
        any_model: it runs whatever its owner has installed.
    """

    title: str
    api: str
    base_url: str
    base_url_env: str
    formats: tuple[str, ...]
    limits: Limits
    source: str
    read: date
    key_env: str | None = None
    account_url: str | None = None
    any_model: bool = False


class VisionModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of one service.

    Attributes:
        provider: the service.
        id: the vendor's own name of the model.
        title: the name people know it by.
        takes_images: False where a picture would be refused.
        formats: the MIME types it reads, an animation as its first frame at best.
        limits: what the service refuses; ``limits_for`` has them for one request.
        rule: how a picture becomes tokens; None where nobody says.
        rate: what tokens cost; None where it is unknown, which is not free.
        context_tokens: how much one conversation holds, where that is known.
        retired: the first day it no longer works at the vendor, where that is known.
        source: where the row was read.
        read: when it was read.
        takes_audio: True where a source says that it hears, at the price of words.
    """

    provider: str
    id: str
    title: str
    takes_images: bool
    formats: tuple[str, ...]
    limits: Limits
    rule: TokenRule | None
    rate: Rate | None
    context_tokens: int | None
    retired: date | None
    source: str
    read: date
    takes_audio: bool = False

    @property
    def name(self) -> str:
        """``provider/id``, as people and settings name it."""
        return f"{self.provider}/{self.id}"

    def is_retired(self, on: date) -> bool:
        """Whether the vendor has switched it off by that day."""
        return self.retired is not None and on >= self.retired


def tokens(model: VisionModel, size: Size, detail: str = "auto") -> ImageTokens | None:
    """What looking at a picture takes; None where nobody says how the model counts.

    Every model has the detail ``auto``, the default of its service; OpenAI's also have low, high
    and some original, Google's low, medium, high and some ultra_high.

    Raises:
        InputInvalid: the model has no such detail.
        ImageTooLarge: the service would refuse a picture of that size at that detail.
    """
    return None if model.rule is None else model.rule.look(size, detail)


def cost(model: VisionModel, size: Size, detail: str = "auto") -> int | None:
    """What looking at a picture costs, in nano-dollars; None where that is unknown.

    Raises:
        InputInvalid: the model has no such detail.
        ImageTooLarge: the service would refuse a picture of that size at that detail.
    """
    look = tokens(model, size, detail)
    if look is None or model.rate is None:
        return None
    return model.rate.cost(input_tokens=look.tokens)


def largest_useful(model: VisionModel, size: Size, detail: str = "auto") -> Size:
    """The size to send so that the model has nothing left to resize: more would be thrown away.

    It is the size the model sees, never larger than the picture; and where the service would
    refuse the picture, the largest it takes.

    Raises:
        InputInvalid: the model has no such detail.
    """
    return size if model.rule is None else model.rule.useful(size, detail)


def limits_for(model: VisionModel, *, images_in_request: int) -> Limits:
    """What a request with so many pictures has to keep to, earlier turns included."""
    limits, many = model.limits, model.limits.many_images
    if many is None or images_in_request <= many.above:
        return limits
    narrower = min(many.max_edge, limits.max_edge or many.max_edge)
    return msgspec.structs.replace(limits, max_edge=narrower)


@cache
def vision_models() -> tuple[VisionModel, ...]:
    """Every row; within a provider the first is its default."""
    return tuple(_model(row) for row in _catalogue().model)


def vision_model(name: str) -> VisionModel:
    """The model of that ``provider/id``; a snapshot's id gives the row of its model.

    A service that runs whatever its owner has installed has a model of every name.

    Raises:
        InputInvalid: no such model; the hint has the nearest names.
    """
    known = _by_name()
    if name in known:
        return known[name]
    provider, _, _ = name.partition("/")
    service = _catalogue().service.get(provider)
    model = unlisted(name)
    if model is not None and service is not None and service.any_model:
        return model
    nearest = get_close_matches(name[:80].lower(), known, n=3, cutoff=0.5)
    raise InputInvalid(
        f"There is no vision model {name[:80]!r}",
        field="model",
        hint=f"Use {' or '.join(nearest or [next(iter(known))])}.",
    )


def unlisted(name: str) -> VisionModel | None:
    """A model that has no row, of a service that is known: as the service is, without a price.

    New models appear weekly, and their services take pictures.
    """
    provider, _, model_id = name.partition("/")
    service = _catalogue().service.get(provider)
    if service is None or not model_id:
        return None
    row = _Row(
        provider=provider,
        id=model_id,
        title=model_id,
        source=service.source,
        read=service.read,
    )
    return _model(row)


def services() -> Mapping[str, ModelService]:
    """Every service by the name that its models begin with."""
    return _catalogue().service


class _Row(_Struct, frozen=True):
    provider: str
    id: str
    title: str
    source: str
    read: date
    snapshots: tuple[str, ...] = ()
    takes_images: bool = True
    takes_audio: bool = False
    max_images: int | None = None
    rule: str | None = None
    rate: Rate | None = None
    context_tokens: int | None = None
    retired: date | None = None


class _Catalogue(_Struct, frozen=True):
    service: dict[str, ModelService]
    rule: dict[str, TokenRule]
    model: tuple[_Row, ...]


@cache
def _catalogue() -> _Catalogue:
    text = Path(__file__).with_name("vision.toml").read_text(encoding="utf-8")
    # Prices stay decimal from the file to the nano-dollar: no binary float in between.
    return msgspec.convert(tomllib.loads(text, parse_float=Decimal), _Catalogue)


@cache
def _by_name() -> dict[str, VisionModel]:
    named: dict[str, VisionModel] = {}
    for row in _catalogue().model:
        model = _model(row)
        for model_id in (row.id, *row.snapshots):
            one = replace(model, id=model_id)
            named[one.name] = one
    return named


def _model(row: _Row) -> VisionModel:
    """A row, with what it shares with the others of its service and kind."""
    service = _catalogue().service[row.provider]
    limits = service.limits
    if row.max_images is not None:
        limits = msgspec.structs.replace(limits, max_images=row.max_images)
    return VisionModel(
        provider=row.provider,
        id=row.id,
        title=row.title,
        takes_images=row.takes_images,
        takes_audio=row.takes_audio,
        formats=service.formats if row.takes_images else (),
        limits=limits,
        rule=None if row.rule is None else _catalogue().rule[row.rule],
        rate=row.rate,
        context_tokens=row.context_tokens,
        retired=row.retired,
        source=row.source,
        read=row.read,
    )
