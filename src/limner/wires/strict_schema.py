"""A JSON schema -> the strict form, which a service can promise to follow exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

# The keywords of JSON Schema that every strict service supports.
_STRICT_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"}
    | {"title", "description", "$schema"}
)


def close_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without additional properties, unless it asks for some.

    A value that matches the closed schema also matches the open one.
    """
    closed = {
        key: _each(value, close_schema) if key in ("items", "anyOf") else value
        for key, value in schema.items()
    }
    for key in ("properties", "$defs"):
        if isinstance(schema.get(key), dict):
            closed[key] = {name: _each(one, close_schema) for name, one in schema[key].items()}
    if "properties" in schema or schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a service that takes strict schemas only would take this one."""
    if schema.get("type") != "object":
        return False
    return _is_strict(schema)


def _is_strict(schema: Mapping[str, Any]) -> bool:
    if not schema.keys() <= _STRICT_KEYWORDS:
        return False
    if "properties" in schema or schema.get("type") == "object":
        properties: Mapping[str, Any] = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
    return all(map(_is_strict, _children(schema)))


def _children(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[object] = [*cast("dict[str, object]", schema.get("properties", {})).values()]
    found += cast("list[object]", schema.get("anyOf", []))
    found += [schema["items"]] if "items" in schema else []
    return [cast("Mapping[str, Any]", one) for one in found if isinstance(one, dict)]


def _each(value: object, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> object:
    """The change of a schema, or of each schema of a list; any other value unchanged."""
    if isinstance(value, dict):
        return change(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [_each(one, change) for one in cast("list[object]", value)]
    return value
