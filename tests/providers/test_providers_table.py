"""The table of providers, and the one that needs no network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limner.catalogue.images import image_models
from limner.pictures.order import ImageRequest, Progress, Receipt
from limner.providers import illustrator
from limner.providers.base import (
    BUILT_IN,
    EMBEDDED,
    Connection,
    Resumable,
    all_specs,
    load,
)
from limner.testing import FakeDesk, FakeSink


def test_the_order_of_preference_is_the_tables_and_the_embedded_one_is_last() -> None:
    assert list(all_specs(embedded=True)) == [
        "openai-dalle",
        "openai-image",
        "replicate-flux",
        "illustrator",
    ]
    assert list(all_specs(embedded=False)) == ["openai-dalle", "openai-image", "replicate-flux"]


@pytest.mark.parametrize(("name", "reference"), (BUILT_IN | EMBEDDED).items())
def test_a_spec_is_what_the_table_says_and_has_its_models(name: str, reference: str) -> None:
    spec = load(reference)
    assert (spec.name, spec.models) == (name, image_models(name))
    assert spec.models


@pytest.mark.parametrize(
    ("name", "key_env", "base_url_env", "base_url"),
    [
        ("openai-dalle", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("openai-image", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        (
            "replicate-flux",
            "REPLICATE_API_TOKEN",
            "REPLICATE_BASE_URL",
            "https://api.replicate.com/v1",
        ),
        ("illustrator", None, None, ""),
    ],
)
def test_keys_and_base_urls_have_the_names_people_know(
    name: str, key_env: str | None, base_url_env: str | None, base_url: str
) -> None:
    spec = all_specs(embedded=True)[name]
    assert (spec.key_env, spec.base_url_env, spec.base_url) == (key_env, base_url_env, base_url)


async def test_only_a_provider_with_jobs_can_be_resumed(
    connect: Callable[..., Connection],
) -> None:
    resumable = {
        name: isinstance(spec.build(connect(spec.base_url)), Resumable)
        for name, spec in all_specs(embedded=True).items()
    }
    assert resumable == {
        "openai-dalle": False,
        "openai-image": False,
        "replicate-flux": True,
        "illustrator": False,
    }


async def test_the_illustrator_draws_here_and_for_nothing(
    connect: Callable[..., Connection],
) -> None:
    sink, desk = FakeSink(), FakeDesk()
    request = ImageRequest(prompt="a fox", model="limner-illustrator", width=64, height=64)
    receipt = await illustrator.SPEC.build(connect("")).generate(request, sink, desk.desk)
    assert receipt == Receipt(
        prompt_used="a fox", cost_nano=0, cost_source="table", extras={"matched": ["fox"]}
    )
    assert bytes(sink.data) == b"drawn here"
    assert desk.progress == [Progress(message="The illustrator is drawing", elapsed_s=0.0)]
