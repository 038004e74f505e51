"""A server's calls of this client's tools -> their results, each call run once and at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.frontends.remote.connection import Params
from limner.frontends.remote.events import Event, ToolAnswered, ToolCalled, ToolProgress
from limner.frontends.remote.output_parts import OutputParts
from limner.net.jsonrpc import INVALID_PARAMS, RpcError
from limner.pictures.request import Progress
from limner.tools.base import Tool, ToolCall, ToolContext
from limner.tools.function_tools import FunctionTool
from limner.tools.registry import ToolRegistry

# Answers that are kept for a server that asks again after the link was lost.
MAX_KEPT = 64


class _Asked(msgspec.Struct, rename="camel"):
    """What a server says of a call."""

    turn_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class _Running(msgspec.Struct, frozen=True, kw_only=True):
    """A call, what becomes of it, and how to stop it."""

    turn_id: str
    answer: asyncio.Task[dict[str, Any]]
    cancel: asyncio.Event


def specs(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Tools as a server is told of them when a thread starts."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "inputSchema": dict(tool.schema),
        }
        for tool in tools
    ]


class ToolCallServer:
    """Answers the calls of one thread.

    A call outlives the link it came over: where the server asks for it again, by the same ids, it
    is not run a second time, so that what was paid for once is not paid for twice.

    Args:
        registry: the tools.
        context: how far a call may go, as far as that is the same for all of them.
        showing: makes pictures ready for the server.
        tell: gets what happens, and the turn in which it does.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        context: Callable[[], ToolContext],
        showing: OutputParts,
        *,
        tell: Callable[[str, Event], None],
    ) -> None:
        self._registry, self._context, self._showing = registry, context, showing
        self._tell = tell
        self._calls: dict[tuple[str, str], _Running] = {}
        self._has_read_untrusted = False

    async def answer(self, params: Params) -> dict[str, Any]:
        """Run the call, or wait for it where it runs already; the answer for the server.

        Raises:
            RpcError: it is not a tool call.
        """
        try:
            asked = msgspec.convert(params, _Asked)
        except msgspec.ValidationError as problem:
            raise RpcError(INVALID_PARAMS, f"This is not a tool call: {problem}") from None
        key = (asked.turn_id, asked.call_id)
        if key not in self._calls:
            self._make_room()
            cancel = asyncio.Event()
            work = asyncio.create_task(self._run(asked, params, cancel))
            self._calls[key] = _Running(turn_id=asked.turn_id, answer=work, cancel=cancel)
        # The link may be lost while the tool runs, which is no reason to stop it.
        return await asyncio.shield(self._calls[key].answer)

    def stop(self, *, turn_id: str | None = None) -> None:
        """Stop what still runs, of one turn or of all."""
        for running in self._calls.values():
            if turn_id in (None, running.turn_id) and not running.answer.done():
                running.cancel.set()

    async def aclose(self) -> None:
        """Stop everything, and wait until it has tidied up."""
        self.stop()
        await asyncio.gather(*(one.answer for one in self._calls.values()), return_exceptions=True)

    async def _run(self, asked: _Asked, params: Params, cancel: asyncio.Event) -> dict[str, Any]:
        call = ToolCall(name=asked.tool, arguments=asked.arguments, call_id=asked.call_id)

        def progress(news: Progress) -> None:
            self._tell(asked.turn_id, ToolProgress(call=call, progress=news))

        context = replace(
            self._context(),
            call_id=call.call_id,
            cancel=cancel,
            progress=progress,
            has_read_untrusted=self._has_read_untrusted,
        )
        self._tell(asked.turn_id, ToolCalled(call=call, raw=params))
        (result,) = await self._registry.execute_parallel([call], context)
        self._has_read_untrusted |= result.untrusted
        tool = self._registry.get(call.name)
        # Who brings a function writes for the model; what our own tools find was written by others.
        verbatim = tool is None or tool.foreign or isinstance(tool, FunctionTool)
        answer = await self._showing.answer(result, verbatim=verbatim)
        self._tell(asked.turn_id, ToolAnswered(call=call, result=result))
        return answer

    def _make_room(self) -> None:
        done = [key for key, running in self._calls.items() if running.answer.done()]
        for key in done[: max(0, len(self._calls) - MAX_KEPT + 1)]:
            del self._calls[key]
