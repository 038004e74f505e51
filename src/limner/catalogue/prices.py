"""A size, a quality and a prompt -> what the picture will cost; a usage report -> what it did cost.

All arithmetic is on integers: dollars become nano-dollars exactly, and what does not divide is
rounded up, so that a quote is never below the charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from limner.catalogue.sizes import Size
from limner.dollars import usd_to_nano
from limner.errors import CostSource
from limner.json_shapes import as_object

TOKENS_PER_PRICE = 1_000_000
# Services wrap a prompt in a few tokens of their own and do not publish how many.
PROMPT_WRAPPING_TOKENS = 64
# How the vendor counts a picture that is drawn from is not published: a square of 1024 takes about
# 1,500 tokens, and this is more than any was seen to take.
MOST_SOURCE_TOKENS = 6_500
# What the vendor adds for each unfinished picture that it shows.
PARTIAL_PICTURE_TOKENS = 100
# More than any picture takes; a larger count in a usage report is an error or an attack.
MAX_TOKENS = 1_000_000


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The price before paying. Where it is not exact it is an upper bound."""

    nano: int
    source: CostSource
    exact: bool


class PriceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a price depends on: the picture, and what it is drawn from.

    ``quality`` is the vendor's word; ``sources`` are the sizes of pictures to draw from.
    """

    size: Size
    quality: str
    prompt: str
    sources: Sequence[Size] = ()
    partial_pictures: int = 0


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What the price rules share: how they are written in the data.

    Each has a ``quote``, which raises KeyError where it has no price for a size or quality.
    """


class SizePrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a price list: a size, and its price at each quality."""

    size: Size
    usd: dict[str, Decimal]


class PerSizePrice(_Rule, frozen=True, tag="per_size"):
    """A price list by size and quality."""

    rows: tuple[SizePrice, ...]

    def quote(self, asked: PriceRequest) -> Quote:
        """As the list says."""
        usd = {row.size: row.usd for row in self.rows}[asked.size][asked.quality]
        return Quote(nano=usd_to_nano(usd), source="table", exact=True)


class FlatPrice(_Rule, frozen=True, tag="flat"):
    """The same price for every picture; ``edit_usd`` where one drawn from others costs more."""

    usd: Decimal
    edit_usd: Decimal | None = None

    def quote(self, asked: PriceRequest) -> Quote:
        """The one price, or that of an edit."""
        usd = self.edit_usd if asked.sources and self.edit_usd is not None else self.usd
        return Quote(nano=usd_to_nano(usd), source="table", exact=True)


class PerMegapixelPrice(_Rule, frozen=True, tag="per_megapixel"):
    """Dollars for each begun megapixel of the picture, and of each it is drawn from.

    ``first_usd`` is the price of the first megapixel where that is another; ``source_usd`` that
    of a megapixel drawn from. A megapixel has ``pixels`` pixels.
    """

    usd: Decimal
    first_usd: Decimal | None = None
    source_usd: Decimal | None = None
    pixels: int = 1_000_000

    def quote(self, asked: PriceRequest) -> Quote:
        """By area, that of the sources included where they cost."""
        begun = _divide_up(asked.size.pixels, self.pixels)
        first = self.usd if self.first_usd is None else self.first_usd
        total = usd_to_nano(first) + (begun - 1) * usd_to_nano(self.usd)
        if self.source_usd is not None:
            drawn_from = sum(_divide_up(source.pixels, self.pixels) for source in asked.sources)
            total += drawn_from * usd_to_nano(self.source_usd)
        return Quote(nano=total, source="table", exact=True)


class AreaStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a price list by area: pictures of at most so many pixels."""

    max_pixels: int
    usd: Decimal


class PerAreaPrice(_Rule, frozen=True, tag="per_area"):
    """A price list by area, smallest first."""

    rows: tuple[AreaStep, ...]

    def quote(self, asked: PriceRequest) -> Quote:
        """The first row that is large enough."""
        row = _large_enough(self.rows, asked.size)
        return Quote(nano=usd_to_nano(row.usd), source="table", exact=True)


class AreaTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tokens of pictures of at most so many pixels."""

    max_pixels: int
    tokens: int


class AreaTokensPrice(_Rule, frozen=True, tag="area_tokens"):
    """Priced by tokens; a picture takes a number of them that goes with its area.

    ``source_tokens`` is the most that a picture drawn from takes, and ``text_out_tokens`` the most
    that a model says besides drawing; the rates are dollars for a million tokens.
    """

    rows: tuple[AreaTokens, ...]
    text_in_usd: Decimal
    text_out_usd: Decimal
    image_out_usd: Decimal
    source_tokens: int = 0
    text_out_tokens: int = 0

    def cost(self, *, text_in: int, text_out: int, image_out: int) -> int:
        """What so many tokens cost, in nano-dollars; pictures drawn from count as text."""
        total = (
            text_in * usd_to_nano(self.text_in_usd)
            + text_out * usd_to_nano(self.text_out_usd)
            + image_out * usd_to_nano(self.image_out_usd)
        )
        return _divide_up(total, TOKENS_PER_PRICE)

    def quote(self, asked: PriceRequest) -> Quote:
        """The most it can take: the picture's tokens are known, the rest is bounded."""
        nano = self.cost(
            text_in=_most_prompt_tokens(asked.prompt) + self.source_tokens * len(asked.sources),
            text_out=self.text_out_tokens,
            image_out=_large_enough(self.rows, asked.size).tokens,
        )
        return Quote(nano=nano, source="computed", exact=False)


class ReportedPrice(_Rule, frozen=True, tag="reported"):
    """Told by the service with each picture; ``at_most_usd`` is what is set aside before."""

    at_most_usd: Decimal

    def quote(self, asked: PriceRequest) -> Quote:
        """The most it may cost."""
        return Quote(nano=usd_to_nano(self.at_most_usd), source="table", exact=False)


class UnknownPrice(_Rule, frozen=True, tag="unknown"):
    """Nobody says what it costs; ``at_most_usd`` is what is set aside, and stays counted."""

    at_most_usd: Decimal

    def quote(self, asked: PriceRequest) -> Quote:
        """What is set aside."""
        return Quote(nano=usd_to_nano(self.at_most_usd), source="unknown", exact=False)


class Free(_Rule, frozen=True, tag="free"):
    """Costs nothing."""

    def quote(self, asked: PriceRequest) -> Quote:
        """Nothing."""
        return Quote(nano=0, source="table", exact=True)


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

    def quote(self, asked: PriceRequest) -> Quote:
        """The most it can take: the picture's tokens are known, the rest is bounded."""
        partial = PARTIAL_PICTURE_TOKENS * asked.partial_pictures
        nano = self.cost(
            text_in=_most_prompt_tokens(asked.prompt),
            image_in=MOST_SOURCE_TOKENS * len(asked.sources),
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
    """What a usage report of the OpenAI images API comes to, in nano-dollars.

    The report is a stranger's JSON. Where it is missing, inconsistent or absurd the answer is
    None; so it is where no output is counted, since a picture never costs nothing and proxies
    send zeros.
    """
    if not isinstance(rule, GptImageTokens):
        return None
    report = as_object(usage)
    details = as_object(report.get("input_tokens_details"))
    text_in, image_in = _tokens(details, "text_tokens"), _tokens(details, "image_tokens")
    # The split of the output is not always told: all of it is priced as picture.
    image_out = _tokens(report, "output_tokens")
    if text_in is None or image_in is None or not image_out:
        return None
    if report.get("input_tokens", text_in + image_in) != text_in + image_in:
        return None
    return rule.cost(text_in=text_in, image_in=image_in, image_out=image_out)


def _large_enough(rows: Sequence[AreaRow], size: Size) -> AreaRow:
    for row in rows:
        if size.pixels <= row.max_pixels:
            return row
    raise KeyError(str(size))


def _most_prompt_tokens(prompt: str) -> int:
    """The most tokens a prompt can take: each has at least one byte of it."""
    # A lone surrogate is legal in a JSON string; it must not stop the price from being known.
    return len(prompt.encode("utf-8", "surrogatepass")) + PROMPT_WRAPPING_TOKENS


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
