"""The reference page of the studio's API, from its endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from limner.frontends.studio.api import ENDPOINTS
from limner.frontends.studio.endpoints import Endpoint, EventAnswer, FileAnswer, describe

Lines = Iterator[str]

INTRODUCTION = """\
# The API of the studio

[`limner studio`](../guides/studio.md) serves this API to its page, and to programs of the same
user. A program sends the token of the server as `Authorization: Bearer …`. The token is in a file
of `$LIMNER_HOME/tokens` that only its owner can read: `studio-127.0.0.1-PORT`. The server describes
itself as OpenAPI 3.1 at `/api/openapi.json`.

Requests and responses are JSON. A failure has a status of 400 or more and is
`{"error": {"code", "message", "retryable", "billed", "cost_usd", "hint"}}`.
"""


def studio_api() -> Lines:
    yield INTRODUCTION
    schemas = describe(ENDPOINTS)["components"]["schemas"]
    for one in ENDPOINTS:
        yield f"\n## {one.method} {one.path}\n\n{one.summary}\n\n"
        yield from _fields("Request", schemas[one.request.__name__])
        yield from _answer(one, schemas)


def _answer(one: Endpoint, schemas: dict[str, Any]) -> Lines:
    if one.answer is FileAnswer:
        yield "The response is a picture.\n"
    elif one.answer is EventAnswer:
        yield "The response is a stream of server-sent events.\n"
    else:
        yield from _fields("Response", schemas[one.answer.__name__])


def _fields(title: str, schema: dict[str, Any]) -> Lines:
    fields = schema.get("properties", {})
    if not fields:
        return
    yield f"| {title} | type | default | what it is |\n|---|---|---|---|\n"
    required = schema.get("required", ())
    for name, field in fields.items():
        default = (
            "" if name in required else f"`{msgspec.json.encode(field.get('default')).decode()}`"
        )
        yield f"| `{name}` | {_kind(field)} | {default} | {_said(field)} |\n"
    yield "\n"


def _said(field: dict[str, Any]) -> str:
    found = [field, *field.get("anyOf", ())]
    return next((one["description"] for one in found if "description" in one), "")


def _kind(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(map(_kind, field["anyOf"]))
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "prefixItems" in field:
        return f"list of {', '.join(map(_kind, field['prefixItems']))}"
    if field.get("type") == "array" and "items" in field:
        return f"list of {_kind(field['items'])}"
    return field.get("type", "any")
