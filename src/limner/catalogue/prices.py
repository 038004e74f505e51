"""A size, a quality and a prompt -> what the picture will cost; a usage report -> what it did cost.

All arithmetic is on integers: dollars become nano-dollars exactly, and what does not divide is
rounded up, so that a quote is never below the charge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import msgspec

from limner.catalogue.dollars import usd_to_nano
from limner.catalogue.sizes import Size
from limner.errors import CostSource

TOKENS_PER_PRICE = 1_000_000
# Services wrap a prompt in a few tokens of their own and do not publish how many.
PROMPT_WRAPPING_TOKENS = 64
# More than any picture takes; a larger count in a usage report is an error or an attack.
MAX_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price before paying. Where it is not exact it is an upper bound."""

    nano: int
    source: CostSource
    exact: bool


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What the price rules share: how they are written in the data."""


class SizePrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a price list: a size, and its price at each quality."""

    size: Size
    usd: dict[str, Decimal]


class PerSizePrice(_Rule, frozen=True, tag="per_size"):
    """A price list by size and quality."""

    rows: tuple[SizePrice, ...]


class FlatPrice(_Rule, frozen=True, tag="flat"):
    """The same price for every picture."""

    usd: Decimal


class Free(_Rule, frozen=True, tag="free"):
    """Costs nothing."""


class GptImageTokens(_Rule, frozen=True, tag="gpt_image_tokens"):
    """Priced by tokens; a picture's own tokens follow from its size and quality alone.

    ``grid`` is the number of cells along the longer edge at each of the vendor's qualities; the
    rates are dollars for a million tokens.
    """

    grid: dict[str, int]
    text_in_usd: Decimal
    image_in_usd: Decimal
    image_out_usd: Decimal

    def output_tokens(self, size: Size, *, quality: str) -> int:
        """The tokens of a finished picture.

        Raises:
            KeyError: the vendor has no such quality.
        """
        long_cells = self.grid[quality]
        short_cells = _divide_half_even(long_cells * min(size), max(size))
        return _divide_up(long_cells * short_cells * (2_000_000 + size.pixels), 4_000_000)

    def cost(self, *, text_in: int, image_out: int, image_in: int = 0) -> int:
        """What so many tokens cost, in nano-dollars."""
        total = (
            text_in * usd_to_nano(self.text_in_usd)
            + image_in * usd_to_nano(self.image_in_usd)
            + image_out * usd_to_nano(self.image_out_usd)
        )
        return _divide_up(total, TOKENS_PER_PRICE)


PriceRule = PerSizePrice | FlatPrice | Free | GptImageTokens


def quote_picture(rule: PriceRule, size: Size, *, quality: str, prompt: str) -> Quote:
    """The price of one picture at one of the vendor's qualities.

    Raises:
        KeyError: the rule has no price for this size or quality.
    """
    match rule:
        case Free():
            return Quote(nano=0, source="table", exact=True)
        case FlatPrice():
            return Quote(nano=usd_to_nano(rule.usd), source="table", exact=True)
        case PerSizePrice():
            usd = {row.size: row.usd for row in rule.rows}[size][quality]
            return Quote(nano=usd_to_nano(usd), source="table", exact=True)
        case GptImageTokens():
            nano = rule.cost(
                text_in=_most_prompt_tokens(prompt),
                image_out=rule.output_tokens(size, quality=quality),
            )
            return Quote(nano=nano, source="computed", exact=False)


def cost_of_tokens(rule: PriceRule, usage: object) -> int | None:
    """What a usage report of the OpenAI images API comes to, in nano-dollars.

    The report is a stranger's JSON. Where it is missing, inconsistent or absurd the answer is
    None; so it is where no output is counted, since a picture never costs nothing and proxies
    send zeros.
    """
    if not isinstance(rule, GptImageTokens):
        return None
    report = _object(usage)
    details = _object(report.get("input_tokens_details"))
    text_in, image_in = _tokens(details, "text_tokens"), _tokens(details, "image_tokens")
    # The split of the output is not always told: all of it is priced as picture.
    image_out = _tokens(report, "output_tokens")
    if text_in is None or image_in is None or not image_out:
        return None
    if report.get("input_tokens", text_in + image_in) != text_in + image_in:
        return None
    return rule.cost(text_in=text_in, image_in=image_in, image_out=image_out)


def _most_prompt_tokens(prompt: str) -> int:
    """The most tokens a prompt can take: each has at least one byte of it."""
    # A lone surrogate is legal in a JSON string; it must not stop the price from being known.
    return len(prompt.encode("utf-8", "surrogatepass")) + PROMPT_WRAPPING_TOKENS


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _tokens(report: Mapping[str, Any], name: str) -> int | None:
    """A count in a usage report, or None where it is not one."""
    count = report.get(name)
    # Not isinstance: True is an int too.
    return count if type(count) is int and 0 <= count <= MAX_TOKENS else None


def _divide_up(amount: int, by: int) -> int:
    return -(-amount // by)


def _divide_half_even(amount: int, by: int) -> int:
    whole, rest = divmod(amount, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2 == 1))
