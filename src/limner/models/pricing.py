"""Tokens of a model -> the price to set aside before it is asked, and the price of its answer."""

from __future__ import annotations

from limner.catalogue.prices import Quote
from limner.catalogue.rates import UNKNOWN_RATE, Rate
from limner.errors import CostSource
from limner.models.registry import KnownModel
from limner.wires.base import Usage


def quote(model: KnownModel, *, input_tokens: int, output_tokens: int) -> Quote:
    """The most that an answer can cost; where nobody says the price, a stated one is taken."""
    if model.key_env is None:
        return Quote(nano=0, source="table", exact=True)
    most = rate_of(model).most(input_tokens=input_tokens, output_tokens=output_tokens)
    return Quote(nano=most, source=_source(model), exact=False)


def price(model: KnownModel, usage: Usage | None, quoted: Quote) -> tuple[int, CostSource]:
    """What an answer cost: by what its service counted, else the most it can have counted."""
    if quoted.exact:
        return quoted.nano, quoted.source
    # No prompt has no tokens: who counts none has not counted.
    if usage is None or not usage.input_tokens:
        return quoted.nano, "unknown"
    return cost_of(rate_of(model), usage), _source(model)


def rate_of(model: KnownModel) -> Rate:
    """What a model's tokens cost, or are taken to cost where nobody says."""
    return UNKNOWN_RATE if model.rate is None else model.rate


def cost_of(rate: Rate, usage: Usage) -> int:
    """What the counted tokens cost, in nano-dollars."""
    return rate.cost(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
    )


def _source(model: KnownModel) -> CostSource:
    return "unknown" if model.rate is None else "computed"
