"""A JSON schema -> the form in which a service can promise to follow it to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

# Of the many keywords of JSON Schema, the ones that a strict service is sure to understand.
_STRICT_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"}
    | {"title", "description", "$schema"}
)


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with no room for properties that it does not name, unless it asks for some.

    Whatever follows the closed schema follows the open one too.
    """
    within = {
        key: _each(value, closed) if key in ("items", "anyOf") else value
        for key, value in schema.items()
    }
    for key in ("properties", "$defs"):
        if isinstance(schema.get(key), dict):
            within[key] = {name: _each(one, closed) for name, one in schema[key].items()}
    if "properties" in schema or schema.get("type") == "object":
        within.setdefault("additionalProperties", False)
    return within


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a service that takes only strict schemas would take this one."""
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
    """A schema changed, or each of a list of them; anything else as it is."""
    if isinstance(value, dict):
        return change(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [_each(one, change) for one in cast("list[object]", value)]
    return value
