"""A model's call <-> a tool's result, as items of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from limner.content import Text
from limner.errors import InputInvalid
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import (
    OUTPUT_KINDS,
    Item,
    function_call_output,
    text_part,
    to_parts,
)

SAYS_IT_FAILED = "The tool says that it failed."


def parse_call(item: Item, *, takes_any_json: bool = False) -> ToolCall:
    """The call in an item.

    Args:
        item: the call as the model made it.
        takes_any_json: its arguments need not be a JSON object.

    Raises:
        InputInvalid: its arguments are not JSON, as in an answer that was cut off; or no object.
    """
    call_id, name = str(item.get("call_id")), str(item.get("name"))
    if item.get("type") == "custom_tool_call":
        return ToolCall(call_id=call_id, name=name, arguments={"input": item.get("input")})
    try:
        kind: Any = Any if takes_any_json else dict[str, Any]
        arguments: Any = msgspec.json.decode(str(item.get("arguments") or "{}"), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputInvalid(
            f"failed to parse function arguments: {error}",
            field="arguments",
            hint="Call it again; the arguments are one JSON object.",
        ) from None
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def output_item(call: Item, result: ToolResult, *, verbatim: bool = False) -> dict[str, Any]:
    """The output of a call.

    It is marked if its text comes from outside, unless the model is to get it ``verbatim``. Its
    cost is for the store alone, as is `usage_member`.
    """
    item = _output(call, _result_parts(result), success=result.ok)
    if result.cost_nano:
        item["cost_nano"] = result.cost_nano
    return {**item, "untrusted": True} if result.untrusted and not verbatim else item


def usage_member(usage: Usage, cost_nano: int) -> dict[str, int]:
    """What the request to a model took, for the last item of the answer."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_nano": cost_nano,
    }


def error_output(call: Item, error: InputInvalid) -> dict[str, Any]:
    """The output of a call that could not be started."""
    return _output(call, [text_part(f"{error.message}. {error.hint}")], success=False)


def _output(call: Item, parts: list[dict[str, Any]], *, success: bool) -> dict[str, Any]:
    output = function_call_output(call_id=str(call.get("call_id")), parts=parts, success=success)
    return {**output, "type": OUTPUT_KINDS[cast("str", call.get("type"))]}


def _result_parts(result: ToolResult) -> list[dict[str, Any]]:
    """What a model reads of a result: the parts or the content of the tool, else its value."""
    if result.error is not None:
        return [text_part(_failure(result))]
    if result.parts is not None:
        return [dict(part) for part in result.parts]
    parts = to_parts(result.content)
    # Pictures alone do not contain their paths and their cost.
    if result.value not in ("", "{}") and not any(isinstance(p, Text) for p in result.content):
        parts.insert(0, text_part(result.value))
    return parts if result.ok else [text_part(SAYS_IT_FAILED), *parts]


def _failure(result: ToolResult) -> str:
    failure: Mapping[str, Any] = {
        "code": result.domain_code,
        "message": result.error,
        "hint": result.hint,
        "retryable": result.retryable,
        "billed": result.billed,
        "cost_usd": result.cost_usd,
        **result.extras,
    }
    return msgspec.json.encode({"error": failure}).decode()
