"""Who draws: the whole decision table, with the real table of providers and with made-up ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.catalogue.images import ImageModel, Size
from limner.catalogue.prices import FlatPrice
from limner.catalogue.sizes import AnySize, ListedSizes
from limner.errors import InputInvalid, InvalidSize, LimnerError, NoProvider
from limner.providers.base import Connection, Provider, ProviderSpec
from limner.providers.choice import Choice, DrawingNeeds, choose
from limner.providers.specs import all_specs

SPRING, AUTUMN = date(2026, 4, 1), date(2026, 11, 15)
OPENAI, REPLICATE = {"OPENAI_API_KEY": "sk-1"}, {"REPLICATE_API_TOKEN": "r8-1"}
SQUARE, SMALL, TALL = Size(1024, 1024), Size(512, 512), Size(1024, 1792)
RETIRED = (
    "DALL·E 3 was retired by its maker on 2026-05-12; this only works if a proxy still serves "
    "it. Its successor is openai-image/gpt-image-2.5-flare."
)


def wish(**more: Any) -> DrawingNeeds:
    usual: dict[str, Any] = {
        "provider": "auto",
        "model": None,
        "size": SQUARE,
        "quality": "standard",
        "has_svg": False,
    }
    return DrawingNeeds(**usual | more)


def chosen(
    keys: Mapping[str, str] | None = None,
    *,
    on: date = AUTUMN,
    specs: Mapping[str, ProviderSpec] | None = None,
    **more: Any,
) -> Choice:
    specs = all_specs(embedded=True) if specs is None else specs
    return choose(wish(**more), specs=specs, key_of=(keys or {}).get, today=on)


def refused(keys: Mapping[str, str] | None = None, **more: Any) -> LimnerError:
    with pytest.raises(LimnerError) as caught:
        chosen(keys, **more)
    return caught.value


def never_built(connection: Connection) -> Provider:
    raise AssertionError("choosing connects to nobody")


def made_model(provider: str = "studio", **more: Any) -> ImageModel:
    usual: dict[str, Any] = {
        "id": "brush-1",
        "title": "Brush 1",
        "sizes": AnySize(min_edge=64, max_edge=2048),
        "price": FlatPrice(usd=Decimal("0.01")),
        "max_prompt_chars": 1000,
        "source": "made up",
        "read": AUTUMN,
    }
    return ImageModel(provider=provider, **usual | more)


def made_spec(
    name: str = "studio", *, key_env: str | None = "STUDIO_KEY", models: Any = None
) -> ProviderSpec:
    return ProviderSpec(
        name=name,
        key_env=key_env,
        base_url_env=None,
        base_url="",
        models=(made_model(name),) if models is None else models,
        build=never_built,
    )


def with_studio(**more: Any) -> dict[str, ProviderSpec]:
    """The real table with an installed provider, where `all_specs` puts it."""
    installed = all_specs(embedded=False) | {"studio": made_spec(**more)}
    return installed | {"illustrator": all_specs(embedded=True)["illustrator"]}


@pytest.mark.parametrize(
    ("keys", "on", "more", "provider", "model"),
    [
        (OPENAI, SPRING, {}, "openai-dalle", "dall-e-3"),
        (OPENAI, AUTUMN, {}, "openai-image", "gpt-image-2.5-flare"),
        (OPENAI, SPRING, {"size": Size(1536, 1024)}, "openai-image", "gpt-image-2.5-flare"),
        (OPENAI, SPRING, {"quality": "hd", "size": TALL}, "openai-dalle", "dall-e-3"),
        (REPLICATE, SPRING, {}, "replicate-flux", "black-forest-labs/flux-schnell"),
        (REPLICATE, AUTUMN, {"quality": "hd"}, "replicate-flux", "black-forest-labs/flux-schnell"),
        (OPENAI | REPLICATE, SPRING, {}, "openai-dalle", "dall-e-3"),
        (OPENAI | REPLICATE, AUTUMN, {}, "openai-image", "gpt-image-2.5-flare"),
        (
            OPENAI | REPLICATE,
            AUTUMN,
            {"size": SMALL},
            "replicate-flux",
            "black-forest-labs/flux-schnell",
        ),
        ({}, AUTUMN, {}, "illustrator", "limner-illustrator"),
        ({}, AUTUMN, {"size": Size(4096, 16)}, "illustrator", "limner-illustrator"),
        (OPENAI, AUTUMN, {"has_svg": True}, "illustrator", "limner-illustrator"),
    ],
)
def test_auto_takes_the_first_with_a_key_that_lives_and_can_draw_it(
    keys: dict[str, str], on: date, more: dict[str, Any], provider: str, model: str
) -> None:
    choice = chosen(keys, on=on, **more)
    key = keys.get(choice.spec.key_env or "", "")
    assert (choice.spec.name, choice.model.id, choice.key, choice.notice) == (
        provider,
        model,
        key,
        None,
    )


def test_auto_with_keys_but_no_one_for_the_size_names_the_nearest_size() -> None:
    error = refused(OPENAI, size=SMALL)
    assert isinstance(error, InvalidSize)
    assert (error.code, error.field) == ("INVALID_SIZE_FOR_PROVIDER", "size")
    assert error.hint == "The nearest size it can draw is 816x816."


def test_auto_with_keys_never_falls_back_to_the_illustrator() -> None:
    assert isinstance(refused(OPENAI, size=Size(17, 17)), InvalidSize)


def test_auto_without_keys_and_without_the_illustrator_names_the_keys() -> None:
    error = refused(specs=all_specs(embedded=False))
    assert isinstance(error, NoProvider)
    assert error.code == "IMAGE_GEN_NO_PROVIDER"
    assert error.message == "Neither OPENAI_API_KEY nor REPLICATE_API_TOKEN is set."
    assert error.hint == (
        "Set OPENAI_API_KEY or REPLICATE_API_TOKEN, or run: limner keys set OPENAI_API_KEY"
    )


def test_auto_without_keys_and_a_size_even_the_illustrator_cannot_draw() -> None:
    assert isinstance(refused(size=Size(5000, 5000)), InvalidSize)


def test_auto_with_a_key_for_retired_models_only_says_so_and_draws_nothing_else() -> None:
    old = made_spec(models=(made_model(retired=SPRING),))
    specs = {"studio": old, "illustrator": all_specs(embedded=True)["illustrator"]}
    error = refused({"STUDIO_KEY": "k"}, specs=specs)
    assert isinstance(error, NoProvider)
    assert error.message == "A key is set, but the models it is for are retired: studio/brush-1."


@pytest.mark.parametrize("name", ["openai-dalle", "openai-image", "replicate-flux"])
def test_a_provider_by_name_without_its_key_names_the_key(name: str) -> None:
    error = refused(provider=name)
    key_env = all_specs(embedded=False)[name].key_env
    assert isinstance(error, NoProvider)
    assert error.message == f"{key_env} is not set, and {name} needs it."
    assert error.hint == f"Set {key_env}, or run: limner keys set {key_env}"


def test_a_retired_provider_by_name_still_works_with_a_notice() -> None:
    choice = chosen(OPENAI, provider="openai-dalle")
    assert (choice.model.id, choice.notice) == ("dall-e-3", RETIRED)
    assert chosen(OPENAI, provider="openai-dalle", on=SPRING).notice is None


def test_the_notice_for_a_model_without_a_successor_names_none() -> None:
    specs = with_studio(models=(made_model("studio", retired=SPRING),))
    assert chosen({"STUDIO_KEY": "k"}, specs=specs, provider="studio").notice == (
        "Brush 1 was retired by its maker on 2026-04-01; "
        "this only works if a proxy still serves it."
    )


def test_a_provider_by_name_that_cannot_do_the_size_is_not_replaced_by_another() -> None:
    error = refused(OPENAI | REPLICATE, provider="openai-dalle", size=SMALL)
    assert isinstance(error, InvalidSize)
    assert error.hint == "The nearest size it can draw is 1024x1024."


@pytest.mark.parametrize(
    ("name", "hint"),
    [("openai-dall", "Did you mean 'openai-dalle'?"), ("midjourney", None), ("", None)],
)
def test_a_provider_nobody_knows_is_bad_input(name: str, hint: str | None) -> None:
    error = refused(OPENAI, provider=name)
    assert isinstance(error, InputInvalid)
    assert (error.field, error.hint) == ("provider", hint)
    names = ", ".join(["auto", *all_specs(embedded=True)])
    assert error.message == f"there is no provider {name!r}; there are {names}"


@pytest.mark.parametrize(
    ("more", "provider", "model"),
    [
        ({"model": "gpt-image-2"}, "openai-image", "gpt-image-2"),
        ({"model": "openai-image/gpt-image-2"}, "openai-image", "gpt-image-2"),
        ({"model": "dall-e-3"}, "openai-dalle", "dall-e-3"),
        ({"model": "gpt-image-2", "provider": "openai-image"}, "openai-image", "gpt-image-2"),
        ({"model": "limner-illustrator"}, "illustrator", "limner-illustrator"),
        (
            {"model": "limner-illustrator", "has_svg": True},
            "illustrator",
            "limner-illustrator",
        ),
        (
            {"model": "replicate-flux/black-forest-labs/flux-schnell"},
            "replicate-flux",
            "black-forest-labs/flux-schnell",
        ),
    ],
)
def test_a_model_by_name_brings_its_provider(
    more: dict[str, Any], provider: str, model: str
) -> None:
    choice = chosen(OPENAI | REPLICATE, **more)
    assert (choice.spec.name, choice.model.id) == (provider, model)


def test_a_retired_model_by_name_still_works_with_a_notice() -> None:
    assert chosen(OPENAI, model="dall-e-3").notice == RETIRED


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("gpt-image-2.5-flair", "Did you mean 'gpt-image-2.5-flare'?"),
        ("zzz", "Run `limner models` for the list."),
    ],
)
def test_a_model_nobody_has_is_bad_input(model: str, hint: str) -> None:
    error = refused(OPENAI, model=model)
    assert isinstance(error, InputInvalid)
    assert (error.message, error.field) == (f"no provider has a model {model!r}", "model")
    assert error.hint == hint


def test_a_model_of_another_provider_is_bad_input() -> None:
    error = refused(OPENAI, provider="openai-dalle", model="gpt-image-2")
    assert isinstance(error, InputInvalid)
    assert (error.message, error.field) == (
        "provider 'openai-dalle' has no model 'gpt-image-2'; it has dall-e-3",
        "model",
    )


@pytest.mark.parametrize(
    ("more", "field"),
    [({"provider": "openai-image"}, "provider"), ({"model": "gpt-image-2"}, "model")],
)
def test_an_svg_document_is_for_nobody_but_the_illustrator(
    more: dict[str, Any], field: str
) -> None:
    error = refused(OPENAI, has_svg=True, **more)
    assert isinstance(error, InputInvalid)
    assert error.field == field
    assert chosen(OPENAI, has_svg=True, provider="illustrator").key == ""


def test_an_svg_document_is_drawn_though_the_embedded_model_is_switched_off() -> None:
    off = all_specs(embedded=False)
    assert chosen(OPENAI, has_svg=True, specs=off).spec.name == "illustrator"


def test_an_installed_provider_is_chosen_after_the_built_in_ones() -> None:
    specs = with_studio()
    both = OPENAI | {"STUDIO_KEY": "k"}
    assert chosen(both, specs=specs).spec.name == "openai-image"
    assert chosen(both, specs=specs, size=SMALL).spec.name == "studio"
    assert chosen({"STUDIO_KEY": "k"}, specs=specs).spec.name == "studio"
    assert chosen(both, specs=specs, provider="studio").key == "k"
    assert chosen(both, specs=specs, model="brush-1").spec.name == "studio"
    assert chosen(specs=specs).spec.name == "illustrator"


def test_an_installed_provider_without_a_key_is_chosen_before_the_illustrator() -> None:
    specs = with_studio(key_env=None)
    assert chosen(specs=specs).spec.name == "studio"
    assert chosen(OPENAI, specs=specs).spec.name == "openai-image"
    assert chosen(specs=specs, size=Size(4096, 4096)).spec.name == "illustrator"
    del specs["illustrator"]
    assert isinstance(refused(specs=specs, size=Size(4096, 4096)), InvalidSize)


sizes = st.builds(Size, st.integers(16, 4096), st.integers(16, 4096))
models = st.builds(
    made_model,
    st.just("studio"),
    sizes=st.one_of(
        st.builds(AnySize, min_edge=st.integers(16, 1024), max_edge=st.integers(1024, 4096)),
        st.builds(ListedSizes, sizes=st.lists(sizes, min_size=1, max_size=3).map(tuple)),
    ),
    qualities=st.sampled_from([{}, {"standard": "medium"}, {"standard": "a", "hd": "b"}]),
    retired=st.sampled_from([None, SPRING, AUTUMN, date(2030, 1, 1)]),
)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, ProviderSpec]:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True))
    made = {
        name: made_spec(
            name,
            key_env=draw(st.sampled_from([None, "KEY_1", "KEY_2"])),
            models=tuple(draw(st.lists(models, min_size=1, max_size=3))),
        )
        for name in names
    }
    return made | (all_specs(embedded=True) if draw(st.booleans()) else {})


@given(
    specs=tables(),
    keys=st.dictionaries(
        st.sampled_from(["KEY_1", "KEY_2", "OPENAI_API_KEY", "REPLICATE_API_TOKEN"]), st.just("k")
    ),
    size=sizes,
    quality=st.sampled_from(["standard", "hd"]),
    on=st.dates(date(2026, 1, 1), date(2031, 1, 1)),
)
def test_property_auto_takes_only_what_has_its_key_lives_and_can_draw(
    specs: dict[str, ProviderSpec], keys: dict[str, str], size: Size, quality: str, on: date
) -> None:
    ready = [
        spec
        for name, spec in specs.items()
        if name != "illustrator"
        and not spec.named_only
        and (spec.key_env is None or spec.key_env in keys)
    ]
    defaults = [next((m for m in spec.models if not m.is_retired(on)), None) for spec in ready]
    able = [m is not None and m.can_draw(size, quality) for m in defaults]
    has_key = any(spec.key_env for spec in ready)
    try:
        choice = chosen(keys, specs=specs, size=size, quality=quality, on=on)
    except InvalidSize:
        assert not any(able)
        assert any(defaults)
        assert has_key or "illustrator" not in specs
        return
    except NoProvider:
        assert not any(defaults)
        assert has_key or "illustrator" not in specs
        return
    assert not choice.model.is_retired(on)
    assert choice.model.can_draw(size, quality)
    if choice.spec.name == "illustrator":
        assert not has_key
        assert not any(able)
    else:
        assert choice.spec is ready[able.index(True)]
