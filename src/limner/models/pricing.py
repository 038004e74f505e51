"""Tokens of a model -> the quote before a request, and the price of its answer."""

from __future__ import annotations

from limner.catalogue.prices import Quote
from limner.catalogue.rates import UNKNOWN_RATE, Rate
from limner.errors import CostSource
from limner.models.registry import KnownModel
from limner.wires.base import Usage


def quote(model: KnownModel, *, input_tokens: int, output_tokens: int) -> Quote:
    """The highest price of an answer; if the price is not known, by `UNKNOWN_RATE`."""
    if model.key_env is None:
        return Quote(nano=0, source="table", exact=True)
    most = rate_of(model).most(input_tokens=input_tokens, output_tokens=output_tokens)
    return Quote(nano=most, source=_source(model), exact=False)


def price(model: KnownModel, usage: Usage | None, quoted: Quote) -> tuple[int, CostSource]:
    """The price of an answer: by the service's counts, or else the quote."""
    if quoted.exact:
        return quoted.nano, quoted.source
    # Every prompt has tokens, so a count of zero is not a count.
    if usage is None or not usage.input_tokens:
        return quoted.nano, "unknown"
    return cost_of(rate_of(model), usage), _source(model)


def rate_of(model: KnownModel) -> Rate:
    """The price of a model's tokens; `UNKNOWN_RATE` if it is not known."""
    return UNKNOWN_RATE if model.rate is None else model.rate


def cost_of(rate: Rate, usage: Usage) -> int:
    """The cost of the counted tokens, in nano-dollars."""
    return rate.cost(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
    )


def _source(model: KnownModel) -> CostSource:
    return "unknown" if model.rate is None else "computed"
