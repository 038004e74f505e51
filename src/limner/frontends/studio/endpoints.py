"""One endpoint as a value -> the decoding of its requests, and its OpenAPI description."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from limner import __version__
from limner.client import Limner
from limner.errors import InputInvalid
from limner.frontends.studio.runs import StudioRuns

Method = Literal["GET", "POST", "PUT", "DELETE"]
PictureHandle: TypeAlias = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", description="The handle of a stored picture.")
]
_PARAMETER = re.compile(r"{(\w+)}")


class StudioParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the endpoints of one server use."""

    lim: Limner
    runs: StudioRuns


class NoArguments(msgspec.Struct, frozen=True, kw_only=True):
    """A request without arguments."""


class FileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes to show or to save. ``name`` makes the browser save them."""

    data: bytes
    mime: str
    name: str | None = None
    is_fixed: bool = False


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Server-sent events, as long as the client listens."""

    events: AsyncIterator[bytes]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One request that the page can make.

    A field of ``request`` that the path names comes from the path. The others come from the query
    of a GET or DELETE, and from the JSON body otherwise. With ``takes_bytes`` the body is the
    field ``body``, as it is.
    """

    method: Method
    path: str
    summary: str
    request: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    handler: Callable[[StudioParts, Any], Awaitable[Any]]
    takes_bytes: bool = False

    @property
    def path_fields(self) -> list[str]:
        """The fields that the path names."""
        return _PARAMETER.findall(self.path)

    @property
    def takes_body(self) -> bool:
        """Whether the request has a body."""
        return self.method in ("POST", "PUT")

    def decode(
        self, path: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> msgspec.Struct:
        """The request.

        Raises:
            InputInvalid: a field is missing or wrong.
        """
        given: dict[str, Any] = {**query, **path}
        try:
            if self.takes_bytes:
                given["body"] = body
            elif self.takes_body:
                given = {**msgspec.json.decode(body or b"{}", type=dict[str, Any]), **path}
            return msgspec.convert(given, self.request, strict=self.takes_body)
        except msgspec.ValidationError as error:
            raise InputInvalid(str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputInvalid("the body is not JSON") from error


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The OpenAPI description of the endpoints."""
    listed = [*endpoints]
    kinds = {kind for one in listed for kind in (one.request, one.answer)}
    ordered = sorted(kinds - {FileAnswer, EventAnswer}, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in listed:
        fields = components[one.request.__name__]
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, fields, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "limner studio", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(
    endpoint: Endpoint, fields: Mapping[str, Any], schema_of: Mapping[Any, Any]
) -> dict[str, Any]:
    properties: Mapping[str, Any] = fields["properties"]
    required = set(fields.get("required", ()))
    in_path = endpoint.path_fields
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.handler.__name__}",
        "parameters": [
            {
                "name": name,
                "in": "path" if name in in_path else "query",
                "required": name in required or name in in_path,
                "schema": schema,
            }
            for name, schema in properties.items()
            if name in in_path or not endpoint.takes_body
        ],
        "responses": {
            "200": {"description": "Done", "content": _content(endpoint, schema_of)},
            "4XX": {"description": "Refused: a JSON object with `error`"},
        },
    }
    if endpoint.takes_bytes:
        found["requestBody"] = {"required": True, "content": {"image/*": {}}}
    elif endpoint.takes_body:
        own = {name: schema for name, schema in properties.items() if name not in in_path}
        schema = {"type": "object", "properties": own, "required": sorted(required - {*in_path})}
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return found


def _content(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    if endpoint.answer is FileAnswer:
        return {"image/*": {}}
    if endpoint.answer is EventAnswer:
        return {"text/event-stream": {}}
    return {"application/json": {"schema": schema_of[endpoint.answer]}}


async def master_handle(lim: Limner, handle: str) -> str:
    """The handle that the gallery has: that of the picture as it was received."""
    family = await lim.pictures.family(handle)
    return handle if family is None else family.master.picture.handle
