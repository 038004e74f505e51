"""A schema is closed only if that changes nothing that was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wires.wire_prompts import prompt, text, user

from limner.wires.base import wire
from limner.wires.strict_schema import close_schema, is_strict


def test_a_schema_is_closed_at_every_depth_and_the_original_stays_as_it_is() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"one": inner, "many": {"type": "array", "items": inner}},
        "$defs": {"x": {"anyOf": [inner, {"type": "null"}]}},
        "additionalProperties": True,
    }
    shut = inner | {"additionalProperties": False}
    assert close_schema(schema) == {
        "type": "object",
        "properties": {"one": shut, "many": {"type": "array", "items": shut}},
        "$defs": {"x": {"anyOf": [shut, {"type": "null"}]}},
        "additionalProperties": True,
    }
    assert "additionalProperties" not in inner


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object"}, True),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"anyOf": [{"type": "object"}]}, False),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"minLength": 3}}},
                "required": ["a"],
            },
            False,
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, False),
    ],
)
def test_a_schema_is_strict_only_if_a_strict_service_would_take_it(
    schema: dict[str, Any], strict: bool
) -> None:
    assert is_strict(close_schema(schema)) is strict
    asked = prompt(user(text("x")), schema=schema)
    sent = json.loads(wire("openai-responses").request("m", asked).body)["text"]["format"]
    assert sent["strict"] is strict
    assert sent["schema"] == (close_schema(schema) if strict else schema)
