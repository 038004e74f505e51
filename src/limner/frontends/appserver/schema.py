"""The types of the protocol -> JSON schemas in a folder, under the names that Codex uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import Empty, Method
from limner.frontends.appserver.protocol.notifications import NOTIFICATIONS
from limner.frontends.appserver.protocol.server_requests import SERVER_REQUESTS
from limner.frontends.appserver.tool_specs import DynamicToolSpec

DRAFT = "http://json-schema.org/draft-07/schema#"
BUNDLE = "limner_app_server_protocol.schemas.json"
_REFERENCE = "#/definitions/{name}"
_LOGIN = "LoginAccountParams"
_FOLDERS = {"initialize": "v1/", "fuzzyFileSearch": ""}


def write(out: Path) -> list[Path]:
    """Write a schema for each type, and one file with all of them.

    Returns:
        The files, in the order they were written.

    Raises:
        OSError: a file cannot be written.
    """
    schemas, definitions = _schemas(dict(_types()))
    named = {Path(place).stem: schema for place, schema in schemas.items()}
    files = {
        place: {"$schema": DRAFT, **schema, **_definitions_of(schema, definitions)}
        for place, schema in schemas.items()
    }
    files[BUNDLE] = {
        "$schema": DRAFT,
        "title": BUNDLE.partition(".")[0],
        "definitions": definitions | named,
    }
    return [_write(out / place, schema) for place, schema in files.items()]


def params_name(method: Method) -> str | None:
    """The name of the type of a method's params."""
    if method.params is None:
        return None
    return getattr(method.params, "__name__", None) or _LOGIN


def result_name(method: Method) -> str:
    """The name of the type of a method's result; an empty result is named by its method."""
    params = params_name(method)
    if method.result is Empty and params is not None:
        return params.removesuffix("Params") + "Response"
    return method.result.__name__


def _types() -> Iterator[tuple[str, Any]]:
    """Every type, by the file of its schema."""
    for name, method in METHODS.items():
        folder = _FOLDERS.get(name, "v2/")
        if method.params is not None:
            yield f"{folder}{params_name(method)}.json", method.params
        yield f"{folder}{result_name(method)}.json", method.result
    for kind in NOTIFICATIONS.values():
        yield f"v2/{kind.__name__}.json", kind
    for request in SERVER_REQUESTS.values():
        for kind in request:
            yield f"{kind.__name__}.json", kind


def _schemas(types: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each file, and the shared definitions."""
    found, definitions = msgspec.json.schema_components(
        [*types.values(), DynamicToolSpec], ref_template=_REFERENCE
    )
    *found, definitions["DynamicToolSpec"] = found
    schemas: dict[str, dict[str, Any]] = {}
    for place, schema in zip(types, found, strict=True):
        named = schema.get("$ref")
        # A file starts with its own type, not with a reference to it.
        whole = schema if named is None else definitions[_name(named)]
        schemas[place] = {**_with_tools(whole), "title": Path(place).stem}
    return schemas, dict(definitions)


def _with_tools(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the shape of a client's tools; `tool_specs` reads them, not the params."""
    tools = schema.get("properties", {}).get("dynamicTools")
    if tools is None:
        return schema
    items = {"items": {"$ref": _REFERENCE.format(name="DynamicToolSpec")}}
    if "anyOf" in tools:
        forms = [one | items if one.get("type") == "array" else one for one in tools["anyOf"]]
        tools = tools | {"anyOf": forms}
    else:
        tools = tools | items
    return schema | {"properties": schema["properties"] | {"dynamicTools": tools}}


def _definitions_of(schema: object, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that a schema refers to, directly or not."""
    names: dict[str, None] = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in names:
            names[name] = None
            waiting += _references(definitions[name])
    return {"definitions": {name: definitions[name] for name in sorted(names)}} if names else {}


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        for one in cast("list[object]", schema):
            yield from _references(one)
    elif isinstance(schema, dict):
        for key, one in cast("dict[str, object]", schema).items():
            if key == "$ref":
                yield _name(str(one))
            else:
                yield from _references(one)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _write(path: Path, schema: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2)
    path.write_bytes(text + b"\n")
    return path
