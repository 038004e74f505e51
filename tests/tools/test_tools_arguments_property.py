from __future__ import annotations

from typing import Any

import fastjsonschema
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import InputInvalid
from limner.tools.arguments import conform, fits_plainly

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "minLength": 1},
        "seed": {"type": "integer", "minimum": 0, "multipleOf": 3},
        "size": {"enum": ["a", "b"]},
        "paths": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "region": {
            "type": "object",
            "properties": {"x": {"type": "number", "multipleOf": 0.1}},
            "required": ["x"],
            "additionalProperties": {"type": "string"},
        },
        "strict": {"type": "object", "additionalProperties": False},
    },
    "required": ["prompt"],
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
near_misses = st.fixed_dictionaries({}, optional=dict.fromkeys(SCHEMA["properties"], json_values))


@given(json_values | near_misses)
def test_any_json_passes_or_is_refused_as_input(arguments: object) -> None:
    try:
        conform(SCHEMA, arguments)
    except InputInvalid:
        return
    assert isinstance(arguments, dict)
    assert isinstance(arguments["prompt"], str)
    assert arguments["prompt"]


@given(st.text(min_size=1), json_values)
def test_an_argument_the_schema_does_not_know_changes_nothing(name: str, value: object) -> None:
    conform(SCHEMA, {"prompt": "a fox", f"x-{name}": value})


# Small values, so that they often fit.
few = st.integers(-2, 2)
words = st.sampled_from(["", "a", "b"])
rules = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "array", ["string"]]),
        "enum": st.lists(words | few | st.booleans(), min_size=1, max_size=3),
        "minimum": few,
        "maximum": few,
        "minLength": st.integers(0, 2),
        "default": words | few,
        "description": words,
    },
)
schemas = st.builds(
    lambda properties, required, more: {
        "type": "object",
        "properties": properties,
        "required": required,
        **more,
    },
    st.dictionaries(words, rules | st.booleans(), max_size=3),
    st.lists(words, unique=True, max_size=1),
    st.just({}) | st.just({"additionalProperties": False}) | st.just({"minProperties": 1}),
)


@given(
    schemas,
    st.dictionaries(words, words | few | st.booleans() | st.floats(-2, 2) | st.none(), max_size=3),
)
def test_what_fits_plainly_is_valid(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    if fits_plainly(schema, arguments):
        assert fastjsonschema.validate(schema, arguments, use_default=False) == arguments


def test_simple_arguments_fit_plainly() -> None:
    properties = {
        "prompt": {"type": "string", "description": "words"},
        "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "size": {"type": "string", "enum": ["small", "large"]},
        "overwrite": {"type": "boolean"},
    }
    schema = {"type": "object", "properties": properties, "required": ["prompt"]}
    assert fits_plainly(schema, {"prompt": "a", "n": 9, "size": "large", "overwrite": True})
    for wrong in (
        {},
        {"prompt": 1},
        {"prompt": "a", "n": 0},
        {"prompt": "a", "n": 10},
        {"prompt": "a", "n": True},
        {"prompt": "a", "size": "huge"},
        {"prompt": "a", "overwrite": 1},
        {"prompt": "a", "other": 1},
    ):
        assert not fits_plainly(schema, wrong)
