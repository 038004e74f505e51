"""The vendors' own clients are satisfied with our servers, and their types with every event."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import RawMessageStreamEvent
from google import genai
from google.genai import types as genai_types
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from tests.servers.chat_server import ChatServer

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.model_server import TEXT, ModelAnswer, ModelServer
from limner.testing.servers.responses_server import ResponsesServer

# A kind that no client knows yet, and one that clients are told to pass over.
UNPUBLISHED = ("response.a_kind_from_the_future", "ping")
BODY = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.slow
async def test_openais_client_takes_the_responses_server() -> None:
    with ResponsesServer() as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
            whole = await client.responses.create(model="gpt-5.5", input="hi")
            async with client.responses.stream(model="gpt-5.5", input="hi") as stream:
                final = await stream.get_final_response()
    for response in (whole, final):
        assert response.output_text == TEXT
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (1200, 45)


async def test_openais_client_takes_the_chat_server() -> None:
    with ChatServer() as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
            messages: Any = [{"role": "user", "content": "hi"}]
            whole = await client.chat.completions.create(model="m", messages=messages)
            stream = await client.chat.completions.create(
                model="m", messages=messages, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
    assert whole.choices[0].message.content == TEXT
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(pieces) == TEXT
    assert chunks[-1].usage == whole.usage


async def test_anthropics_client_takes_the_messages_server() -> None:
    with AnthropicServer() as server:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url) as client:
            asked: Any = {
                "model": "claude-sonnet-5-5",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "hi"}],
            }
            whole = await client.messages.create(**asked)
            async with client.messages.stream(**asked) as stream:
                final = await stream.get_final_message()
    for message in (whole, final):
        texts = [block.text for block in message.content if block.type == "text"]
        assert "".join(texts) == TEXT
        assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 45)
        assert message.usage.cache_read_input_tokens == 1024


async def test_googles_client_takes_the_gemini_server() -> None:
    with GeminiServer() as server:
        options = genai_types.HttpOptions(base_url=server.base_url)
        client = genai.Client(api_key="k", http_options=options).aio
        try:
            whole = await client.models.generate_content(model="gemini-x", contents="hi")
            stream = await client.models.generate_content_stream(model="gemini-x", contents="hi")
            chunks = [chunk async for chunk in stream]
        finally:
            await client.aclose()
    assert whole.text == TEXT
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert {"generateContent", "streamGenerateContent"} == {
        seen.path.rpartition(":")[2] for seen in server.requests
    }


@pytest.mark.parametrize(
    ("server", "view"),
    [
        (ResponsesServer(), ResponseStreamEvent),
        (ChatServer(), ChatCompletionChunk),
        (AnthropicServer(), RawMessageStreamEvent),
        (GeminiServer(), genai_types.GenerateContentResponse),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, ModelServer) else "",
)
@pytest.mark.parametrize(
    "saying",
    [
        ModelAnswer(),
        ModelAnswer(usage=None),
        ModelAnswer(stop="length"),
        ModelAnswer(pieces=(), refusal="No."),
    ],
    ids=["whole", "uncounted", "cut", "refused"],
)
def test_every_event_is_one_that_the_vendor_publishes(
    server: ModelServer, view: Any, saying: ModelAnswer
) -> None:
    adapter = TypeAdapter(view)
    before, after = server.events(saying, BODY)
    for event in [*before, *after]:
        if event.data == "[DONE]" or event.name in UNPUBLISHED:
            continue
        adapter.validate_python(event.data)
