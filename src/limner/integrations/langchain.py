"""LangChain and LangGraph: each tool is a `StructuredTool`; its pictures are image blocks."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from itertools import groupby
from typing import Any, Unpack

from limner.integrations import needs
from limner.integrations.toolset import (
    SHOWN,
    ToolAnswer,
    Toolset,
    ToolsetOptions,
    encode,
    schema_of,
)
from limner.tools.base import Question, Tool

with needs("langchain"):
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import StructuredTool, ToolException

_Blocks = tuple[list[dict[str, str]], dict[str, Any]]


def limner_tools(
    *, approval: bool = False, **options: Unpack[ToolsetOptions]
) -> list[StructuredTool]:
    """The tools for an agent; the ``artifact`` of a tool's message has the cost and the handles.

    With ``approval`` a question for a person interrupts the graph, until ``Command(resume=True)``
    or ``Command(resume=False)``.
    """
    own = Toolset(**options, **({"ask": _interrupt} if approval else {}))

    def adapt(tool: Tool) -> StructuredTool:
        async def run(**arguments: Any) -> _Blocks:
            return _blocks(await own.call(tool.name, arguments))

        def run_blocking(**arguments: Any) -> _Blocks:
            return _blocks(own.call_blocking(tool.name, arguments))

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=schema_of(tool),
            coroutine=run,
            func=run_blocking,
            response_format="content_and_artifact",
            handle_tool_error=True,
        )

    return [adapt(tool) for tool in own.tools]


def _blocks(answer: ToolAnswer) -> _Blocks:
    if not answer.ok:
        raise ToolException(answer.words)
    shown = [
        {"type": "image", "base64": encode(one), "mime_type": one.mime} for one in answer.pictures
    ]
    return [{"type": "text", "text": answer.words}, *shown], answer.facts


def _interrupt(question: Question) -> bool:
    from langgraph.types import interrupt  # noqa: PLC0415 - LangChain alone works without it

    return interrupt({"question": question.text, "amount_usd": question.amount_usd}) is True


def chat_middleware() -> Any:
    """Middleware for models over Chat Completions, whose tools can answer with text alone.

    It moves pictures from the results of tools to a message of the user that follows them.
    """
    from langchain.agents.middleware import AgentMiddleware  # noqa: PLC0415 - only agents have it

    class UserPictures(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=_move_pictures(request.messages)))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(messages=_move_pictures(request.messages)))

    return UserPictures()


def _move_pictures(messages: list[Any]) -> list[Any]:
    moved: list[Any] = []
    for are_results, some in groupby(messages, lambda one: isinstance(one, ToolMessage)):
        group = list(some)
        if are_results:
            blocks = [(one, block) for one in group for block in one.content_blocks]
            shown = [block for _, block in blocks if block["type"] == "image"]
            rest = [[b for m, b in blocks if m is one and b["type"] != "image"] for one in group]
            group = [
                one.model_copy(update={"content": content})
                for one, content in zip(group, rest, strict=True)
            ]
            if shown:
                group.append(HumanMessage(content=[{"type": "text", "text": SHOWN}, *shown]))
        moved += group
    return moved
