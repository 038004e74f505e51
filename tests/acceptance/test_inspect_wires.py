"""`inspect_image` over each of the four APIs: asked in its own way, answered, refused, aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import Studio
from tests.acceptance.inspecting import call, error, put, value
from tests.servers.chat_server import ChatServer

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import (
    TEXT,
    ModelAnswer,
    ModelServer,
    StreamError,
    TokenCounts,
)
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = pytest.mark.slow

QUESTION = "What is it?"
KEY = "test-key-0123456789abcdef"


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One API: its server, its model, and where its request has the parts of the message."""

    server: type[ModelServer]
    model: str
    env: str

    def parts(self, body: Any) -> list[Any]:
        match self.env:
            case "OPENAI":
                return body["input"][0]["content"]
            case "GEMINI":
                return body["contents"][0]["parts"]
            case _:
                return body["messages"][-1]["content"]


WIRES = {
    "responses": Wire(server=ResponsesServer, model="openai/gpt-5.5", env="OPENAI"),
    "chat": Wire(server=ChatServer, model="ollama/llava", env="OLLAMA"),
    "messages": Wire(server=AnthropicServer, model="anthropic/claude-sonnet-5-5", env="ANTHROPIC"),
    "gemini": Wire(server=GeminiServer, model="google/gemini-3.8-flash", env="GEMINI"),
}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def server(wire: Wire) -> Iterator[ModelServer]:
    with wire.server() as running:
        yield running


@pytest.fixture
def desk(studio: Studio, wire: Wire, server: ModelServer) -> Studio:
    studio.env |= {
        f"{wire.env}_API_KEY": KEY,
        f"{wire.env}_BASE_URL": server.base_url,
        "LIMNER_MODEL_ROLES_VISION": wire.model,
    }
    put(studio)
    return studio


async def test_the_picture_comes_before_the_question(
    desk: Studio, wire: Wire, server: ModelServer
) -> None:
    answer = value(await call(desk, question=QUESTION))
    assert (answer["text"], answer["details"]["model"]) == (TEXT, wire.model)
    (request,) = server.sent("ask")
    first, second = wire.parts(request.json())
    assert QUESTION not in str(first)
    assert QUESTION in str(second)


async def test_usage_becomes_a_price_where_there_is_one(desk: Studio, server: ModelServer) -> None:
    server.model_answer = ModelAnswer(
        usage=TokenCounts(input=1000, cached=0, output=100, reasoning=0)
    )
    answer = value(await call(desk))
    usage = answer["details"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 100)
    is_local = "ollama" in answer["details"]["model"]
    assert (answer["details"]["cost_usd"] > 0) == (not is_local)


async def test_an_answer_without_usage_is_an_answer(desk: Studio, server: ModelServer) -> None:
    server.model_answer = ModelAnswer(usage=None)
    assert value(await call(desk))["text"] == TEXT


async def test_a_refusal_is_told_in_the_models_words(desk: Studio, server: ModelServer) -> None:
    server.model_answer = ModelAnswer(pieces=(), refusal="I will not look at that.")
    result = await call(desk)
    assert result.domain_code == "MODEL_REFUSED"
    assert error(result)


async def test_trouble_in_the_middle_of_an_answer_is_told(
    desk: Studio, server: ModelServer
) -> None:
    server.model_answer = ModelAnswer(
        error=StreamError(code="server_error", message="The model fell over.")
    )
    assert error(await call(desk)) == "The model fell over."


async def test_an_answer_that_breaks_off_failed(desk: Studio, server: ModelServer) -> None:
    server.model_answer = ModelAnswer(is_whole=False)
    assert error(await call(desk)) == "inspect_image request failed."


async def test_an_abort_in_the_middle_ends_the_call(desk: Studio, server: ModelServer) -> None:
    server.model_answer = ModelAnswer(gate=Gate())
    cancel = asyncio.Event()

    def watch(news: Any) -> None:
        if "fox" in news.message:
            cancel.set()

    result = await call(desk, replace(desk.context(), cancel=cancel, progress=watch))
    assert error(result) == "inspect_image request aborted."
    await server.wait_for_hangup()
