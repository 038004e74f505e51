"""A model's row -> the same row at the price of the vendor's batch API.

The prices are in ``batch_prices.toml``, each with its source and its date.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from limner.catalogue.data_file import read_rows
from limner.catalogue.images import ImageModel
from limner.catalogue.rates import LongPromptRate, Rate
from limner.catalogue.vision import VisionModel

_SNAPSHOT = re.compile(r"-\d{4}-?\d\d-?\d\d$")


class BatchPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model costs in a batch.

    Attributes:
        name: ``provider/id``.
        usd: dollars for a million tokens, by the names of the model's own price.
        long_prompt: the price of a request with a long prompt, if it differs.
        source: where the price comes from.
        read: when it was checked.
    """

    name: str
    usd: dict[str, Decimal]
    source: str
    read: date
    long_prompt: LongPromptRate | None = None


class PriceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``batch_prices.toml`` has."""

    model: tuple[BatchPrice, ...]


@cache
def batch_prices() -> dict[str, BatchPrice]:
    """The prices by the names of the models."""
    rows = read_rows(Path(__file__).with_name("batch_prices.toml"), PriceFile)
    return {row.name: row for row in rows.model}


def image_model_in_batch(model: ImageModel) -> ImageModel | None:
    """The model at its batch price; None if the vendor has none."""
    row = batch_prices().get(model.name)
    return None if row is None else replace(model, price=replace(model.price, **row.usd))


def vision_model_in_batch(model: VisionModel) -> VisionModel | None:
    """The model at its batch price; None if the vendor has none.

    A snapshot costs as much as the model that it is of.
    """
    row = batch_prices().get(_SNAPSHOT.sub("", model.name))
    if row is None or model.rate is None:
        return None
    return replace(model, rate=Rate(**row.usd, long_prompt=row.long_prompt))
