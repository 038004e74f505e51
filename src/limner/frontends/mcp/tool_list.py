"""The declarations of the tools -> the MCP tool list, always in the same order.

The output schemas contain no pictures: pictures are content blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import mcp_types as types
from msgspec.structs import replace

from limner.frontends.mcp.image_job import IMAGE_JOB, RunningAnswer
from limner.frontends.mcp.spend import SPEND
from limner.tools.base import Tool
from limner.tools.built_in import declarations
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.tools.declaration import ToolDeclaration, answer_schema, tool_schemas
from limner.tools.function_tools import load_plugin_tools
from limner.tools.image_fit import IMAGE_FIT
from limner.wires.base import HANDLE_URL

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


@cache
def offered() -> Mapping[str, types.Tool]:
    """Return every tool by name; tools of installed packages come last."""
    plugins = load_plugin_tools(taken=[tool.name for tool in DECLARED])
    tools = (*DECLARED, *plugins.usable)
    schemas = tool_schemas(tools)
    return {tool.name: _as_mcp(tool, *found) for tool, found in zip(tools, schemas, strict=True)}


def schema_of(name: str) -> Mapping[str, Any] | None:
    """Return the schema of a tool's arguments; None if there is no such tool."""
    tool = offered().get(name)
    return None if tool is None else tool.input_schema


def templates() -> list[types.ResourceTemplate]:
    """Return the URI templates of pictures."""
    return [
        types.ResourceTemplate(
            uri_template=f"{HANDLE_URL}{{handle}}",
            name="picture",
            title="A picture, as it was received",
            description="The handle is in the result of the tool that made or found the picture.",
        ),
        types.ResourceTemplate(
            uri_template=f"{HANDLE_URL}{{handle}}{{?width}}",
            name="picture-of-width",
            title="A picture, at most that many pixels wide",
        ),
    ]


def _as_mcp(
    tool: ToolDeclaration[Any] | Tool,
    arguments: Mapping[str, Any],
    answer: Mapping[str, Any] | None,
) -> types.Tool:
    title = tool.title or tool.name
    annotations: dict[str, Any] = {"title": title}
    if tool.hints is not None:
        annotations |= {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        }
    return types.Tool(
        name=tool.name,
        title=title,
        description=tool.description,
        input_schema=dict(arguments),
        output_schema=_output_schema(tool.name, answer),
        annotations=types.ToolAnnotations.model_validate(annotations),
    )


def _output_schema(name: str, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    if name not in LASTING:
        return dict(schema)
    running = answer_schema(RunningAnswer)["properties"]
    return {**schema, "properties": schema["properties"] | running}
