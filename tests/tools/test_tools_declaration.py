"""A tool is declared once: what is derived from the Structs of arguments agrees with them."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from limner.catalogue.images import ImageModel, Needs, Size
from limner.catalogue.prices import FlatPrice
from limner.catalogue.sizes import AnySize
from limner.errors import InputInvalid, UserError
from limner.frontends.cli.edit import configure as configure_edit
from limner.frontends.cli.generate import configure as configure_generate
from limner.pictures.request import DrawingOptions, ImageRequest
from limner.providers.base import ProviderSpec
from limner.providers.choice import DrawingNeeds, choose
from limner.tools.built_in.image_edit import EditArguments
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.declaration import (
    answer_schema,
    argument_schema,
    arguments_of,
    convert_arguments,
    read_arguments,
    read_words,
)
from limner.tools.drawing_arguments import CallerOptions
from limner.tools.inspection import InspectRequest
from limner.tools.options import CallHooks, EditOptions, GenerateOptions, InspectOptions


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of something."""

    x: Annotated[int, Meta(ge=0)]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of every kind."""

    name: Annotated[str, Meta(description="Its name.", max_length=5)]
    level: Annotated[Literal["low", "high", "best"], Meta(description="How good.")] = "low"
    seed: Annotated[int, Meta(ge=0, le=9)] | None = None
    part: Annotated[Part, Meta(description="Only this.")] | None = None
    paths: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    rest: Mapping[str, Any] | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""

    part: Part
    cost_usd: float | None
    more: list[dict[str, Any]] | UnsetType = UNSET


def test_the_schema_has_no_null_no_reference_and_the_choices_in_their_order() -> None:
    assert argument_schema(Sample, ("paths",)) == {
        "type": "object",
        "properties": {
            "paths": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "name": {"type": "string", "description": "Its name.", "maxLength": 5},
            "level": {
                "type": "string",
                "description": "How good.",
                "enum": ["low", "high", "best"],
                "default": "low",
            },
            "seed": {"type": "integer", "minimum": 0, "maximum": 9},
            "part": {
                "type": "object",
                "properties": {"x": {"type": "integer", "minimum": 0}},
                "required": ["x"],
                "description": "Only this.",
            },
            "rest": {"type": "object"},
        },
        "required": ["name"],
    }
    assert [*argument_schema(Sample, ("paths",))["properties"]][:2] == ["paths", "name"]


def test_the_schema_of_an_answer_promises_types_and_no_member() -> None:
    assert answer_schema(Answer) == {
        "type": "object",
        "properties": {
            "part": {
                "type": "object",
                "properties": {"x": {"type": "integer", "minimum": 0}},
            },
            "cost_usd": {"type": ["number", "null"]},
            "more": {"type": "array", "items": {"type": "object"}},
        },
    }


def test_arguments_become_the_struct_and_a_whole_float_is_a_whole_number() -> None:
    given = {"name": "a", "seed": 2.0, "part": {"x": 1.0}, "paths": ["p"], "unknown": 1}
    assert read_arguments(Sample, given) == Sample(name="a", seed=2, part=Part(x=1), paths=("p",))


@pytest.mark.parametrize(
    ("given", "message", "field"),
    [
        ({}, "name is required", "name"),
        ({"name": "abcdef"}, "name must have at most 5 characters", "name"),
        ({"name": "a", "level": "odd"}, "level must be one of low, high, best", "level"),
        ({"name": "a", "seed": 10}, "seed must be at most 9", "seed"),
        ({"name": "a", "part": {"x": -1}}, "part.x must be at least 0", "part.x"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], message: str, field: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        read_arguments(Sample, given)
    assert (caught.value.message, caught.value.field) == (message, field)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "a"},
        {"name": "a", "level": "HIGH", "seed": 3},
        {"name": "a", "seed": 10},
        {"name": "a", "seed": "3"},
        {"name": "a", "seed": True},
        {"name": "abcdef"},
        {"name": " "},
        {"name": "a", "unknown": 1},
        {"name": "a", "paths": ["p"]},
        {"seed": 3},
    ],
)
def test_the_words_of_a_command_line_are_read_as_other_arguments(given: dict[str, Any]) -> None:
    found: list[object] = []
    for read in (read_words, read_arguments):
        try:
            found.append(read(Sample, given))
        except InputInvalid as error:
            found.append((error.message, error.field))
    assert found[0] == found[1]


def test_arguments_that_nothing_has_checked_are_refused_too() -> None:
    with pytest.raises(InputInvalid) as caught:
        convert_arguments(Sample, {"name": 3})
    assert caught.value.field == "name"


@pytest.mark.parametrize(
    ("keywords", "kinds", "positional"),
    [
        (GenerateOptions, (GenerateArguments, CallerOptions), {"prompt", "n"}),
        (EditOptions, (EditArguments, CallerOptions), {"image", "prompt", "n"}),
        (InspectOptions, (InspectRequest,), {"path", "question"}),
    ],
)
def test_the_keywords_in_python_are_the_declared_arguments(
    keywords: Any, kinds: tuple[type[msgspec.Struct], ...], positional: set[str]
) -> None:
    declared = {name for kind in kinds for name in arguments_of(kind)}
    hooks = {*CallHooks.__annotations__}
    assert {*keywords.__annotations__} == declared - positional | hooks, "run `make format`"


@pytest.mark.parametrize(
    ("configure", "kind"),
    [(configure_generate, GenerateArguments), (configure_edit, EditArguments)],
)
def test_every_argument_of_a_drawing_tool_is_a_flag_or_a_positional(
    configure: Any, kind: type[msgspec.Struct]
) -> None:
    parser = ArgumentParser()
    configure(parser)
    taken = {action.dest for action in parser._actions}
    assert {*arguments_of(kind), *arguments_of(CallerOptions)} <= taken


def test_every_drawing_option_is_an_argument_and_reaches_the_provider() -> None:
    options = {*DrawingOptions.__struct_fields__}
    for kind in (GenerateArguments, EditArguments, ImageRequest):
        assert options <= {*kind.__struct_fields__}
    given = GenerateArguments(prompt="a fox", seed=7, negative_prompt="snow")
    assert given.given_options == {"seed": 7, "negative_prompt": "snow"}
    assert {*given.options} == options


def model(provider: str, **more: Any) -> ImageModel:
    return ImageModel(
        provider=provider,
        id="one",
        title="One",
        sizes=AnySize(min_edge=16, max_edge=2048),
        price=FlatPrice(usd=Decimal("0.01")),
        max_prompt_chars=1000,
        source="made up",
        read=date(2026, 11, 15),
        **more,
    )


def spec(row: ImageModel) -> ProviderSpec:
    return ProviderSpec(
        name=row.provider,
        key_env=f"{row.provider.upper()}_KEY",
        base_url_env=None,
        base_url="",
        models=(row,),
        build=lambda _: pytest.fail("nothing is drawn"),
    )


def test_an_option_that_a_model_does_not_declare_is_refused_and_one_that_does_is_named() -> None:
    plain, able = spec(model("plain")), spec(model("able", options={"steps": "num_steps"}))
    specs = {one.name: one for one in (plain, able)}

    def chosen(provider: str) -> str:
        wish = DrawingNeeds(
            provider=provider,
            model=None,
            size=Size(64, 64),
            quality="standard",
            has_svg=False,
            needs=Needs(options={"steps": 5}),
        )
        key_of = {"PLAIN_KEY": "k", "ABLE_KEY": "k"}.get
        return choose(wish, specs=specs, key_of=key_of, today=date(2026, 11, 15)).spec.name

    assert (chosen("able"), chosen("auto")) == ("able", "able")
    with pytest.raises(UserError) as caught:
        chosen("plain")
    assert (caught.value.code, caught.value.message, caught.value.hint) == (
        "PROVIDER_CANNOT",
        "plain/one does not take the option steps.",
        "able/one can, with ABLE_KEY set.",
    )


def test_drawing_on_the_command_line_loads_no_part_of_the_agent(tmp_path: Any) -> None:
    code = (
        "import sys; from limner.frontends.cli.main import main;"
        "main(['generate', 'a red fox', '--size', '64x64']);"
        "print(' '.join(name for name in sys.modules if name.startswith('limner')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"LIMNER_HOME": str(tmp_path), "HOME": str(tmp_path)},
        cwd=tmp_path,
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert [name for name in loaded if name.startswith("limner.agent")] == []
    assert len(loaded) < 152
