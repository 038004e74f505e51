"""What happens in a turn -> the notifications that clients get of it, in upstream's order.

By the time an event comes here it is in the store: what a client has been told is never lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from limner.agent import events
from limner.agent.session import StoredItem
from limner.agent.sessions import new_id
from limner.errors import NANO_PER_USD, LimnerError
from limner.frontends.appserver.inline_pictures import inlined
from limner.frontends.appserver.inputs import Given
from limner.frontends.appserver.item_views import CallIndex, items_of
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
from limner.frontends.appserver.protocol.threads import Active, Broken, Idle, ThreadStatus
from limner.frontends.appserver.protocol.turns import Turn
from limner.frontends.appserver.rpc_errors import turn_error
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_items import Called, item_of
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.wires.base import Usage
from limner.wires.items import Item, is_call


class ShowPicture(Protocol):
    """Shows an item of a turn."""

    def __call__(self, item: Item, *, turn_id: str) -> None:
        """Show it."""
        ...


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn takes place.

    Attributes:
        thread_id: the thread.
        cwd: what paths in calls are relative to.
        tools: the client's tools, by the names that the model has for them.
        is_tool: whether there is a tool of a name.
        counted: what the turns before have counted.
        tell: tells every client that listens.
        show: shows an item of a turn to those who want to see them.
    """

    thread_id: str
    cwd: str
    tools: Mapping[str, ToolSpec]
    is_tool: Callable[[str], bool]
    counted: TokenUsageBreakdown
    tell: Callable[[Notice], None]
    show: ShowPicture


class TurnNotifications:
    """Follows one turn.

    Args:
        scene: where it takes place.
        turn_id: the turn.
        begun: is called when the turn has begun, before anybody is told.

    Attributes:
        turn_id: the turn.
        cwd: the folder it works in.
        status: what the thread is doing.
        counted: what the thread has counted in all.
    """

    def __init__(self, scene: TurnContext, turn_id: str, *, begun: Callable[[], None]) -> None:
        self._scene, self.turn_id, self._begun = scene, turn_id, begun
        self.cwd = scene.cwd
        self.status: ThreadStatus = Idle()
        self.counted = scene.counted
        self._last_counted: TokenUsageBreakdown | None = None
        self._began_ms = 0
        self._message: AgentMessage | None = None
        self._last: AgentMessage | None = None
        self._called_ms: dict[str, int] = {}
        self._compacting: ContextCompaction | None = None
        self._given: dict[object, Given] = {}
        self._answers: dict[str, tuple[ContentItem, ...]] = {}
        self._pictures: dict[str, Mapping[str, str]] = {}
        self._tellers: Mapping[type[msgspec.Struct], Callable[[Any], None]] = {
            events.TurnStarted: self._started,
            events.InputAdded: self._added,
            events.TextDelta: self._spoke,
            events.ItemAdded: self._added,
            events.ToolStarted: self._called,
            events.ToolFinished: self._returned,
            events.UsageUpdated: self._counted,
            events.Retrying: lambda event: self._failed(event.error, will_retry=True),
            events.Compacting: self._compacting_began,
            events.Compacted: self._compacted,
        }

    @property
    def has_begun(self) -> bool:
        """Whether clients were told of the turn."""
        return self._began_ms > 0

    def expect(self, item: Item, given: Given) -> None:
        """Note how a client put what the user or a tool says: so it is shown."""
        self._given[item.get("id")] = given

    def answered(self, call_id: str, content_items: tuple[ContentItem, ...]) -> None:
        """Note how a client put the answer to a call: so it is shown."""
        self._answers[call_id] = content_items

    def drew(self, call_id: str, pictures: Mapping[str, str]) -> None:
        """Note the data URLs of a call's pictures, by the addresses that items name them by."""
        self._pictures[call_id] = pictures

    def waiting(self, on_approval: bool) -> None:
        """Tell that the turn waits for somebody's word, or no longer does."""
        self._become(Active(active_flags=("waitingOnApproval",) if on_approval else ()))

    def count(self, kept: ThreadState) -> ThreadState:
        """The same, and what this turn has counted."""
        return kept.counted(self.counted, last=self._last_counted, turn_id=self.turn_id)

    def tell(self, event: events.Event) -> None:
        """Tell of one event.

        How far a tool has come has no place in this protocol; of the end, `conclude` tells.
        """
        if isinstance(event, events.InputAdded | events.ItemAdded | events.ToolFinished):
            self._scene.show(event.item, turn_id=self.turn_id)
        teller = self._tellers.get(type(event))
        if teller is not None:
            teller(event)

    def _started(self, _: events.TurnStarted) -> None:
        self._began_ms = _now_ms()
        self._begun()
        self._become(Active())
        turn = replace(running(self.turn_id), started_at=self._began_ms // 1000)
        self._say(notifications.TurnStartedNotification(thread_id=self._scene.thread_id, turn=turn))

    def _added(self, event: events.InputAdded | events.ItemAdded) -> None:
        item, now_ms = event.item, _now_ms()
        if is_call(item):
            return  # it is told when it is run
        stored = StoredItem(seq=0, created_ms=now_ms, item=dict(item))
        for shown in items_of([stored], CallIndex()):
            if isinstance(shown, AgentMessage):
                self._said(shown, now_ms)
            else:
                whole = self._as_given(shown)
                self._item_started(whole, now_ms)
                self._item_completed(whole, now_ms)

    def _as_given(self, item: ThreadItem) -> ThreadItem:
        given = self._given.pop(item.id, None)
        if isinstance(item, UserMessage) and given:
            return replace(item, content=given)
        if isinstance(item, FunctionCallOutput) and given:
            return replace(item, output=given)
        return item

    def _spoke(self, event: events.TextDelta) -> None:
        if self._message is None or self._message.id != event.item_id:
            self._open_message(event.item_id)
        delta = notifications.AgentMessageDeltaNotification(
            thread_id=self._scene.thread_id,
            turn_id=self.turn_id,
            item_id=event.item_id,
            delta=event.text,
        )
        self._say(delta)

    def _open_message(self, item_id: str) -> AgentMessage:
        now_ms = _now_ms()
        self._message = AgentMessage(id=item_id, text="", started_at_ms=now_ms)
        self._item_started(self._message, now_ms)
        return self._message

    def _said(self, message: AgentMessage, now_ms: int) -> None:
        begun = self._message
        if begun is None or begun.id != message.id:
            begun = self._open_message(message.id)
        self._last = replace(message, started_at_ms=begun.started_at_ms, completed_at_ms=now_ms)
        self._message = None
        self._item_completed(self._last, now_ms)

    def _called(self, event: events.ToolStarted) -> None:
        call = event.call
        if not self._scene.is_tool(call.name):
            return
        now_ms = _now_ms()
        item = item_of(self._call(call.call_id, call.name, call.arguments, started_at_ms=now_ms))
        if item is not None:
            self._called_ms[call.call_id] = now_ms
            self._item_started(item, now_ms)

    def _returned(self, event: events.ToolFinished) -> None:
        call, now_ms = event.call, _now_ms()
        if not self._scene.is_tool(call.name):
            return
        began_ms = self._called_ms.pop(call.call_id, None)
        told = self._call(
            call.call_id,
            call.name,
            call.arguments,
            output=event.item,
            started_at_ms=now_ms - event.duration_ms if began_ms is None else began_ms,
            completed_at_ms=now_ms,
        )
        item = item_of(told)
        if item is None:
            return
        if began_ms is None:
            self._item_started(replace(item, completed_at_ms=None), now_ms)
        self._item_completed(self._with_contents(item, event), now_ms)

    def _with_contents(self, item: ThreadItem, event: events.ToolFinished) -> ThreadItem:
        call_id = event.call.call_id
        answer, pictures = self._answers.pop(call_id, None), self._pictures.pop(call_id, {})
        if isinstance(item, DynamicToolCall):
            item = replace(item, duration_ms=event.duration_ms)
            if answer is not None:
                return replace(item, content_items=answer)
        return inlined(item, pictures)

    def _call(self, call_id: str, name: str, arguments: Any, **more: Any) -> Called:
        return Called(
            call_id=call_id,
            name=name,
            arguments=arguments,
            spec=self._scene.tools.get(name),
            cwd=self._scene.cwd,
            is_open="output" not in more,
            **more,
        )

    def _counted(self, event: events.UsageUpdated) -> None:
        self._last_counted = last = _breakdown(event.last)
        self.counted = _sum(self.counted, last)
        usage = ThreadTokenUsage(
            total=self.counted, last=last, model_context_window=event.context_tokens
        )
        told = notifications.ThreadTokenUsageUpdatedNotification(
            thread_id=self._scene.thread_id, turn_id=self.turn_id, token_usage=usage
        )
        self._say(told)
        # Nothing is known of an account's limits; clients expect to hear that too.
        self._say(
            notifications.AccountRateLimitsUpdatedNotification(rate_limits=RateLimitSnapshot())
        )

    def _compacting_began(self, event: events.Compacting) -> None:
        now_ms = _now_ms()
        self._compacting = ContextCompaction(id=event.item_id, started_at_ms=now_ms)
        self._item_started(self._compacting, now_ms)

    def _compacted(self, _: events.Compacted) -> None:
        assert self._compacting is not None, "what has ended has begun"
        now_ms = _now_ms()
        self._item_completed(replace(self._compacting, completed_at_ms=now_ms), now_ms)

    def conclude(self, event: events.TurnEnded) -> None:
        """Tell of the end of the turn."""
        thread_id = self._scene.thread_id
        if event.error is not None:
            self._become(Broken())
            self._failed(event.error, will_retry=False)
        self._say(
            notifications.ThreadSpendUpdatedNotification(
                thread_id=thread_id,
                turn_id=self.turn_id,
                turn_cost_usd=event.cost_nano / NANO_PER_USD,
                thread_cost_usd=event.spent_nano / NANO_PER_USD,
            )
        )
        is_new = event.error is not None or self._last is not None
        if is_new and event.status != "interrupted":
            self._say(self._unread())
        if event.error is None:
            self._become(Idle())
        items = () if self._last is None or event.status != "completed" else (self._last,)
        ended_ms = _now_ms()
        turn = replace(
            running(self.turn_id),
            items=items,
            items_view="summary" if items else "notLoaded",
            status=event.status,
            error=None if event.error is None else turn_error(event.error),
            started_at=self._began_ms // 1000,
            completed_at=ended_ms // 1000,
            duration_ms=ended_ms - self._began_ms,
        )
        self._say(notifications.TurnCompletedNotification(thread_id=thread_id, turn=turn))

    def _unread(self) -> Notice:
        state = notifications.ThreadReadState(
            first_unread=notifications.TurnPosition(turn_id=self.turn_id), revision=new_id()
        )
        return notifications.ThreadReadStateChangedNotification(
            thread_id=self._scene.thread_id, read_state=state
        )

    def _failed(self, error: LimnerError, *, will_retry: bool) -> None:
        self._say(
            notifications.ErrorNotification(
                error=turn_error(error),
                will_retry=will_retry,
                thread_id=self._scene.thread_id,
                turn_id=self.turn_id,
            )
        )

    def _become(self, status: ThreadStatus) -> None:
        self.status = status
        self._say(
            notifications.ThreadStatusChangedNotification(
                thread_id=self._scene.thread_id, status=status
            )
        )

    def _item_started(self, item: ThreadItem, at_ms: int) -> None:
        self._say(
            notifications.ItemStartedNotification(
                item=replace(item, completed_at_ms=None),
                thread_id=self._scene.thread_id,
                turn_id=self.turn_id,
                started_at_ms=at_ms,
            )
        )

    def _item_completed(self, item: ThreadItem, at_ms: int) -> None:
        self._say(
            notifications.ItemCompletedNotification(
                item=item,
                thread_id=self._scene.thread_id,
                turn_id=self.turn_id,
                completed_at_ms=at_ms,
            )
        )

    def _say(self, notice: Notice) -> None:
        self._scene.tell(notice)


def running(turn_id: str) -> Turn:
    """A turn that has begun, as clients are first told of it."""
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
