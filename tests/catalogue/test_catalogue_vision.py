"""The rows of vision models: complete, dated, consistent, and with the published limits."""

from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from limner.catalogue import vision
from limner.catalogue.tokens import TokenRule
from limner.catalogue.vision import (
    ImageTokens,
    Limits,
    LongPromptRate,
    ManyImages,
    Rate,
    Size,
    VisionModel,
    cost,
    largest_useful,
    limits_for,
    services,
    tokens,
    unlisted,
    vision_model,
    vision_models,
)
from limner.errors import ImageTooLarge, InputInvalid

FILE = Path(vision.__file__).with_name("vision.toml")

every_model = pytest.mark.parametrize("model", vision_models(), ids=lambda model: model.name)


def parts_of_the_file() -> list[tuple[str, dict[str, Any]]]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))
    named = [
        (f"{kind} {name}", part)
        for kind in ("service", "rule")
        for name, part in rows[kind].items()
    ]
    return [*named, *((f"model {row['id']}", row) for row in rows["model"])]


def test_the_default_of_each_provider_comes_first() -> None:
    firsts: dict[str, str] = {}
    for model in vision_models():
        firsts.setdefault(model.provider, model.name)
    assert list(firsts.values()) == [
        "openai/gpt-5.6-terra",
        "anthropic/claude-sonnet-5-5",
        "google/gemini-3.8-flash",
    ]


def test_no_two_rows_have_one_name() -> None:
    names = [model.name for model in vision_models()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "part"), parts_of_the_file(), ids=lambda part: str(part)[:40])
def test_every_part_of_the_file_names_its_source_and_the_day_it_was_read(
    name: str, part: dict[str, Any]
) -> None:
    assert part["source"], name
    assert part["read"] >= date(2026, 11, 15), name


def test_every_rule_and_service_in_the_file_is_used() -> None:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))
    used = {row["provider"] for row in rows["model"]} | {
        name for name, service in rows["service"].items() if service.get("any_model")
    }
    assert used == set(rows["service"])
    assert {row["rule"] for row in rows["model"] if "rule" in row} == set(rows["rule"])


@every_model
def test_a_row_that_takes_pictures_says_which_how_counted_and_at_what_price(
    model: VisionModel,
) -> None:
    assert model.title
    assert model.takes_images == bool(model.formats) == (model.rule is not None)
    assert model.rate is not None
    assert Decimal(0) < model.rate.input_usd < model.rate.output_usd


@every_model
def test_a_default_look_costs_its_tokens_at_the_input_rate(model: VisionModel) -> None:
    look = tokens(model, Size(1000, 1000))
    if look is None:
        assert cost(model, Size(1000, 1000)) is None
    else:
        assert model.rate is not None
        nano = cost(model, Size(1000, 1000))
        assert nano is not None
        assert nano == pytest.approx(float(look.tokens * model.rate.input_usd * 1000), abs=1)


# --- what is sent, and what that costs ---


def test_a_4k_screenshot_costs_two_cents_on_gpt_5_6_terra_and_half_a_cent_at_high_detail() -> None:
    terra = vision_model("openai/gpt-5.6-terra")
    screenshot = Size(3840, 2160)
    assert cost(terra, screenshot) == 19_584_000
    assert largest_useful(terra, screenshot) == screenshot
    assert cost(terra, screenshot, "high") == 5_530_000
    assert largest_useful(terra, screenshot, "high") == Size(2048, 1152)


def test_what_a_service_would_refuse_can_be_sent_at_its_largest_useful_size() -> None:
    terra = vision_model("openai/gpt-5.6-terra")
    with pytest.raises(ImageTooLarge):
        cost(terra, Size(12_000, 8_000))
    sent = largest_useful(terra, Size(12_000, 8_000))
    assert (sent, tokens(terra, sent)) == (
        Size(6768, 4512),
        ImageTokens(tokens=35_871, width=6768, height=4512, exact=True),
    )


def test_a_model_nobody_has_a_rule_for_gets_the_picture_as_it_is_and_no_price() -> None:
    local = vision_model("ollama/qwen3-vl:8b")
    assert (tokens(local, Size(9000, 10)), cost(local, Size(9000, 10))) == (None, None)
    assert largest_useful(local, Size(9000, 10)) == Size(9000, 10)


def test_a_rate_without_a_source_is_unknown_not_free() -> None:
    unpriced = replace(vision_model("openai/gpt-5.5"), rate=None)
    assert tokens(unpriced, Size(32, 32)) is not None
    assert cost(unpriced, Size(32, 32)) is None


# --- rates ---


def test_a_long_prompt_is_charged_at_its_own_rate_from_the_first_token() -> None:
    rate = Rate(
        input_usd=Decimal("0.1"),
        cache_read_usd=Decimal("0.01"),
        cache_write_usd=Decimal("0.125"),
        output_usd=Decimal("0.5"),
        long_prompt=LongPromptRate(
            above_tokens=100_000,
            input_usd=Decimal("0.5"),
            cache_read_usd=Decimal("0.05"),
            cache_write_usd=Decimal("0.625"),
            output_usd=Decimal("2.5"),
        ),
    )
    assert vision_model("anthropic/claude-haiku-5-5").rate == rate
    assert [
        rate.cost(input_tokens=100_000, output_tokens=1_000),
        rate.cost(input_tokens=100_001, output_tokens=1_000),
    ] == [10_500_000, 52_500_500]


@given(st.integers(0, 2_000_000), st.integers(0, 200_000))
def test_property_a_cost_is_rounded_up_by_less_than_a_nano_dollar(spent: int, said: int) -> None:
    rate = Rate(input_usd=Decimal("0.123456789"), output_usd=Decimal("0.987654321"))
    exact = (spent * rate.input_usd + said * rate.output_usd) * 1000
    assert 0 <= rate.cost(input_tokens=spent, output_tokens=said) - exact < 1


def test_what_a_cache_did_has_its_own_price_or_that_of_the_input() -> None:
    priced = vision_model("anthropic/claude-sonnet-5-5").rate
    assert priced is not None
    told = {"input_tokens": 1_000, "cache_read_tokens": 700, "cache_write_tokens": 200}
    assert priced.cost(**told) == 100 * 2_000 + 700 * 100 + 200 * 2_500
    plain = Rate(input_usd=Decimal(2), output_usd=Decimal(10))
    assert plain.cost(**told) == 1_000 * 2_000


@every_model
@given(data=st.data())
@settings(max_examples=20)
def test_property_no_cache_makes_a_request_dearer_than_the_most_it_can_cost(
    model: VisionModel, data: st.DataObject
) -> None:
    assert model.rate is not None
    given, said = data.draw(st.integers(0, 400_000)), data.draw(st.integers(0, 20_000))
    was_read = data.draw(st.integers(0, given))
    written = data.draw(st.integers(0, given - was_read))
    cost = model.rate.cost(
        input_tokens=given,
        output_tokens=said,
        cache_read_tokens=was_read,
        cache_write_tokens=written,
    )
    assert cost <= model.rate.most(input_tokens=given, output_tokens=said)


# --- services ---


def test_a_known_service_has_a_model_of_every_id_and_a_stranger_has_none() -> None:
    new = unlisted("openai/gpt-7")
    assert new is not None
    assert (new.name, new.takes_images, new.rule, new.rate) == ("openai/gpt-7", True, None, None)
    assert new.formats == vision_model("openai/gpt-5.5").formats
    assert [unlisted(name) for name in ("nobody/x", "openai", "openai/", "")] == [None] * 4


def test_a_service_says_how_it_is_reached() -> None:
    assert {
        name: (service.api, service.base_url_env, service.key_env)
        for name, service in services().items()
    } == {
        "openai": ("openai-responses", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        "anthropic": ("anthropic-messages", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        "google": ("gemini-generate-content", "GEMINI_BASE_URL", "GEMINI_API_KEY"),
        "ollama": ("openai-chat", "OLLAMA_BASE_URL", None),
        "llama.cpp": ("openai-chat", "LLAMA_CPP_BASE_URL", None),
        "lm-studio": ("openai-chat", "LM_STUDIO_BASE_URL", None),
    }


# --- limits ---


def test_the_services_have_their_published_limits() -> None:
    many = ManyImages(above=20, max_edge=2_000)
    claude = Limits(
        max_edge=8_000,
        max_base64_bytes=10_000_000,
        max_request_bytes=32_000_000,
        max_images=600,
        many_images=many,
    )
    assert {
        name: vision_model(name).limits
        for name in (
            "openai/gpt-5.5",
            "anthropic/claude-opus-5-5",
            "anthropic/claude-haiku-4-5",
            "google/gemini-3.8-flash",
            "lm-studio/gemma-4",
        )
    } == {
        "openai/gpt-5.5": Limits(max_request_bytes=512_000_000, max_images=1_500),
        "anthropic/claude-opus-5-5": claude,
        "anthropic/claude-haiku-4-5": msgspec.structs.replace(claude, max_images=100),
        "google/gemini-3.8-flash": Limits(max_request_bytes=100_000_000, max_images=3_600),
        "lm-studio/gemma-4": Limits(),
    }


@pytest.mark.parametrize(
    ("images", "max_edge"), [(0, 8_000), (1, 8_000), (20, 8_000), (21, 2_000), (600, 2_000)]
)
def test_claude_takes_smaller_pictures_when_there_are_more_than_twenty(
    images: int, max_edge: int
) -> None:
    opus = vision_model("anthropic/claude-opus-5-5")
    assert limits_for(opus, images_in_request=images) == msgspec.structs.replace(
        opus.limits, max_edge=max_edge
    )


def test_other_services_have_no_rule_for_many_pictures() -> None:
    gemini = vision_model("google/gemini-3.8-flash")
    assert limits_for(gemini, images_in_request=3_000) == gemini.limits


@given(st.integers(0, 40_000_000))
def test_property_a_file_within_the_limit_is_within_it_as_base64_and_one_byte_more_is_not(
    limit: int,
) -> None:
    most = Limits(max_base64_bytes=limit).max_image_bytes
    assert most is not None
    assert -(-most // 3) * 4 <= limit < -(-(most + 1) // 3) * 4


def test_a_service_without_a_limit_on_one_picture_has_none_for_its_file() -> None:
    assert Limits().max_image_bytes is None


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("openai/gpt-5.5", "png jpeg webp gif"),
        ("anthropic/claude-opus-5-5", "png jpeg gif webp"),
        ("google/gemini-3.8-flash", "png jpeg webp heic heif"),
        ("ollama/llava", "png jpeg"),
        ("llama.cpp/any.gguf", "png jpeg"),
        ("lm-studio/org/model", "png jpeg"),
        ("openai/o3-mini", ""),
    ],
)
def test_each_service_reads_its_own_formats(name: str, formats: str) -> None:
    assert vision_model(name).formats == tuple(f"image/{kind}" for kind in formats.split())


# --- names and lives ---


def test_a_model_is_found_by_name_and_by_its_snapshots() -> None:
    haiku = vision_model("anthropic/claude-haiku-4-5")
    snapshot = vision_model("anthropic/claude-haiku-4-5-20251001")
    assert haiku in vision_models()
    assert snapshot == replace(haiku, id="claude-haiku-4-5-20251001")
    assert snapshot.name == "anthropic/claude-haiku-4-5-20251001"


def test_a_local_server_has_a_model_of_every_name() -> None:
    local = vision_model("ollama/qwen3-vl:8b")
    assert (local.name, local.title, local.takes_images, local.rate, local.rule) == (
        "ollama/qwen3-vl:8b",
        "qwen3-vl:8b",
        True,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("gpt-5.5", "openai/gpt-5.5"),
        ("OpenAI/GPT-5.5", "openai/gpt-5.5"),
        ("anthropic/claude-opus-5.5", "anthropic/claude-opus-5-5"),
        ("google/gemini-3.8-flsh", "google/gemini-3.8-flash"),
        ("gemini/gemini-4-argon", "google/gemini-4-argon"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        vision_model(name)
    assert (caught.value.message, caught.value.field) == (
        f"There is no vision model {name!r}",
        "model",
    )
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"Use {nearest} or ")


@pytest.mark.parametrize("name", ["", "/", "ollama", "ollama/", "\u2603", "x" * 100_000])
def test_a_name_like_no_other_still_gets_an_example_and_is_not_echoed_whole(name: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        vision_model(name)
    assert caught.value.hint == "Use openai/gpt-5.6-terra."
    assert len(caught.value.message) < 120


def test_a_model_is_retired_from_its_last_day_on() -> None:
    sonnet = vision_model("anthropic/claude-sonnet-4-5")
    days = [date(2026, 11, 29), date(2026, 11, 30)]
    assert [sonnet.is_retired(on) for on in days] == [False, True]
    assert vision_model("anthropic/claude-sonnet-5-5").is_retired(date(2999, 1, 1)) is False


# --- the shape of the file ---


@pytest.mark.parametrize("kind", ["openai_patches", "openai_tiles", "claude_patches"])
def test_a_rule_with_a_word_nobody_knows_is_refused(kind: str) -> None:
    rule = {"kind": kind, "source": "somewhere", "read": date(2026, 11, 15), "colour": "red"}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(rule, TokenRule)


def test_limits_and_rates_with_a_word_nobody_knows_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="max_edges"):
        msgspec.convert({"max_edges": 1}, Limits)
    with pytest.raises(msgspec.ValidationError, match="cached_usd"):
        msgspec.convert({"input_usd": 1, "output_usd": 1, "cached_usd": 1}, Rate)
