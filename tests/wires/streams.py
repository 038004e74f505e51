"""The streams of the local model servers, followed without a network."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.servers.chat_server import ChatServer

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.model_server import ModelAnswer, ModelServer, ScriptedCall, ServerEvent
from limner.testing.servers.responses_server import ResponsesServer
from limner.wires.base import Answer, wire

SERVERS: dict[str, type[ModelServer]] = {
    "openai-responses": ResponsesServer,
    "openai-chat": ChatServer,
    "anthropic-messages": AnthropicServer,
    "gemini-generate-content": GeminiServer,
}
BODY = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
CALLING = ModelAnswer(
    calls=(
        ScriptedCall(name="image_generate", arguments='{"prompt":"a “fox”"}', call_id="call_a"),
        ScriptedCall(name="inspect_image", arguments="{}", call_id="call_b"),
    )
)


def events(api: str, saying: ModelAnswer) -> list[ServerEvent]:
    """Everything that a server sends to say this."""
    before, after = SERVERS[api]().events(saying, BODY)
    return [*before, *after] if saying.is_whole else [*before]


def follow(api: str, sent: Iterable[ServerEvent]) -> tuple[list[str], Answer | None]:
    """The pieces of text that come of events, and the answer."""
    reader = wire(api).reader()
    pieces = [
        reader.feed(
            event.name or "message",
            event.data if isinstance(event.data, str) else json.dumps(event.data),
        )
        for event in sent
    ]
    return [piece for piece in pieces if piece], reader.finish()
