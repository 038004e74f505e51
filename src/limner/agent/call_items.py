"""A model's call <-> a tool's result, as items of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from limner.content import Text
from limner.errors import InputInvalid
from limner.tools.base import ToolCall, ToolResult
from limner.wires.items import Item, function_call_output, text_part, to_parts

SAYS_IT_FAILED = "The tool says that it failed."
_KINDS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def is_call(item: Item) -> bool:
    """Whether a model calls a tool here."""
    return item.get("type") in _KINDS


def read_call(item: Item) -> ToolCall:
    """The call that an item makes.

    Raises:
        InputInvalid: its arguments are no JSON object, as when an answer was cut off.
    """
    call_id, name = str(item.get("call_id")), str(item.get("name"))
    if item.get("type") == "custom_tool_call":
        return ToolCall(call_id=call_id, name=name, arguments={"input": item.get("input")})
    try:
        arguments = msgspec.json.decode(str(item.get("arguments") or "{}"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputInvalid(
            f"failed to parse function arguments: {error}",
            field="arguments",
            hint="Call it again; the arguments are one JSON object.",
        ) from None
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def output_of(call: Item, result: ToolResult, *, verbatim: bool = False) -> dict[str, Any]:
    """The item that answers a call.

    It is marked where its words are a stranger's, unless they are to reach the model ``verbatim``.
    """
    item = _output(call, _told(result), success=result.ok)
    return {**item, "untrusted": True} if result.untrusted and not verbatim else item


def error_output(call: Item, error: InputInvalid) -> dict[str, Any]:
    """The item that answers a call which nobody could even begin."""
    return _output(call, [text_part(f"{error.message}. {error.hint}")], success=False)


def _output(call: Item, parts: list[dict[str, Any]], *, success: bool) -> dict[str, Any]:
    answer = function_call_output(call_id=str(call.get("call_id")), parts=parts, success=success)
    return {**answer, "type": _KINDS[cast("str", call.get("type"))]}


def _told(result: ToolResult) -> list[dict[str, Any]]:
    """What a model reads of a result: words that a tool made for it, else the value itself."""
    if result.error is not None:
        return [text_part(_failure(result))]
    if result.parts is not None:
        return [dict(part) for part in result.parts]
    parts = to_parts(result.content)
    # Pictures alone do not say where they are and what they cost.
    if result.value not in ("", "{}") and not any(isinstance(p, Text) for p in result.content):
        parts.insert(0, text_part(result.value))
    return parts if result.ok else [text_part(SAYS_IT_FAILED), *parts]


def _failure(result: ToolResult) -> str:
    told: Mapping[str, Any] = {
        "code": result.domain_code,
        "message": result.error,
        "hint": result.hint,
        "retryable": result.retryable,
        "billed": result.billed,
        "cost_usd": result.cost_usd,
        **result.extras,
    }
    return msgspec.json.encode({"error": told}).decode()
