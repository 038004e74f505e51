"""Tokens of a model -> the quote before a request, and the price of its answer."""

from __future__ import annotations

from limner.catalogue.prices import Quote
from limner.catalogue.rates import UNKNOWN_RATE, Rate
from limner.errors import CostSource
from limner.models.registry import KnownModel
from limner.wires.base import Usage

# The shortest answer that is worth its price, and one that is long enough for nearly every question
# and its reasoning.
MIN_ANSWER_TOKENS = 256
ENOUGH_ANSWER_TOKENS = 8_192


def quote(model: KnownModel, *, input_tokens: int, output_tokens: int) -> Quote:
    """The highest price of an answer; if the price is not known, by `UNKNOWN_RATE`."""
    if model.key_env is None:
        return Quote(nano=0, source="table", exact=True)

    def most(tokens: int) -> int:
        bounded = min(tokens, output_tokens)
        return rate_of(model).most(input_tokens=input_tokens, output_tokens=bounded)

    return Quote(
        nano=most(output_tokens),
        source=_source(model),
        exact=False,
        enough_nano=most(ENOUGH_ANSWER_TOKENS),
        least_nano=most(MIN_ANSWER_TOKENS),
    )


def answer_tokens(
    model: KnownModel, quoted: Quote, *, reserved_nano: int, input_tokens: int, output_tokens: int
) -> int:
    """How long the answer may be, at most ``output_tokens``, if so much was reserved for it."""
    if reserved_nano >= quoted.nano:
        return output_tokens
    rate = rate_of(model)
    none = rate.most(input_tokens=input_tokens, output_tokens=0)
    # The price of a thousand is rounded up, so that the answer never exceeds the budget.
    thousand = rate.most(input_tokens=input_tokens, output_tokens=1_000) - none
    return max(MIN_ANSWER_TOKENS, min(output_tokens, (reserved_nano - none) * 1_000 // thousand))


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
