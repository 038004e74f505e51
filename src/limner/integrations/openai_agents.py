"""OpenAI Agents: each tool is a `FunctionTool`; its pictures are `ToolOutputImage` items."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import SHOWN, Toolset, ToolsetOptions, data_url, schema_of
from limner.tools.base import Tool

with needs("openai-agents"):
    from agents import FunctionTool, ToolOutputImage, ToolOutputText


def limner_tools(
    *, approval: bool = False, **options: Unpack[ToolsetOptions]
) -> list[FunctionTool]:
    """The tools for an agent; ``custom_data`` of a tool's output item has cost and handles.

    With ``approval`` the run is interrupted before each call of a tool that draws.
    """
    own = Toolset(**options)
    facts: dict[str, dict[str, Any]] = {}

    def adapt(tool: Tool) -> FunctionTool:
        is_approved = approval and not (tool.hints and tool.hints.read_only)

        async def run(context: Any, arguments: str) -> list[Any]:
            ask = (lambda _: True) if is_approved else None
            answer = await own.call(tool.name, json.loads(arguments or "{}"), ask=ask)
            facts[context.tool_call_id] = answer.facts
            shown = [ToolOutputImage(image_url=data_url(one)) for one in answer.pictures]
            return [ToolOutputText(text=answer.words), *shown]

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=schema_of(tool),
            on_invoke_tool=run,
            strict_json_schema=False,
            needs_approval=is_approved,
            custom_data_extractor=lambda done: facts.pop(done.tool_context.tool_call_id, None),
        )

    return [adapt(tool) for tool in own.tools]


def chat_input_filter(call: Any) -> Any:
    """For `RunConfig.call_model_input_filter`, with models over Chat Completions.

    In that API tools can answer with text alone, and the framework drops pictures. This moves them
    to a message of the user.
    """
    moved: list[Any] = []
    shown: list[Any] = []
    for item in [*call.model_data.input, {}]:
        output = item.get("output") if item.get("type") == "function_call_output" else None
        if output is None and shown:
            words = {"type": "input_text", "text": SHOWN}
            moved.append({"role": "user", "content": [words, *shown]})
            shown = []
        if isinstance(output, list):
            shown += [one for one in output if one["type"] == "input_image"]
            rest = [one for one in output if one["type"] != "input_image"]
            moved.append({**item, "output": rest})
        else:
            moved.append(item)
    call.model_data.input = moved[:-1]
    return call.model_data
