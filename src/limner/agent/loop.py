"""One turn of a conversation: ask the model, run the tools it calls, and again, until it is done.

What happens is written to the session before it is told, and told before anything else happens. So
a process that dies loses nothing that anybody saw, and whoever opens the session again goes on from
there. Everything that is paid for goes through the ledger: here nothing is counted twice.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from limner.agent.call_items import error_output
from limner.agent.compaction import Compactor, is_too_long
from limner.agent.events import (
    Compacted,
    Compacting,
    Event,
    Retrying,
    Status,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from limner.agent.model_call import ModelCaller, ModelReply, PromptCount
from limner.agent.record import DrawnHere, TurnRecord
from limner.agent.session import Session
from limner.agent.tool_runner import ToolRunner
from limner.agent.turn_config import TurnConfig
from limner.errors import InputInvalid, LimnerError, ProviderError, UserError
from limner.money.ledger import Money
from limner.tools.registry import ToolRegistry
from limner.wires.base import Answer, Prompt, ToolOffer, Usage
from limner.wires.items import Item, message, text_part

INTERRUPTED = (
    "<turn_aborted>\nThe user interrupted this turn on purpose. What it had begun may be half "
    "done.\n</turn_aborted>"
)

T = TypeVar("T")


class Interrupted(Exception):
    """The user wants this turn to end."""


class TurnParts(msgspec.Struct, frozen=True, kw_only=True):
    """What every turn works with."""

    model_caller: ModelCaller
    compaction: Compactor
    money: Money
    drawn_here: DrawnHere


class Turn:
    """One turn of a session. It runs once.

    Args:
        session: whose history it continues.
        standing: who is asked, and how far they may go.
        tools: what can be called.
        parts: what it works with.
        tell: hears of everything that happens, in order.
        turn_id: what it is called.
        prompt_count: the tokens that the turn before has counted.
    """

    def __init__(
        self,
        session: Session,
        standing: TurnConfig,
        *,
        tools: ToolRegistry,
        parts: TurnParts,
        tell: Callable[[Event], None],
        turn_id: str | None = None,
        prompt_count: PromptCount | None = None,
    ) -> None:
        self.id = str(uuid.uuid4()) if turn_id is None else turn_id
        self.prompt_count = prompt_count
        self._session_id, self._standing = session.id, standing
        self._tools, self._parts, self._tell = tools, parts, tell
        self._cancel = asyncio.Event()
        self._record = TurnRecord(session, turn_id=self.id, tell=tell, drawn_here=parts.drawn_here)
        self._acting = ToolRunner(
            record=self._record,
            tools=tools,
            money=parts.money,
            context=replace(standing.context, cancel=self._cancel),
            tell=tell,
        )
        self._steering: list[Item] = []
        self._total = Usage(input_tokens=0, output_tokens=0)
        self._requests = self._calls = 0
        self._message_id = self._last_words = ""
        self._is_cut = self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be said in this turn."""
        return self._is_over

    def steer(self, items: Sequence[Item]) -> None:
        """Say something in the middle of the turn: the model hears it before it goes on.

        Where the turn fails or is interrupted before that, it is heard in the next one.

        Raises:
            UserError: the turn is over, or only makes the conversation shorter.
        """
        if self._is_over:
            raise UserError("This turn is over.", code="TURN_IS_OVER", hint="Begin another one.")
        self._steering.extend(items)

    def interrupt(self) -> None:
        """End the turn as soon as what it has begun can be put down."""
        self._cancel.set()

    async def run(self, given: Sequence[Item], *, pending: Sequence[Item] = ()) -> TurnEnded:
        """Take the turn, to whatever end.

        Args:
            given: what the user says, its pictures named by handle.
            pending: calls of an earlier process that are still to be answered.

        Raises:
            asyncio.CancelledError: the caller was cancelled; the history is as it was left.
        """
        return await self._taken(lambda: self._go(given, pending), pending)

    async def sum_up(self) -> TurnEnded:
        """Take a turn that only makes the conversation shorter; raises as `run`."""
        self._is_over = True
        return await self._taken(self._compact)

    async def _taken(
        self, work: Callable[[], Awaitable[None]], pending: Sequence[Item] = ()
    ) -> TurnEnded:
        status: Status = "completed"
        error: LimnerError | None = None
        self._tell(TurnStarted(turn_id=self.id))
        before_nano = await self._spent()
        try:
            await self._record.open(pending=pending)
            await work()
        except Interrupted:
            status = "interrupted"
        except LimnerError as failure:
            status, error = "failed", failure
        finally:
            self._is_over = True
        try:
            await self._put_down(status)
        except LimnerError as failure:
            status, error = "failed", error or failure
        spent_nano = await self._spent()
        ended = TurnEnded(
            turn_id=self.id,
            status=status,
            text=self._last_words,
            is_cut=self._is_cut,
            error=error,
            cost_nano=spent_nano - before_nano,
            spent_nano=spent_nano,
        )
        self._tell(ended)
        return ended

    async def _go(self, given: Sequence[Item], pending: Sequence[Item]) -> None:
        await self._act(pending)
        await self._record.hear(given)
        while True:
            reply = await self._think()
            calls = await self._keep(reply.answer)
            try:
                await self._act(calls)
            finally:
                await self._count(reply)
            if not calls and not self._steering:
                # Nobody can steer between this line and the end: there is no await.
                self._is_over = True
                return
            await self._record.hear(self._take_steering())

    async def _think(self) -> ModelReply:
        """Ask the model, once the conversation is short enough for it."""
        standing = self._standing
        self._requests += 1
        if self._requests > standing.max_requests:
            raise _limit(f"{standing.max_requests} requests to the model", "agent.max_requests")
        if self._parts.compaction.is_due(self._prompt(), standing, self.prompt_count):
            await self._compact()
        try:
            return await self._ask()
        except ProviderError as error:
            # The service knows better how much fits, and has not charged for saying so.
            if error.billed or not is_too_long(error):
                raise
            self._tell(Retrying(error=error))
            await self._compact()
            return await self._ask()

    async def _ask(self) -> ModelReply:
        standing, self._message_id = self._standing, f"msg_{uuid.uuid4().hex}"
        asking = self._parts.model_caller.ask(
            self._prompt(),
            standing.found,
            standing.context,
            prompt_count=self.prompt_count,
            on_text=lambda piece: self._tell(TextDelta(item_id=self._message_id, text=piece)),
            on_retry=lambda error: self._tell(Retrying(error=error)),
        )
        return await self._unless_interrupted(asking)

    def _prompt(self) -> Prompt:
        standing = self._standing
        offers = [
            ToolOffer(name=tool.name, description=tool.description, schema=tool.schema)
            for tool in self._tools.definitions(standing.context.allowed)
        ]
        return Prompt(
            items=self._record.items,
            tools=offers,
            instructions=standing.instructions,
            schema=standing.schema,
        )

    async def _keep(self, answer: Answer) -> list[Item]:
        """What the model made becomes history; the calls among it are still to be run."""
        made = list(answer.items) or [message("assistant", text_part(answer.text))]
        self._is_cut = answer.stop == "length"
        if answer.text:
            self._last_words = answer.text
            # The message that was told in pieces is known by the id they had.
            first = next((at for at, item in enumerate(made) if item["type"] == "message"), None)
            if first is not None:
                made[first] = {**made[first], "id": self._message_id}
        return await self._record.keep(made)

    async def _act(self, calls: Sequence[Item]) -> None:
        """Run what the model calls."""
        if not calls:
            return
        self._calls += len(calls)
        if self._calls > self._standing.max_calls:
            limit = _limit(f"{self._standing.max_calls} tool calls", "agent.max_calls")
            await self._record.add(*(error_output(call, limit) for call in calls))
            raise limit
        await self._acting.run(calls)
        if self._cancel.is_set():
            raise Interrupted

    async def _count(self, reply: ModelReply) -> None:
        usage, self.prompt_count = reply.answer.usage, reply.prompt_count
        if usage is None:
            return
        self._total = self._total + usage
        self._tell(
            UsageUpdated(
                last=usage,
                total=self._total,
                context_tokens=self._standing.found.model.facts.context_tokens,
                spent_nano=await self._spent(),
            )
        )

    async def _compact(self) -> None:
        """Put a summary and the last turns in place of the history."""
        item_id = f"compaction_{uuid.uuid4().hex}"
        self._tell(Compacting(item_id=item_id))
        summary = await self._unless_interrupted(
            self._parts.compaction.summary(self._record.items, self._standing)
        )
        await self._record.compact(summary.items, item_id=item_id)
        self.prompt_count = None
        self._tell(Compacted(item_id=item_id, summary=summary.text, dropped=summary.dropped))

    async def _put_down(self, status: Status) -> None:
        """Leave a history that the next turn can go on from, with all that was said in it."""
        await self._record.hear(self._take_steering())
        if status == "interrupted":
            await self._record.add(message("user", text_part(INTERRUPTED)))

    def _take_steering(self) -> list[Item]:
        said, self._steering = self._steering, []
        return said

    async def _spent(self) -> int:
        return await self._parts.money.spent(session_id=self._session_id)

    async def _unless_interrupted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._cancel.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Interrupted
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                # What it has paid for is being written down.
                await asyncio.wait({task})


def _limit(what: str, setting: str) -> InputInvalid:
    return InputInvalid(
        f"This turn was stopped after {what}",
        field="turn",
        code="TURN_LIMIT",
        hint=f"Say “go on” to continue, or raise {setting}.",
    )
