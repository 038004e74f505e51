from __future__ import annotations

import copy
import json
from types import MappingProxyType
from typing import Any

import pytest

from limner.errors import InputInvalid
from limner.tools.arguments import conform

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "minLength": 1},
        "name": {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[a-z]+$"},
        "size": {"type": "string", "enum": ["512x512", "1024x1024"], "default": "1024x1024"},
        "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "overwrite": {"type": "boolean"},
        "paths": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
        },
        "region": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "required": ["x", "y"],
            "additionalProperties": False,
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "never": False,
    },
    "required": ["prompt"],
}


def refusal(arguments: object, schema: dict[str, Any] = SCHEMA) -> tuple[str, str | None]:
    with pytest.raises(InputInvalid) as caught:
        conform(schema, arguments)
    return caught.value.message, caught.value.field


@pytest.mark.parametrize(
    ("extra", "message", "field"),
    [
        ({"prompt": 3}, "prompt must be a string", "prompt"),
        ({"prompt": None}, "prompt must be a string", "prompt"),
        ({"prompt": ""}, "prompt must have at least 1 character", "prompt"),
        ({"name": "ab"}, "name must have at least 3 characters", "name"),
        ({"name": "abcdef"}, "name must have at most 5 characters", "name"),
        ({"name": "AAA"}, "name must match the pattern ^[a-z]+$", "name"),
        ({"size": "12"}, "size must be one of 512x512, 1024x1024", "size"),
        ({"seed": True}, "seed must be a whole number or null", "seed"),
        ({"seed": 1.5}, "seed must be a whole number or null", "seed"),
        ({"seed": -1}, "seed must be at least 0", "seed"),
        ({"seed": 10}, "seed must be at most 9", "seed"),
        ({"ratio": 0}, "ratio must be more than 0", "ratio"),
        ({"ratio": 0.7}, "ratio must be a multiple of 0.5", "ratio"),
        ({"overwrite": "yes"}, "overwrite must be true or false", "overwrite"),
        ({"paths": "a.png"}, "paths must be a list", "paths"),
        ({"paths": []}, "paths must have at least 1 item", "paths"),
        ({"paths": ["a", "b", "c"]}, "paths must have at most 2 items", "paths"),
        ({"paths": ["a", "a"]}, "paths must not hold the same item twice", "paths"),
        ({"paths": ["a", 3]}, "paths[1] must be a string", "paths[1]"),
        ({"region": {"x": 1}}, "region.y is required", "region.y"),
        ({"region": {"x": 1, "y": "two"}}, "region.y must be a whole number", "region.y"),
        (
            {"region": {"x": 1, "y": 2, "z": 3}},
            "region.z is not an argument here",
            "region.z",
        ),
        ({"either": 3}, "either must have one of the forms the schema allows", "either"),
        ({"never": 3}, "never must not be there", "never"),
    ],
)
def test_a_wrong_argument_is_named_and_explained(
    extra: dict[str, Any], message: str, field: str
) -> None:
    assert refusal({"prompt": "a fox", **extra}) == (message, field)


def test_a_missing_argument_is_named() -> None:
    assert refusal({}) == ("prompt is required", "prompt")


@pytest.mark.parametrize("arguments", [None, [], "prompt", 3, True])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    assert refusal(arguments) == ("the arguments must be an object", None)


def test_good_arguments_pass_and_nothing_is_filled_in() -> None:
    arguments = {"prompt": "a fox", "seed": None, "region": {"x": 1, "y": 2}}
    before = copy.deepcopy(arguments)
    assert conform(SCHEMA, arguments) == before
    assert arguments == before


def test_a_mapping_that_is_no_dict_is_an_object_too() -> None:
    conform(SCHEMA, MappingProxyType({"prompt": "a fox"}))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"size": None, "overwrite": None, "paths": None, "region": None}, {}),
        ({"seed": None, "either": None}, {"seed": None, "either": None}),
        ({"size": " 1024X1024 "}, {"size": "1024x1024"}),
        ({"seed": "7", "ratio": "1.5"}, {"seed": 7, "ratio": 1.5}),
        ({"overwrite": "True"}, {"overwrite": True}),
        ({"region": {"x": "1", "y": " 2 "}}, {"region": {"x": 1, "y": 2}}),
    ],
)
def test_a_near_miss_is_understood(given: dict[str, Any], meant: dict[str, Any]) -> None:
    assert conform(SCHEMA, {"prompt": "7", **given}) == {"prompt": "7", **meant}


def test_a_blank_text_is_not_given_if_the_tool_says_so() -> None:
    schema = {"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}
    assert conform(schema, {"a": " ", "n": ""}, drop_blank=True) == {}
    assert conform(schema, {"a": ""}) == {"a": ""}


def test_unknown_arguments_are_ignored() -> None:
    conform(SCHEMA, {"prompt": "a fox", "style": {"anything": [1, 2]}})


def test_unknown_arguments_are_refused_where_the_schema_is_strict() -> None:
    strict = {**SCHEMA, "additionalProperties": False}
    assert refusal({"prompt": "a fox", "style": "oil"}, strict) == (
        "style is not an argument here",
        "style",
    )


def test_a_name_the_caller_made_up_is_not_repeated_at_any_length() -> None:
    strict = {"type": "object", "additionalProperties": False}
    message, field = refusal({"x" * 1_000_000: 1}, strict)
    assert (message, field) == (f"{'x' * 100} is not an argument here", "x" * 100)


@pytest.mark.parametrize("number", ["1e400", "1" + "0" * 400])
def test_a_hostile_number_beyond_any_float_is_refused(number: str) -> None:
    message, _ = refusal(json.loads(f'{{"prompt": "a fox", "ratio": {number}}}'))
    assert message == "the arguments are too large or too deep to be checked"


def test_hostile_nesting_is_refused_where_the_schema_follows_it() -> None:
    schema: dict[str, Any] = {
        "definitions": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}
        },
        "$ref": "#/definitions/node",
    }
    chain: dict[str, Any] = {}
    for _ in range(5_000):
        chain = {"next": chain}
    message, _ = refusal(chain, schema)
    assert message == "the arguments are too large or too deep to be checked"


def test_the_same_names_with_another_schema_are_another_check() -> None:
    conform({"type": "object", "properties": {"n": {"type": "string"}}}, {"n": "1"})
    changed = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert refusal({"n": "one"}, changed) == ("n must be a whole number", "n")
