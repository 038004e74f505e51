"""The stream of each API becomes the same answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.wires.seed_schema import assert_of_schema
from tests.wires.streams import CALLING, events, follow

from limner.errors import ModelBadAnswer
from limner.testing.servers.model_server import (
    TEXT,
    ModelAnswer,
    ServerEvent,
    StreamError,
    TokenCounts,
)
from limner.wires.base import WIRES, Answer, Usage, wire

MODELS = {
    "openai-responses": "m-2026-11-01",
    "openai-chat": "m",
    "anthropic-messages": "m",
    "gemini-generate-content": "gemini-test-001",
}
MESSAGE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": TEXT}],
}


def thought(answer_id: str, origin: str, signature: str | None) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": f"rs_{answer_id}_0",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Is it a fox?"}],
        "encrypted_content": signature,
        "origin": origin,
    }


# What the service itself calls an item is kept as it came.
AS_IT_CAME = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}],
}
ITEMS: dict[str, tuple[dict[str, Any], ...]] = {
    "openai-responses": (AS_IT_CAME,),
    "openai-chat": (MESSAGE,),
    "anthropic-messages": (thought("msg_1", "anthropic-messages", "c2ln"), MESSAGE),
    "gemini-generate-content": (thought("r1", "gemini-generate-content", None), MESSAGE),
}
WRITTEN = {"openai-responses": 0, "anthropic-messages": 0}

every_api = pytest.mark.parametrize("api", WIRES)


def usage(api: str) -> Usage:
    return Usage(
        input_tokens=1200,
        output_tokens=45,
        cache_read_tokens=1024,
        cache_write_tokens=WRITTEN.get(api),
        reasoning_tokens=20,
    )


@every_api
def test_an_answer_in_pieces_is_put_together_with_its_usage(api: str) -> None:
    pieces, answer = follow(api, events(api, ModelAnswer()))
    assert pieces == ["A red fox — “hel", "lo” — in ", "the snow 🦊."]
    assert answer == Answer(
        text=TEXT, stop="end", model=MODELS[api], usage=usage(api), items=ITEMS[api]
    )


@every_api
def test_an_answer_without_usage_is_an_answer(api: str) -> None:
    _, answer = follow(api, events(api, ModelAnswer(usage=None)))
    assert answer == Answer(
        text=TEXT, stop="end", model=MODELS[api], usage=_no_usage(api), items=ITEMS[api]
    )


def _no_usage(api: str) -> Usage | None:
    # The Messages API always counts; the server's zeros are what it counted.
    zeros = Usage(input_tokens=0, output_tokens=0)
    return zeros if api == "anthropic-messages" else None


@every_api
def test_an_answer_that_reached_its_limit_has_the_stop_length(api: str) -> None:
    _, answer = follow(api, events(api, ModelAnswer(stop="length")))
    assert answer is not None
    assert (answer.stop, answer.text) == ("length", TEXT)


@every_api
def test_a_refusal_keeps_its_message_and_the_usage(api: str) -> None:
    _, answer = follow(api, events(api, ModelAnswer(pieces=(), refusal="I will not look at this.")))
    assert answer is not None
    assert (answer.stop, answer.message, answer.usage) == (
        "refusal",
        "I will not look at this.",
        usage(api),
    )


@every_api
def test_a_failure_in_the_middle_keeps_the_vendors_message_and_code(api: str) -> None:
    trouble = StreamError(code="overloaded_error", message="Overloaded")
    _, answer = follow(api, events(api, ModelAnswer(error=trouble)))
    assert answer is not None
    assert (answer.stop, answer.text, answer.message, answer.code) == (
        "error",
        TEXT,
        "Overloaded",
        "overloaded_error",
    )


@every_api
def test_a_stream_that_just_ends_is_not_an_answer(api: str) -> None:
    assert follow(api, events(api, ModelAnswer(is_whole=False)))[1] is None
    assert follow(api, [])[1] is None


@every_api
@pytest.mark.parametrize("noise", [{}, {"type": "from.the.future", "delta": 5}, {"x": [1]}])
def test_events_of_unknown_kinds_are_passed_over(api: str, noise: Any) -> None:
    sent = [
        part for event in events(api, ModelAnswer()) for part in (ServerEvent(data=noise), event)
    ]
    assert follow(api, sent) == follow(api, events(api, ModelAnswer()))


@pytest.mark.parametrize("api", ["openai-responses", "openai-chat", "anthropic-messages"])
def test_the_last_word_of_chat_may_end_other_streams_too(api: str) -> None:
    sent = [*events(api, ModelAnswer()), ServerEvent(data="[DONE]")]
    assert follow(api, sent) == follow(api, events(api, ModelAnswer()))


@every_api
@pytest.mark.parametrize("data", ["", "<html>", "[1]", "null", '"x"', "{", "[" * 5000])
def test_an_event_that_is_no_object_is_a_bad_answer(api: str, data: str) -> None:
    with pytest.raises(ModelBadAnswer) as caught:
        wire(api).reader().feed("message", data)
    assert caught.value.code == "MODEL_BAD_ANSWER"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    inner = [
        place
        for key, one in pairs
        if isinstance(one, dict | list)
        for place in _places(one, (*path, key))
    ]
    keys = value if isinstance(value, dict) else range(len(value))
    return [(*path, key) for key in keys] + inner


@every_api
@given(data=st.data())
def test_property_a_hostile_event_is_a_bad_answer_and_nothing_worse(
    api: str, data: st.DataObject
) -> None:
    saying = data.draw(st.sampled_from([ModelAnswer(), CALLING]))
    sent = [event for event in events(api, saying) if isinstance(event.data, dict)]
    chosen = data.draw(st.sampled_from(sent))
    damaged = json.loads(json.dumps(chosen.data))
    *way, last = data.draw(st.sampled_from(_places(damaged)))
    spot = damaged
    for key in way:
        spot = spot[key]
    spot[last] = data.draw(json_values)
    try:
        _, answer = follow(api, [replace(chosen, data=damaged), *sent])
    except ModelBadAnswer:
        return
    assert answer is None or isinstance(answer.text, str)
    for item in () if answer is None else answer.items:
        if api != "openai-responses":
            assert_of_schema(dict(item))


@every_api
@pytest.mark.parametrize("counts", [TokenCounts(input=-1), TokenCounts(output=-5)])
def test_a_count_that_cannot_be_is_not_believed_and_does_not_cost_the_answer(
    api: str, counts: TokenCounts
) -> None:
    sent = events(api, ModelAnswer(usage=counts))
    _, answer = follow(api, sent)
    assert answer is not None
    assert answer.text == TEXT
    assert answer.usage is None or min(answer.usage.input_tokens, answer.usage.output_tokens) >= 0


# --- each API's own words ---


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("BLOCKLIST", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("SPII", "refusal"),
        ("IMAGE_SAFETY", "refusal"),
        ("OTHER", "error"),
        ("MALFORMED_RESPONSE", "error"),
        ("A_NEW_ONE", "error"),
    ],
)
def test_gemini_ends_for_many_reasons(reason: str, stop: str) -> None:
    _, answer = follow(
        "gemini-generate-content", [ServerEvent(data={"candidates": [{"finishReason": reason}]})]
    )
    code = None if stop in ("end", "length") else reason
    assert answer is not None
    assert (answer.stop, answer.code) == (stop, code)


def test_gemini_may_stop_in_the_middle_for_safety() -> None:
    saying = ModelAnswer(refusal="blocked by a filter")
    _, answer = follow("gemini-generate-content", events("gemini-generate-content", saying))
    assert answer is not None
    assert (answer.stop, answer.text, answer.code, answer.message) == (
        "refusal",
        TEXT,
        "SAFETY",
        "blocked by a filter",
    )


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
    ],
)
def test_claude_ends_for_many_reasons(reason: str, stop: str) -> None:
    event = {"type": "message_delta", "delta": {"stop_reason": reason}}
    _, answer = follow("anthropic-messages", [ServerEvent(data=event)])
    assert answer == Answer(text="", stop=stop)  # type: ignore[arg-type] # a word of the table


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "end"), ("length", "length"), ("content_filter", "refusal"), ("error", "error")],
)
def test_chat_ends_for_many_reasons(reason: str, stop: str) -> None:
    chunk = {"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}
    _, answer = follow("openai-chat", [ServerEvent(data=chunk)])
    assert answer is not None
    assert (answer.stop, answer.text) == (stop, "x")


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ("out of memory", "out of memory", None),
        ({"message": "no", "code": 500}, "no", "500"),
        ({"message": "no", "type": "server_error", "code": None}, "no", "server_error"),
    ],
)
def test_those_who_speak_chat_word_their_errors_as_they_like(
    error: Any, message: str, code: str | None
) -> None:
    _, answer = follow("openai-chat", [ServerEvent(data={"error": error})])
    assert answer is not None
    assert (answer.stop, answer.message, answer.code) == ("error", message, code)


def test_responses_may_be_cut_by_a_filter() -> None:
    response = {"incomplete_details": {"reason": "content_filter"}, "model": "m"}
    event = {"type": "response.incomplete", "response": response}
    _, answer = follow("openai-responses", [ServerEvent(data=event)])
    assert answer == Answer(text="", stop="refusal", model="m")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Sorry"},
        {"type": "error", "error": {"code": "server_error", "message": "Sorry"}},
    ],
)
def test_responses_tells_of_errors_in_two_shapes(event: Any) -> None:
    _, answer = follow("openai-responses", [ServerEvent(data=event)])
    assert answer == Answer(text="", stop="error", message="Sorry", code="server_error")


def test_a_response_that_came_in_one_piece_is_not_lost() -> None:
    last = events("openai-responses", ModelAnswer())[-1]
    pieces, answer = follow("openai-responses", [last])
    assert pieces == [TEXT]
    assert answer is not None
    assert answer.text == TEXT
    assert answer.items == ITEMS["openai-responses"]
    last = events("openai-responses", ModelAnswer(pieces=(), refusal="No."))[-1]
    _, answer = follow("openai-responses", [last])
    assert answer is not None
    assert (answer.stop, answer.message) == ("refusal", "No.")


def test_a_response_without_item_events_has_a_message_of_its_text() -> None:
    stream = [
        {"type": "response.output_text.delta", "delta": "A fox."},
        {"type": "response.completed", "response": {}},
    ]
    _, answer = follow("openai-responses", [ServerEvent(data=event) for event in stream])
    message = {**MESSAGE, "content": [{"type": "output_text", "text": "A fox."}]}
    assert answer == Answer(text="A fox.", stop="end", items=(message,))
