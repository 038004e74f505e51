"""A model's name -> its facts: what it accepts, and the tokens and cost of a picture.

The rows are in ``vision.toml``. What a model accepts and what it will cost follows from this data,
before anything is sent.
"""

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from limner.catalogue.data_file import read_rows
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
    "sees_every_pixel",
    "services",
    "tokens",
    "unlisted",
    "vision_model",
    "vision_models",
]


class _Struct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all parts of the file: an unknown field is an error."""


class ManyImages(_Struct, frozen=True):
    """The limit for each picture of a request with more than ``above`` pictures."""

    above: int
    max_edge: int


class Limits(_Struct, frozen=True):
    """The limits of a service; None if it has no such limit.

    Attributes:
        max_edge: the longest edge of a picture, in pixels.
        max_base64_bytes: the largest picture, measured as base64 text.
        max_request_bytes: the largest request, measured as it is sent.
        max_images: the most pictures in one request, with those of earlier turns.
        many_images: the stricter limit for requests with many pictures.
    """

    max_edge: int | None = None
    max_base64_bytes: int | None = None
    max_request_bytes: int | None = None
    max_images: int | None = None
    many_images: ManyImages | None = None

    @property
    def max_image_bytes(self) -> int | None:
        """The largest picture, measured as a file; base64 turns three bytes into four."""
        return None if self.max_base64_bytes is None else self.max_base64_bytes // 4 * 3


class ModelService(_Struct, frozen=True):
    """A service that runs models.

    Attributes:
        title: its name for users.
        api: the wire it speaks.
        base_url: its URL, in the form that the vendor's own client takes.
        base_url_env: the variable that overrides it.
        key_env: the variable with its key; None if it needs none.
        account_url: where the user sees the bill.
        formats: the media types that its models accept.
        limits: its limits.
        source: where the facts come from.
        read: when they were checked.
        any_model: it runs any model that its owner has installed.
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
        id: the vendor's name of the model.
        title: its name for users.
        takes_images: False if it does not accept pictures.
        formats: the media types it accepts; it may see only the first frame of an animation.
        limits: the limits of the service; ``limits_for`` has them for one request.
        rule: how it counts the tokens of a picture; None if that is not known.
        rate: the price of tokens; None if it is not known, which does not mean free.
        context_tokens: the size of its context window, if it is known.
        retired: the first day on which it no longer works at the vendor, if that is known.
        source: where the facts come from.
        read: when they were checked.
        takes_audio: True if a source says that it accepts audio at the price of text.
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
        """``provider/id``."""
        return f"{self.provider}/{self.id}"

    def is_retired(self, on: date) -> bool:
        """Whether the vendor has retired it by that day."""
        return self.retired is not None and on >= self.retired


def tokens(model: VisionModel, size: Size, detail: str = "auto") -> ImageTokens | None:
    """The tokens of a picture; None if it is not known how the model counts.

    Every model has the detail ``auto``, the default of its service. OpenAI's models also have low
    and high, and some have original. Google's have low, medium and high, and some have ultra_high.

    Raises:
        InputInvalid: the model has no such detail.
        ImageTooLarge: the service would refuse a picture of that size at that detail.
    """
    return None if model.rule is None else model.rule.count(size, detail)


def cost(model: VisionModel, size: Size, detail: str = "auto") -> int | None:
    """The cost of a picture, in nano-dollars; None if it is not known.

    Raises:
        InputInvalid: the model has no such detail.
        ImageTooLarge: the service would refuse a picture of that size at that detail.
    """
    counted = tokens(model, size, detail)
    if counted is None or model.rate is None:
        return None
    return model.rate.cost(input_tokens=counted.tokens)


def largest_useful(model: VisionModel, size: Size, detail: str = "auto") -> Size:
    """The largest size that the model does not shrink; more pixels would be lost.

    It is never larger than the picture. If the service would refuse the picture, it is the largest
    size that the service accepts.

    Raises:
        InputInvalid: the model has no such detail.
    """
    return size if model.rule is None else model.rule.useful(size, detail)


def sees_every_pixel(model: VisionModel, size: Size, detail: str = "auto") -> bool:
    """Whether a published rule says that the model does not shrink a picture of that size.

    Raises:
        InputInvalid: the model has no such detail.
    """
    rule = model.rule
    is_published = rule is not None and rule.exact and rule.says_size
    return is_published and largest_useful(model, size, detail) == size


def limits_for(model: VisionModel, *, images_in_request: int) -> Limits:
    """The limits of a request with so many pictures, with those of earlier turns."""
    limits, many = model.limits, model.limits.many_images
    if many is None or images_in_request <= many.above:
        return limits
    stricter = min(many.max_edge, limits.max_edge or many.max_edge)
    return msgspec.structs.replace(limits, max_edge=stricter)


@cache
def vision_models() -> tuple[VisionModel, ...]:
    """All rows; the first of a provider is its default."""
    return tuple(_model(row) for row in _catalogue().model)


def vision_model(name: str) -> VisionModel:
    """The model with that ``provider/id``; the id of a snapshot finds the row of its model.

    A service that runs any installed model has a model of every name.

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
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    nearest = get_close_matches(name[:80].lower(), known, n=3, cutoff=0.5)
    raise InputInvalid(
        f"There is no vision model {name[:80]!r}",
        field="model",
        hint=f"Use {' or '.join(nearest or [next(iter(known))])}.",
    )


def unlisted(name: str) -> VisionModel | None:
    """A model without a row, of a known service: with the service's facts, without a price.

    New models appear every week, and their services accept pictures.
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
    """All services by the first part of their models' names."""
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


class VisionFile(_Struct, frozen=True):
    """What ``vision.toml`` has."""

    service: dict[str, ModelService]
    rule: dict[str, TokenRule]
    model: tuple[_Row, ...]


@cache
def _catalogue() -> VisionFile:
    return read_rows(Path(__file__).with_name("vision.toml"), VisionFile)


@cache
def _by_name() -> dict[str, VisionModel]:
    named: dict[str, VisionModel] = {}
    for row in _catalogue().model:
        model = _model(row)
        for model_id in (row.id, *row.snapshots):
            snapshot = replace(model, id=model_id)
            named[snapshot.name] = snapshot
    return named


def _model(row: _Row) -> VisionModel:
    """A row with the facts of its service and its token rule."""
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
