"""What happens in a turn -> the JSON that programs read: a line for each event, and the result.

The names and members here are a promise: more may be added, none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never, cast

import msgspec

from limner.agent.events import (
    Compacted,
    Compacting,
    Event,
    InputAdded,
    ItemAdded,
    Retrying,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from limner.content import Picture
from limner.errors import NANO_PER_USD
from limner.frontends.cli.chat.tool_lines import decoded
from limner.tools.base import ToolResult
from limner.wires.base import Usage

Json = dict[str, Any]


def event_as_json(event: Event) -> Json:
    """One event as an object; its ``type`` says what happened."""
    match event:
        case TurnStarted() | TurnEnded():
            return _turn(event)
        case TextDelta():
            return {"type": "text", "item_id": event.item_id, "text": event.text}
        case InputAdded() | ItemAdded():
            kind = "input" if isinstance(event, InputAdded) else "item"
            return {"type": kind, "item": event.item}
        case ToolStarted() | ToolProgress() | ToolFinished():
            return _tool(event)
        case UsageUpdated():
            return _counted(event)
        case Retrying() | Compacting() | Compacted():
            return _aside(event)
        case _:
            assert_never(event)


class TurnSummary(msgspec.Struct):
    """What the result of a turn is made of, gathered from its events."""

    calls: list[ToolFinished] = []
    used: Usage | None = None
    ended: TurnEnded | None = None

    def add(self, event: Event) -> None:
        """Take note of one event."""
        match event:
            case ToolFinished():
                self.calls.append(event)
            case UsageUpdated():
                self.used = event.total
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
            "usage": _usage(self.used),
            "calls": [_call(done) for done in self.calls],
            "images": images_of(self.calls),
        }
        if ended.is_cut:
            result["cut"] = True
        if ended.error is not None:
            result["error"] = ended.error.as_json()
        return result


def images_of(calls: Sequence[ToolFinished]) -> list[Json]:
    """The pictures that tools answered with, each once, and the files they were written to."""
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
    """The file of each picture in a drawing tool's answer."""
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


def _tool(event: ToolStarted | ToolProgress | ToolFinished) -> Json:
    call = event.call
    told: Json = {"call_id": call.call_id, "name": call.name}
    match event:
        case ToolStarted():
            return {"type": "tool_started", **told, "arguments": call.arguments}
        case ToolProgress():
            news = event.progress
            return {
                "type": "tool_progress",
                **told,
                "message": news.message,
                "elapsed_s": news.elapsed_s,
                "fraction": news.fraction,
            }
        case ToolFinished():
            return {
                "type": "tool_finished",
                **_call(event),
                "value": decoded(event.result.value) if event.result.value else None,
                "images": images_of([event]),
            }


def _call(done: ToolFinished) -> Json:
    result = done.result
    call: Json = {
        "call_id": done.call.call_id,
        "name": done.call.name,
        "ok": result.ok,
        "cost_usd": result.cost_usd,
        "cost_source": result.cost_source,
        "duration_ms": done.duration_ms,
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


def _counted(event: UsageUpdated) -> Json:
    return {
        "type": "usage",
        "last": _usage(event.last),
        "total": _usage(event.total),
        "context_tokens": event.context_tokens,
        "session_usd": event.spent_nano / NANO_PER_USD,
    }


def _aside(event: Retrying | Compacting | Compacted) -> Json:
    match event:
        case Retrying():
            return {"type": "retrying", "error": event.error.as_json()}
        case Compacting():
            return {"type": "compacting", "item_id": event.item_id}
        case Compacted():
            return {
                "type": "compacted",
                "item_id": event.item_id,
                "summary": event.summary,
                "dropped": list(event.dropped),
            }


def _turn(event: TurnStarted | TurnEnded) -> Json:
    if isinstance(event, TurnStarted):
        return {"type": "turn_started", "turn": event.turn_id}
    return {"type": "turn_ended", "turn": event.turn_id, "status": event.status}


def _usage(used: Usage | None) -> Json | None:
    if used is None:
        return None
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "reasoning_tokens": used.reasoning_tokens,
    }
