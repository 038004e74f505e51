"""A server's calls of this client's tools -> their results; each call runs once, at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.events import Event, ToolFinished, ToolProgress, ToolStarted
from limner.frontends.remote.connection import Params
from limner.frontends.remote.output_parts import OutputParts
from limner.net.jsonrpc import INVALID_PARAMS, RpcError
from limner.pictures.request import Progress
from limner.tools.base import Tool, ToolCall, ToolContext
from limner.tools.function_tools import FunctionTool
from limner.tools.registry import ToolRegistry

# Results that are kept for a server that asks again after the connection was lost.
MAX_KEPT = 64


class _CallParams(msgspec.Struct, rename="camel"):
    """The params of `item/tool/call`."""

    turn_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class _RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call, its response, and how to stop it."""

    turn_id: str
    response: asyncio.Task[dict[str, Any]]
    cancel: asyncio.Event


def tool_specs(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools, as a server gets them when a thread starts."""
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
    """Runs the calls of one thread.

    A call outlives the connection it came over. If the server asks for it again, by the same ids,
    it does not run a second time, so that it is not paid for twice.

    Args:
        registry: the tools.
        context: makes what every call shares: the session, the folder, the budget.
        output: prepares pictures for the server.
        report: receives each event, and the id of its turn.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        context: Callable[[], ToolContext],
        output: OutputParts,
        *,
        report: Callable[[str, Event], None],
    ) -> None:
        self._registry, self._context, self._output = registry, context, output
        self._report = report
        self._calls: dict[tuple[str, str], _RunningCall] = {}
        self._has_read_untrusted = False

    def has_tool(self, name: str) -> bool:
        """Whether this client runs the tool of that name."""
        return self._registry.get(name) is not None

    async def call(self, params: Params) -> dict[str, Any]:
        """Run the call, or wait for it if it is already running; returns the server's response.

        Raises:
            RpcError: it is not a tool call.
        """
        try:
            asked = msgspec.convert(params, _CallParams)
        except msgspec.ValidationError as problem:
            raise RpcError(INVALID_PARAMS, f"This is not a tool call: {problem}") from None
        key = (asked.turn_id, asked.call_id)
        if key not in self._calls:
            self._make_room()
            cancel = asyncio.Event()
            task = asyncio.create_task(self._run(asked, params, cancel))
            self._calls[key] = _RunningCall(turn_id=asked.turn_id, response=task, cancel=cancel)
        # If the connection is lost while the tool runs, the tool goes on.
        return await asyncio.shield(self._calls[key].response)

    def stop(self, *, turn_id: str | None = None) -> None:
        """Stop the running calls, of one turn or of all."""
        for running in self._calls.values():
            if turn_id in (None, running.turn_id) and not running.response.done():
                running.cancel.set()

    async def aclose(self) -> None:
        """Stop every call, and wait until each has cleaned up."""
        self.stop()
        await asyncio.gather(
            *(one.response for one in self._calls.values()), return_exceptions=True
        )

    async def _run(
        self, asked: _CallParams, params: Params, cancel: asyncio.Event
    ) -> dict[str, Any]:
        call = ToolCall(name=asked.tool, arguments=asked.arguments, call_id=asked.call_id)

        def progress(news: Progress) -> None:
            self._report(asked.turn_id, ToolProgress(call=call, progress=news))

        context = replace(
            self._context(),
            call_id=call.call_id,
            cancel=cancel,
            progress=progress,
            has_read_untrusted=self._has_read_untrusted,
        )
        self._report(asked.turn_id, ToolStarted(call=call, raw=params))
        started = time.monotonic()
        (result,) = await self._registry.execute_parallel([call], context)
        duration_ms = round((time.monotonic() - started) * 1000)
        self._has_read_untrusted |= result.untrusted
        tool = self._registry.get(call.name)
        # The author of a function writes for the model. limner's own tools quote others' texts.
        verbatim = tool is None or tool.foreign or isinstance(tool, FunctionTool)
        item, response = await self._output.respond(result, verbatim=verbatim)
        finished = ToolFinished(call=call, result=result, item=item, duration_ms=duration_ms)
        self._report(asked.turn_id, finished)
        return response

    def _make_room(self) -> None:
        done = [key for key, running in self._calls.items() if running.response.done()]
        for key in done[: max(0, len(self._calls) - MAX_KEPT + 1)]:
            del self._calls[key]
