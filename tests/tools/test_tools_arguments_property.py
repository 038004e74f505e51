from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from limner.errors import InputInvalid
from limner.tools.arguments import conform

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
