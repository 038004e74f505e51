"""Notifications of a server -> the events of a turn, the same as those of a local agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from limner.agent.events import (
    Compacted,
    Compacting,
    Event,
    InputAdded,
    ItemAdded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
    UsageUpdated,
)
from limner.json_shapes import as_list, as_object
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import Item

Params = Mapping[str, Any]


class TurnResult(TurnEnded, frozen=True, kw_only=True, tag="turn_ended"):
    """The end of a turn at a server.

    Attributes:
        items: every item of the turn, as the server describes it.
        usage: the tokens of its requests together.
        cost_usd: what the tools cost that ran here, and what the server says about its own cost;
            limner's server says it, Codex does not.
        session_usd: the same for all turns of the thread; of the tools here, those of the turns
            since this client opened the thread.
        error: why it failed or was interrupted, if the server says; ``extras["info"]`` is the
            server's own code.
    """

    unshown = ("raw", "items")

    items: tuple[Item, ...] = ()
    usage: Usage = Usage(input_tokens=0, output_tokens=0)

    def as_json(self) -> dict[str, object]:
        """As that of `TurnEnded`, with the tokens of the turn."""
        return {**super().as_json(), "usage": msgspec.to_builtins(self.usage)}


class Reconnected(TurnEvent, frozen=True, kw_only=True, tag="reconnected"):
    """The connection was lost and is back.

    ``goes_on`` says that the turn is still running; some of its events may be missing.
    """

    reason: str
    goes_on: bool


class RawNotification(TurnEvent, frozen=True, kw_only=True, tag="notification"):
    """Any other notification about the thread; ``raw`` is its params."""

    method: str

    def as_json(self) -> dict[str, object]:
        """The method and its params."""
        return self._typed({"method": self.method, "params": self.raw})


RemoteEvent = Event | Reconnected | RawNotification
"""Every event of a turn at an app-server: those of a local agent, and these two more."""


class _Turn(msgspec.Struct):
    id: str


class _TurnParams(msgspec.Struct):
    turn: _Turn


class _DeltaParams(msgspec.Struct, rename="camel"):
    item_id: str
    delta: str


class _ItemParams(msgspec.Struct):
    item: dict[str, Any]


class _UsageParams(msgspec.Struct, rename="camel"):
    token_usage: dict[str, Any]


def read_event(method: str, params: Params, *, is_own_tool: Callable[[str], bool]) -> RemoteEvent:
    """Read a notification; one of an unexpected shape becomes a `RawNotification`.

    The tools that the server runs are `ToolStarted` and `ToolFinished`. The tools of this client
    are not: it reports them itself.
    """
    with suppress(msgspec.ValidationError):
        if method in ("item/started", "item/completed"):
            item = msgspec.convert(params, _ItemParams).item
            event = _read_item(item, params, is_own_tool, is_done=method == "item/completed")
            return event or RawNotification(method=method, raw=params)
        if (reader := _READERS.get(method)) is not None:
            return reader(params)
    return RawNotification(method=method, raw=params)


def _read_started(params: Params) -> TurnStarted:
    return TurnStarted(turn_id=msgspec.convert(params, _TurnParams).turn.id, raw=params)


def _read_delta(params: Params) -> TextDelta:
    delta = msgspec.convert(params, _DeltaParams)
    return TextDelta(item_id=delta.item_id, text=delta.delta, raw=params)


def _read_usage(params: Params) -> UsageUpdated:
    usage = msgspec.convert(params, _UsageParams).token_usage
    return UsageUpdated(
        last=_read_tokens(usage.get("last")),
        total=_read_tokens(usage.get("total")),
        context_tokens=_read_count(usage.get("modelContextWindow")) or None,
        spent_nano=0,
        raw=params,
    )


def _read_tokens(value: object) -> Usage:
    tokens = as_object(value)
    return Usage(
        input_tokens=_read_count(tokens.get("inputTokens")),
        output_tokens=_read_count(tokens.get("outputTokens")),
        cache_read_tokens=_read_count(tokens.get("cachedInputTokens")),
        reasoning_tokens=_read_count(tokens.get("reasoningOutputTokens")),
    )


def _read_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_READERS: Mapping[str, Callable[[Params], Event]] = {
    "turn/started": _read_started,
    "item/agentMessage/delta": _read_delta,
    "thread/tokenUsage/updated": _read_usage,
}


def _read_item(
    item: Item, params: Params, is_own_tool: Callable[[str], bool], *, is_done: bool
) -> Event | None:
    if item.get("type") == "contextCompaction":
        item_id = str(item.get("id"))
        if is_done:
            return Compacted(item_id=item_id, summary="", dropped=(), raw=params)
        return Compacting(item_id=item_id, raw=params)
    call = _read_call(item)
    if call is not None and not is_own_tool(call.name):
        if is_done:
            return _read_finished(call, item, params)
        return ToolStarted(call=call, raw=params)
    if not is_done:
        return None
    kind = InputAdded if item.get("type") == "userMessage" else ItemAdded
    return kind(item=item, raw=params)


# A tool that a server runs has an item of its own type: the name of the tool, and its arguments.
_SERVER_TOOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "imageGeneration": ("image_generate", ("revisedPrompt",)),
    "imageView": ("inspect_image", ("path",)),
    "commandExecution": ("shell", ("command", "cwd")),
    "fileChange": ("apply_patch", ("changes",)),
    "webSearch": ("web_search", ("query",)),
}


def _read_call(item: Item) -> ToolCall | None:
    call_id, kind = str(item.get("id")), str(item.get("type"))
    if kind in ("dynamicToolCall", "mcpToolCall"):
        arguments = as_object(item.get("arguments"))
        return ToolCall(name=str(item.get("tool")), arguments=arguments, call_id=call_id)
    if kind not in _SERVER_TOOLS:
        return None
    name, members = _SERVER_TOOLS[kind]
    return ToolCall(
        name=name,
        arguments={member: item[member] for member in members if item.get(member) is not None},
        call_id=call_id,
    )


def _read_finished(call: ToolCall, item: Item, params: Params) -> ToolFinished:
    is_ok = item.get("status") not in ("failed", "declined") and item.get("success") is not False
    text = _output_text(item)
    result = ToolResult(
        call_id=call.call_id,
        name=call.name,
        ok=is_ok,
        value=text if is_ok else "",
        code=None if is_ok else "execution_failed",
        error=None if is_ok else text or "The tool failed.",
    )
    duration_ms = _read_count(item.get("durationMs"))
    return ToolFinished(call=call, result=result, item=item, duration_ms=duration_ms, raw=params)


def _output_text(item: Item) -> str:
    """The output of a server's tool, without its pictures."""
    if item.get("type") == "imageGeneration":
        path, prompt = item.get("savedPath"), item.get("revisedPrompt")
        return json.dumps({"path": path, "prompt_used": prompt})
    if isinstance(output := item.get("aggregatedOutput"), str):
        return output
    content = item.get("contentItems") or as_object(item.get("result")).get("content")
    texts = [as_object(part).get("text") for part in as_list(content)]
    message = as_object(item.get("error")).get("message")
    return "\n".join(text for text in (*texts, message) if isinstance(text, str))
