"""A user's input -> the end of a turn: ask the model, run the tools it calls, until it is done.

Everything is written to the session before its event is emitted, and the event is emitted before
anything else happens. So a process that dies loses nothing that a subscriber saw, and the next
process continues from there. Every payment goes through the ledger; nothing is counted here.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from limner.agent.call_items import error_output, usage_member
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
from limner.agent.ingress import Ingress
from limner.agent.model_call import AnswerStorage, ModelCaller, ModelReply, PromptCount
from limner.agent.record import DrawnHere, TurnRecord
from limner.agent.session import Session
from limner.agent.tool_runner import ToolRunner
from limner.agent.turn_config import TurnConfig
from limner.errors import InputInvalid, LimnerError, ProviderError, UnexpectedError, UserError
from limner.log_fields import log_fields
from limner.money.ledger import Money
from limner.net.redaction import redact
from limner.storage.store import Transaction
from limner.tools.registry import ToolRegistry
from limner.wires.base import Answer, Prompt, ToolOffer, Usage
from limner.wires.items import Item, image_parts, message, text_part

INTERRUPTED = (
    "<turn_aborted>\nThe user interrupted this turn on purpose. Tool calls that were running may "
    "be incomplete.\n</turn_aborted>"
)

T = TypeVar("T")


class Interrupted(Exception):
    """The user interrupted the turn."""


class TurnParts(msgspec.Struct, frozen=True, kw_only=True):
    """The components that every turn uses."""

    model_caller: ModelCaller
    compactor: Compactor
    money: Money
    drawn_here: DrawnHere
    ingress: Ingress


class Turn:
    """One turn of a session. It runs once.

    Args:
        session: the session that it continues.
        config: the model, its instructions, and what it may do.
        tools: the tools that the model can call.
        parts: the components that it uses.
        on_event: gets every event, in order.
        on_warning: gets a sentence about what the model is not sent; it may get one twice.
        turn_id: its id; a new one if it is None.
        prompt_count: the tokens that the turn before has counted.
    """

    def __init__(
        self,
        session: Session,
        config: TurnConfig,
        *,
        tools: ToolRegistry,
        parts: TurnParts,
        on_event: Callable[[Event], None],
        on_warning: Callable[[str], None],
        turn_id: str | None = None,
        prompt_count: PromptCount | None = None,
    ) -> None:
        self.id = str(uuid.uuid4()) if turn_id is None else turn_id
        self.prompt_count = prompt_count
        self._session_id, self._config = session.id, config
        self._tools, self._parts, self._emit = tools, parts, on_event
        self._warn = on_warning
        self._cancel = asyncio.Event()
        self._record = TurnRecord(
            session, turn_id=self.id, on_event=on_event, drawn_here=parts.drawn_here
        )
        self._tool_runner = ToolRunner(
            record=self._record,
            tools=tools,
            money=parts.money,
            context=replace(config.context, cancel=self._cancel),
            on_event=on_event,
        )
        self._steering: list[Item] = []
        self._total = Usage(input_tokens=0, output_tokens=0)
        self._requests = self._calls = 0
        # What the session has cost, since nothing was paid after it was read.
        self._counted_nano: int | None = None
        self._message_id = self._last_text = ""
        # The calls in the last answer, if it was stored with its price.
        self._stored_calls: list[Item] | None = None
        self._is_cut = self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the turn takes no more input."""
        return self._is_over

    def steer(self, items: Sequence[Item]) -> None:
        """Add input in the middle of the turn; the next request to the model contains it.

        If the turn fails or is interrupted before that, the next turn contains it.

        Raises:
            UserError: the turn is over, or it only sums up the conversation.
        """
        if self._is_over:
            raise UserError("This turn is over.", code="TURN_IS_OVER", hint="Start another one.")
        self._steering.extend(items)

    def interrupt(self) -> None:
        """End the turn as soon as its running requests and calls can stop."""
        self._cancel.set()

    async def run(self, given: Sequence[Item], *, pending: Sequence[Item] = ()) -> TurnEnded:
        """Run the turn to its end, whether it succeeds, fails or is interrupted.

        Args:
            given: the user's input, its pictures named by handle.
            pending: calls of an earlier process that have no output yet.

        Raises:
            asyncio.CancelledError: the caller was cancelled; the history stays as it is then,
                but for an answer that was just paid for.
        """

        async def work() -> None:
            await self._record.open(pending=pending, given=() if pending else given)
            if pending:
                await self._run_calls(pending)
                await self._record.add_input(given)
            await self._loop()

        with log_fields(session=self._session_id):
            return await self._run_to_end(work)

    async def compact(self) -> TurnEnded:
        """Run a turn that only sums up the conversation; raises as `run`."""
        self._is_over = True

        async def work() -> None:
            await self._record.open()
            await self._compact()

        with log_fields(session=self._session_id):
            return await self._run_to_end(work)

    async def _run_to_end(self, work: Callable[[], Awaitable[None]]) -> TurnEnded:
        status: Status = "completed"
        error: LimnerError | None = None
        self._emit(TurnStarted(turn_id=self.id))
        # What dead processes left unpaid is no cost of this turn.
        await self._parts.money.conclude_dead_if_due()
        try:
            await work()
        except Interrupted:
            status = "interrupted"
        except LimnerError as failure:
            status, error = "failed", failure
        except Exception as bug:
            # It must not hide what the turn has cost.
            if self._record.spent_nano in (None, await self._spent()):
                raise
            status = "failed"
            error = UnexpectedError(redact(f"Unexpected {type(bug).__name__}: {bug}"))
            error.__cause__ = bug
        finally:
            self._is_over = True
        try:
            await self._finish_history(status)
        except LimnerError as failure:
            status, error = "failed", error or failure
        spent_nano = await self._spent() if self._counted_nano is None else self._counted_nano
        before_nano = self._record.spent_nano
        ended = TurnEnded(
            turn_id=self.id,
            status=status,
            text=self._last_text,
            is_cut=self._is_cut,
            error=error,
            cost_nano=0 if before_nano is None else spent_nano - before_nano,
            spent_nano=spent_nano,
        )
        self._emit(ended)
        return ended

    async def _loop(self) -> None:
        while True:
            reply = await self._ask_within_window()
            calls = await self._add_answer(reply)
            try:
                await self._run_calls(calls)
            finally:
                await self._count(reply, calls)
            if not calls and not self._steering:
                # There is no await between this line and the end, so `steer` cannot run here.
                self._is_over = True
                return
            await self._record.add_input(self._take_steering())

    async def _ask_within_window(self) -> ModelReply:
        """Ask the model; sum up the conversation first if it is too long."""
        config = self._config
        self._requests += 1
        self._counted_nano = None
        if self._requests == 1:
            caller, model = self._parts.model_caller, config.found.model
            for warning in caller.warnings(self._record.items, model):
                self._warn(warning)
        if self._requests > config.max_requests:
            raise _limit(f"{config.max_requests} requests to the model", "agent.max_requests")
        offers = [
            ToolOffer(name=tool.name, description=tool.description, schema=tool.schema)
            for tool in self._tools.definitions(config.context.allowed)
        ]
        if self._parts.compactor.is_due(self._prompt(offers), config, self.prompt_count):
            await self._compact()
        try:
            return await self._ask(offers)
        except ProviderError as error:
            # The service knows its limit better than our estimate, and refusing costs nothing.
            if error.billed or not is_too_long(error):
                raise
            self._emit(Retrying(error=error))
            await self._compact()
            return await self._ask(offers)

    async def _ask(self, offers: Sequence[ToolOffer]) -> ModelReply:
        config, self._message_id = self._config, f"msg_{uuid.uuid4().hex}"
        asking = self._parts.model_caller.ask(
            self._prompt(offers),
            config.found,
            config.context,
            prompt_count=self.prompt_count,
            on_text=lambda piece: self._emit(TextDelta(item_id=self._message_id, text=piece)),
            on_retry=self._retry,
            on_warning=self._warn,
            store=self._store_answer,
        )
        return await self._unless_interrupted(asking)

    def _retry(self, error: LimnerError) -> None:
        """Report a retry; the text of the next attempt belongs to another message."""
        self._emit(Retrying(error=error))
        self._message_id = f"msg_{uuid.uuid4().hex}"

    def _prompt(self, offers: Sequence[ToolOffer]) -> Prompt:
        return Prompt(
            items=self._record.items,
            tools=offers,
            instructions=self._config.instructions,
            schema=self._config.schema,
            conversation=self._session_id,
        )

    def _store_answer(self, answer: Answer, cost_nano: int) -> AnswerStorage:
        """Store an answer with its price, which does not wait for pictures in it."""
        items, addition = _answer_items(answer), None
        if not any(image_parts(item) for item in items):
            addition = self._record.answer(self._labelled(items, answer, cost_nano))

        def write(tx: Transaction) -> None:
            if addition is not None:
                addition.write(tx, cost_nano=cost_nano)

        def note() -> None:
            self._is_cut = answer.stop == "length"
            self._last_text = answer.text or self._last_text
            self._stored_calls = None if addition is None else self._record.note_answer(addition)

        return AnswerStorage(write, note)

    async def _add_answer(self, reply: ModelReply) -> list[Item]:
        """Add the items of the model to the history; return the calls among them."""
        if self._stored_calls is not None:
            return self._stored_calls
        answer, source = reply.answer, self._config.found.model.name
        items = (await self._parts.ingress.items(_answer_items(answer), source=source)).items
        return await self._record.add_answer(self._labelled(items, answer, reply.cost_nano))

    def _labelled(self, items: Sequence[Item], answer: Answer, cost_nano: int) -> list[Item]:
        """The items of an answer with its tokens and cost, and with the id of its text."""
        labelled = list(items)
        if answer.text:
            # The message has the id of its `TextDelta` events.
            first = next((at for at, item in enumerate(items) if item["type"] == "message"), None)
            if first is not None:
                labelled[first] = {**labelled[first], "id": self._message_id}
        if answer.usage is not None and (answer.usage.input_tokens or cost_nano):
            labelled[-1] = {**labelled[-1], "usage": usage_member(answer.usage, cost_nano)}
        return labelled

    async def _run_calls(self, calls: Sequence[Item]) -> None:
        if not calls:
            return
        self._calls += len(calls)
        if self._calls > self._config.max_calls:
            limit = _limit(f"{self._config.max_calls} tool calls", "agent.max_calls")
            await self._record.append(*(error_output(call, limit) for call in calls))
            raise limit
        self._record.paid_nano = None
        await self._tool_runner.run(calls)
        if self._cancel.is_set():
            raise Interrupted

    async def _count(self, reply: ModelReply, calls: Sequence[Item]) -> None:
        usage, self.prompt_count = reply.answer.usage, reply.prompt_count
        if usage is None:
            return
        self._total = self._total + usage
        # A call pays before its output is stored. Outputs of several may be stored in any order.
        paid_nano = None if len(calls) > 1 else self._record.paid_nano
        self._counted_nano = await self._spent() if paid_nano is None else paid_nano
        self._emit(
            UsageUpdated(
                last=usage,
                total=self._total,
                context_tokens=self._config.found.model.facts.context_tokens,
                spent_nano=self._counted_nano,
            )
        )

    async def _compact(self) -> None:
        """Replace the history by a summary and the last turns."""
        item_id = f"compaction_{uuid.uuid4().hex}"
        self._emit(Compacting(item_id=item_id))
        summary = await self._unless_interrupted(
            self._parts.compactor.sum_up(self._record.items, self._config)
        )
        await self._record.replace_all(summary.items, item_id=item_id)
        self.prompt_count = None
        self._emit(Compacted(item_id=item_id, summary=summary.text, dropped=summary.dropped))

    async def _finish_history(self, status: Status) -> None:
        """Leave a history that the next turn can continue, with all of the user's input."""
        await self._record.add_input(self._take_steering())
        if status == "interrupted":
            await self._record.append(message("user", text_part(INTERRUPTED)))

    def _take_steering(self) -> list[Item]:
        given, self._steering = self._steering, []
        return given

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
                # Wait until it has recorded what was paid for.
                await asyncio.wait({task})


def _answer_items(answer: Answer) -> Sequence[Item]:
    return answer.items or [message("assistant", text_part(answer.text))]


def _limit(what: str, setting: str) -> InputInvalid:
    return InputInvalid(
        f"This turn was stopped after {what}",
        field="turn",
        code="TURN_LIMIT",
        hint=f"Say “go on” to continue, or raise {setting}.",
    )
