"""Each wire writes exactly the vendor's JSON, and the vendor's own types accept all of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.wires.vendor_types import assert_legal
from tests.wires.wire_prompts import FULL, LOOK, PICTURES, SCHEMA

from limner.wires.base import WIRES, Effort, Prompt, wire

FOX64 = base64.b64encode(b"\x89PNG fox").decode()
OWL64 = base64.b64encode(b"\xff\xd8 owl").decode()
CLOSED = {**SCHEMA, "additionalProperties": False}


def body(api: str, prompt: Prompt) -> dict[str, Any]:
    return json.loads(wire(api).request("the-model", prompt).body)


@pytest.mark.parametrize("api", WIRES)
@pytest.mark.parametrize("prompt", [LOOK, FULL], ids=["short", "full"])
def test_the_vendors_own_types_take_every_request(api: str, prompt: Prompt) -> None:
    assert_legal(api, body(api, prompt))


def test_a_request_to_responses_is_exactly_as_documented() -> None:
    request = wire("openai-responses").request("gpt-5.5", LOOK)
    assert request.path == "/responses"
    assert json.loads(request.body) == {
        "model": "gpt-5.5",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {
                        "type": "input_image",
                        "image_url": f"data:image/png;base64,{FOX64}",
                        "detail": "auto",
                    },
                    {"type": "input_text", "text": "What is it?"},
                ],
            }
        ],
        "max_output_tokens": 16_384,
        "store": False,
        "stream": True,
    }
    full = body("openai-responses", FULL)
    assert full["instructions"] == "Look closely."
    assert full["reasoning"] == {"effort": "high"}
    assert full["text"]["format"] == {
        "type": "json_schema",
        "name": "answer",
        "schema": CLOSED,
        "strict": True,
    }
    assert [item["role"] for item in full["input"]] == ["user", "assistant", "user"]
    assert full["input"][0]["content"][1]["detail"] == "high"
    assert full["input"][1]["content"] == "The fox."
    assert full["input"][2]["content"] == [{"type": "input_text", "text": "Sure?"}]


def test_a_request_to_chat_is_exactly_as_documented() -> None:
    request = wire("openai-chat").request("qwen3-vl:8b", FULL)
    assert request.path == "/chat/completions"
    assert json.loads(request.body) == {
        "model": "qwen3-vl:8b",
        "messages": [
            {"role": "system", "content": "Look closely."},
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{FOX64}"},
                    },
                    {
                        "type": "image_url",
                        "image_url": {
                            "url": f"data:image/jpeg;base64,{OWL64}",
                            "detail": "high",
                        },
                    },
                    {"type": "text", "text": "Which? “quoted” \u2028"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "The fox."}]},
            {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
        ],
        "max_completion_tokens": 500,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": CLOSED, "strict": True},
        },
    }


def test_a_request_to_anthropic_is_exactly_as_documented() -> None:
    request = wire("anthropic-messages").request("claude-sonnet-5-5", FULL)
    assert request.path == "/messages"
    assert json.loads(request.body) == {
        "model": "claude-sonnet-5-5",
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": FOX64},
                    },
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/jpeg", "data": OWL64},
                    },
                    {"type": "text", "text": "Which? “quoted” \u2028"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "The fox."}]},
            {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
        ],
        "max_tokens": 500,
        "stream": True,
        "system": "Look closely.",
        "thinking": {"type": "adaptive"},
        "output_config": {
            "effort": "high",
            "format": {"type": "json_schema", "schema": CLOSED},
        },
    }
    assert "output_config" not in body("anthropic-messages", LOOK)


def test_a_request_to_gemini_is_exactly_as_documented() -> None:
    request = wire("gemini-generate-content").request("gemini-3.8-flash", FULL)
    assert request.path == "/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert json.loads(request.body) == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": FOX64}},
                    {
                        "inlineData": {"mimeType": "image/jpeg", "data": OWL64},
                        "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"},
                    },
                    {"text": "Which? “quoted” \u2028"},
                ],
            },
            {"role": "model", "parts": [{"text": "The fox."}]},
            {"role": "user", "parts": [{"text": "Sure?"}]},
        ],
        "systemInstruction": {"parts": [{"text": "Look closely."}]},
        "generationConfig": {
            "maxOutputTokens": 500,
            "thinkingConfig": {"thinkingLevel": "HIGH"},
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
    }


@pytest.mark.parametrize("api", WIRES)
def test_a_request_contains_the_base64_of_its_pictures_without_a_copy(api: str) -> None:
    kept = {handle: picture.with_base64() for handle, picture in PICTURES.items()}
    request = wire(api).request("the-model", replace(FULL, pictures=kept))
    shared = [piece.obj for piece in request.pieces if isinstance(piece, memoryview)]
    assert [id(one) for one in shared] == [id(one.quoted_base64) for one in kept.values()]
    assert request.body == wire(api).request("the-model", FULL).body


def test_a_model_id_cannot_change_the_address() -> None:
    request = wire("gemini-generate-content").request("../x?key=1#:y", LOOK)
    assert request.path == "/models/..%2Fx%3Fkey%3D1%23%3Ay:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    ("effort", "anthropic", "gemini"),
    [
        ("none", ({"type": "disabled"}, None), "MINIMAL"),
        ("minimal", ({"type": "adaptive"}, {"effort": "low"}), "MINIMAL"),
        ("low", ({"type": "adaptive"}, {"effort": "low"}), "LOW"),
        ("medium", ({"type": "adaptive"}, {"effort": "medium"}), "MEDIUM"),
        ("xhigh", ({"type": "adaptive"}, {"effort": "xhigh"}), "HIGH"),
        ("max", ({"type": "adaptive"}, {"effort": "max"}), "HIGH"),
    ],
)
def test_an_effort_becomes_the_nearest_one_that_an_api_has(
    effort: Effort, anthropic: Any, gemini: str
) -> None:
    asked = Prompt(items=LOOK.items, pictures=PICTURES, effort=effort)
    assert body("openai-responses", asked)["reasoning"] == {"effort": effort}
    assert body("openai-chat", asked)["reasoning_effort"] == effort
    said = body("anthropic-messages", asked)
    assert (said["thinking"], said.get("output_config")) == anthropic
    settings = body("gemini-generate-content", asked)["generationConfig"]
    assert settings["thinkingConfig"] == {"thinkingLevel": gemini}
    for api in WIRES:
        assert_legal(api, body(api, asked))


def test_the_key_goes_where_each_vendor_wants_it_and_no_key_goes_nowhere() -> None:
    assert {api: dict(wire(api).headers("k")) for api in WIRES} == {
        "openai-responses": {"Authorization": "Bearer k"},
        "openai-chat": {"Authorization": "Bearer k"},
        "anthropic-messages": {"anthropic-version": "2023-06-01", "x-api-key": "k"},
        "gemini-generate-content": {"x-goog-api-key": "k"},
    }
    assert {api: dict(wire(api).headers("")) for api in WIRES} == {
        "openai-responses": {},
        "openai-chat": {},
        "anthropic-messages": {"anthropic-version": "2023-06-01"},
        "gemini-generate-content": {},
    }
