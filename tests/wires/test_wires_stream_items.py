"""The calls and the reasoning of a streamed answer become items, and go back to the service."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from tests.wires.seed_schema import assert_of_schema
from tests.wires.streams import CALLING, events, follow
from tests.wires.vendor_types import assert_legal
from tests.wires.wire_prompts import (
    ALL_WIRES,
    DRAW,
    FOX,
    every_wire,
    image,
    output,
    prompt,
    text,
    user,
)

from limner.errors import ModelBadAnswer
from limner.testing.servers.model_server import TEXT, ServerEvent
from limner.wires import stream
from limner.wires.base import Answer, Usage
from limner.wires.bedrock_converse import WIRE as BEDROCK

# A kind that no client knows yet, and one that clients are told to pass over.
UNPUBLISHED = ("response.a_kind_from_the_future", "ping")
CONVERSE = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "Is it "}}}),
    ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "a fox?"}}}),
    ("contentBlockDelta", {"delta": {"reasoningContent": {"signature": "c2ln"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"delta": {"text": TEXT[:5]}, "contentBlockIndex": 1}),
    ("contentBlockDelta", {"delta": {"text": TEXT[5:]}, "contentBlockIndex": 1}),
    (
        "contentBlockStart",
        {
            "start": {"toolUse": {"toolUseId": "call_a", "name": "image_generate"}},
            "contentBlockIndex": 2,
        },
    ),
    (
        "contentBlockDelta",
        {"delta": {"toolUse": {"input": '{"prompt":'}}, "contentBlockIndex": 2},
    ),
    ("contentBlockDelta", {"delta": {"toolUse": {"input": '"a “fox”"}'}}, "contentBlockIndex": 2}),
    (
        "contentBlockStart",
        {
            "start": {"toolUse": {"toolUseId": "call_b", "name": "inspect_image"}},
            "contentBlockIndex": 3,
        },
    ),
    ("messageStop", {"stopReason": "tool_use"}),
    (
        "metadata",
        {
            "usage": {
                "inputTokens": 10,
                "outputTokens": 4,
                "totalTokens": 16,
                "cacheReadInputTokens": 2,
            },
            "metrics": {"latencyMs": 9},
        },
    ),
]


def answered(api: str) -> Answer:
    """What a model says that calls two tools."""
    if api == "bedrock-converse":
        return converse(CONVERSE)
    _, answer = follow(api, events(api, CALLING))
    assert answer is not None
    return answer


def converse(stream: Any) -> Answer:
    reader = BEDROCK.reader()
    for name, data in stream:
        reader.feed(name, json.dumps(data))
    answer = reader.finish()
    assert answer is not None
    return answer


def calls(answer: Answer) -> list[dict[str, Any]]:
    fields = ("call_id", "name", "arguments")
    return [
        {field: item[field] for field in fields}
        for item in answer.items
        if item["type"] == "function_call"
    ]


@pytest.mark.parametrize(
    ("api", "published"),
    [
        ("openai-responses", ResponseStreamEvent),
        ("openai-chat", ChatCompletionChunk),
        ("anthropic-messages", RawMessageStreamEvent),
        ("gemini-generate-content", GenerateContentResponse),
    ],
)
def test_the_calls_of_our_servers_match_the_vendors_documents(api: str, published: Any) -> None:
    adapter = TypeAdapter(published)
    for event in events(api, CALLING):
        if event.data != "[DONE]" and event.name not in UNPUBLISHED:
            adapter.validate_python(event.data)


@every_wire
def test_the_calls_of_an_answer_are_items_that_the_schema_knows(api: str) -> None:
    answer = answered(api)
    assert (answer.text, answer.stop) == (TEXT, "end")
    assert calls(answer) == [
        {"call_id": "call_a", "name": "image_generate", "arguments": '{"prompt":"a “fox”"}'},
        {"call_id": "call_b", "name": "inspect_image", "arguments": "{}"},
    ]
    kinds = [item["type"] for item in answer.items if item["type"] != "reasoning"]
    assert kinds == ["message", "function_call", "function_call"]
    for item in answer.items:
        assert_of_schema(dict(item))


@every_wire
@pytest.mark.parametrize("origin", ALL_WIRES)
def test_the_items_of_any_answer_go_back_over_any_wire(api: str, origin: str) -> None:
    items = [
        user(text("Draw a fox, and look at it.")),
        *answered(origin).items,
        output("call_a", text("Done."), image(FOX)),
        output("call_b", text("A fox.")),
    ]
    body = json.loads(ALL_WIRES[api].request("m", prompt(*items, tools=[DRAW])).body)
    assert_legal(api, body)
    # A signature goes to the service that wrote it and to nobody else.
    is_signed = api == origin and api not in ("openai-responses", "openai-chat")
    assert ("c2ln" in json.dumps(body)) == is_signed


def test_reasoning_of_claude_goes_back_unchanged() -> None:
    stream = [
        {"type": "message_start", "message": {"id": "msg_7"}},
        _block(0, {"type": "thinking", "thinking": "", "signature": ""}),
        _delta(0, {"type": "signature_delta", "signature": "c2ln"}),
        _block(1, {"type": "redacted_thinking", "data": "aGlk"}),
        _block(2, {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}}),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    _, answer = follow("anthropic-messages", [ServerEvent(data=event) for event in stream])
    assert answer is not None
    asked = prompt(user(text("x")), *answer.items, output("c1", text("y")))
    body = json.loads(ALL_WIRES["anthropic-messages"].request("m", asked).body)
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "aGlk"},
        {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}},
    ]


def _block(at: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": at, "content_block": block}


def _delta(at: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": at, "delta": delta}


PARTS = {
    "a call": (
        [
            {"text": "Hm.", "thought": True},
            {"functionCall": {"name": "t", "args": {"a": 1}}, "thoughtSignature": "c2lnMQ=="},
            {"functionCall": {"name": "t", "args": {}}},
        ],
        [
            {
                "functionCall": {"id": "call_r7_1", "name": "t", "args": {"a": 1}},
                "thoughtSignature": "c2lnMQ==",
            },
            {"functionCall": {"id": "call_r7_2", "name": "t", "args": {}}},
        ],
    ),
    "words": (
        [{"text": "A "}, {"text": "fox."}, {"text": "", "thoughtSignature": "c2lnMQ=="}],
        [{"text": "A fox."}, {"text": "", "thoughtSignature": "c2lnMQ=="}],
    ),
    "words and a call": (
        [
            {"text": "A fox.", "thoughtSignature": "c2lnMQ=="},
            {"functionCall": {"id": "x", "name": "t"}, "thoughtSignature": "c2lnMg=="},
        ],
        [
            {"text": "A fox."},
            {"text": "", "thoughtSignature": "c2lnMQ=="},
            {
                "functionCall": {"id": "x", "name": "t", "args": {}},
                "thoughtSignature": "c2lnMg==",
            },
        ],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_signature_of_gemini_goes_back_where_it_was(name: str) -> None:
    parts, back = PARTS[name]
    chunks = [
        ServerEvent(data={"responseId": "r7", "candidates": [{"content": {"parts": [part]}}]})
        for part in parts
    ]
    end = ServerEvent(data={"candidates": [{"finishReason": "STOP"}]})
    _, answer = follow("gemini-generate-content", [*chunks, end])
    assert answer is not None
    outputs = [output(call["call_id"], text("y")) for call in calls(answer)]
    asked = prompt(user(text("x")), *answer.items, *outputs, user(text("z")))
    wire = ALL_WIRES["gemini-generate-content"]
    body = json.loads(wire.request("gemini-3.8-flash", asked).body)
    assert body["contents"][1] == {"role": "model", "parts": back}
    assert_legal("gemini-generate-content", body)


def test_reasoning_of_responses_goes_back_without_its_id() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
    }
    answer = {"type": "message", "role": "assistant", "content": "Yes.", "phase": "final_answer"}
    lost = {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": None}
    last = {"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": "gBBB"}
    asked = prompt(user(text("x")), thought, lost, answer, last, user(text("y")))
    body = json.loads(ALL_WIRES["openai-responses"].request("m", asked).body)
    assert body["input"][1:3] == [
        {"type": "reasoning", "summary": thought["summary"], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "role": "assistant",
            "content": "Yes.",
            "phase": "final_answer",
        },
    ]
    assert len(body["input"]) == 4
    assert_legal("openai-responses", body)


def test_responses_is_asked_for_its_reasoning_if_a_request_may_follow() -> None:
    ask = ALL_WIRES["openai-responses"].request
    bodies = [
        json.loads(ask(model, prompt(user(text("x")), tools=tools, effort=effort, **more)).body)
        for model, tools, effort, more in [
            ("m", (DRAW,), "low", {}),
            ("m", (DRAW,), "none", {}),
            ("m", (DRAW,), None, {}),
            ("m", (), "low", {}),
            ("m", (), None, {"conversation": "c"}),
            ("gpt-4.1", (DRAW,), None, {"conversation": "c"}),
        ]
    ]
    wanted = ["reasoning.encrypted_content"]
    asked = [body.get("include") for body in bodies]
    assert asked == [wanted, None, wanted, None, wanted, None]
    assert [body.get("prompt_cache_key") for body in bodies] == [None] * 4 + ["c", "c"]


@pytest.mark.parametrize(
    "pieces",
    [
        # All numbered alike, as one big service does.
        [{"index": 0, "id": "a"}, {"index": 0, "id": "b"}],
        # Whole, and not numbered.
        [{"id": "a"}, {"id": "b"}],
        [{"index": 0, "id": "a"}, {"index": 1, "id": "b"}],
    ],
)
def test_those_who_speak_chat_number_calls_as_they_like(pieces: list[dict[str, Any]]) -> None:
    chunks = [
        {
            "id": "chatcmpl-1",
            "choices": [
                {"delta": {"tool_calls": [{**piece, "function": {"name": "t", "arguments": "{}"}}]}}
            ],
        }
        for piece in pieces
    ]
    sent = [*(ServerEvent(data=chunk) for chunk in chunks), ServerEvent(data="[DONE]")]
    _, answer = follow("openai-chat", sent)
    assert answer is not None
    assert [call["call_id"] for call in calls(answer)] == ["a", "b"]


def test_a_call_without_an_id_gets_one_of_the_answers() -> None:
    delta = {"tool_calls": [{"index": 0, "function": {"name": "t"}}]}
    sent = [
        ServerEvent(data={"id": "chatcmpl-9", "choices": [{"delta": delta}]}),
        ServerEvent(data="[DONE]"),
    ]
    _, answer = follow("openai-chat", sent)
    assert answer is not None
    assert calls(answer) == [{"call_id": "call_chatcmpl-9_0", "name": "t", "arguments": "{}"}]


def test_converse_streams_the_same_answer() -> None:
    answer = converse(CONVERSE)
    assert answer.usage == Usage(input_tokens=12, output_tokens=4, cache_read_tokens=2)
    failed = converse([("throttlingException", {"message": "Slow down"})])
    assert failed == Answer(text="", stop="error", message="Slow down", code="throttlingException")
    cut = converse([("messageStop", {"stopReason": "max_tokens"})])
    assert cut == Answer(text="", stop="length")
    refused = converse([("messageStop", {"stopReason": "guardrail_intervened"})])
    assert (refused.stop, refused.code) == ("refusal", "guardrail_intervened")
    hidden = [
        ("contentBlockDelta", {"delta": {"reasoningContent": {"redactedContent": "aGlk"}}}),
        ("contentBlockDelta", {"delta": {"text": "x"}, "contentBlockIndex": 1}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    asked = prompt(user(text("x")), *converse(hidden).items, user(text("y")))
    body = json.loads(BEDROCK.request("m", asked).body)
    assert body["messages"][1]["content"] == [
        {"reasoningContent": {"redactedContent": "aGlk"}},
        {"text": "x"},
    ]
    assert BEDROCK.reader().finish() is None
    assert BEDROCK.headers("k") == {"Authorization": "Bearer k"}
    assert BEDROCK.request("a/b", asked).path == "/model/a%2Fb/converse-stream"


def test_arguments_without_an_end_are_not_kept_for_ever() -> None:
    reader = ALL_WIRES["openai-chat"].reader()
    piece = {"index": 0, "function": {"arguments": "x" * 1_000_000}}
    chunk = json.dumps({"choices": [{"delta": {"tool_calls": [piece]}}]})
    for _ in range(stream.MAX_CHARS // 1_000_000):
        reader.feed("message", chunk)
    with pytest.raises(ModelBadAnswer, match="more than 16,000,000 characters"):
        reader.feed("message", chunk)
