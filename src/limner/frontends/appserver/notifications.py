"""The events of a turn -> the notifications to its subscribers, in upstream's order.

An event is in the store before it comes here, so a client never sees what could still be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent import events
from limner.agent.session import StoredItem
from limner.agent.sessions import new_id
from limner.errors import NANO_PER_USD, LimnerError
from limner.frontends.appserver.inline_pictures import inline_urls
from limner.frontends.appserver.inputs import ClientInput
from limner.frontends.appserver.item_views import CallIndex, to_thread_items
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol.accounts import RateLimitSnapshot
from limner.frontends.appserver.protocol.base import ContentItem
from limner.frontends.appserver.protocol.items import (
    AgentMessage,
    ContextCompaction,
    DynamicToolCall,
    FunctionCallOutput,
    ThreadItem,
    UserMessage,
)
from limner.frontends.appserver.protocol.notifications import (
    Notice,
    ThreadTokenUsage,
    TokenUsageBreakdown,
)
from limner.frontends.appserver.protocol.threads import (
    Active,
    Broken,
    Idle,
    ThreadReadState,
    ThreadStatus,
    TurnPosition,
)
from limner.frontends.appserver.protocol.turns import Turn
from limner.frontends.appserver.rpc_errors import turn_error
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_items import ToolCallRecord, to_thread_item
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.wires.base import Usage
from limner.wires.items import Item, is_call


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the notifications of a turn need to know of the thread.

    Attributes:
        thread_id: the thread.
        cwd: the folder that paths in calls are relative to.
        tools: the client's tools, by the names that the model has for them.
        is_tool: whether there is a tool of a name.
        tokens: the tokens of the turns before.
        read_state: how far the user has read.
        subscribers: get the notifications.
    """

    thread_id: str
    cwd: str
    tools: Mapping[str, ToolSpec]
    is_tool: Callable[[str], bool]
    tokens: TokenUsageBreakdown
    read_state: ThreadReadState | None
    subscribers: Subscribers


class TurnNotifications:
    """Sends the notifications of one turn.

    Args:
        context: the thread.
        turn_id: the turn.
        on_started: is called when the turn has started, before the first notification.

    Attributes:
        turn_id: the turn.
        cwd: the folder it works in.
        status: the status of the thread.
    """

    def __init__(
        self, context: TurnContext, turn_id: str, *, on_started: Callable[[], None]
    ) -> None:
        self._context, self.turn_id, self._on_started = context, turn_id, on_started
        self.cwd = context.cwd
        self.status: ThreadStatus = Idle()
        self._tokens = context.tokens
        self._last_tokens: TokenUsageBreakdown | None = None
        self._unread: ThreadReadState | None = None
        self._started_ms = 0
        self._message: AgentMessage | None = None
        self._last: AgentMessage | None = None
        self._call_started_ms: dict[str, int] = {}
        self._compaction: ContextCompaction | None = None
        self._inputs: dict[object, ClientInput] = {}
        self._answers: dict[str, tuple[ContentItem, ...]] = {}
        self._pictures: dict[str, Mapping[str, str]] = {}
        self._handlers: Mapping[type[msgspec.Struct], Callable[[Any], None]] = {
            events.TurnStarted: self._turn_started,
            events.InputAdded: self._item_added,
            events.TextDelta: self._text_delta,
            events.ItemAdded: self._item_added,
            events.ToolStarted: self._tool_started,
            events.ToolFinished: self._tool_finished,
            events.UsageUpdated: self._usage_updated,
            events.Retrying: lambda event: self._error(event.error, will_retry=True),
            events.Compacting: self._compaction_started,
            events.Compacted: self._compaction_finished,
        }

    @property
    def has_started(self) -> bool:
        """Whether the subscribers know of the turn."""
        return self._started_ms > 0

    def note_input(self, item: Item, original: ClientInput) -> None:
        """Note an input as the client sent it: the notification shows it in that form."""
        self._inputs[item.get("id")] = original

    def note_answer(self, call_id: str, content_items: tuple[ContentItem, ...]) -> None:
        """Note the answer to a call as the client sent it: the notification shows that form."""
        self._answers[call_id] = content_items

    def note_pictures(self, call_id: str, pictures: Mapping[str, str]) -> None:
        """Note the data URLs of a call's pictures, by the URLs that the item has for them."""
        self._pictures[call_id] = pictures

    def set_waiting(self, on_approval: bool) -> None:
        """Notify that the turn waits for an approval, or no longer does."""
        self._set_status(Active(active_flags=("waitingOnApproval",) if on_approval else ()))

    def with_usage(self, state: ThreadState) -> ThreadState:
        """A copy of the state with the tokens of this turn, and what it adds to read."""
        if self._unread is not None:
            state = state.with_extras(read_state=self._unread)
        return state.with_usage(self._tokens, last=self._last_tokens, turn_id=self.turn_id)

    def send(self, event: events.Event) -> None:
        """Send the notifications of one event.

        The protocol has none for the progress of a tool. `send_end` sends those of the end.
        """
        if isinstance(event, events.InputAdded | events.ItemAdded | events.ToolFinished):
            self._context.subscribers.send_item(event.item, turn_id=self.turn_id)
            stored = notifications.ThreadItemStoredNotification(
                thread_id=self._context.thread_id, turn_id=self.turn_id, item=dict(event.item)
            )
            self._notify(stored)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _turn_started(self, _: events.TurnStarted) -> None:
        self._started_ms = _now_ms()
        self._on_started()
        self._set_status(Active())
        turn = replace(running_turn(self.turn_id), started_at=self._started_ms // 1000)
        self._notify(
            notifications.TurnStartedNotification(thread_id=self._context.thread_id, turn=turn)
        )

    def _item_added(self, event: events.InputAdded | events.ItemAdded) -> None:
        item, now_ms = event.item, _now_ms()
        if is_call(item):
            return  # its notification follows when it runs
        stored = StoredItem(seq=0, created_ms=now_ms, item=dict(item))
        for shown in to_thread_items([stored], CallIndex()):
            if isinstance(shown, AgentMessage):
                self._message_finished(shown, now_ms)
            else:
                whole = self._as_sent(shown)
                self._item_started(whole, now_ms)
                self._item_completed(whole, now_ms)

    def _as_sent(self, item: ThreadItem) -> ThreadItem:
        original = self._inputs.pop(item.id, None)
        if isinstance(item, UserMessage) and original:
            return replace(item, content=original)
        if isinstance(item, FunctionCallOutput) and original:
            return replace(item, output=original)
        return item

    def _text_delta(self, event: events.TextDelta) -> None:
        if self._message is None or self._message.id != event.item_id:
            self._start_message(event.item_id)
        delta = notifications.AgentMessageDeltaNotification(
            thread_id=self._context.thread_id,
            turn_id=self.turn_id,
            item_id=event.item_id,
            delta=event.text,
        )
        self._notify(delta)

    def _start_message(self, item_id: str) -> AgentMessage:
        now_ms = _now_ms()
        self._message = AgentMessage(id=item_id, text="", started_at_ms=now_ms)
        self._item_started(self._message, now_ms)
        return self._message

    def _message_finished(self, message: AgentMessage, now_ms: int) -> None:
        started = self._message
        if started is None or started.id != message.id:
            started = self._start_message(message.id)
        self._last = replace(message, started_at_ms=started.started_at_ms, completed_at_ms=now_ms)
        self._message = None
        self._item_completed(self._last, now_ms)

    def _tool_started(self, event: events.ToolStarted) -> None:
        call = event.call
        if not self._context.is_tool(call.name):
            return
        now_ms = _now_ms()
        item = to_thread_item(
            self._record(call.call_id, call.name, call.arguments, started_at_ms=now_ms)
        )
        if item is not None:
            self._call_started_ms[call.call_id] = now_ms
            self._item_started(item, now_ms)

    def _tool_finished(self, event: events.ToolFinished) -> None:
        call, now_ms = event.call, _now_ms()
        if not self._context.is_tool(call.name):
            return
        started_ms = self._call_started_ms.pop(call.call_id, None)
        record = self._record(
            call.call_id,
            call.name,
            call.arguments,
            output=event.item,
            started_at_ms=now_ms - event.duration_ms if started_ms is None else started_ms,
            completed_at_ms=now_ms,
        )
        item = to_thread_item(record)
        if item is None:
            return
        if started_ms is None:
            self._item_started(replace(item, completed_at_ms=None), now_ms)
        self._item_completed(self._with_contents(item, event), now_ms)

    def _with_contents(self, item: ThreadItem, event: events.ToolFinished) -> ThreadItem:
        call_id = event.call.call_id
        answer, pictures = self._answers.pop(call_id, None), self._pictures.pop(call_id, {})
        if isinstance(item, DynamicToolCall):
            item = replace(item, duration_ms=event.duration_ms)
            if answer is not None:
                return replace(item, content_items=answer)
        return inline_urls(item, pictures)

    def _record(self, call_id: str, name: str, arguments: Any, **more: Any) -> ToolCallRecord:
        return ToolCallRecord(
            call_id=call_id,
            name=name,
            arguments=arguments,
            spec=self._context.tools.get(name),
            cwd=self._context.cwd,
            is_open="output" not in more,
            **more,
        )

    def _usage_updated(self, event: events.UsageUpdated) -> None:
        self._last_tokens = last = _breakdown(event.last)
        self._tokens = _sum(self._tokens, last)
        usage = ThreadTokenUsage(
            total=self._tokens, last=last, model_context_window=event.context_tokens
        )
        updated = notifications.ThreadTokenUsageUpdatedNotification(
            thread_id=self._context.thread_id, turn_id=self.turn_id, token_usage=usage
        )
        self._notify(updated)
        # limner knows no limits of an account, but clients expect this notification.
        self._notify(
            notifications.AccountRateLimitsUpdatedNotification(rate_limits=RateLimitSnapshot())
        )

    def _compaction_started(self, event: events.Compacting) -> None:
        now_ms = _now_ms()
        self._compaction = ContextCompaction(id=event.item_id, started_at_ms=now_ms)
        self._item_started(self._compaction, now_ms)

    def _compaction_finished(self, _: events.Compacted) -> None:
        assert self._compaction is not None, "a compaction starts before it ends"
        now_ms = _now_ms()
        self._item_completed(replace(self._compaction, completed_at_ms=now_ms), now_ms)

    def send_end(self, event: events.TurnEnded) -> None:
        """Send the notifications of the end of the turn."""
        thread_id = self._context.thread_id
        if event.error is not None:
            self._set_status(Broken())
            self._error(event.error, will_retry=False)
        self._notify(
            notifications.ThreadSpendUpdatedNotification(
                thread_id=thread_id,
                turn_id=self.turn_id,
                turn_cost_usd=event.cost_nano / NANO_PER_USD,
                thread_cost_usd=event.spent_nano / NANO_PER_USD,
            )
        )
        is_new = event.error is not None or self._last is not None
        if is_new and event.status != "interrupted":
            self._notify(self._read_state())
        if event.error is None:
            self._set_status(Idle())
        items = () if self._last is None or event.status != "completed" else (self._last,)
        ended_ms = _now_ms()
        turn = replace(
            running_turn(self.turn_id),
            items=items,
            items_view="summary" if items else "notLoaded",
            status=event.status,
            error=None if event.error is None else turn_error(event.error),
            started_at=self._started_ms // 1000,
            completed_at=ended_ms // 1000,
            duration_ms=ended_ms - self._started_ms,
        )
        self._notify(notifications.TurnCompletedNotification(thread_id=thread_id, turn=turn))

    def _read_state(self) -> Notice:
        before = self._context.read_state
        first = None if before is None else before.first_unread
        self._unread = ThreadReadState(
            first_unread=first or TurnPosition(turn_id=self.turn_id), revision=new_id()
        )
        return notifications.ThreadReadStateChangedNotification(
            thread_id=self._context.thread_id, read_state=self._unread
        )

    def _error(self, error: LimnerError, *, will_retry: bool) -> None:
        self._notify(
            notifications.ErrorNotification(
                error=turn_error(error),
                will_retry=will_retry,
                thread_id=self._context.thread_id,
                turn_id=self.turn_id,
            )
        )

    def _set_status(self, status: ThreadStatus) -> None:
        self.status = status
        self._notify(
            notifications.ThreadStatusChangedNotification(
                thread_id=self._context.thread_id, status=status
            )
        )

    def _item_started(self, item: ThreadItem, at_ms: int) -> None:
        self._notify(
            notifications.ItemStartedNotification(
                item=replace(item, completed_at_ms=None),
                thread_id=self._context.thread_id,
                turn_id=self.turn_id,
                started_at_ms=at_ms,
            )
        )

    def _item_completed(self, item: ThreadItem, at_ms: int) -> None:
        self._notify(
            notifications.ItemCompletedNotification(
                item=item,
                thread_id=self._context.thread_id,
                turn_id=self.turn_id,
                completed_at_ms=at_ms,
            )
        )

    def _notify(self, notice: Notice) -> None:
        self._context.subscribers.notify(notice)


def running_turn(turn_id: str) -> Turn:
    """A turn that has just started, as clients first see it."""
    return Turn(id=turn_id, root_turn_id=turn_id, items_view="notLoaded", status="inProgress")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _breakdown(usage: Usage) -> TokenUsageBreakdown:
    return TokenUsageBreakdown(
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cache_read_tokens or 0,
        cache_write_input_tokens=usage.cache_write_tokens or 0,
        output_tokens=usage.output_tokens,
        reasoning_output_tokens=usage.reasoning_tokens or 0,
    )


def _sum(one: TokenUsageBreakdown, other: TokenUsageBreakdown) -> TokenUsageBreakdown:
    names = TokenUsageBreakdown.__struct_fields__
    return TokenUsageBreakdown(**{n: getattr(one, n) + getattr(other, n) for n in names})
