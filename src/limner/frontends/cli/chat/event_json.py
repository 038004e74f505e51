"""The events of a turn -> the JSON that programs read: a line for each event, and the result.

The names and members here are a promise: more may be added, none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from limner.agent.events import (
    Event,
    Retrying,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    UsageUpdated,
)
from limner.content import Picture
from limner.errors import NANO_PER_USD
from limner.frontends.cli.chat.tool_lines import decoded
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage

Json = dict[str, Any]


def event_as_json(event: Event) -> Json:
    """One event as an object; its ``type`` says what happened."""
    kind = type(event)
    if (shape := _SHAPES.get(kind)) is None:
        return msgspec.to_builtins(event)
    return {"type": kind.__struct_config__.tag, **shape(event)}


class TurnSummary(msgspec.Struct):
    """Collects the result of a turn from its events."""

    calls: list[ToolFinished] = []
    usage: Usage | None = None
    ended: TurnEnded | None = None

    def add(self, event: Event) -> None:
        """Take account of one event."""
        match event:
            case ToolFinished():
                self.calls.append(event)
            case UsageUpdated():
                self.usage = event.total
            case TurnEnded():
                self.ended = event
            case _:
                pass

    def as_json(self, *, session: str | None, model: str) -> Json:
        """The result of a turn that has ended."""
        assert self.ended is not None
        ended = self.ended
        result: Json = {
            "text": ended.text,
            "status": ended.status,
            "session": session,
            "model": model,
            "cost_usd": ended.cost_nano / NANO_PER_USD,
            "session_usd": ended.spent_nano / NANO_PER_USD,
            "usage": msgspec.to_builtins(self.usage),
            "calls": [_call_as_json(call) for call in self.calls],
            "images": images_of(self.calls),
        }
        if ended.is_cut:
            result["cut"] = True
        if ended.error is not None:
            result["error"] = ended.error.as_json()
        return result


def images_of(calls: Sequence[ToolFinished]) -> list[Json]:
    """The pictures that tools returned, each once, and the files they were written to."""
    images: dict[str, Json] = {}
    for done in calls:
        paths = _paths(decoded(done.result.value))
        for part in done.result.content:
            if isinstance(part, Picture):
                images.setdefault(
                    part.handle, {"path": paths.get(part.handle), "handle": part.handle}
                )
    return list(images.values())


def _paths(value: Any) -> dict[str, str]:
    """The file of each picture in a drawing tool's result."""
    if not isinstance(value, dict):
        return {}
    answer = cast("Json", value)
    drawn: list[Any] = [answer, *cast("list[Any]", answer.get("pictures") or ())]
    rows = [cast("Json", one) for one in drawn if isinstance(one, dict)]
    return {
        row["image"]: row["path"]
        for row in rows
        if isinstance(row.get("image"), str) and isinstance(row.get("path"), str)
    }


def _started(event: ToolStarted) -> Json:
    return {**_name(event.call), "arguments": event.call.arguments}


def _progress(event: ToolProgress) -> Json:
    progress = event.progress
    return {
        **_name(event.call),
        "message": progress.message,
        "elapsed_s": progress.elapsed_s,
        "fraction": progress.fraction,
    }


def _finished(event: ToolFinished) -> Json:
    return {
        **_call_as_json(event),
        "value": decoded(event.result.value) if event.result.value else None,
        "images": images_of([event]),
    }


def _usage(event: UsageUpdated) -> Json:
    return {
        "last": msgspec.to_builtins(event.last),
        "total": msgspec.to_builtins(event.total),
        "context_tokens": event.context_tokens,
        "session_usd": event.spent_nano / NANO_PER_USD,
    }


def _retrying(event: Retrying) -> Json:
    return {"error": event.error.as_json()}


def _ended(event: TurnEnded) -> Json:
    # The rest of it is in the result, which follows.
    return {"turn": event.turn_id, "status": event.status}


_SHAPES: Mapping[type[Any], Callable[[Any], Json]] = {
    ToolStarted: _started,
    ToolProgress: _progress,
    ToolFinished: _finished,
    UsageUpdated: _usage,
    Retrying: _retrying,
    TurnEnded: _ended,
}


def _name(call: ToolCall) -> Json:
    return {"call_id": call.call_id, "name": call.name}


def _call_as_json(finished: ToolFinished) -> Json:
    result = finished.result
    call: Json = {
        **_name(finished.call),
        "ok": result.ok,
        "cost_usd": result.cost_usd,
        "cost_source": result.cost_source,
        "duration_ms": finished.duration_ms,
    }
    return call if result.error is None else {**call, "error": _error(result)}


def _error(result: ToolResult) -> Json:
    return {
        "code": result.domain_code or result.code,
        "message": result.error,
        "retryable": result.retryable,
        "billed": result.billed,
        "hint": result.hint,
    }
