"""A client of an app-server: threads, turns and their events, over a real web socket."""

from __future__ import annotations

import asyncio
import io
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.frontends.remote.stand_in_server import USER_AGENT, Refusal, StandIn, thread_answer

import limner
from limner import Limner, LimnerError
from limner.agent.events import ItemAdded, TextDelta, TurnStarted, UsageUpdated
from limner.base64_text import encode_base64
from limner.errors import InputInvalid, UserError
from limner.frontends.remote.client import Client, ThreadInfo
from limner.frontends.remote.events import RawNotification, TurnResult
from limner.frontends.remote.threads import Thread
from limner.wires.base import Usage

MESSAGE = {"type": "agentMessage", "id": "m1", "text": "A fox.", "phase": None}


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    return file.getvalue()


def data_url(png: bytes) -> str:
    return f"data:image/png;base64,{encode_base64(png)}"


def counted(**tokens: int) -> dict[str, int]:
    return {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0, **tokens}


def tokens(input_tokens: int, output_tokens: int) -> Usage:
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=0,
        reasoning_tokens=0,
    )


def turn_result(**fields: Any) -> TurnResult:
    """The end of the turn ``turn1``, completed at no cost unless the fields say otherwise."""
    usual: dict[str, Any] = {"turn_id": "turn1", "status": "completed", "text": "", "error": None}
    return TurnResult(**{**usual, "is_cut": False, "cost_nano": 0, "spent_nano": 0, **fields})


async def test_the_client_initializes_with_the_experimental_api(
    server: StandIn, client: Client
) -> None:
    await server.until(lambda: len(server.asked) == 2)
    info = {"name": "limner", "title": None, "version": limner.__version__}
    capabilities = {
        "experimentalApi": True,
        "optInNotificationMethods": ["thread/spend/updated"],
    }
    assert server.asked == [
        ("initialize", {"clientInfo": info, "capabilities": capabilities}),
        ("initialized", None),
    ]
    assert client.server == USER_AGENT


async def test_a_thread_is_started_with_its_options_and_tools(
    server: StandIn, client: Client, tmp_path: Path
) -> None:
    @limner.tool
    def add(a: int, b: int = 1) -> str:
        """Add two numbers."""
        return str(a + b)

    thread = await client.thread(
        tools=[add],
        cwd=tmp_path,
        model="gpt-5.5",
        approval_policy="never",
        developer_instructions="Be brief.",
    )
    assert (thread.id, thread.model) == ("t1", "gpt-5.5")
    spec = {
        "type": "function",
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": add.schema,
    }
    assert server.sent("thread/start") == [
        {
            "cwd": str(tmp_path),
            "model": "gpt-5.5",
            "approvalPolicy": "never",
            "developerInstructions": "Be brief.",
            "dynamicTools": [spec],
        }
    ]


async def test_a_turn_yields_its_events_and_a_result(server: StandIn, thread: Thread) -> None:
    last = counted(inputTokens=3, outputTokens=2, totalTokens=5)
    total = counted(inputTokens=7, outputTokens=2, totalTokens=9)
    notices: list[tuple[str, dict[str, Any]]] = [
        ("turn/started", {"turn": {"id": "turn1"}}),
        ("item/started", {"turnId": "turn1", "item": {**MESSAGE, "text": ""}}),
        ("item/agentMessage/delta", {"turnId": "turn1", "itemId": "m1", "delta": "A fox."}),
        ("item/completed", {"turnId": "turn1", "item": MESSAGE}),
        (
            "thread/tokenUsage/updated",
            {"turnId": "turn1", "tokenUsage": {"last": last, "total": total}},
        ),
        ("something/new", {"turnId": "turn1", "colour": "red"}),
    ]

    async def story() -> None:
        for method, params in notices:
            await server.notify(method, **params)
        await server.finish(items=[MESSAGE])

    server.stories.append(story)
    told = [event async for event in thread.stream("Who is this?", effort="low")]
    raw = [{"threadId": "t1", **params} for _, params in notices]
    usage = tokens(3, 2)
    ended = {"id": "turn1", "status": "completed", "items": [MESSAGE], "error": None}
    assert told == [
        TurnStarted(turn_id="turn1", raw=raw[0]),
        RawNotification(method="item/started", raw=raw[1]),
        TextDelta(item_id="m1", text="A fox.", raw=raw[2]),
        ItemAdded(item=MESSAGE, raw=raw[3]),
        UsageUpdated(
            last=usage,
            total=tokens(7, 2),
            context_tokens=None,
            spent_nano=0,
            raw=raw[4],
        ),
        RawNotification(method="something/new", raw=raw[5]),
        turn_result(
            text="A fox.", items=(MESSAGE,), usage=usage, raw={"threadId": "t1", "turn": ended}
        ),
    ]
    said = [{"type": "text", "text": "Who is this?"}]
    assert server.sent("turn/start") == [{"threadId": "t1", "input": said, "effort": "low"}]


async def test_the_text_is_the_final_answer_and_never_commentary(
    server: StandIn, thread: Thread
) -> None:
    said = [
        {"type": "agentMessage", "id": "1", "text": "Let me see.", "phase": "commentary"},
        {"type": "agentMessage", "id": "2", "text": "Red.", "phase": "final_answer"},
        {"type": "agentMessage", "id": "3", "text": "By the way …", "phase": "commentary"},
    ]

    async def story() -> None:
        for item in said:
            await server.notify("item/completed", turnId="turn1", item=item)
        await server.finish()

    server.stories.append(story)
    result = await thread.run("What colour?")
    assert (result.text, result.items) == ("Red.", tuple(said))


async def test_a_turn_that_fails_is_a_result_with_the_reason(
    server: StandIn, thread: Thread
) -> None:
    async def story() -> None:
        error = {"message": "overloaded", "codexErrorInfo": "serverOverloaded"}
        await server.finish(status="failed", error=error)

    server.stories.append(story)
    result = await thread.run("Hello")
    assert (result.turn_id, result.status) == ("turn1", "failed")
    assert result.error is not None
    assert (result.error.message, result.error.extras) == (
        "overloaded",
        {"info": "serverOverloaded"},
    )


async def test_notifications_of_another_turn_are_ignored(server: StandIn, thread: Thread) -> None:
    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})
        await server.notify("item/completed", turnId="turn0", item={**MESSAGE, "text": "Old."})
        await server.notify("turn/completed", turn={"id": "turn0", "status": "completed"})
        await server.notify("item/completed", threadId="t7", turnId="turn1", item=MESSAGE)
        await server.finish()

    server.stories.append(story)
    assert (await thread.run("Hello")).items == ()


async def test_a_refusal_has_the_servers_message(server: StandIn, thread: Thread) -> None:
    def refuse(_: Any) -> Any:
        raise Refusal("remote image URLs are not supported")

    server.answers["turn/start"] = refuse
    with pytest.raises(LimnerError) as refused:
        await thread.run("Hello")
    assert (refused.value.code, refused.value.message, refused.value.extras) == (
        "SERVER_REFUSED",
        "The app-server refused: remote image URLs are not supported",
        {"rpc_code": -32600, "data": None},
    )


async def test_a_remote_server_gets_pictures_as_data_urls(
    server: StandIn, thread: Thread, tmp_path: Path
) -> None:
    file = tmp_path / "red.png"
    file.write_bytes(picture())
    server.stories.append(server.finish)
    await thread.run("Same?", images=[picture(), file])
    image = {"type": "image", "url": data_url(picture())}
    (asked,) = server.sent("turn/start")
    assert asked["input"] == [image, image, {"type": "text", "text": "Same?"}]


async def test_a_local_server_gets_the_path_of_a_picture(tmp_path: Path, lim: Limner) -> None:
    async with (
        StandIn(tmp_path / "socket") as server,
        limner.connect(server.url, lim=lim) as client,
    ):
        thread = await client.thread()
        server.stories.append(server.finish)
        await thread.run("", images=[Path("red.png")])
        (asked,) = server.sent("turn/start")
        assert asked["input"] == [{"type": "localImage", "path": str(Path("red.png").absolute())}]


async def test_bytes_that_are_not_a_picture_never_reach_the_server(
    server: StandIn, thread: Thread
) -> None:
    with pytest.raises(LimnerError) as refused:
        await thread.run("Look", images=[b"not a picture"])
    assert refused.value.code == "IMAGE_UNRECOGNIZED"
    assert server.sent("turn/start") == []


async def test_a_turn_can_be_steered_and_interrupted(server: StandIn, thread: Thread) -> None:
    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})

    server.stories.append(story)
    async with aclosing(thread.stream("Count to a million")) as events:
        await anext(events)
        await thread.steer("To ten")
        with pytest.raises(UserError, match="A turn is running"):
            await thread.run("Hello")
        await thread.interrupt()
        (completed,) = [event async for event in events]
    assert isinstance(completed, TurnResult)
    assert (completed.turn_id, completed.status) == ("turn1", "interrupted")
    steered = {
        "threadId": "t1",
        "expectedTurnId": "turn1",
        "input": [{"type": "text", "text": "To ten"}],
    }
    assert server.sent("turn/steer") == [steered]
    assert server.sent("turn/interrupt") == [{"threadId": "t1", "turnId": "turn1"}]


async def test_without_a_turn_there_is_nothing_to_steer_or_interrupt(thread: Thread) -> None:
    with pytest.raises(UserError, match="No turn is running"):
        await thread.steer("left")
    with pytest.raises(UserError, match="No turn is running"):
        await thread.interrupt()


async def test_a_caller_that_leaves_the_loop_interrupts_the_turn_and_can_start_another(
    server: StandIn, thread: Thread
) -> None:
    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})

    server.stories += [story, server.finish]
    async with aclosing(thread.stream("Go on for ever")) as events:
        async for _ in events:
            break
    assert server.sent("turn/interrupt") == [{"threadId": "t1", "turnId": "turn1"}]
    assert (await thread.run("And now?")).turn_id == "turn2"


async def test_a_caller_that_breaks_out_of_the_loop_can_start_the_next_turn_at_once(
    server: StandIn, thread: Thread
) -> None:
    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})

    server.stories += [story, server.finish]
    async for _ in thread.stream("Go on for ever"):
        break
    assert (await thread.run("And now?")).turn_id == "turn2"
    assert server.sent("turn/interrupt") == [{"threadId": "t1", "turnId": "turn1"}]


async def test_a_caller_that_is_cancelled_interrupts_the_turn(
    server: StandIn, thread: Thread
) -> None:
    running = asyncio.create_task(thread.run("Go on for ever"))
    await server.until(lambda: server.turns == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server.sent("turn/interrupt") == [{"threadId": "t1", "turnId": "turn1"}]


async def test_threads_are_listed_resumed_forked_and_archived(
    server: StandIn, client: Client, thread: Thread
) -> None:
    row = {"id": "t9", "preview": "A fox", "cwd": "/tmp", "createdAt": 1, "updatedAt": 2}
    server.answers["thread/list"] = lambda _: {"data": [row], "nextCursor": None}
    server.answers["thread/fork"] = lambda _: thread_answer("t2")
    assert await client.list(limit=5) == (
        ThreadInfo(id="t9", preview="A fox", cwd="/tmp", created_at=1, updated_at=2, raw=row),
    )
    resumed = await client.resume("t9", model="gpt-5.5")
    forked = await client.fork("t9")
    await thread.archive()
    assert (resumed.id, forked.id) == ("t9", "t2")
    assert server.sent("thread/list") == [{"limit": 5, "archived": False}]
    assert server.sent("thread/resume") == [
        {"threadId": "t9", "excludeTurns": True, "model": "gpt-5.5"}
    ]
    assert server.sent("thread/fork") == [{"threadId": "t9", "excludeTurns": True}]
    assert server.sent("thread/archive") == [{"threadId": "t1"}]


async def test_a_thread_is_used_once_and_a_failed_resume_leaves_nothing(
    server: StandIn, client: Client, thread: Thread
) -> None:
    def refuse(_: Any) -> Any:
        raise Refusal("no rollout found for thread id t8")

    with pytest.raises(UserError, match="already uses the thread"):
        await client.resume(thread.id)
    server.answers["thread/resume"] = refuse
    for _ in range(2):
        with pytest.raises(LimnerError, match="no rollout found"):
            await client.resume("t8")


@pytest.mark.parametrize("method", ["currentTime/read", "item/tool/requestUserInput", "made/up"])
async def test_an_unknown_request_gets_an_error(
    server: StandIn, thread: Thread, method: str
) -> None:
    await server.request(method, {"threadId": "t1"}, number=5)
    message = f"This client does not answer {method}."
    assert await server.reply(5) == {"error": {"code": -32601, "message": message}}


async def test_a_token_is_sent_to_the_server_without_an_origin(
    server: StandIn, lim: Limner
) -> None:
    async with limner.connect(server.url, token="s3cret-token", lim=lim):
        pass
    (headers,) = server.headers
    assert headers["authorization"] == "Bearer s3cret-token"
    assert "origin" not in headers


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ws://", "unix://", "127.0.0.1:4500", ""])
def test_an_address_with_another_scheme_is_refused(url: str) -> None:
    with pytest.raises(InputInvalid) as refused:
        limner.connect(url)
    assert refused.value.field == "url"


def test_two_servers_at_once_are_refused() -> None:
    with pytest.raises(UserError, match="Name one app-server"):
        limner.connect("ws://127.0.0.1:1", command=["codex"])


async def test_a_missing_server_is_an_error_at_once(tmp_path: Path, lim: Limner) -> None:
    with pytest.raises(LimnerError) as missing:
        async with limner.connect(f"unix://{tmp_path}/nobody", lim=lim):
            pass
    assert missing.value.code == "SERVER_GONE"
