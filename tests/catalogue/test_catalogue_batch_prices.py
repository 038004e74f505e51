"""The batch prices: complete, dated, of known models, and half of the normal price."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from msgspec.structs import asdict, replace

from limner.catalogue.batch_prices import (
    BatchPrice,
    batch_prices,
    image_model_in_batch,
    vision_model_in_batch,
)
from limner.catalogue.images import Size, all_image_models
from limner.catalogue.prices import AreaTokensPrice, GptImageTokens, cost_of_tokens
from limner.catalogue.vision import vision_model, vision_models

every_row = pytest.mark.parametrize("row", batch_prices().values(), ids=lambda row: row.name)
IMAGE_MODELS = {model.name: model for model in all_image_models()}
LOOKING = {model.name: model for model in vision_models()}


@every_row
def test_a_row_names_a_known_model_its_source_and_its_date(row: BatchPrice) -> None:
    assert (row.name in IMAGE_MODELS) != (row.name in LOOKING)
    assert "https://" in row.source
    assert row.read >= date(2026, 11, 16)


@every_row
def test_a_row_prices_every_kind_of_token_of_its_model(row: BatchPrice) -> None:
    if row.name in IMAGE_MODELS:
        price = IMAGE_MODELS[row.name].price
        assert isinstance(price, GptImageTokens | AreaTokensPrice)
        assert set(row.usd) == {name for name in asdict(price) if name.endswith("_usd")}
        return
    rate = LOOKING[row.name].rate
    assert rate is not None
    assert set(row.usd) == {name for name, usd in asdict(rate).items() if isinstance(usd, Decimal)}
    assert (row.long_prompt is None) == (rate.long_prompt is None)


@every_row
def test_input_and_output_cost_half_in_a_batch(row: BatchPrice) -> None:
    rate = None if row.name in IMAGE_MODELS else LOOKING[row.name].rate
    normal = asdict(rate or IMAGE_MODELS[row.name].price)
    halves = {name: usd for name, usd in row.usd.items() if "cache" not in name}
    assert {name: 2 * usd for name, usd in halves.items()} == {
        name: normal[name] for name in halves
    }


def test_a_picture_in_a_batch_costs_half_to_the_nano_dollar() -> None:
    model = IMAGE_MODELS["openai-image/gpt-image-2"]
    cheap = image_model_in_batch(model)
    assert cheap is not None
    size = Size(1024, 1024)
    now, later = model.quote(size, "standard", "fox"), cheap.quote(size, "standard", "fox")
    assert (now.nano, later.nano) == (53_015_000, 26_507_500)
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"text_tokens": 50, "image_tokens": 0},
        "output_tokens": 439,
    }
    assert cost_of_tokens(model.price, usage) == 13_420_000
    assert cost_of_tokens(cheap.price, usage) == 6_710_000
    assert replace(cheap, price=model.price) == model


def test_an_answer_in_a_batch_costs_half_to_the_nano_dollar() -> None:
    model = vision_model("anthropic/claude-haiku-5-5")
    cheap = vision_model_in_batch(model)
    assert model.rate is not None
    assert cheap is not None
    assert cheap.rate is not None
    tokens = {"input_tokens": 1201, "output_tokens": 45}
    assert (model.rate.cost(**tokens), cheap.rate.cost(**tokens)) == (142_600, 71_300)
    long = {"input_tokens": 200_001, "output_tokens": 45}
    assert (model.rate.cost(**long), cheap.rate.cost(**long)) == (100_113_000, 50_056_500)


def test_a_snapshot_costs_as_much_as_its_model() -> None:
    snapshot = vision_model_in_batch(vision_model("openai/gpt-5.5-2026-04-23"))
    model = vision_model_in_batch(vision_model("openai/gpt-5.5"))
    assert snapshot is not None
    assert model is not None
    assert snapshot.rate == model.rate


def test_a_model_without_a_batch_price_is_not_offered_in_a_batch() -> None:
    assert image_model_in_batch(IMAGE_MODELS["gemini-image/gemini-2.5-flash-image"]) is None
    assert vision_model_in_batch(replace(vision_model("openai/gpt-5.5"), id="gpt-7")) is None
