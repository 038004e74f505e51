"""The published schema of a conversation that goes on, and what is made from nothing but that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft7Validator

_FILE = Path(__file__).parent.parent / "fixtures" / "resume_conversation_params.json"
ROOT: dict[str, Any] = json.loads(_FILE.read_text())
_DEFINITIONS: dict[str, Any] = ROOT["definitions"]

KINDS: dict[str, Any] = {
    kind["properties"]["type"]["enum"][0]: kind for kind in _DEFINITIONS["ResponseItem"]["oneOf"]
}


def schema(name: str) -> dict[str, Any]:
    """A definition that stands on its own."""
    return {**_DEFINITIONS[name], "definitions": _DEFINITIONS}


@cache
def items_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Items of one kind."""
    return _following(KINDS[kind])


@cache
def things_of(name: str) -> st.SearchStrategy[Any]:
    """Whatever a definition allows."""
    return _following(_DEFINITIONS[name])


@cache
def params() -> st.SearchStrategy[dict[str, Any]]:
    """Whatever may be sent to resume a conversation."""
    return _following(ROOT)


def restored(item: dict[str, Any]) -> dict[str, Any]:
    """An output in the shape that the schema shows: ``{body, success}``."""
    if item.get("type") != "function_call_output":
        return item
    rest = {key: value for key, value in item.items() if key not in ("output", "success")}
    success = {"success": item["success"]} if "success" in item else {}
    return {**rest, "output": {"body": item["output"], **success}}


def assert_of_schema(item: dict[str, Any]) -> None:
    """The schema takes the item once its output is restored."""
    _validator().validate(restored(item))


@cache
def _validator() -> Draft7Validator:
    return Draft7Validator(schema("ResponseItem"))


# --- a schema -> the values that follow it, as far as this schema goes ---

_words = st.text(max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | _words,
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(_words, inside, max_size=2),
    max_leaves=4,
)
_unknown_fields = st.dictionaries(
    st.text("abc_", min_size=1, max_size=5).map("x_{}".format),
    st.none() | st.booleans() | st.integers() | _words | st.lists(_words, max_size=2),
    max_size=2,
)
_SIMPLE: Mapping[str, st.SearchStrategy[Any]] = {
    "string": _words,
    "boolean": st.booleans(),
    "null": st.none(),
    "integer": st.integers(min_value=0, max_value=2**64 - 1),
}


def _following(found: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in found:
        return things_of(found["$ref"].rpartition("/")[2])
    if "enum" in found:
        return st.sampled_from(found["enum"])
    for key in ("oneOf", "anyOf"):
        if key in found:
            return st.one_of([_following(one) for one in found[key]])
    types = [found["type"]] if isinstance(found["type"], str) else found["type"]
    return st.one_of([_of_type(one, found) for one in types])


def _of_type(kind: str, found: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if kind == "array":
        return st.lists(_following(found["items"]), max_size=3)
    if kind != "object":
        return _SIMPLE[kind]
    if "additionalProperties" in found:
        inside = found["additionalProperties"]
        return st.dictionaries(_words, _json if inside is True else _following(inside), max_size=2)
    fields = {name: _following(one) for name, one in found["properties"].items()}
    required = {name: fields.pop(name) for name in found.get("required", [])}
    known = st.fixed_dictionaries(required, optional=fields)
    if "body" in required:
        # An envelope that is on no wire, and that `restored` knows no more of.
        return known
    # Nothing in the schema forbids more fields, and there will be some one day.
    return st.builds(lambda unknown, known: {**unknown, **known}, _unknown_fields, known)
