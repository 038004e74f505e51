"""What clients of the second protocol are told or shown -> the events that the first has for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limner.agent.session import StoredItem
from limner.frontends.appserver.item_views import CallIndex, items_of
from limner.frontends.appserver.protocol import items, notifications
from limner.frontends.appserver.protocol.base import ImageInput, LocalImageInput, TextInput
from limner.frontends.appserver.protocol.notifications import Notice, TokenUsageBreakdown
from limner.frontends.appserver.protocol.turns import ErrorInfo, Turn
from limner.frontends.appserver.stored_turns import is_abort
from limner.frontends.appserver.v1 import events
from limner.frontends.appserver.v1.events import EventMsg

# The parts of a message that an event has a word for.
_WORDED = frozenset({"input_text", "output_text", "input_image"})
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def narrated(notice: Notice) -> Sequence[EventMsg]:
    """What a notification says; nothing where only the second protocol has a word for it."""
    teller = _TELLERS.get(type(notice))
    return () if teller is None else teller(notice)


def turn_of(notice: Notice) -> str:
    """The id of the turn that a notification is about, empty outside one."""
    if isinstance(
        notice, notifications.TurnStartedNotification | notifications.TurnCompletedNotification
    ):
        return notice.turn.id
    return str(getattr(notice, "turn_id", ""))


def replayed(stored: StoredItem) -> Sequence[EventMsg]:
    """What an item of a history says; the item itself where no event says all of it."""
    item = stored.item
    if "compaction" in item:
        return [events.ContextCompacted()]
    if is_abort(item) and isinstance(item.get("turn_id"), str):
        return [events.TurnAborted(turn_id=item["turn_id"])]
    seen = items_of([stored], CallIndex())
    worded = [event for one in seen if _is_worded(one, item) for event in _done(one, "")]
    return worded or [events.RawResponseItem(item=item)]


def _is_worded(seen: items.ThreadItem, item: dict[str, Any]) -> bool:
    if isinstance(seen, items.UserMessage | items.AgentMessage):
        kinds = {part.get("type") for part in item["content"]}
        return kinds <= _WORDED and not ("input_image" in kinds and item["role"] == "assistant")
    return isinstance(seen, items.Reasoning)


def _begun(item: items.ThreadItem, turn_id: str) -> Sequence[EventMsg]:
    match item:
        case items.DynamicToolCall():
            return [
                events.DynamicToolCallRequest(
                    call_id=item.id,
                    turn_id=turn_id,
                    namespace=item.namespace,
                    tool=item.tool,
                    arguments=item.arguments,
                )
            ]
        case items.ImageGeneration():
            return [events.ImageGenerationBegin(call_id=item.id)]
        case _:
            return []


def _done(item: items.ThreadItem, turn_id: str) -> Sequence[EventMsg]:
    if isinstance(item, items.DynamicToolCall):
        return [_answered(item, turn_id)]
    teller = _ITEM_TELLERS.get(type(item))
    return () if teller is None else teller(item)


def _said(item: items.UserMessage) -> Sequence[EventMsg]:
    given = item.content
    told = events.UserMessageEvent(
        message="".join(one.text for one in given if isinstance(one, TextInput)),
        images=tuple(str(one.url) for one in given if isinstance(one, ImageInput)),
        local_images=tuple(one.path for one in given if isinstance(one, LocalImageInput)),
    )
    return [told]


def _thought(item: items.Reasoning) -> Sequence[EventMsg]:
    summed = [events.AgentReasoning(text=text) for text in item.summary]
    return [*summed, *(events.AgentReasoningRawContent(text=text) for text in item.content)]


def _drawn(item: items.ImageGeneration) -> Sequence[EventMsg]:
    told = events.ImageGenerationEnd(
        call_id=item.id,
        status=item.status,
        revised_prompt=item.revised_prompt,
        result=item.result,
        saved_path=item.saved_path,
    )
    return [told]


def _answered(item: items.DynamicToolCall, turn_id: str) -> EventMsg:
    seconds, rest_ms = divmod(item.duration_ms or 0, 1000)
    return events.DynamicToolCallResponseEvent(
        call_id=item.id,
        turn_id=turn_id,
        namespace=item.namespace,
        tool=item.tool,
        arguments=item.arguments,
        content_items=item.content_items or (),
        success=item.success or False,
        duration=events.Duration(secs=seconds, nanos=rest_ms * 1_000_000),
    )


def _count(usage: notifications.ThreadTokenUsage) -> EventMsg:
    info = events.TokenUsageInfo(
        total_token_usage=_tokens(usage.total),
        last_token_usage=_tokens(usage.last),
        model_context_window=usage.model_context_window,
    )
    return events.TokenCount(info=info)


def _tokens(counted: TokenUsageBreakdown) -> events.TokenUsage:
    return events.TokenUsage(
        input_tokens=counted.input_tokens,
        cached_input_tokens=counted.cached_input_tokens,
        output_tokens=counted.output_tokens,
        reasoning_output_tokens=counted.reasoning_output_tokens,
        total_tokens=counted.total_tokens,
    )


def _failure(notice: notifications.ErrorNotification) -> EventMsg:
    error, info = notice.error, _snake(notice.error.codex_error_info)
    if notice.will_retry:
        return events.StreamError(
            message=error.message,
            codex_error_info=info,
            additional_details=error.additional_details,
        )
    return events.ErrorEvent(message=error.message, codex_error_info=info)


def _end(turn: Turn) -> EventMsg:
    if turn.status == "interrupted":
        return events.TurnAborted(turn_id=turn.id)
    spoken = [one.text for one in turn.items if isinstance(one, items.AgentMessage)]
    return events.TaskComplete(turn_id=turn.id, last_agent_message=spoken[-1] if spoken else None)


def _snake(info: ErrorInfo | None) -> str | dict[str, Any] | None:
    """A word that programs know, as this protocol spells it."""
    return _HUMP.sub("_", info).lower() if isinstance(info, str) else info


_ITEM_TELLERS: Mapping[type[items.ThreadItem], Callable[[Any], Sequence[EventMsg]]] = {
    items.UserMessage: _said,
    items.AgentMessage: lambda item: [
        events.AgentMessageEvent(message=item.text, phase=item.phase)
    ],
    items.Reasoning: _thought,
    items.ImageGeneration: _drawn,
    items.ImageView: lambda item: [events.ViewImageToolCall(call_id=item.id, path=item.path)],
    items.ContextCompaction: lambda _: [events.ContextCompacted()],
}
_TELLERS: Mapping[type[Notice], Callable[[Any], Sequence[EventMsg]]] = {
    notifications.TurnStartedNotification: lambda told: [events.TaskStarted(turn_id=told.turn.id)],
    notifications.ItemStartedNotification: lambda told: _begun(told.item, told.turn_id),
    notifications.ItemCompletedNotification: lambda told: _done(told.item, told.turn_id),
    notifications.AgentMessageDeltaNotification: lambda told: [
        events.AgentMessageDelta(delta=told.delta)
    ],
    notifications.ThreadTokenUsageUpdatedNotification: lambda told: [_count(told.token_usage)],
    notifications.ErrorNotification: lambda told: [_failure(told)],
    notifications.TurnCompletedNotification: lambda told: [_end(told.turn)],
    notifications.WarningNotification: lambda told: [events.WarningEvent(message=told.message)],
}
