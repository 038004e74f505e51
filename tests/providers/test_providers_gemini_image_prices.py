"""What Nano Banana costs: the published prices, the quotes, and the usage reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from tests.servers.samples import PICTURE

from limner.catalogue.images import ImageModel, image_models
from limner.catalogue.prices import PROMPT_WRAPPING_TOKENS, AreaTokensPrice
from limner.catalogue.sizes import Size
from limner.errors import NANO_PER_USD
from limner.pictures.request import ImageRequest, Receipt
from limner.providers.base import Connection
from limner.providers.gemini_image import SPEC, TIERS, GeminiImage
from limner.testing import FakeDesk, FakeSink
from limner.testing.servers.gemini_image_server import USAGE, GeminiImageServer

ROWS = {row.id: row for row in image_models("gemini-image")}
EDGES = {"512": 512, "1K": 1024, "2K": 2048, "4K": 4096}
# The vendor's price of one picture at each tier, to the digits it prints.
PUBLISHED = [
    ("gemini-nano-banana-2.1", "1K", "0.0336"),
    ("gemini-nano-banana-2.1", "2K", "0.0504"),
    ("gemini-nano-banana-2.1", "4K", "0.113"),
    ("gemini-3.1-flash-image", "512", "0.045"),
    ("gemini-3.1-flash-image", "1K", "0.067"),
    ("gemini-3.1-flash-image", "2K", "0.101"),
    ("gemini-3.1-flash-image", "4K", "0.151"),
    ("gemini-3-pro-image", "1K", "0.134"),
    ("gemini-3-pro-image", "2K", "0.134"),
    ("gemini-3-pro-image", "4K", "0.24"),
    ("gemini-3.1-flash-lite-image", "1K", "0.0336"),
    ("gemini-2.5-flash-image", "1K", "0.039"),
]


def rule_of(model: ImageModel) -> AreaTokensPrice:
    assert isinstance(model.price, AreaTokensPrice)
    return model.price


def tokens_of(model: ImageModel, size: Size) -> int:
    return next(row.tokens for row in rule_of(model).rows if size.pixels <= row.max_pixels)


@pytest.mark.parametrize(("model_id", "tier", "printed"), PUBLISHED)
def test_the_published_prices_come_out_to_the_last_printed_digit(
    model_id: str, tier: str, printed: str
) -> None:
    model, size = ROWS[model_id], Size(EDGES[tier], EDGES[tier])
    nano = rule_of(model).cost(text_in=0, text_out=0, image_out=tokens_of(model, size))
    assert Decimal(nano).scaleb(-9).quantize(Decimal(printed)) == Decimal(printed)


@pytest.mark.parametrize("model", SPEC.models, ids=lambda row: row.id)
def test_every_step_of_a_price_list_is_a_tier_of_the_service(model: ImageModel) -> None:
    steps = [row.max_pixels for row in rule_of(model).rows]
    assert steps == sorted(steps)
    assert set(steps) <= set(TIERS)
    for tier in (TIERS[step] for step in steps):
        assert model.sizes.allows(Size(EDGES[tier], EDGES[tier]))


@given(
    model=st.sampled_from(SPEC.models),
    size=st.builds(Size, st.integers(1, 16_384), st.integers(1, 16_384)),
    sources=st.integers(0, 3),
)
def test_property_the_nearest_size_is_legal_and_has_a_price_above_its_pictures_alone(
    model: ImageModel, size: Size, sources: int
) -> None:
    near = model.nearest_size(size)
    assert model.sizes.allows(near)
    quote = model.quote(near, "standard", "a fox", sources=[size] * sources)
    alone = rule_of(model).cost(text_in=0, text_out=0, image_out=tokens_of(model, near))
    assert alone < quote.nano < NANO_PER_USD
    assert (quote.source, quote.exact) == ("computed", False)


@given(
    model=st.sampled_from(SPEC.models),
    prompt=st.text(st.characters(codec="utf-8"), max_size=50),
    sources=st.integers(0, 14),
)
def test_property_the_most_that_an_edit_can_be_charged_is_its_quote(
    model: ImageModel, prompt: str, sources: int
) -> None:
    rule, size = rule_of(model), Size(1024, 1024)
    most = rule.cost(
        text_in=len(prompt.encode()) + PROMPT_WRAPPING_TOKENS + sources * rule.source_tokens,
        text_out=rule.text_out_tokens,
        image_out=tokens_of(model, size),
    )
    assert rule.source_tokens > 0
    assert model.quote(size, "standard", prompt, sources=[size] * sources).nano == most


@pytest.fixture
def server() -> Iterator[GeminiImageServer]:
    with GeminiImageServer(PICTURE) as running:
        yield running


async def cost_of(
    usage: Any, server: GeminiImageServer, connect: Callable[..., Connection], model: str
) -> Receipt:
    server.usage = usage
    request = ImageRequest(prompt="a fox in the snow", model=model, width=1024, height=1024)
    provider = GeminiImage(connect(server.base_url))
    return await provider.generate(request, FakeSink(), FakeDesk().callbacks)


@pytest.mark.parametrize("model", SPEC.models, ids=lambda row: row.id)
async def test_the_settled_cost_is_within_the_quote_and_the_most_is_the_quote(
    model: ImageModel, server: GeminiImageServer, connect: Callable[..., Connection]
) -> None:
    rule, size = rule_of(model), Size(1024, 1024)
    image, text_in = tokens_of(model, size), len("a fox in the snow") + 64
    most = {
        "promptTokenCount": text_in,
        "candidatesTokenCount": image,
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": image}],
        "thoughtsTokenCount": rule.text_out_tokens,
        "totalTokenCount": text_in + image + rule.text_out_tokens,
    }
    types.GenerateContentResponseUsageMetadata.model_validate(most, extra="forbid", by_alias=True)
    quote = model.quote(size, "standard", "a fox in the snow")
    settled = await cost_of(most, server, connect, model.id)
    assert (settled.cost_nano, settled.cost_source) == (quote.nano, "computed")
    ordinary = most | {"thoughtsTokenCount": None, "promptTokenCount": 6, "totalTokenCount": None}
    settled = await cost_of(ordinary, server, connect, model.id)
    assert settled.cost_nano == rule.cost(text_in=6, text_out=0, image_out=image)
    assert settled.cost_nano is not None
    assert settled.cost_nano < quote.nano


async def test_a_report_seen_in_the_wild_comes_to_what_was_charged(
    server: GeminiImageServer, connect: Callable[..., Connection]
) -> None:
    usage = {
        "promptTokenCount": 326,
        "candidatesTokenCount": 2340,
        "totalTokenCount": 3003,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 326}],
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 2000}],
        "thoughtsTokenCount": 337,
    }
    receipt = await cost_of(usage, server, connect, "gemini-3-pro-image")
    # $0.000652 in, $0.24 for the picture, and 677 tokens said and thought at $12 for a million.
    assert receipt.cost_nano == 652_000 + 240_000_000 + 677 * 12_000


async def test_two_pictures_cost_two_pictures(
    server: GeminiImageServer, connect: Callable[..., Connection]
) -> None:
    server.drafts = (b"a draft",)
    usage = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 2240,
        "candidatesTokensDetails": [
            {"modality": "IMAGE", "tokenCount": 1120},
            {"modality": "IMAGE", "tokenCount": 1120},
        ],
    }
    receipt = await cost_of(usage, server, connect, "gemini-nano-banana-2.1")
    assert receipt.cost_nano == 10 * 1_500 + 2_240 * 30_000


async def test_output_that_is_not_split_is_priced_as_picture(
    server: GeminiImageServer, connect: Callable[..., Connection]
) -> None:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 1200, "totalTokenCount": 1210}
    receipt = await cost_of(usage, server, connect, "gemini-nano-banana-2.1")
    assert receipt.cost_nano == 10 * 1_500 + 1_200 * 30_000


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "free",
        {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        USAGE | {"totalTokenCount": 1497},
        USAGE | {"promptTokenCount": -1},
        USAGE | {"promptTokenCount": True},
        USAGE | {"candidatesTokenCount": 1119, "totalTokenCount": None},
        USAGE | {"candidatesTokenCount": 10**9, "totalTokenCount": None},
        USAGE | {"candidatesTokensDetails": []},
        USAGE | {"candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 1150}]},
        USAGE | {"candidatesTokensDetails": "IMAGE"},
    ],
)
async def test_without_a_usage_that_makes_sense_the_catalogues_price_holds(
    usage: Any, server: GeminiImageServer, connect: Callable[..., Connection]
) -> None:
    receipt = await cost_of(usage, server, connect, "gemini-nano-banana-2.1")
    assert receipt == Receipt(prompt_used="a fox in the snow")
