"""The histories that the real services refuse, and the legal ones beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from limner.testing.servers.histories import (
    chat_problem,
    gemini_problem,
    messages_problem,
    responses_problem,
)

CALL = {"type": "function_call", "call_id": "1", "name": "t", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "1", "output": "done"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}
HELLO = {"role": "user", "content": "hello"}
CHAT_CALL = {"role": "assistant", "tool_calls": [{"id": "1"}]}
CHAT_RESULT = {"role": "tool", "tool_call_id": "1", "content": "done"}
GEMINI_HELLO = {"role": "user", "parts": [{"text": "hello"}]}
GEMINI_CALL = {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}]}
GEMINI_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {}}}]}

APIS: dict[str, tuple[Callable[[Any], str | None], str]] = {
    "responses": (responses_problem, "input"),
    "messages": (messages_problem, "messages"),
    "chat": (chat_problem, "messages"),
    "gemini": (gemini_problem, "contents"),
}
LEGAL: dict[str, list[Any]] = {
    "responses": [CALL, OUTPUT],
    "messages": [HELLO, USE, RESULT],
    "chat": [HELLO, CHAT_CALL, CHAT_RESULT],
    "gemini": [GEMINI_HELLO, GEMINI_CALL, GEMINI_RESULT],
}
PARTS = {name: (history[-2], history[-1]) for name, history in LEGAL.items()}


def problem(api: str, history: list[Any]) -> str | None:
    check, field = APIS[api]
    return check({field: history})


@pytest.mark.parametrize("api", APIS)
def test_a_call_with_its_result_is_legal(api: str) -> None:
    assert problem(api, LEGAL[api]) is None
    assert problem(api, [*LEGAL[api], *([HELLO] if api in ("messages", "chat") else [])]) is None


@pytest.mark.parametrize("api", APIS)
def test_a_call_without_a_result_is_refused(api: str) -> None:
    assert problem(api, LEGAL[api][:-1])


@pytest.mark.parametrize("api", APIS)
def test_a_result_without_a_call_is_refused(api: str) -> None:
    _, result = PARTS[api]
    assert problem(api, [*LEGAL[api][:-2], result])


@pytest.mark.parametrize("api", APIS)
def test_a_second_result_is_refused(api: str) -> None:
    _, result = PARTS[api]
    assert problem(api, [*LEGAL[api], result])


@pytest.mark.parametrize("api", ["messages", "chat"])
def test_a_message_between_a_call_and_its_result_is_refused(api: str) -> None:
    *rest, result = LEGAL[api]
    assert problem(api, [*rest, HELLO, result])


def test_one_call_twice_is_refused() -> None:
    assert problem("responses", [CALL, CALL, OUTPUT, OUTPUT])


def test_reasoning_at_the_end_is_refused() -> None:
    assert problem("responses", [CALL, OUTPUT, {"type": "reasoning", "summary": []}])


@pytest.mark.parametrize(
    "history",
    [
        [],
        [USE, RESULT],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": ""}],
        [
            HELLO,
            USE,
            {"role": "user", "content": [{"type": "text", "text": "a"}, *RESULT["content"]]},
        ],
    ],
    ids=["empty", "assistant first", "no content", "empty text", "a text before a result"],
)
def test_the_rules_of_messages(history: list[Any]) -> None:
    assert problem("messages", history)
