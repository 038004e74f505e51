"""The schema of a client's tool -> a problem in it, or the form that providers accept.

A client sends it, so it is only read: no reference in it is followed, and it is never compiled.
"""

from __future__ import annotations

from typing import Any, cast

from limner.agent.session import MAX_NESTING, is_too_deep
from limner.frontends.appserver.protocol.params import describe

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$id", "$schema"})
_VALUES = frozenset({"enum", "const", "default", "examples"})


def problem_of(schema: object) -> str | None:
    """Why a schema cannot be offered to a model, in upstream's words; or None."""
    if is_too_deep(schema):
        return f"nested deeper than {MAX_NESTING} levels"
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "null":
        return "tool input schema must not be a singleton null type"
    return _problem(cast("object", schema))


def cleaned(schema: object) -> dict[str, Any]:
    """The schema without the parts that no provider accepts; {} if it is not an object.

    These are unknown types, and references out of the schema, which a provider might follow.
    """
    if not isinstance(schema, dict):
        return {}
    return {
        key: _within(key, value)
        for key, value in cast("dict[str, Any]", schema).items()
        if _is_kept(key, value)
    }


def _within(key: str, value: object) -> object:
    if key in _VALUES:
        return value
    if key in _BY_NAME and isinstance(value, dict):
        return {name: _each(one) for name, one in cast("dict[str, object]", value).items()}
    return _each(value)


def _each(value: object) -> object:
    if isinstance(value, list):
        return [_each(one) for one in cast("list[object]", value)]
    return cleaned(cast("object", value)) if isinstance(value, dict) else value


def _is_type(value: object) -> bool:
    words = cast("list[object]", value) if isinstance(value, list) else [value]
    return bool(words) and all(isinstance(word, str) and word in _TYPES for word in words)


def _is_kept(key: str, value: object) -> bool:
    if key == "type":
        return _is_type(value)
    return key not in _REFERENCES or (isinstance(value, str) and value.startswith("#"))


def _problem(schema: object) -> str | None:
    """The first keyword whose value has the wrong type."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return _wrong(schema, "struct JsonSchema")
    members = cast("dict[str, object]", schema)
    for key, check in _KEYWORDS.items():
        value = members.get(key)
        if value is not None and (problem := check(value)) is not None:
            return problem
    return None


def _schemas_by_name(value: object) -> str | None:
    if not isinstance(value, dict):
        return _wrong(value, "a map")
    return next(filter(None, map(_problem, cast("dict[str, object]", value).values())), None)


def _schemas(value: object) -> str | None:
    if not isinstance(value, list):
        return _wrong(value, "a sequence")
    return next(filter(None, map(_problem, cast("list[object]", value))), None)


def _words(value: object) -> str | None:
    if not isinstance(value, list):
        return _wrong(value, "a sequence")
    return next(filter(None, map(_word, cast("list[object]", value))), None)


def _word(value: object) -> str | None:
    return None if isinstance(value, str) else _wrong(value, "a string")


def _values(value: object) -> str | None:
    return None if isinstance(value, list) else _wrong(value, "a sequence")


def _more_properties(value: object) -> str | None:
    if isinstance(value, bool | dict):
        return _problem(cast("object", value))
    return "data did not match any variant of untagged enum AdditionalProperties"


_KEYWORDS = {
    "description": _word,
    "properties": _schemas_by_name,
    "required": _words,
    "items": _problem,
    "additionalProperties": _more_properties,
    "anyOf": _schemas,
    "oneOf": _schemas,
    "allOf": _schemas,
    "enum": _values,
}


def _wrong(value: object, wanted: str) -> str:
    return f"invalid type: {describe(value)}, expected {wanted}"
