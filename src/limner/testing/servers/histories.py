"""The history in a model request -> why the real service refuses it, or None if it is legal.

Each function knows one API. The messages are those of the services, shortened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Items = Iterable[Mapping[str, Any]]

# Output items of the Responses API, with the kind of the call that each belongs to.
_OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
}


def responses_problem(body: Mapping[str, Any]) -> str | None:
    """OpenAI's Responses API: every call has exactly one output, and it follows the call."""
    items = body.get("input", ())
    if isinstance(items, str):
        return None
    calls: Counter[tuple[str, str]] = Counter()
    answered: Counter[tuple[str, str]] = Counter()
    for at, item in enumerate(items):
        kind, call_id = item.get("type"), item.get("call_id")
        if kind == "local_shell_call":
            kind = "function_call"  # its output is that of a function
        if kind in _OUTPUTS:
            call = (_OUTPUTS[kind], call_id)
            if answered[call] >= calls[call]:
                return f"No tool call found for function call output with call_id {call_id}."
            answered[call] += 1
        elif kind in _OUTPUTS.values():
            if calls[kind, call_id]:
                return f"Duplicate item found with call_id {call_id}."
            calls[kind, call_id] += 1
        elif kind == "reasoning" and at == len(items) - 1:
            return "Item of type 'reasoning' was provided without its required following item."
    for call in calls - answered:
        return f"No tool output found for function call {call[1]}."
    return None


def chat_problem(body: Mapping[str, Any]) -> str | None:
    """Chat Completions: tool messages follow directly, one for each call."""
    return _pairing_problem(
        body["messages"],
        calls=lambda message: [call["id"] for call in message.get("tool_calls") or ()],
        answers=lambda message: [message["tool_call_id"]] if message["role"] == "tool" else [],
    )


def messages_problem(body: Mapping[str, Any]) -> str | None:
    """Anthropic's Messages API: the results of tools are at the start of the next message."""
    messages: list[Mapping[str, Any]] = body["messages"]
    if not messages or messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    for message in messages:
        kinds = [block["type"] for block in _blocks(message)]
        if not kinds:
            return "messages: content must be non-empty"
        first_other = next((at for at, kind in enumerate(kinds) if kind != "tool_result"), None)
        if first_other is not None and "tool_result" in kinds[first_other:]:
            return "messages: tool_result blocks must come first"
        if any(block.get("text") == "" for block in _blocks(message) if block["type"] == "text"):
            return "messages: text content blocks must be non-empty"
    return _pairing_problem(
        messages,
        calls=lambda message: [b["id"] for b in _blocks(message) if b["type"] == "tool_use"],
        answers=lambda message: [
            b["tool_use_id"] for b in _blocks(message) if b["type"] == "tool_result"
        ],
    )


def gemini_problem(body: Mapping[str, Any]) -> str | None:
    """Google's generateContent: a turn of calls is followed by a turn with as many responses."""
    waiting = 0
    for content in body.get("contents", ()):
        calls = sum("functionCall" in part for part in content["parts"])
        responses = sum("functionResponse" in part for part in content["parts"])
        if responses != waiting:
            return (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        waiting = calls
    return "The last turn has function calls without responses." if waiting else None


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _pairing_problem(
    messages: Items,
    *,
    calls: Callable[[Mapping[str, Any]], list[str]],
    answers: Callable[[Mapping[str, Any]], list[str]],
) -> str | None:
    """Every call is answered once, before any other message."""
    waiting: Counter[str] = Counter()
    for message in messages:
        given = answers(message)
        for call_id in given:
            if not waiting[call_id]:
                return f"A tool result has no call with the id {call_id}."
            waiting[call_id] -= 1
        waiting = +waiting
        if waiting and not given:
            return f"The calls {', '.join(waiting)} have no results directly after them."
        waiting += Counter(calls(message))
    return f"The calls {', '.join(waiting)} have no results." if waiting else None
