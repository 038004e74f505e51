"""Google ADK: each tool is a `BaseTool`; its pictures are parts of the function's response."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import Toolset, ToolsetOptions, schema_of
from limner.tools.base import Question, Tool

with needs("google-adk"):
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

COST_KEY = "limner_cost_usd"


class _ConfirmationNeeded(Exception):
    pass


class _AdkTool(BaseTool):
    def __init__(self, own: Toolset, tool: Tool, *, approval: bool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._own, self._schema, self._approval = own, schema_of(tool), approval

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        def confirm(question: Question) -> bool:
            if tool_context.tool_confirmation is None:
                raise _ConfirmationNeeded(question.text)
            return tool_context.tool_confirmation.confirmed

        try:
            answer = await self._own.call(self.name, args, ask=confirm if self._approval else None)
        except _ConfirmationNeeded as asked:
            tool_context.request_confirmation(hint=str(asked))
            return {"error": "This tool call needs the user's confirmation."}
        spent = tool_context.state.get(COST_KEY, 0) + answer.result.cost_usd
        tool_context.state[COST_KEY] = spent
        value, _, notes = answer.words.partition("\n")
        shown = [types.Part.from_bytes(data=p.data, mime_type=p.mime) for p in answer.pictures]
        return json.loads(value) | {"pictures": shown} | ({"notes": notes} if notes else {})


def limner_tools(*, approval: bool = False, **options: Unpack[ToolsetOptions]) -> list[BaseTool]:
    """The tools for an agent; the state of the session has the sum of the costs.

    With ``approval`` a question for a person is a tool confirmation.
    """
    own = Toolset(**options)
    return [_AdkTool(own, tool, approval=approval) for tool in own.tools]
