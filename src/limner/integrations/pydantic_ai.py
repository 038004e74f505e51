"""Pydantic AI: the tools are a `FunctionToolset`; pictures are `BinaryContent` of the result."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import Toolset, ToolsetOptions, schema_of
from limner.tools.base import Question, Tool

with needs("pydantic-ai-slim"):
    from pydantic_ai import ApprovalRequired, BinaryContent, ModelRetry, RunContext, ToolReturn
    from pydantic_ai import Tool as AgentTool
    from pydantic_ai.toolsets import FunctionToolset


def limner_toolset(
    *, approval: bool = False, **options: Unpack[ToolsetOptions]
) -> FunctionToolset[Any]:
    """The toolset for an agent; ``metadata`` of a tool's return has the cost and the handles.

    With ``approval`` a question for a person is a deferred tool call of the agent.
    """
    own = Toolset(**options)

    def adapt(tool: Tool) -> AgentTool[Any]:
        async def run(context: RunContext[Any], **arguments: Any) -> ToolReturn:
            def defer(question: Question) -> bool:
                if context.tool_call_approved:
                    return True
                asked = {"question": question.text, "amount_usd": question.amount_usd}
                raise ApprovalRequired(metadata=asked)

            answer = await own.call(tool.name, arguments, ask=defer if approval else None)
            if answer.invites_retry:
                raise ModelRetry(answer.words)
            shown = [BinaryContent(one.data, media_type=one.mime) for one in answer.pictures]
            value = [answer.words, *shown] if shown else answer.words
            return ToolReturn(value, metadata=answer.facts)

        return AgentTool.from_schema(
            run, tool.name, tool.description, json_schema=schema_of(tool), takes_ctx=True
        )

    return FunctionToolset([adapt(tool) for tool in own.tools])
