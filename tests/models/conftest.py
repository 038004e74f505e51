"""Model servers, and models that speak to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from typing import Any

import pytest
from tests.servers.chat_server import ChatServer
from tests.servers.samples import KEY

from limner.models.registry import KnownModel, Registry
from limner.models.remote import RemoteModel
from limner.net.http import Http
from limner.testing import FakeClock
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.model_server import ModelServer
from limner.testing.servers.responses_server import ResponsesServer

SERVERS: dict[str, tuple[type[ModelServer], str, str]] = {
    "openai-responses": (ResponsesServer, "openai/gpt-5.5", "OPENAI_BASE_URL"),
    "openai-chat": (ChatServer, "ollama/qwen3-vl:8b", "OLLAMA_BASE_URL"),
    "anthropic-messages": (AnthropicServer, "anthropic/claude-sonnet-5-5", "ANTHROPIC_BASE_URL"),
    "gemini-generate-content": (GeminiServer, "google/gemini-3.8-flash", "GEMINI_BASE_URL"),
}


@pytest.fixture(params=SERVERS)
def api(request: pytest.FixtureRequest) -> str:
    """The name of each API in turn."""
    return request.param


@pytest.fixture
def server(api: str) -> Iterator[ModelServer]:
    kind, _, _ = SERVERS[api]
    with kind() as server:
        yield server


@pytest.fixture
def time() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def connect(time: FakeClock) -> AsyncIterator[Callable[..., RemoteModel]]:
    """Build the model of an API at a base URL."""
    http = Http()

    def build(
        api: str,
        base_url: str,
        *,
        name: str | None = None,
        change: Callable[[KnownModel], KnownModel] = lambda model: model,
        **rest: Any,
    ) -> RemoteModel:
        _, usual, variable = SERVERS[api]
        registry = Registry(
            key_of=lambda variable: KEY,
            env={variable: base_url},
            roles={},
            embedded=False,
            today=lambda: date(2026, 11, 15),
        )
        found = registry.find(name or usual)
        assert found is not None
        fields = {"key": registry.key(found.model), "kind": "test", "clock": time.clock} | rest
        return RemoteModel(change(found.model), http=http.client(), **fields)

    yield build
    await http.aclose()
