"""A model's calls -> outputs in the history: run in parallel, each stored as soon as it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from limner.agent.call_items import error_output, output_item, parse_call
from limner.agent.events import Event, ToolFinished, ToolProgress, ToolStarted
from limner.agent.record import TurnRecord
from limner.errors import InputInvalid
from limner.money.ledger import Money
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry
from limner.wires.items import Item


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the calls of one turn. ``context`` is the session and what it may do."""

    record: TurnRecord
    tools: ToolRegistry
    money: Money
    context: ToolContext
    on_event: Callable[[Event], None]

    async def run(self, calls: Sequence[Item]) -> None:
        """Run calls in parallel; each output is stored as soon as its call ends.

        Raises:
            LimnerError: an output could not be stored; all calls have ended.
        """
        context = replace(
            self.context,
            # The model made these calls before it read their outputs.
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
        tool = self.tools.get(str(item.get("name")))
        try:
            # The program that offers a foreign tool checks the arguments itself.
            call = parse_call(item, takes_any_json=tool is not None and tool.foreign)
        except InputInvalid as error:
            await self.record.append(error_output(item, error))
            return
        self.on_event(ToolStarted(call=call))
        started = time.monotonic()

        def on_progress(progress: Progress) -> None:
            self.on_event(ToolProgress(call=call, progress=progress))

        own = replace(context, call_id=call.call_id, progress=on_progress)
        (result,) = await self.tools.execute_parallel([call], own)
        output = await self._store(item, call, result)
        took_ms = int((time.monotonic() - started) * 1000)
        self.on_event(ToolFinished(call=call, result=result, item=output, duration_ms=took_ms))

    async def _store(self, item: Item, call: ToolCall, result: ToolResult) -> Item:
        """Store the output of a call and its cost; return the output."""
        tool = self.tools.get(call.name)
        if result.cost_nano and not (tool is not None and tool.keeps_books):
            session_id = self.context.session_id or ""
            await self.money.record_cost(
                result.cost_nano, result.cost_source, session_id=session_id, tool=call.name
            )
        verbatim = tool is not None and tool.foreign
        made = output_item(item, result, verbatim=verbatim)
        (output,) = await self.record.append(made, untrusted=result.untrusted)
        return output
