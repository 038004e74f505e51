"""Conversations on the page: a web socket to the app-server in the same process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio
from tests.servers.scripted import calls, says, scripted
from tests.servers.studio_server import RunningStudio, running
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from limner.frontends.connection_guard import ServerLimits
from limner.frontends.studio.conversation_socket import METHODS, PATH
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer

MODEL = "anthropic/claude-opus-4-8"
SPENDING = "item/commandExecution/requestApproval"
PAID = ("image_generate", '{"prompt": "a fox", "provider": "openai-image"}')
CLIENT = {
    "clientInfo": {"name": "limner-studio", "version": "1"},
    "capabilities": {
        "optInNotificationMethods": ["thread/item/stored", "thread/spend/updated"],
        "optOutNotificationMethods": ["item/started", "item/completed"],
    },
}


class Page:
    """What the script of the page does with its web socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[dict[str, Any]] = []
        self._number = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method; the result, or the message of its error."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        await self.socket.send(json.dumps(message))
        while True:
            answer = await self._next()
            if answer.get("id") == self._number and "method" not in answer:
                return answer["result"] if "result" in answer else answer["error"]["message"]

    async def until(self, method: str) -> dict[str, Any]:
        """The next message of a method."""
        while True:
            message = await self._next()
            if message.get("method") == method:
                return message

    async def answer(self, request: dict[str, Any], decision: str) -> None:
        answer = {"id": request["id"], "result": {"decision": decision}}
        await self.socket.send(json.dumps(answer))

    def items(self) -> list[dict[str, Any]]:
        """The items that came."""
        stored = [one for one in self.seen if one.get("method") == "thread/item/stored"]
        return [one["params"]["item"] for one in stored]

    def shown(self) -> list[dict[str, Any]]:
        """The items that came, without the reasoning of the model."""
        return [item for item in self.items() if item["type"] != "reasoning"]

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            message = json.loads(await self.socket.recv())
        self.seen.append(message)
        return message


@asynccontextmanager
async def opened(studio: RunningStudio) -> AsyncGenerator[Page]:
    """The web socket of a page, after `initialize`."""
    address = studio.origin.replace("http", "ws") + PATH
    (cookie,) = studio.http.cookies.jar
    headers = {"cookie": f"{cookie.name}={cookie.value}", "origin": studio.origin}
    async with connect(address, additional_headers=headers) as socket:
        page = Page(socket)
        await page.call("initialize", **CLIENT)
        yield page


@pytest.fixture
def talker() -> Iterator[Any]:
    with scripted(AnthropicServer)() as server:
        yield server


@pytest.fixture
async def server(
    studio: Studio, openai: OpenAIServer, talker: Any
) -> AsyncGenerator[RunningStudio]:
    studio.connect(openai)
    studio.env |= {
        "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        "ANTHROPIC_BASE_URL": talker.base_url,
        "LIMNER_MODEL_ROLES_DEFAULT": MODEL,
    }
    async with studio.open() as lim, running(lim) as page:
        yield page


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.slow
async def test_a_paid_tool_asks_with_its_price_and_each_item_has_its_cost(
    server: RunningStudio, openai: OpenAIServer, talker: Any
) -> None:
    talker.script = [calls(PAID), says("Here ", "it is.")]
    async with opened(server) as page:
        thread = (await page.call("thread/start", model=MODEL))["thread"]["id"]
        terms = {"approvalPolicy": "untrusted"}
        await page.call("turn/start", threadId=thread, input=[text("Draw a fox.")], **terms)
        asked = await page.until(SPENDING)
        assert "costs $" in asked["params"]["reason"]
        assert openai.requests == []
        await page.answer(asked, "accept")
        spent = (await page.until("thread/spend/updated"))["params"]["threadCostUsd"]
    message, call, output, spoken = page.shown()
    assert message["content"] == [{"type": "input_text", "text": "Draw a fox."}]
    assert (call["name"], json.loads(call["arguments"])) == (PAID[0], json.loads(PAID[1]))
    assert call["usage"].keys() == {"input_tokens", "output_tokens", "cost_nano"}
    assert output["cost_nano"] == PRICE_NANO
    handle = output["output"][-1]["image_url"].removeprefix("limner://image/")
    assert (await server.http.get(f"/api/pictures/{handle}/thumbnail")).status_code == 200
    assert spoken["content"][0]["text"] == "Here it is."
    costs = [call["usage"]["cost_nano"], PRICE_NANO, spoken["usage"]["cost_nano"]]
    assert sum(costs) / 1e9 == pytest.approx(spent)
    # The page shows the same items after it was loaded again.
    stored = (await server.http.get(f"/api/conversations/{thread}/items")).json()
    assert [one["item"] for one in stored["items"]] == page.items()
    assert stored["conversation"]["cost_usd"] == pytest.approx(spent)
    # What only the store needs is not sent to a model.
    sent = [json.dumps(request.json()) for request in talker.requests]
    assert not any("cost_nano" in body for body in sent)
    (listed,) = (await server.http.get("/api/conversations")).json()["conversations"]
    assert (listed["title"], listed["model"]) == ("Draw a fox.", MODEL)


@pytest.mark.slow
async def test_a_running_turn_is_steered_interrupted_and_continued_by_another_page(
    server: RunningStudio, talker: Any
) -> None:
    gate, never = Gate(), Gate()
    talker.script = [says("One", gate=gate), says("Two", gate=never), says("Three")]
    async with opened(server) as page:
        thread = (await page.call("thread/start"))["thread"]["id"]
        turn = (await page.call("turn/start", threadId=thread, input=[text("Go.")]))["turn"]["id"]
        await page.until("item/agentMessage/delta")
        steered = await page.call(
            "turn/steer", threadId=thread, expectedTurnId=turn, input=[text("And more.")]
        )
        assert steered == {"turnId": turn}
        gate.open()
        while (await page.until("item/agentMessage/delta"))["params"]["delta"] != "Two":
            pass
        await page.call("turn/interrupt", threadId=thread, turnId=turn)
        ended = await page.until("turn/completed")
        assert ended["params"]["turn"]["status"] == "interrupted"
        assert await page.call("turn/interrupt", threadId=thread, turnId=turn) == (
            "no active turn to interrupt"
        )
    async with opened(server) as other:
        await other.call("thread/resume", threadId=thread, excludeTurns=True)
        await other.call("turn/start", threadId=thread, input=[text("Go on.")])
        await other.until("turn/completed")
    found = (await server.http.get(f"/api/conversations/{thread}/items")).json()["items"]
    messages = [one["item"] for one in found if one["item"]["type"] == "message"]
    words = [message["content"][0]["text"] for message in messages]
    assert words == ["Go.", "One", "And more.", "Go on.", "Three"]


async def test_no_request_of_the_page_can_name_a_file_or_change_the_rules(
    server: RunningStudio, talker: Any
) -> None:
    talker.script = [says("Never.")]
    async with opened(server) as page:
        for name, value in (("cwd", "/"), ("sandbox", "danger-full-access"), ("config", {})):
            refusal = await page.call("thread/start", **{name: value})
            assert refusal == f"The studio does not take {name!r} here."
        thread = (await page.call("thread/start"))["thread"]["id"]
        for kind in ("localImage", "localAudio", "mention", "skill"):
            given = [{"type": kind, "name": "x", "path": "/etc/passwd"}]
            refusal = await page.call("turn/start", threadId=thread, input=given)
            assert refusal == f"The studio does not take {kind!r} here."
        for url in ("/etc/passwd", "file:///etc/passwd", "limner://image/../../etc/passwd"):
            given = [{"type": "image", "url": url}]
            refusal = await page.call("turn/start", threadId=thread, input=given)
            assert refusal == "The studio does not take 'image' here."
        for method in ("config/value/write", "account/login/start", "thread/list", "newThread"):
            assert method not in METHODS
            assert "unknown variant" in await page.call(method)
    assert talker.requests == []


async def test_the_web_socket_is_for_the_page_alone(server: RunningStudio) -> None:
    address = server.origin.replace("http", "ws")
    (found,) = server.http.cookies.jar
    cookie = f"{found.name}={found.value}"
    ours = server.origin
    refused = [
        ({}, 401),
        ({"origin": ours}, 401),
        ({"cookie": cookie}, 403),
        ({"cookie": f"{found.name}=9999999999.x", "origin": ours}, 401),
        ({"cookie": cookie, "origin": "http://evil.example"}, 403),
        ({"cookie": cookie, "origin": "null"}, 403),
        ({"cookie": cookie, "origin": "http://127.0.0.1:1"}, 403),
        ({"cookie": cookie, "origin": ours, "host": "evil.example"}, 400),
        ({"cookie": cookie, "origin": ours, "sec-fetch-site": "same-site"}, 403),
        ({"authorization": "Bearer wrong"}, 401),
    ]
    for headers, status in refused:
        with pytest.raises(InvalidStatus) as refusal:
            await connect(address + PATH, additional_headers=headers)
        assert refusal.value.response.status_code == status, headers
    headers = {"cookie": cookie, "origin": ours}
    with pytest.raises(InvalidStatus):
        await connect(address + "/api/pictures", additional_headers=headers)
    token = {"authorization": f"Bearer {server.token}"}
    async with connect(address + PATH, additional_headers=token) as socket:
        assert "userAgent" in await Page(socket).call("initialize", **CLIENT)


async def test_a_page_that_says_too_much_at_once_is_cut_off(server: RunningStudio) -> None:
    async with opened(server) as page:
        await page.socket.send("x" * 2_000_000)
        await page.socket.wait_closed()
    async with opened(server) as page:
        assert (await page.call("model/list"))["data"][0]["id"] == MODEL


async def test_a_silent_web_socket_is_dropped_and_a_quiet_page_is_not(studio: Studio) -> None:
    limits = ServerLimits(head_s=0.5, request_s=0.5, connections=3)
    async with studio.open() as lim, running(lim, limits=limits) as server:
        async with opened(server) as page, opened(server):
            with pytest.raises((ConnectionClosed, InvalidMessage)):
                # There are two others, and the connection of `http`.
                async with opened(server):
                    pass
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await page.until("nothing")
        address = server.origin.replace("http", "ws") + PATH
        token = {"authorization": f"Bearer {server.token}"}
        async with connect(address, additional_headers=token) as silent:
            await silent.wait_closed()


async def test_the_list_has_the_sessions_of_every_interface(
    server: RunningStudio, studio: Studio
) -> None:
    lim = server.lim
    chat = await lim.sessions.create(cwd=str(studio.cwd))
    await lim.sessions.create(cwd=str(studio.cwd))
    spoken = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    context = {**spoken, "role": "developer"}
    await chat.append([context, spoken])
    await lim.money.record_cost(5_000_000, "table", session_id="a1b2c3", tool="image_generate")
    found = (await server.http.get("/api/conversations")).json()
    assert [(one["id"], one["title"], one["source"]) for one in found["conversations"]] == [
        (chat.id, "Hi", "")
    ]
    assert found["others"] == [{"id": "a1b2c3", "calls": 1, "cost_usd": 0.005}]
    items = (await server.http.get(f"/api/conversations/{chat.id}/items")).json()
    assert [one["item"] for one in items["items"]] == [spoken]
    missing = await server.http.get("/api/conversations/nothing/items")
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "NO_SUCH_SESSION")
