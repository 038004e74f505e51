"""A server's calls of this client's tools, and its questions to the user."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.frontends.remote.stand_in_server import StandIn

import limner
from limner import Limner, ToolCall, ToolContext
from limner.agent.events import ToolFinished, ToolProgress, ToolStarted
from limner.base64_text import encode_base64
from limner.frontends.remote.approvals import ApprovalRequest
from limner.frontends.remote.client import Client
from limner.frontends.remote.events import RemoteEvent, TurnResult
from limner.pictures.request import Progress
from limner.settings import load
from limner.tools.base import Question


def red(width: int = 8, height: int = 6) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "PNG")
    return file.getvalue()


@limner.tool
def words(of: str) -> str:
    """Say something."""
    return f"About {of}."


@limner.tool
def screenshot() -> list[Any]:
    """Show the screen."""
    return ["The screen:", red()]


@limner.tool
def breaks() -> str:
    """Break."""
    raise RuntimeError("no paper, OPENAI_API_KEY=sk-abcdefghijklmnop")


def text_answer(text: str, *, success: bool = True) -> dict[str, Any]:
    return {"result": {"contentItems": [{"type": "inputText", "text": text}], "success": success}}


async def called(server: StandIn, client: Client, tool: limner.Tool, **arguments: Any) -> Any:
    """What the server gets for one call, made in a turn of its own."""
    thread = await client.thread(tools=[tool])

    async def story() -> None:
        await server.call(tool.name, **arguments)
        await server.reply(0)
        await server.finish()

    server.stories.append(story)
    await thread.run("Go")
    return server.replies[0]


async def test_a_text_is_returned_as_text(server: StandIn, client: Client) -> None:
    assert await called(server, client, words, of="foxes") == text_answer("About foxes.")


async def test_a_picture_is_returned_as_a_data_url_in_its_place(
    server: StandIn, client: Client
) -> None:
    url = f"data:image/png;base64,{encode_base64(red())}"
    items = [
        {"type": "inputText", "text": "The screen:"},
        {"type": "inputImage", "imageUrl": url},
    ]
    assert await called(server, client, screenshot) == {
        "result": {"contentItems": items, "success": True}
    }


async def test_a_large_picture_is_fitted_to_what_models_take(
    server: StandIn, client: Client, lim: Limner
) -> None:
    @limner.tool
    def poster() -> bytes:
        """Show a large picture."""
        return red(4000, 1000)

    reply = await called(server, client, poster)
    value, image = reply["result"]["contentItems"]
    told = json.loads(value["text"])["images"][0]
    kept = await lim.pictures.recall(told["image"])
    fitted = await lim.fitting.fit(kept, model=None)
    assert told["dimensions"] == {"width": 4000, "height": 1000}
    assert max(fitted.width, fitted.height) < 4000
    assert image["imageUrl"] == f"data:{fitted.mime};base64,{encode_base64(fitted.data)}"


async def test_blocked_pictures_are_not_sent(server: StandIn, tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "LIMNER_HOME": str(tmp_path),
        "LIMNER_IMAGES_BLOCK_IMAGES": "true",
    }
    settings = load(env=env, cwd=tmp_path)
    async with Limner(settings, env=env) as lim, limner.connect(server.url, lim=lim) as client:
        reply = await called(server, client, screenshot)
    first, second = reply["result"]["contentItems"]
    assert first == {"type": "inputText", "text": "The screen:"}
    assert second["type"] == "inputText"
    assert "images.block_images keeps pictures from models" in second["text"]


async def test_the_error_of_a_tool_is_sent_without_secrets(server: StandIn, client: Client) -> None:
    reply = await called(server, client, breaks)
    (item,) = reply["result"]["contentItems"]
    error = json.loads(item["text"])["error"]
    assert reply["result"]["success"] is False
    assert (error["code"], error["message"]) == (
        "TOOL_CRASHED",
        "breaks crashed: RuntimeError: no paper, OPENAI_API_KEY=•••",
    )


async def test_an_unknown_tool_is_an_error_in_the_result(server: StandIn, client: Client) -> None:
    thread = await client.thread(tools=[words])

    async def story() -> None:
        await server.call("wrods")
        await server.reply(0)
        await server.finish()

    server.stories.append(story)
    await thread.run("Go")
    reply = server.replies[0]["result"]
    error = json.loads(reply["contentItems"][0]["text"])["error"]
    assert (reply["success"], error["code"], error["hint"]) == (
        False,
        "UNKNOWN_TOOL",
        "Did you mean words?",
    )


@pytest.mark.parametrize(
    "params",
    [
        {"threadId": "t1"},
        {"threadId": "t1", "turnId": "turn1", "callId": "c", "tool": "words", "arguments": [1]},
        {"threadId": "t1", "turnId": "turn1", "callId": 7, "tool": "words", "arguments": {}},
        {"threadId": "t9", "turnId": "turn1", "callId": "c", "tool": "words", "arguments": {}},
        {},
    ],
)
async def test_malformed_params_of_a_call_get_an_error(
    server: StandIn, client: Client, params: dict[str, Any]
) -> None:
    await client.thread(tools=[words])
    await server.request("item/tool/call", params, number=3)
    reply = await server.reply(3)
    assert reply["error"]["code"] == -32602


async def test_two_calls_at_once_run_at_once(server: StandIn, client: Client) -> None:
    both = asyncio.Barrier(2)

    @limner.tool
    async def meet(who: str) -> str:
        """Wait for another one."""
        await both.wait()
        return who

    async def story() -> None:
        await server.call("meet", number=0, who="a")
        await server.call("meet", number=1, who="b")
        assert [await server.reply(0), await server.reply(1)] == [
            text_answer("a"),
            text_answer("b"),
        ]
        await server.finish()

    thread = await client.thread(tools=[meet])
    server.stories.append(story)
    assert (await thread.run("Go")).status == "completed"


async def test_calls_and_their_progress_are_events(server: StandIn, client: Client) -> None:
    news = Progress(message="halfway", elapsed_s=0.0, fraction=0.5)

    @limner.tool
    def draw(context: ToolContext) -> str:
        """Draw."""
        context.progress(news)
        return "drawn"

    async def story() -> None:
        await server.call("draw")
        await server.reply(0)
        await server.finish()

    thread = await client.thread(tools=[draw])
    server.stories.append(story)
    told: list[RemoteEvent] = [event async for event in thread.stream("Go")]
    call = ToolCall(name="draw", call_id="call_0")
    started, progress, answered, completed = told
    assert isinstance(started, ToolStarted)
    assert started.call == call
    assert progress == ToolProgress(call=call, progress=news)
    assert isinstance(answered, ToolFinished)
    assert (answered.call, answered.result.value) == (call, '{"text":"drawn"}')
    assert isinstance(completed, TurnResult)


async def test_a_call_belongs_to_its_thread_and_works_in_its_folder(
    server: StandIn, client: Client, tmp_path: Path
) -> None:
    seen: list[ToolContext] = []

    @limner.tool
    def who(context: ToolContext) -> str:
        """Say who is asking."""
        seen.append(context)
        return "you"

    thread = await client.thread(tools=[who], cwd=tmp_path, budget_usd="0.05")

    async def story() -> None:
        await server.call("who")
        await server.reply(0)
        await server.finish()

    server.stories.append(story)
    await thread.run("Go")
    (context,) = seen
    assert (context.session_id, context.call_id, context.cwd, context.budget_nano) == (
        "t1",
        "call_0",
        tmp_path,
        50_000_000,
    )
    assert tmp_path.resolve() in context.reach.write
    assert not context.reach.anywhere


async def test_interrupting_a_turn_stops_its_tools(server: StandIn, client: Client) -> None:
    stopped = asyncio.Event()

    @limner.tool
    async def endless() -> str:
        """Never end."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})
        await server.call("endless")

    thread = await client.thread(tools=[endless])
    server.stories.append(story)
    async with aclosing(thread.stream("Go")) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                await thread.interrupt()
    await stopped.wait()
    reply = await server.reply(0)
    assert reply["result"]["success"] is False
    assert "endless was cancelled" in reply["result"]["contentItems"][0]["text"]


async def test_closing_the_client_stops_its_tools(server: StandIn, lim: Limner) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @limner.tool
    async def endless() -> str:
        """Never end."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with limner.connect(server.url, lim=lim) as client:
        thread = await client.thread(tools=[endless])
        server.stories.append(lambda: server.call("endless"))
        running = asyncio.create_task(thread.run("Go"))
        await started.wait()
    assert stopped.is_set()
    result = await running
    assert (result.status, result.error is None) == ("interrupted", False)


ASKING: list[tuple[str, dict[str, Any], Any, str, Any, Any]] = [
    (
        "item/commandExecution/requestApproval",
        {"command": "rm -r build", "reason": "A clean start."},
        "command",
        "A clean start. Run rm -r build?",
        {"decision": "accept"},
        {"decision": "decline"},
    ),
    (
        "item/fileChange/requestApproval",
        {"reason": None},
        "file_change",
        "Change files?",
        {"decision": "accept"},
        {"decision": "decline"},
    ),
    (
        "item/permissions/requestApproval",
        {"permissions": {"network": {"enabled": True}}},
        "permissions",
        "Grant {'network': {'enabled': True}}?",
        {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
        {"permissions": {}, "scope": "turn"},
    ),
    (
        "mcpServer/elicitation/request",
        {"mode": "form", "message": "Pay $2?", "requestedSchema": {"properties": {}}},
        "elicitation",
        "Pay $2? Answer an MCP server?",
        {"action": "accept", "content": {}},
        {"action": "decline", "content": None},
    ),
    (
        "mcpServer/elicitation/request",
        {"mode": "form", "message": "Name?", "requestedSchema": {"required": ["name"]}},
        "elicitation",
        "Name? Answer an MCP server?",
        {"action": "decline", "content": None},
        {"action": "decline", "content": None},
    ),
    (
        "execCommandApproval",
        {"command": ["ls"]},
        "command",
        "Run ['ls']?",
        {"decision": "approved"},
        {"decision": {"denied": {"rejection": "The user said no."}}},
    ),
    (
        "applyPatchApproval",
        {},
        "file_change",
        "Change files?",
        {"decision": "approved"},
        {"decision": {"denied": {"rejection": "The user said no."}}},
    ),
]


@pytest.mark.parametrize(("method", "asked", "kind", "text", "yes", "no"), ASKING)
async def test_the_user_is_asked_for_approval(
    server: StandIn, lim: Limner, method: str, asked: Any, kind: Any, text: str, yes: Any, no: Any
) -> None:
    put: list[ApprovalRequest] = []
    params = {"threadId": "t1", "turnId": "turn1", **asked}

    async def approve(approval: ApprovalRequest) -> bool:
        put.append(approval)
        return True

    async with limner.connect(server.url, lim=lim, approve=approve):
        await server.request(method, params, number=1)
        assert await server.reply(1) == {"result": yes}
    assert put == [ApprovalRequest(kind=kind, text=text, thread_id="t1", raw=params)]
    async with limner.connect(server.url, lim=lim):
        await server.request(method, params, number=2)
        assert await server.reply(2) == {"result": no}


async def test_a_tool_asks_the_same_user(server: StandIn, lim: Limner) -> None:
    put: list[ApprovalRequest] = []

    async def approve(approval: ApprovalRequest) -> bool:
        put.append(approval)
        return True

    @limner.tool
    async def pay(context: ToolContext) -> str:
        """Pay."""
        return str(await context.ask(Question(text="Pay $2?", amount_nano=2_000_000_000)))

    async with limner.connect(server.url, lim=lim, approve=approve) as client:
        assert await called(server, client, pay) == text_answer("True")
    assert put == [
        ApprovalRequest(kind="tool", text="Pay $2?", thread_id="t1", amount_nano=2_000_000_000)
    ]
