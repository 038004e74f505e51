"""A service refuses one picture, over a real socket: the conversation continues without it."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.agent_pictures import accept, model, seen, take, text, turn, unique, user
from tests.servers.chat_server import ChatServer
from tests.servers.samples import KEY

from limner.agent.model_call import AnswerStorage
from limner.agent.picture_slots import REFUSED
from limner.client import Limner
from limner.errors import ProviderBadRequest, ProviderError, cancellation_cost
from limner.models.registry import FoundModel
from limner.models.remote import RemoteModel
from limner.net.http import Http
from limner.storage.reach import Reach
from limner.storage.store import Transaction
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import TEXT, ModelServer
from limner.testing.servers.responses_server import ResponsesServer
from limner.tools.base import ToolContext
from limner.wires.base import Answer, Prompt

# What each vendor says of a picture it does not like.
SERVICES: dict[str, tuple[type[ModelServer], str, Any]] = {
    "openai/gpt-5.5": (
        ResponsesServer,
        "OPENAI",
        {
            "message": "The image data you provided does not represent a valid image.",
            "type": "invalid_request_error",
            "param": "input",
            "code": "invalid_value",
        },
    ),
    "ollama/llava": (ChatServer, "OLLAMA", {"message": "illegal base64 data", "code": None}),
    "anthropic/claude-opus-4-8": (
        AnthropicServer,
        "ANTHROPIC",
        {"type": "invalid_request_error", "message": "Could not process image"},
    ),
    "google/gemini-3.8-flash": (
        GeminiServer,
        "GEMINI",
        {"code": 400, "message": "Provided image is not valid.", "status": "INVALID_ARGUMENT"},
    ),
}


@pytest.fixture(params=SERVICES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(name: str) -> Iterator[Any]:
    kind, _, error = SERVICES[name]

    class Picky(kind):
        """Refuses every request with that picture in it."""

        bad = b"nothing"

        def objection(self, seen: ReceivedRequest) -> Reply | None:
            if base64.b64encode(self.bad) in seen.body:
                return json_reply({"error": error}, status=400)
            return super().objection(seen)

    with Picky() as picky:
        yield picky


@pytest.fixture
def lim(tmp_path: Path, name: str, server: Any) -> Iterator[Limner]:
    variable = SERVICES[name][1]
    env = {f"{variable}_API_KEY": KEY, f"{variable}_BASE_URL": server.base_url}
    made = Limner(env={"LIMNER_HOME": str(tmp_path / "home"), **env}, cwd=tmp_path)
    yield made
    asyncio.run(made.aclose())


async def answered(lim: Limner, name: str, items: list[Any]) -> str:
    """Ask until there is an answer, each time without what was refused."""
    known = model(lim, name)
    http = Http()
    asked = RemoteModel(known, http=http.client(), key=lim.models.key(known) or "", kind="test")
    try:
        while True:
            ready = await lim.prompts.build(Prompt(items=items), known)
            try:
                answer = await asked.ask(ready.prompt)
            except ProviderError as error:
                if not await lim.quarantine.refused(error, ready.sent, model=known.name):
                    raise
            else:
                await accept(lim, ready.sent, model=known.name)
                return answer.text
    finally:
        await http.aclose()


async def test_one_bad_picture_never_ends_a_conversation(
    lim: Limner, name: str, server: Any
) -> None:
    good, bad = unique(), unique()
    fox, owl = await take(lim, good), await take(lim, bad, prompt="an owl")
    server.bad = bad
    items = [user(text("Look."), seen(fox))]
    assert await answered(lim, name, items) == TEXT
    items += [*turn(1, text("here"), seen(owl)), user(text("And this?"))]
    assert await answered(lim, name, items) == TEXT
    items += [user(text("Thanks."))]
    assert await answered(lim, name, items) == TEXT
    # Asked once each, and once more where the picture was refused.
    assert len(server.requests) == 4
    for request in server.requests[2:]:
        assert base64.b64encode(good) in request.body
        assert REFUSED.encode() in request.body


async def test_a_refusal_that_is_not_about_new_pictures_is_raised(
    lim: Limner, name: str, server: Any
) -> None:
    good = unique()
    fox = await take(lim, good)
    items = [user(text("Look."), seen(fox))]
    await answered(lim, name, items)
    server.bad = good
    with pytest.raises(ProviderBadRequest):
        await answered(lim, name, items)


async def test_an_answer_whose_price_is_being_settled_is_noted_although_the_turn_is_interrupted(
    lim: Limner, name: str, tmp_path: Path
) -> None:
    begun, go, noted = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def store(answer: Answer, _cost_nano: int) -> AnswerStorage:
        def write(_tx: Transaction) -> None:
            loop.call_soon_threadsafe(begun.set)
            assert go.wait(20)

        return AnswerStorage(write, lambda: noted.append(answer.text))

    asking = asyncio.ensure_future(
        lim.conversations.parts.model_caller.ask(
            Prompt(items=[user(text("Hello."))]),
            FoundModel(model=model(lim, name), effort=None),
            ToolContext(session_id="s", cwd=tmp_path, reach=Reach()),
            on_text=lambda _: None,
            on_retry=lambda _: None,
            on_warning=lambda _: None,
            store=store,
        )
    )
    await begun.wait()
    asking.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await asking
    assert noted == [TEXT]
    cost = cancellation_cost(stopped.value)
    assert cost is not None
    assert "unrecorded" not in cost.extras
    assert [row.state for row in (await lim.money.spend()).recent] == ["settled"]
