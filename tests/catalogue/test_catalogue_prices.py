"""Prices against the published tables, and quotes against what is charged later."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.catalogue.images import ImageModel, cost_of_usage, image_models
from limner.catalogue.prices import (
    MAX_SOURCE_TOKENS,
    MAX_TOKENS,
    PARTIAL_PICTURE_TOKENS,
    PROMPT_WRAPPING_TOKENS,
    AreaStep,
    AreaTokens,
    AreaTokensPrice,
    FlatPrice,
    GptImageTokens,
    PerAreaPrice,
    PerMegapixelPrice,
    PriceRequest,
    PriceRule,
    Quote,
    cost_of_dollars,
)
from limner.catalogue.sizes import Size, parse_size

TABLE_SIZES = ("1024x1024", "1536x1024", "2048x2048", "3840x2160")
TABLE = [
    ("gpt-image-2.5-flare", "low", "0.0059 0.0047 0.0119 0.0111"),
    ("gpt-image-2.5-flare", "medium", "0.0132 0.0103 0.0268 0.0260"),
    ("gpt-image-2.5-flare", "high", "0.0527 0.0412 0.1070 0.1001"),
    ("gpt-image-2.5-flare", "xhigh", "0.0937 0.0738 0.1903 0.1779"),
    ("gpt-image-2.5-flare", "max", "0.2107 0.1646 0.4282 0.4003"),
    ("gpt-image-2.5-sunburst", "medium", "0.0132 0.0103 0.0268 0.0260"),
    ("gpt-image-2", "low", "0.0059 0.0047 0.0119 0.0111"),
    ("gpt-image-2", "medium", "0.0527 0.0412 0.1070 0.1001"),
    ("gpt-image-2", "high", "0.2107 0.1646 0.4282 0.4003"),
]


def token_rule(model_id: str) -> GptImageTokens:
    (rule,) = [row.price for row in image_models("openai-image") if row.id == model_id]
    assert isinstance(rule, GptImageTokens)
    return rule


FLARE = image_models("openai-image")[0]
FLARE_RULE = token_rule("gpt-image-2.5-flare")

multiples = st.integers(1, 240).map(lambda steps: steps * 16)
legal_sizes = st.builds(Size, multiples, multiples).filter(FLARE.sizes.allows)
qualities = st.sampled_from(sorted(FLARE_RULE.grid))


@pytest.mark.parametrize(("model_id", "quality", "printed"), TABLE)
def test_the_published_output_prices_come_out_to_the_last_printed_digit(
    model_id: str, quality: str, printed: str
) -> None:
    rule = token_rule(model_id)
    computed = [
        Decimal(
            rule.cost(text_in=0, image_out=rule.output_tokens(parse_size(size), quality=quality))
        ).scaleb(-9)
        for size in TABLE_SIZES
    ]
    assert [round(price, 4) for price in computed] == [Decimal(price) for price in printed.split()]


@given(legal_sizes, qualities)
def test_property_integer_arithmetic_agrees_with_exact_fractions(size: Size, quality: str) -> None:
    cells = FLARE_RULE.grid[quality]
    short_cells = round(cells / Fraction(max(size), min(size)))
    expected = ceil(Fraction(cells * short_cells * (2_000_000 + size.pixels), 4_000_000))
    assert FLARE_RULE.output_tokens(size, quality=quality) == expected


def test_half_a_cell_rounds_to_the_even_one() -> None:
    # 16 cells at 3072x1056 are 5.5 cells high, at 2048x832 they are 6.5: both become 6.
    halves = [Size(3072, 1056), Size(2048, 832)]
    assert [FLARE_RULE.output_tokens(size, quality="low") for size in halves] == [
        ceil(Fraction(16 * 6 * (2_000_000 + size.pixels), 4_000_000)) for size in halves
    ]


@given(legal_sizes, qualities)
def test_property_turning_a_picture_does_not_change_its_price(size: Size, quality: str) -> None:
    turned = Size(size.height, size.width)
    assert FLARE_RULE.output_tokens(turned, quality=quality) == FLARE_RULE.output_tokens(
        size, quality=quality
    )


@given(legal_sizes)
def test_property_a_better_quality_never_costs_less(size: Size) -> None:
    tokens = [FLARE_RULE.output_tokens(size, quality=quality) for quality in FLARE_RULE.grid]
    assert tokens == sorted(tokens)


def test_a_larger_picture_may_cost_less_so_size_is_no_stand_in_for_price() -> None:
    square, wide = Size(1024, 1024), Size(1536, 1024)
    assert FLARE_RULE.output_tokens(wide, quality="medium") < FLARE_RULE.output_tokens(
        square, quality="medium"
    )


@given(legal_sizes, qualities, st.text(st.characters(codec="utf-8"), max_size=200), st.data())
def test_property_a_quote_is_never_below_what_the_usage_report_charges(
    size: Size, quality: str, prompt: str, data: st.DataObject
) -> None:
    partial, sources = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 16))
    quote = FLARE_RULE.quote(
        PriceRequest(
            size=size,
            quality=quality,
            prompt=prompt,
            sources=[size] * sources,
            partial_pictures=partial,
        )
    )
    most_text = len(prompt.encode()) + PROMPT_WRAPPING_TOKENS
    text_tokens = data.draw(st.integers(0, most_text))
    image_tokens = data.draw(st.integers(0, sources * MAX_SOURCE_TOKENS))
    drawn = FLARE_RULE.output_tokens(size, quality=quality) + partial * PARTIAL_PICTURE_TOKENS

    def charged(text: int, image: int) -> int | None:
        details = {"text_tokens": text, "image_tokens": image}
        usage = {"input_tokens": text + image, "output_tokens": drawn}
        return cost_of_usage(FLARE, usage | {"input_tokens_details": details})

    assert 0 < (charged(text_tokens, image_tokens) or 0) <= quote.nano
    assert charged(most_text, sources * MAX_SOURCE_TOKENS) == quote.nano


FLAT = FlatPrice(usd=Decimal("0.02"), edit_usd=Decimal("0.05"))
BY_MEGAPIXEL = PerMegapixelPrice(
    usd=Decimal("0.01"), first_usd=Decimal("0.03"), source_usd=Decimal("0.002")
)
BY_AREA = PerAreaPrice(
    rows=(
        AreaStep(max_pixels=100, usd=Decimal("0.01")),
        AreaStep(max_pixels=400, usd=Decimal("0.02")),
    )
)
BY_AREA_TOKENS = AreaTokensPrice(
    rows=(AreaTokens(max_pixels=100, tokens=1_000), AreaTokens(max_pixels=400, tokens=3_000)),
    text_in_usd=Decimal(2),
    text_out_usd=Decimal(3),
    image_out_usd=Decimal(30),
    source_tokens=500,
    text_out_tokens=200,
)
BY_TOKENS = GptImageTokens(
    grid={"low": 16}, text_in_usd=Decimal(5), image_in_usd=Decimal(8), image_out_usd=Decimal(30)
)
SOURCES = (Size(1000, 1000), Size(1001, 1000))


@pytest.mark.parametrize(
    ("rule", "size", "sources", "partial", "nano"),
    [
        (FLAT, Size(10, 10), (), 0, 20_000_000),
        (FLAT, Size(10, 10), SOURCES, 0, 50_000_000),
        (FlatPrice(usd=Decimal("0.02")), Size(10, 10), SOURCES, 0, 20_000_000),
        (BY_MEGAPIXEL, Size(1000, 1000), (), 0, 30_000_000),
        # Two megapixels, and three of the sources.
        (BY_MEGAPIXEL, Size(1500, 1000), SOURCES, 0, 46_000_000),
        (BY_AREA, Size(10, 10), (), 0, 10_000_000),
        (BY_AREA, Size(11, 10), (), 0, 20_000_000),
        # 67 tokens of the prompt, 1,000 of the sources, 200 of text, 3,000 of the picture.
        (BY_AREA_TOKENS, Size(20, 20), SOURCES, 0, 2_134_000 + 600_000 + 90_000_000),
        # 67 tokens of the prompt, 13,000 of the sources, 196 and 100 of pictures.
        (BY_TOKENS, Size(1024, 1024), SOURCES, 1, 335_000 + 104_000_000 + 8_880_000),
    ],
)
def test_a_rule_adds_the_picture_and_its_sources(
    rule: PriceRule, size: Size, sources: tuple[Size, ...], partial: int, nano: int
) -> None:
    asked = PriceRequest(
        size=size, quality="low", prompt="fox", sources=sources, partial_pictures=partial
    )
    assert rule.quote(asked).nano == nano


def test_a_token_quote_says_that_it_is_an_upper_bound() -> None:
    assert FLARE.quote(Size(1024, 1024), "standard", "a fox") == Quote(
        nano=(5 + PROMPT_WRAPPING_TOKENS) * 5_000 + 439 * 30_000, source="computed", exact=False
    )


def test_a_prompt_with_a_lone_surrogate_still_has_a_price() -> None:
    plain = FLARE.quote(Size(1024, 1024), "hd", "abc")
    assert FLARE.quote(Size(1024, 1024), "hd", "\ud800") == plain


def test_a_rate_that_does_not_divide_is_rounded_up() -> None:
    rule = GptImageTokens(
        grid={"low": 16},
        text_in_usd=Decimal("0.0001"),
        image_in_usd=Decimal(0),
        image_out_usd=Decimal(0),
    )
    assert [rule.cost(text_in=count, image_out=0) for count in (0, 1, 10, 11)] == [0, 1, 1, 2]


def usage(**changes: Any) -> dict[str, Any]:
    details = {"text_tokens": 10, "image_tokens": 100}
    report = {"input_tokens": 110, "input_tokens_details": details, "output_tokens": 1000}
    return report | changes


@pytest.mark.parametrize(
    ("report", "nano"),
    [
        (usage(), 10 * 5_000 + 100 * 8_000 + 1000 * 30_000),
        # The split of the output is not always told; all of it is picture.
        (
            usage(output_tokens_details={"text_tokens": 900, "image_tokens": 100}),
            10 * 5_000 + 100 * 8_000 + 1000 * 30_000,
        ),
        (
            {
                "input_tokens_details": {"text_tokens": 0, "image_tokens": 0},
                "output_tokens": MAX_TOKENS,
            },
            MAX_TOKENS * 30_000,
        ),
    ],
)
def test_a_usage_report_becomes_a_price(report: dict[str, Any], nano: int) -> None:
    assert cost_of_usage(FLARE, report) == nano


@pytest.mark.parametrize(
    "report",
    [
        None,
        {},
        [],
        "usage",
        17,
        usage(output_tokens=None),
        usage(output_tokens=0),
        usage(output_tokens=-1),
        usage(output_tokens=True),
        usage(output_tokens=1000.0),
        usage(output_tokens="1000"),
        usage(output_tokens=MAX_TOKENS + 1),
        usage(output_tokens=10**30),
        usage(input_tokens_details=None),
        usage(input_tokens_details=[10, 100]),
        usage(input_tokens_details={"text_tokens": 110}),
        usage(input_tokens_details={"text_tokens": -10, "image_tokens": 120}),
        usage(input_tokens_details={"text_tokens": True, "image_tokens": 109}),
        usage(input_tokens_details={"text_tokens": 10.0, "image_tokens": 100}),
        usage(input_tokens=111),
        usage(input_tokens=None),
    ],
)
def test_a_report_that_cannot_be_trusted_has_no_price(report: object) -> None:
    assert cost_of_usage(FLARE, report) is None


@pytest.mark.parametrize("provider", ["openai-dalle", "replicate-flux", "illustrator"])
def test_a_model_that_is_not_priced_by_tokens_has_no_price_by_usage(provider: str) -> None:
    model: ImageModel = image_models(provider)[0]
    assert cost_of_usage(model, usage()) is None


@pytest.mark.parametrize("usd", [None, "0.1", True, -0.01, 1e12, float("nan"), float("inf")])
def test_a_reported_amount_that_is_no_price_is_no_cost(usd: object) -> None:
    assert cost_of_dollars(usd) is None


@pytest.mark.parametrize(
    ("usd", "nano"), [(0, 0), (0.003, 3_000_000), (2, 2_000_000_000), (1e-10, 1)]
)
def test_a_reported_amount_is_rounded_up_to_a_nano_dollar(usd: float, nano: int) -> None:
    assert cost_of_dollars(usd) == nano
