"""Microsoft Agent Framework: each tool is a `FunctionTool`; its pictures are data contents."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import SHOWN, Toolset, ToolsetOptions, schema_of
from limner.tools.base import Tool

with needs("agent-framework-core agent-framework-openai"):
    from agent_framework import ChatContext, Content, FunctionTool, Message, chat_middleware


def limner_tools(
    *, approval: bool = False, **options: Unpack[ToolsetOptions]
) -> list[FunctionTool]:
    """The tools for an agent; ``additional_properties`` of a result's text has cost and handles.

    With ``approval`` the framework asks before each call of a tool that draws.
    """
    own = Toolset(**options)

    def adapt(tool: Tool) -> FunctionTool:
        is_approved = approval and not (tool.hints and tool.hints.read_only)

        async def run(**arguments: Any) -> list[Content]:
            ask = (lambda _: True) if is_approved else None
            answer = await own.call(tool.name, arguments, ask=ask)
            words = Content.from_text(answer.words, additional_properties={"limner": answer.facts})
            shown = [Content.from_data(data=p.data, media_type=p.mime) for p in answer.pictures]
            return [words, *shown]

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            func=run,
            input_model=schema_of(tool),
            approval_mode="always_require" if is_approved else "never_require",
        )

    return [adapt(tool) for tool in own.tools]


@chat_middleware
async def show_pictures(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Middleware for a client over Chat Completions, whose tools can answer with text alone.

    The model gets the pictures in a message of the user.
    """
    shown: list[Message] = []
    for message in context.messages:
        shown.append(message)
        results = [one for one in message.contents if one.type == "function_result"]
        pictures = [item for one in results for item in one.items or () if item.type == "data"]
        if pictures:
            shown.append(Message(role="user", contents=[Content.from_text(SHOWN), *pictures]))
    context.messages = shown
    await call_next()
