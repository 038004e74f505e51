"""Names and roles become models, in the order that was promised, from data alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.wire_prompts import LOOK

from limner.catalogue.vision import services, vision_model, vision_models
from limner.errors import SettingsError, UserError
from limner.models.registry import EYES, OFFLINE, FoundModel, Registry, UnknownModel
from limner.settings.custom_models import CustomModel, Input
from limner.wires.base import WIRES, wire

KEYS = {"OPENAI_API_KEY": "k1", "ANTHROPIC_API_KEY": "k2", "GEMINI_API_KEY": "k3"}
TODAY = date(2026, 11, 15)


def registry(
    keys: Mapping[str, str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    own: tuple[CustomModel, ...] = (),
    embedded: bool = True,
    **roles: str | None,
) -> Registry:
    return Registry(
        key_of=(keys or {}).get,
        env=env or {},
        roles=roles,
        own=own,
        embedded=embedded,
        today=lambda: TODAY,
    )


def resolved(found: Registry, **rest: Any) -> tuple[str, str, str | None]:
    resolution = found.resolve(**rest)
    assert resolution is not None
    return resolution.model.name, resolution.by, resolution.effort


# --- the order ---


def test_the_first_that_is_a_model_is_used() -> None:
    roles: dict[str, Any] = {"vision": "openai/gpt-5.5", "default": "google/gemini-2.5-pro"}
    active = "anthropic/claude-haiku-4-5"
    assert resolved(registry(KEYS, **roles), active=active) == ("openai/gpt-5.5", "vision", None)
    roles["vision"] = None
    found = resolved(registry(KEYS, **roles), active=active)
    assert found == ("google/gemini-2.5-pro", "default", None)
    roles["default"] = None
    assert resolved(registry(KEYS, **roles), active=active) == (active, "active", None)
    assert resolved(registry(KEYS)) == ("openai/gpt-5.6-terra", "first", None)


def test_without_a_key_the_eyes_are_the_first_and_only() -> None:
    assert [model.name for model in registry().available()] == [EYES]
    assert resolved(registry()) == (EYES, "first", None)
    eyes = registry().available()[0]
    assert (eyes.api, eyes.takes_images, eyes.key_env) == ("embedded", True, None)
    assert eyes.rate is not None
    assert eyes.rate.cost(input_tokens=10**9, output_tokens=10**9) == 0


def test_without_keys_and_eyes_nothing_is_available() -> None:
    nothing = registry(embedded=False)
    assert nothing.available() == []
    assert nothing.resolve() is None
    assert nothing.find(EYES) is None


def test_available_are_those_with_a_key_in_the_order_of_the_catalogue_and_the_eyes_last() -> None:
    names = [model.name for model in registry(KEYS).available()]
    rows = [row.name for row in vision_models() if not row.is_retired(TODAY)]
    assert names == [*rows, EYES]
    google = [model.provider for model in registry({"GEMINI_API_KEY": "k"}).available()]
    assert set(google[:-1]) == {"google"}


def test_a_role_whose_key_is_missing_is_still_what_the_role_says() -> None:
    found = registry(vision="openai/gpt-5.5")
    assert resolved(found) == ("openai/gpt-5.5", "vision", None)
    model = found.find("openai/gpt-5.5")
    assert model is not None
    assert found.key(model.model) is None


def test_a_name_that_is_no_model_is_passed_over_and_told_with_near_ones() -> None:
    resolution = registry(KEYS, vision="opnai/gpt-5.5", default="gibberish").resolve()
    assert resolution is not None
    assert (resolution.model.name, resolution.by) == ("openai/gpt-5.6-terra", "first")
    assert resolution.unknown == (
        UnknownModel(by="vision", name="opnai/gpt-5.5", near=resolution.unknown[0].near),
        UnknownModel(by="default", name="gibberish", near=()),
    )
    assert resolution.unknown[0].near[0] == "openai/gpt-5.5"


# --- who is talked to ---


def talker(found: Registry, named: str | None = None) -> tuple[str, str, str | None]:
    resolution = found.resolve_conversation_model(named=named)
    assert resolution.unknown == ()
    return resolution.model.name, resolution.by, resolution.effort


def refused(found: Registry, named: str | None = None) -> tuple[str, str, str | None]:
    with pytest.raises(UserError) as caught:
        found.resolve_conversation_model(named=named)
    return caught.value.code, caught.value.message, caught.value.hint


def test_who_is_talked_to_is_the_one_named_then_the_role_then_the_first_then_the_rules() -> None:
    roles: dict[str, Any] = {"vision": "openai/gpt-4o", "default": "google/gemini-2.5-pro:low"}
    with_roles = registry(KEYS, **roles)
    assert talker(with_roles, "openai/gpt-5.5:high") == ("openai/gpt-5.5", "named", "high")
    assert talker(with_roles) == ("google/gemini-2.5-pro", "default", "low")
    assert talker(registry(KEYS)) == ("openai/gpt-5.6-terra", "first", None)
    assert talker(registry()) == (OFFLINE, "offline", None)
    assert talker(registry(KEYS), OFFLINE) == (OFFLINE, "named", None)
    assert talker(registry(KEYS, default=OFFLINE)) == (OFFLINE, "default", None)


def test_the_rules_are_free_need_no_key_and_are_sent_no_picture() -> None:
    found = registry().find(OFFLINE)
    assert found is not None
    model = found.model
    assert (model.api, model.takes_images, model.key_env) == ("embedded", False, None)
    assert registry().key(model) == ""
    assert model.rate is not None
    assert model.rate.cost(input_tokens=10**9, output_tokens=10**9) == 0


def test_a_talker_that_is_no_model_is_told_with_near_names_and_not_replaced() -> None:
    assert refused(registry(), "limner/ofline") == (
        "NO_MODEL",
        "There is no model 'limner/ofline'.",
        "Did you mean limner/offline or limner/eyes?",
    )
    assert refused(registry(KEYS, default="gibberish")) == (
        "NO_MODEL",
        "There is no model 'gibberish'.",
        "`limner models --vision` lists them.",
    )


def test_a_talker_whose_key_is_missing_is_told_and_not_replaced() -> None:
    missing = (
        "NO_API_KEY",
        "No API key available for openai/gpt-5.5.",
        "Set OPENAI_API_KEY, or store it: limner keys set OPENAI_API_KEY",
    )
    assert refused(registry(), "openai/gpt-5.5") == missing
    assert refused(registry(default="openai/gpt-5.5")) == missing


def test_the_eyes_cannot_be_talked_to() -> None:
    assert refused(registry(), EYES) == (
        "NO_MODEL",
        "limner/eyes answers questions about pictures and cannot hold a conversation.",
        "Talk to limner/offline, or to a model that has its key.",
    )


def test_without_what_limner_carries_itself_there_may_be_nobody_to_talk_to() -> None:
    nobody = registry(embedded=False)
    assert nobody.find(OFFLINE) is None
    assert refused(nobody) == (
        "NO_MODEL",
        "There is no model to talk to.",
        "Set a key: OPENAI_API_KEY=…",
    )


def test_the_rules_are_in_no_list_of_models_that_look_and_are_not_asked_to() -> None:
    assert OFFLINE not in [model.name for model in registry().known()]
    assert OFFLINE not in [model.name for model in registry().available()]
    assert resolved(registry(), active=OFFLINE) == (EYES, "first", None)
    assert resolved(registry(KEYS, default=OFFLINE)) == ("openai/gpt-5.6-terra", "first", None)
    assert resolved(registry(vision=OFFLINE)) == (OFFLINE, "vision", None)


# --- names ---


@pytest.mark.parametrize("alias", ["limner/vision", "pi/vision"])
def test_an_alias_is_what_its_role_says(alias: str) -> None:
    found = registry(vision="openai/gpt-5.5:low").find(alias)
    assert found is not None
    assert (found.model.name, found.effort) == ("openai/gpt-5.5", "low")
    louder = registry(vision="openai/gpt-5.5:low").find(f"{alias}:high")
    assert louder is not None
    assert (louder.model.name, louder.effort) == ("openai/gpt-5.5", "high")
    assert registry().find(alias) is None


def test_roles_may_name_each_other_but_not_in_a_circle() -> None:
    other = registry(vision="pi/default", default="openai/gpt-5.5")
    assert resolved(other) == ("openai/gpt-5.5", "vision", None)
    circle = registry(vision="pi/default", default="limner/vision")
    assert circle.find("pi/vision") is None
    assert resolved(circle) == (EYES, "first", None)
    assert resolved(registry(vision="limner/vision:high")) == (EYES, "first", None)


@pytest.mark.parametrize(
    ("name", "bare", "effort"),
    [
        ("openai/gpt-5.5:high", "openai/gpt-5.5", "high"),
        ("openai/gpt-5.5:off", "openai/gpt-5.5", "none"),
        ("openai/gpt-5.5:xhigh", "openai/gpt-5.5", "xhigh"),
        (" openai/gpt-5.5 ", "openai/gpt-5.5", None),
        ("openai/gpt-5.5-2026-04-23", "openai/gpt-5.5-2026-04-23", None),
        ("openai/gpt-7:high", "openai/gpt-7", "high"),
        ("openai/gpt-7:loud", "openai/gpt-7:loud", None),
        ("ollama/qwen3-vl:8b", "ollama/qwen3-vl:8b", None),
        ("ollama/qwen3-vl:8b:low", "ollama/qwen3-vl:8b", "low"),
    ],
)
def test_a_name_may_end_in_an_effort(name: str, bare: str, effort: str | None) -> None:
    found = registry().find(name)
    assert found is not None
    assert (found.model.name, found.effort) == (bare, effort)


@pytest.mark.parametrize(
    "name",
    ["gpt-5.5", "GPT-5.5", "OpenAI/gpt-5.5", " openai/GPT-5.5 ", "nobody/x,openai/gpt-5.5"],
)
def test_an_id_alone_and_another_case_are_understood(name: str) -> None:
    found = registry(KEYS).find(name)
    assert found is not None
    assert found.model.name == "openai/gpt-5.5"


def test_an_id_that_two_models_have_names_neither() -> None:
    twice = tuple(CustomModel(name=f"{one}/llava", base_url="http://x") for one in ("a", "b"))
    found = registry(own=twice, vision="llava", default="a/llava")
    assert found.find("llava") is None
    assert [(one.by, one.name) for one in found.unknown_roles()] == [("vision", "llava")]


@pytest.mark.parametrize("name", ["", "nobody/x", "openai/", "/x", "limner/x", ":high"])
def test_what_is_no_name_of_a_model_is_none(name: str) -> None:
    assert registry(KEYS).find(name) is None


@given(
    st.text() | st.lists(st.sampled_from(["openai", "/", "gpt", ":", "high", "pi"])).map("".join)
)
def test_property_any_text_is_a_model_or_none(name: str) -> None:
    found = registry(KEYS, vision=name, default=name).find(name)
    assert found is None or isinstance(found, FoundModel)


def test_a_new_model_of_a_known_service_can_be_used_before_it_has_a_row() -> None:
    found = registry(KEYS).find("anthropic/claude-next")
    assert found is not None
    model = found.model
    known = vision_model("anthropic/claude-sonnet-5-5")
    assert (model.api, model.key_env) == ("anthropic-messages", "ANTHROPIC_API_KEY")
    assert (model.facts.formats, model.facts.limits) == (known.formats, known.limits)
    assert (model.rate, model.facts.rule, model.takes_images) == (None, None, True)


def test_a_text_model_is_found_and_says_that_it_takes_no_pictures() -> None:
    found = registry().find("openai/o3-mini")
    assert found is not None
    assert not found.model.takes_images


def test_every_service_speaks_a_wire_that_exists() -> None:
    assert {service.api for service in services().values()} == set(WIRES)
    for service in services().values():
        wire(service.api).request("m", LOOK)


# --- where ---


def test_a_base_url_comes_from_the_environment() -> None:
    env = {"OPENAI_BASE_URL": " http://127.0.0.1:1/v1/ ", "GEMINI_BASE_URL": ""}
    found = registry(env=env).find("openai/gpt-5.5")
    assert found is not None
    assert (found.model.base_url, found.model.base_url_from) == (
        "http://127.0.0.1:1/v1",
        "OPENAI_BASE_URL",
    )
    other = registry(env=env).find("google/gemini-2.5-pro")
    assert other is not None
    assert other.model.base_url == "https://generativelanguage.googleapis.com"


def test_a_server_of_ones_own_needs_no_key_and_costs_nothing() -> None:
    own = CustomModel(name="home/llava:13b", base_url="http://127.0.0.1:8000/v1/")
    found = registry(own=(own,))
    (model, eyes) = found.available()
    assert eyes.name == EYES
    assert (model.name, model.provider, model.id) == ("home/llava:13b", "home", "llava:13b")
    assert (model.api, model.base_url) == ("openai-chat", "http://127.0.0.1:8000/v1")
    assert (found.key(model), model.facts.formats) == ("", ("image/png", "image/jpeg"))
    assert model.rate is not None
    assert model.rate.cost(input_tokens=1000, output_tokens=10) == 0
    assert resolved(found) == ("home/llava:13b", "first", None)


def test_a_table_may_say_everything() -> None:
    own = CustomModel(
        name="corp/gpt",
        api="openai-responses",
        base_url="https://llm.corp.example/v1",
        key_env="CORP_KEY",
        input=("text",),
    )
    found = registry({"CORP_KEY": "secret"}, own=(own,)).find("corp/gpt")
    assert found is not None
    assert (found.model.api, found.model.key_env) == ("openai-responses", "CORP_KEY")
    assert (found.model.takes_images, found.model.rate) == (False, None)


@pytest.mark.parametrize("inputs", [("text", "audio"), ("text", "image", "audio")])
def test_a_table_says_whether_its_model_hears(inputs: tuple[Input, ...]) -> None:
    own = CustomModel(name="home/omni", base_url="http://127.0.0.1:8000/v1", input=inputs)
    found = registry(own=(own,)).find("home/omni")
    assert found is not None
    assert (found.model.takes_images, found.model.takes_audio) == ("image" in inputs, True)


def test_only_models_whose_sounds_cost_as_much_as_words_are_known_to_hear() -> None:
    assert [model.name for model in registry().known() if model.takes_audio] == [
        "google/gemini-3.8-flash",
        "google/gemini-4-argon",
        "google/gemini-3.5-flash",
        "google/gemini-3.5-flash-lite",
        "google/gemini-3.1-pro-preview",
        "google/gemini-2.5-pro",
    ]


def test_another_server_is_not_sent_the_key_of_the_service_whose_name_it_bears() -> None:
    own = CustomModel(name="openai/gpt-5.5", base_url="https://elsewhere.example/v1")
    found = registry(KEYS, own=(own,)).find("openai/gpt-5.5")
    assert found is not None
    model = found.model
    assert (model.key_env, model.account_url) == (None, None)
    assert (model.api, model.facts) == ("openai-responses", vision_model("openai/gpt-5.5"))
    kept = CustomModel(name="openai/gpt-5.5", input=("text",))
    found = registry(KEYS, own=(kept,)).find("openai/gpt-5.5")
    assert found is not None
    assert (found.model.key_env, found.model.takes_images) == ("OPENAI_API_KEY", False)


def test_a_table_that_is_nowhere_is_a_setting_to_correct() -> None:
    nowhere = registry(own=(CustomModel(name="corp/gpt"),))
    with pytest.raises(SettingsError, match="limner does not know this provider"):
        nowhere.available()
