"""The notifications and items of protocol v2 -> the events of the first protocol."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limner.agent.session import StoredItem
from limner.agent.stored_turns import is_abort
from limner.frontends.appserver.item_views import CallIndex, to_thread_items
from limner.frontends.appserver.protocol import items, notifications
from limner.frontends.appserver.protocol.base import ImageInput, LocalImageInput, TextInput
from limner.frontends.appserver.protocol.notifications import Notice, TokenUsageBreakdown
from limner.frontends.appserver.protocol.turns import ErrorInfo, Turn
from limner.frontends.appserver.v1 import events
from limner.frontends.appserver.v1.events import EventMsg

# The types of message parts that events can carry.
_EVENT_PARTS = frozenset({"input_text", "output_text", "input_image"})
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def to_events(notice: Notice) -> Sequence[EventMsg]:
    """The events of a notification; none if only protocol v2 has it."""
    translate = _TRANSLATORS.get(type(notice))
    return () if translate is None else translate(notice)


def turn_of(notice: Notice) -> str:
    """The id of the turn of a notification; empty outside a turn."""
    if isinstance(
        notice, notifications.TurnStartedNotification | notifications.TurnCompletedNotification
    ):
        return notice.turn.id
    return str(getattr(notice, "turn_id", ""))


def item_to_events(stored: StoredItem) -> Sequence[EventMsg]:
    """The events of a stored item; the item itself if no event has all of it."""
    item = stored.item
    if "compaction" in item:
        return [events.ContextCompacted()]
    if is_abort(item) and isinstance(item.get("turn_id"), str):
        return [events.TurnAborted(turn_id=item["turn_id"])]
    seen = to_thread_items([stored], CallIndex())
    found = [event for one in seen if _has_event(one, item) for event in _completed(one, "")]
    return found or [events.RawResponseItem(item=item)]


def _has_event(seen: items.ThreadItem, item: dict[str, Any]) -> bool:
    if isinstance(seen, items.UserMessage | items.AgentMessage):
        kinds = {part.get("type") for part in item["content"]}
        return kinds <= _EVENT_PARTS and not (
            "input_image" in kinds and item["role"] == "assistant"
        )
    return isinstance(seen, items.Reasoning)


def _started(item: items.ThreadItem, turn_id: str) -> Sequence[EventMsg]:
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


def _completed(item: items.ThreadItem, turn_id: str) -> Sequence[EventMsg]:
    if isinstance(item, items.DynamicToolCall):
        return [_tool_response(item, turn_id)]
    translate = _ITEM_TRANSLATORS.get(type(item))
    return () if translate is None else translate(item)


def _user_message(item: items.UserMessage) -> Sequence[EventMsg]:
    given = item.content
    event = events.UserMessageEvent(
        message="".join(one.text for one in given if isinstance(one, TextInput)),
        images=tuple(str(one.url) for one in given if isinstance(one, ImageInput)),
        local_images=tuple(one.path for one in given if isinstance(one, LocalImageInput)),
    )
    return [event]


def _reasoning(item: items.Reasoning) -> Sequence[EventMsg]:
    summaries = [events.AgentReasoning(text=text) for text in item.summary]
    return [*summaries, *(events.AgentReasoningRawContent(text=text) for text in item.content)]


def _generated(item: items.ImageGeneration) -> Sequence[EventMsg]:
    event = events.ImageGenerationEnd(
        call_id=item.id,
        status=item.status,
        revised_prompt=item.revised_prompt,
        result=item.result,
        saved_path=item.saved_path,
    )
    return [event]


def _tool_response(item: items.DynamicToolCall, turn_id: str) -> EventMsg:
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


def _error(notice: notifications.ErrorNotification) -> EventMsg:
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
    """A code of an error, as this protocol spells it."""
    return _HUMP.sub("_", info).lower() if isinstance(info, str) else info


_ITEM_TRANSLATORS: Mapping[type[items.ThreadItem], Callable[[Any], Sequence[EventMsg]]] = {
    items.UserMessage: _user_message,
    items.AgentMessage: lambda item: [
        events.AgentMessageEvent(message=item.text, phase=item.phase)
    ],
    items.Reasoning: _reasoning,
    items.ImageGeneration: _generated,
    items.ImageView: lambda item: [events.ViewImageToolCall(call_id=item.id, path=item.path)],
    items.ContextCompaction: lambda _: [events.ContextCompacted()],
}
_TRANSLATORS: Mapping[type[Notice], Callable[[Any], Sequence[EventMsg]]] = {
    notifications.TurnStartedNotification: lambda notice: [
        events.TaskStarted(turn_id=notice.turn.id)
    ],
    notifications.ItemStartedNotification: lambda notice: _started(notice.item, notice.turn_id),
    notifications.ItemCompletedNotification: lambda notice: _completed(notice.item, notice.turn_id),
    notifications.AgentMessageDeltaNotification: lambda notice: [
        events.AgentMessageDelta(delta=notice.delta)
    ],
    notifications.ThreadTokenUsageUpdatedNotification: lambda notice: [_count(notice.token_usage)],
    notifications.ErrorNotification: lambda notice: [_error(notice)],
    notifications.TurnCompletedNotification: lambda notice: [_end(notice.turn)],
    notifications.WarningNotification: lambda notice: [events.WarningEvent(message=notice.message)],
}
