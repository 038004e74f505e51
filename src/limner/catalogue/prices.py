"""A size, a quality and a prompt -> a quote; a usage report -> the cost.

All arithmetic is on integers: dollars become nano-dollars exactly, and divisions round up, so that
a quote is never below the charge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from limner.catalogue.sizes import Size
from limner.dollars import MAX_USD, usd_to_nano
from limner.errors import CostSource
from limner.json_shapes import as_object

TOKENS_PER_PRICE = 1_000_000
# Services add a few tokens to a prompt and do not publish how many.
PROMPT_WRAPPING_TOKENS = 64
# The vendor does not publish how it counts a source picture. A square of 1024 takes about 1,500
# tokens, and this is more than any measured picture took.
MAX_SOURCE_TOKENS = 6_500
# The vendor adds this for each partial picture.
PARTIAL_PICTURE_TOKENS = 100
# More than any picture takes; a larger count in a usage report is an error or an attack.
MAX_TOKENS = 1_000_000


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The price before the request. If it is not exact, it is an upper bound.

    An answer in words can be shortened to fit a budget. ``enough_nano`` is the bound for an answer
    of the usual length, and ``least_nano`` for the shortest useful one.
    """

    nano: int
    source: CostSource
    exact: bool
    enough_nano: int | None = None
    least_nano: int | None = None


class PriceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a price depends on: the picture and its source pictures.

    ``quality`` is the vendor's word. ``sources`` are the sizes of the source pictures.
    """

    size: Size
    quality: str
    prompt: str
    sources: Sequence[Size] = ()
    partial_pictures: int = 0


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The base of the price rules, with their form in the TOML data.

    Each rule has a ``quote``, which raises KeyError if it has no price for a size or quality.
    """


class SizePrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a price list: a size, and its price at each quality."""

    size: Size
    usd: dict[str, Decimal]


class PerSizePrice(_Rule, frozen=True, tag="per_size"):
    """A price list by size and quality."""

    rows: tuple[SizePrice, ...]

    def quote(self, asked: PriceRequest) -> Quote:
        """The price in the list."""
        usd = {row.size: row.usd for row in self.rows}[asked.size][asked.quality]
        return Quote(nano=usd_to_nano(usd), source="table", exact=True)


class FlatPrice(_Rule, frozen=True, tag="flat"):
    """The same price for every picture; ``edit_usd`` is the price of an edit if it differs."""

    usd: Decimal
    edit_usd: Decimal | None = None

    def quote(self, asked: PriceRequest) -> Quote:
        """The price of a picture or of an edit."""
        usd = self.edit_usd if asked.sources and self.edit_usd is not None else self.usd
        return Quote(nano=usd_to_nano(usd), source="table", exact=True)


class PerMegapixelPrice(_Rule, frozen=True, tag="per_megapixel"):
    """Dollars for each started megapixel of the picture and of its source pictures.

    ``first_usd`` is the price of the first megapixel if it differs. ``source_usd`` is the price of
    a megapixel of a source picture. A megapixel has ``pixels`` pixels.
    """

    usd: Decimal
    first_usd: Decimal | None = None
    source_usd: Decimal | None = None
    pixels: int = 1_000_000

    def quote(self, asked: PriceRequest) -> Quote:
        """The price by area, with the sources if they cost something."""
        megapixels = _divide_up(asked.size.pixels, self.pixels)
        first = self.usd if self.first_usd is None else self.first_usd
        total = usd_to_nano(first) + (megapixels - 1) * usd_to_nano(self.usd)
        if self.source_usd is not None:
            source_megapixels = sum(
                _divide_up(source.pixels, self.pixels) for source in asked.sources
            )
            total += source_megapixels * usd_to_nano(self.source_usd)
        return Quote(nano=total, source="table", exact=True)


class AreaStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a price list by area: pictures of at most so many pixels."""

    max_pixels: int
    usd: Decimal


class PerAreaPrice(_Rule, frozen=True, tag="per_area"):
    """A price list by area, smallest first."""

    rows: tuple[AreaStep, ...]

    def quote(self, asked: PriceRequest) -> Quote:
        """The price of the first row that is large enough."""
        row = _large_enough(self.rows, asked.size)
        return Quote(nano=usd_to_nano(row.usd), source="table", exact=True)


class AreaTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tokens of pictures of at most so many pixels."""

    max_pixels: int
    tokens: int


class AreaTokensPrice(_Rule, frozen=True, tag="area_tokens"):
    """A price by tokens; the number of a picture's tokens depends on its area.

    ``source_tokens`` is the most tokens of a source picture, and ``text_out_tokens`` the most of
    text besides the picture. The rates are dollars for a million tokens.
    """

    rows: tuple[AreaTokens, ...]
    text_in_usd: Decimal
    text_out_usd: Decimal
    image_out_usd: Decimal
    source_tokens: int = 0
    text_out_tokens: int = 0

    def cost(self, *, text_in: int, text_out: int, image_out: int) -> int:
        """The cost of the tokens, in nano-dollars; source pictures count as text."""
        total = (
            text_in * usd_to_nano(self.text_in_usd)
            + text_out * usd_to_nano(self.text_out_usd)
            + image_out * usd_to_nano(self.image_out_usd)
        )
        return _divide_up(total, TOKENS_PER_PRICE)

    def quote(self, asked: PriceRequest) -> Quote:
        """The highest price: the picture's tokens are known, and the others have an upper bound."""
        nano = self.cost(
            text_in=_max_prompt_tokens(asked.prompt) + self.source_tokens * len(asked.sources),
            text_out=self.text_out_tokens,
            image_out=_large_enough(self.rows, asked.size).tokens,
        )
        return Quote(nano=nano, source="computed", exact=False)


class ReportedPrice(_Rule, frozen=True, tag="reported"):
    """A price that the service reports with each picture; ``at_most_usd`` is reserved before."""

    at_most_usd: Decimal

    def quote(self, asked: PriceRequest) -> Quote:
        """The reserved amount."""
        return Quote(nano=usd_to_nano(self.at_most_usd), source="table", exact=False)


class UnknownPrice(_Rule, frozen=True, tag="unknown"):
    """A price that is not known; ``at_most_usd`` is reserved and counts as the cost."""

    at_most_usd: Decimal

    def quote(self, asked: PriceRequest) -> Quote:
        """The reserved amount."""
        return Quote(nano=usd_to_nano(self.at_most_usd), source="unknown", exact=False)


class Free(_Rule, frozen=True, tag="free"):
    """Costs nothing."""

    def quote(self, asked: PriceRequest) -> Quote:
        """Nothing."""
        return Quote(nano=0, source="table", exact=True)


class GptImageTokens(_Rule, frozen=True, tag="gpt_image_tokens"):
    """A price by tokens; the number of a picture's tokens depends on its size and quality.

    ``grid`` is the number of cells along the longer edge at each of the vendor's qualities. The
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
        """The cost of the tokens, in nano-dollars."""
        total = (
            text_in * usd_to_nano(self.text_in_usd)
            + image_in * usd_to_nano(self.image_in_usd)
            + image_out * usd_to_nano(self.image_out_usd)
        )
        return _divide_up(total, TOKENS_PER_PRICE)

    def quote(self, asked: PriceRequest) -> Quote:
        """The highest price: the picture's tokens are known, and the others have an upper bound."""
        partial = PARTIAL_PICTURE_TOKENS * asked.partial_pictures
        nano = self.cost(
            text_in=_max_prompt_tokens(asked.prompt),
            image_in=MAX_SOURCE_TOKENS * len(asked.sources),
            image_out=self.output_tokens(asked.size, quality=asked.quality) + partial,
        )
        return Quote(nano=nano, source="computed", exact=False)


AreaRow = TypeVar("AreaRow", AreaStep, AreaTokens)

PriceRule = (
    PerSizePrice
    | FlatPrice
    | PerMegapixelPrice
    | PerAreaPrice
    | AreaTokensPrice
    | ReportedPrice
    | UnknownPrice
    | Free
    | GptImageTokens
)


def cost_of_tokens(rule: PriceRule, usage: object) -> int | None:
    """The cost by a usage report of the OpenAI images API, in nano-dollars.

    The report is untrusted JSON. The cost is None if the report is missing or not valid, and also
    if it has no output tokens, because a picture is never free and proxies send zeros.
    """
    if not isinstance(rule, GptImageTokens):
        return None
    report = as_object(usage)
    details = as_object(report.get("input_tokens_details"))
    text_in, image_in = _tokens(details, "text_tokens"), _tokens(details, "image_tokens")
    # The service does not always split the output, so all of it is priced as picture.
    image_out = _tokens(report, "output_tokens")
    if text_in is None or image_in is None or not image_out:
        return None
    if report.get("input_tokens", text_in + image_in) != text_in + image_in:
        return None
    return rule.cost(text_in=text_in, image_in=image_in, image_out=image_out)


def cost_of_dollars(usd: object) -> int | None:
    """The cost that a service reports in dollars, in nano-dollars; None if it is no cost."""
    if not isinstance(usd, (int, float)) or isinstance(usd, bool) or not 0 <= usd <= MAX_USD:
        return None
    return math.ceil(Decimal(str(usd)).scaleb(9))


def _large_enough(rows: Sequence[AreaRow], size: Size) -> AreaRow:
    for row in rows:
        if size.pixels <= row.max_pixels:
            return row
    raise KeyError(str(size))


def _max_prompt_tokens(prompt: str) -> int:
    """The most tokens of a prompt: each token has at least one byte."""
    # A lone surrogate is legal in a JSON string, and must not prevent the quote.
    return len(prompt.encode("utf-8", "surrogatepass")) + PROMPT_WRAPPING_TOKENS


def _tokens(report: Mapping[str, Any], name: str) -> int | None:
    """A count in a usage report; None if it is not valid."""
    count = report.get(name)
    # Not isinstance: True is an int too.
    return count if type(count) is int and 0 <= count <= MAX_TOKENS else None


def _divide_up(amount: int, by: int) -> int:
    return -(-amount // by)


def _divide_half_even(amount: int, by: int) -> int:
    whole, rest = divmod(amount, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2 == 1))
