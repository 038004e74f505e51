"""Calls of a model -> outputs in the history: run together, paid for, and told one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from limner.agent.call_items import error_output, output_of, read_call
from limner.agent.events import Event, ToolFinished, ToolProgress, ToolStarted
from limner.agent.record import TurnRecord
from limner.errors import InputInvalid
from limner.money.ledger import Money
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry
from limner.wires.items import Item


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the calls of one turn. ``context`` is who calls, and how far they may go."""

    record: TurnRecord
    tools: ToolRegistry
    money: Money
    context: ToolContext
    tell: Callable[[Event], None]

    async def run(self, calls: Sequence[Item]) -> None:
        """Run calls, all at once; each output is history as soon as it is there.

        Raises:
            LimnerError: an output could not be kept; every call has come to its end.
        """
        context = replace(
            self.context,
            # What these calls bring in was not there when the model decided on them.
            has_read_untrusted=self.record.has_read_untrusted,
            result_budget_chars=self.context.result_budget_chars // len(calls),
        )
        ends = await asyncio.gather(
            *(self._run(call, context) for call in calls), return_exceptions=True
        )
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _run(self, item: Item, context: ToolContext) -> None:
        try:
            call = read_call(item)
        except InputInvalid as error:
            await self.record.add(error_output(item, error))
            return
        self.tell(ToolStarted(call=call))
        began = time.monotonic()

        def tell(progress: Progress) -> None:
            self.tell(ToolProgress(call=call, progress=progress))

        own = replace(context, call_id=call.call_id, progress=tell)
        (result,) = await self.tools.execute_parallel([call], own)
        output = await self._kept(item, call, result)
        took_ms = int((time.monotonic() - began) * 1000)
        self.tell(ToolFinished(call=call, result=result, item=output, duration_ms=took_ms))

    async def _kept(self, item: Item, call: ToolCall, result: ToolResult) -> Item:
        """The output of a call, once all that follows from it is on disk."""
        tool = self.tools.get(call.name)
        if result.untrusted:
            await self.record.note_untrusted()
        if result.cost_nano and not (tool is not None and tool.keeps_books):
            session_id = self.context.session_id or ""
            await self.money.record_cost(
                result.cost_nano, result.cost_source, session_id=session_id, tool=call.name
            )
        verbatim = tool is not None and tool.foreign
        (output,) = await self.record.add(output_of(item, result, verbatim=verbatim))
        return output
