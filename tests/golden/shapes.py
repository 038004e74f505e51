"""JSON values and JSON schemas -> their structure, without the words that may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Any

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def without_words(schema: Json, *words: str) -> Json:
    """A schema without its descriptions, and without the other keys named here.

    Only texts go: a property that is called ``description`` has a schema for its value.
    """
    drop = {"description", *words}
    if isinstance(schema, Mapping):
        return {
            key: without_words(value, *words)
            for key, value in schema.items()
            if not (key in drop and isinstance(value, str))
        }
    if isinstance(schema, list | tuple):
        return [without_words(one, *words) for one in schema]
    return schema


def inlined(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """A schema with each reference replaced by what it refers to, so that no type is named."""
    if isinstance(schema, Mapping):
        if isinstance(named := schema.get("$ref"), str):
            return inlined(definitions[named.rpartition("/")[2]], definitions)
        # A discriminator only repeats the references of the alternatives beside it.
        return {k: inlined(one, definitions) for k, one in schema.items() if k != "discriminator"}
    if isinstance(schema, list):
        return [inlined(one, definitions) for one in schema]
    return schema


def shape(samples: Iterable[Json]) -> Json:
    """What values of JSON have in common: names and types.

    A member that some samples lack ends with ``?``. Objects with a ``type`` are told apart by it.
    """
    values = list(samples)
    scalars = {_SCALARS[type(one)] for one in values if type(one) in _SCALARS}
    if "number" in scalars:
        scalars.discard("integer")
    found: list[Json] = ["|".join(sorted(scalars))] if scalars else []
    if lists := [one for one in values if isinstance(one, list)]:
        elements = [element for one in lists for element in one]
        found.append([shape(elements)] if elements else [])
    if objects := [one for one in values if isinstance(one, Mapping)]:
        found.append(_objects(objects))
    return found[0] if len(found) == 1 else {"any of": found}


def _objects(values: list[Mapping[str, Json]]) -> Json:
    kinds = {one["type"] for one in values if isinstance(one.get("type"), str)}
    if len(kinds) > 1:
        return {
            f"type {kind}": _object([one for one in values if one.get("type") == kind])
            for kind in sorted(kinds)
        }
    return _object(values)


def _object(values: list[Mapping[str, Json]]) -> Json:
    members: dict[str, list[Json]] = {}
    for one in values:
        for key, value in one.items():
            members.setdefault(key, []).append(value)
    return {
        key if len(found) == len(values) else f"{key}?": shape(found)
        for key, found in members.items()
    }
