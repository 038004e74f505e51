"""The declarations of the tools -> the MCP tool list, always in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.frontends.mcp.image_job import IMAGE_JOB
from limner.frontends.mcp.offers import Offers, tool_modules
from limner.frontends.mcp.resources import TEMPLATES
from limner.frontends.mcp.spend import SPEND
from limner.tools.base import Tool
from limner.tools.built_in import declarations
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.tools.built_in.inspect_image import INSPECT_IMAGE
from limner.tools.declaration import ToolDeclaration, arguments_of, tool_schemas
from limner.tools.function_tools import load_plugin_tools
from limner.tools.image_fit import IMAGE_FIT

# The usual description mentions notes that replace pictures. Only limner's own conversations have
# such notes.
RECALL = replace(
    IMAGE_RECALL,
    description="Look again at a picture that a tool here made or found: give its handle, and the "
    "picture comes back. Free of charge.",
)
BUILT_IN = tuple(tool for tool in declarations().values() if not tool.in_conversation)
DECLARED: tuple[ToolDeclaration[Any], ...] = (*BUILT_IN, IMAGE_FIT, IMAGE_JOB, RECALL, SPEND)
# These tools may cost money: their calls continue if the client leaves, a repeated call joins them,
# and a slow call returns a job.
LASTING = frozenset(tool.name for tool in DECLARED if tool.keeps_books)
# These tools answer without pictures. If a result has structured content, some clients show their
# model only that, and drop the pictures.
STRUCTURED = frozenset({INSPECT_IMAGE.name, SPEND.name})
# Some clients make a class from the schema, in which `schema` would hide a method.
LISTED_AS = {INSPECT_IMAGE.name: {"schema": "output_schema"}}
_ALSO_ACCEPTED = {INSPECT_IMAGE.name: {"output_schema": "schema"}, IMAGE_JOB.name: {"id": "job"}}
_PATHS = {
    tool.name: [
        argument.name
        for argument in arguments_of(tool.arguments).values()
        if {"path", "image"} & argument.extra.keys()
    ]
    for tool in DECLARED
}


@cache
def offered() -> Mapping[str, Mapping[str, Any]]:
    """Return every tool by name; tools of installed packages come last."""
    return {tool["name"]: tool for tool in (*_own(), *_plugins())}


def compile_offers() -> bytes:
    """Return the text of `offers.json`: what the server offers without other packages."""
    templates = [dict(one) for one in TEMPLATES]
    offers = Offers(modules=tool_modules(), tools=_own(), templates=templates)
    return msgspec.json.format(msgspec.json.encode(offers), indent=1)


def _own() -> list[dict[str, Any]]:
    return [
        _as_mcp(tool, *found) for tool, found in zip(DECLARED, tool_schemas(DECLARED), strict=True)
    ]


def names_paths(tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call names files; what a tool of another package does is not known."""
    paths = _PATHS.get(tool)
    return paths is None or any(arguments.get(name) for name in paths)


def declared_names(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call under the names that the tool declares."""
    others = _ALSO_ACCEPTED.get(tool, {})
    given = {others.get(name, name): value for name, value in arguments.items() if name in others}
    return given | {name: value for name, value in arguments.items() if name not in others}


def _plugins() -> list[dict[str, Any]]:
    found = load_plugin_tools(taken=[tool.name for tool in DECLARED]).usable
    return [_as_mcp(tool, tool.schema, None) for tool in found]


def _as_mcp(
    tool: ToolDeclaration[Any] | Tool,
    arguments: Mapping[str, Any],
    answer: Mapping[str, Any] | None,
) -> dict[str, Any]:
    title = tool.title or tool.name
    annotations: dict[str, Any] = {"title": title}
    if tool.hints is not None:
        annotations |= {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        }
    return {
        "name": tool.name,
        "title": title,
        "description": tool.description,
        "inputSchema": _renamed(arguments, LISTED_AS.get(tool.name, {})),
        **({"outputSchema": answer} if tool.name in STRUCTURED else {}),
        "annotations": annotations,
    }


def _renamed(schema: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    if not names:
        return schema
    properties = {names.get(name, name): value for name, value in schema["properties"].items()}
    return {**schema, "properties": properties}
