"""The rows of the catalogue: complete, dated, consistent, and with the promised prices."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.catalogue.images import (
    ImageModel,
    PictureHost,
    Quote,
    Size,
    all_image_models,
    image_models,
    parse_size,
    picture_hosts,
)
from limner.errors import InvalidSize

DALLE = image_models("openai-dalle")[0]
FLUX = image_models("replicate-flux")[0]
FLARE = image_models("openai-image")[0]
ILLUSTRATOR = image_models("illustrator")[0]

every_model = pytest.mark.parametrize("model", all_image_models(), ids=lambda model: model.name)


def test_the_first_model_of_a_provider_is_its_default() -> None:
    assert [model.id for model in image_models("openai-image")] == [
        "gpt-image-2.5-flare",
        "gpt-image-2.5-sunburst",
        "gpt-image-2",
    ]
    assert [model.id for model in image_models("openai-dalle")] == ["dall-e-3"]


def test_every_row_is_of_the_provider_whose_file_it_is_in() -> None:
    for provider in {model.provider for model in all_image_models()}:
        assert {model.provider for model in image_models(provider)} == {provider}


def test_an_unknown_provider_has_no_models() -> None:
    assert image_models("midjourney") == ()


@every_model
def test_every_row_names_its_source_and_the_day_it_was_read(model: ImageModel) -> None:
    assert model.source
    assert model.title
    assert model.read >= date(2026, 11, 15)


@every_model
def test_a_row_that_ends_has_a_living_successor(model: ImageModel) -> None:
    if model.retired is not None:
        (successor,) = [row for row in all_image_models() if row.name == model.successor]
        assert successor.status(model.read) == "current"


@every_model
def test_every_row_takes_the_tools_default_size_at_both_qualities(model: ImageModel) -> None:
    assert [model.can_draw(Size(1024, 1024), quality) for quality in ("standard", "hd")] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("size", "quality", "nano"),
    [
        ("1024x1024", "standard", 40_000_000),
        ("1024x1024", "hd", 80_000_000),
        ("1024x1792", "standard", 80_000_000),
        ("1024x1792", "hd", 120_000_000),
        ("1792x1024", "standard", 80_000_000),
        ("1792x1024", "hd", 120_000_000),
    ],
)
def test_dalle_has_the_six_promised_prices(size: str, quality: str, nano: int) -> None:
    assert DALLE.quote(parse_size(size), quality, "a fox") == Quote(
        nano=nano, source="table", exact=True
    )


@pytest.mark.parametrize("size", ["512x512", "1024x1024", "1024x1792", "1792x1024"])
@pytest.mark.parametrize("quality", ["standard", "hd"])
def test_flux_takes_all_promised_sizes_for_three_tenths_of_a_cent(size: str, quality: str) -> None:
    assert FLUX.quote(parse_size(size), quality, "a fox") == Quote(
        nano=3_000_000, source="table", exact=True
    )


def test_the_illustrator_is_free() -> None:
    assert ILLUSTRATOR.quote(Size(16, 4096), "hd", "a fox") == Quote(
        nano=0, source="table", exact=True
    )


def test_only_a_service_that_does_not_keep_to_sizes_has_its_pictures_fitted() -> None:
    assert FLUX.fit_to_size
    exact = ("openai-dalle", "openai-image", "illustrator")
    assert [row for name in exact for row in image_models(name) if row.fit_to_size] == []


def test_the_tools_qualities_have_the_vendors_words() -> None:
    assert DALLE.qualities == {"standard": "standard", "hd": "hd"}
    assert {tuple(model.qualities.items()) for model in image_models("openai-image")} == {
        (("standard", "medium"), ("hd", "high"))
    }
    assert (FLUX.qualities, ILLUSTRATOR.qualities) == ({}, {})


def test_a_model_is_retired_from_its_last_day_on() -> None:
    last = date(2026, 5, 12)
    days = [last - timedelta(days=1), last, last + timedelta(days=1)]
    assert [DALLE.status(day) for day in days] == ["retiring", "retired", "retired"]
    assert [DALLE.is_retired(day) for day in days] == [False, True, True]
    assert {FLARE.status(day) for day in days} == {"current"}


def test_a_size_that_cannot_be_drawn_is_refused_with_the_nearest_that_can() -> None:
    with pytest.raises(InvalidSize) as caught:
        DALLE.quote(Size(512, 512), "hd", "a fox")
    error = caught.value
    assert (error.code, error.kind, error.field, error.message, error.hint) == (
        "INVALID_SIZE_FOR_PROVIDER",
        "input_invalid",
        "size",
        "openai-dalle/dall-e-3 cannot draw 512x512 at hd quality",
        "The nearest size it can draw is 1024x1024.",
    )


def test_a_quality_the_model_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidSize) as caught:
        FLARE.quote(Size(1024, 1024), "ultra", "a fox")
    error = caught.value
    assert (error.code, error.field, error.message, error.hint) == (
        "INVALID_SIZE_FOR_PROVIDER",
        "quality",
        "openai-image/gpt-image-2.5-flare has no quality 'ultra'",
        "Use standard or hd.",
    )


@given(
    st.sampled_from(all_image_models()),
    st.builds(Size, st.integers(1, 16_384), st.integers(1, 16_384)),
    st.sampled_from(["standard", "hd"]),
)
def test_property_the_nearest_size_of_every_model_can_be_drawn_and_priced(
    model: ImageModel, size: Size, quality: str
) -> None:
    nearest = model.nearest_size(size)
    assert model.can_draw(nearest, quality)
    assert model.quote(nearest, quality, "a fox").nano >= 0
    assert model.can_draw(size, quality) is (nearest == size)


def row(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "provider": "p",
        "id": "m",
        "title": "M",
        "sizes": {"kind": "listed", "sizes": [[8, 8]]},
        "qualities": {"standard": "plain"},
        "price": {"kind": "per_size", "rows": [{"size": [8, 8], "usd": {"plain": Decimal("0.1")}}]},
        "max_prompt_chars": 100,
        "source": "nowhere",
        "read": date(2026, 11, 15),
    }
    return plain | changes


def test_a_whole_row_is_read() -> None:
    model = msgspec.convert(row(), ImageModel)
    assert model.quote(Size(8, 8), "standard", "").nano == 100_000_000


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "blue"},
        {"source": None},
        {"read": "yesterday"},
        {"sizes": {"kind": "listed", "sizes": [[8, 8], [8, 16]]}},
        {"sizes": {"kind": "any", "min_edge": 8, "max_edge": 16}},
        {"sizes": {"kind": "elastic"}},
        {"qualities": {"standard": "plain", "hd": "fine"}},
        {"price": {"kind": "flat"}},
        {"price": {"kind": "flat", "usd": 1, "eur": 1}},
    ],
)
def test_a_row_with_a_gap_or_a_stranger_in_it_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(row(**changes), ImageModel)


def test_pictures_come_only_from_hosts_that_belong_to_the_service() -> None:
    providers = sorted({model.provider for model in all_image_models()})
    hosts = {provider: found for provider in providers if (found := picture_hosts(provider))}
    assert hosts == {
        "bfl-flux": (
            "*.bfl.ai",
            "bfldeliveryprod.blob.core.windows.net",
            "bfldeliverysc.blob.core.windows.net",
        ),
        "fal": ("*.fal.media",),
        "openai-compatible": ("dalleproduse.blob.core.windows.net",),
        "openai-dalle": ("oaidalleapiprodscus.blob.core.windows.net",),
        "replicate": ("*.replicate.delivery",),
    }


@pytest.mark.parametrize("name", ["*.blob.core.windows.net", "*.s3.amazonaws.com", "*.r2.dev"])
def test_a_domain_of_a_cloud_is_no_host_of_a_service(name: str) -> None:
    with pytest.raises(ValueError, match="belongs to every customer of that cloud"):
        PictureHost(name=name, source="somewhere", read=date(2026, 11, 16))
