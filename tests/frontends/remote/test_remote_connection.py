"""A lost connection: it comes back with its threads, or ends with an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.frontends.remote.stand_in_server import Refusal, StandIn, thread_answer

import limner
from limner import LimnerError
from limner.agent.events import ItemAdded, ToolFinished, ToolStarted, TurnStarted
from limner.frontends.remote.client import Client
from limner.frontends.remote.connection import MAX_LOSSES
from limner.frontends.remote.events import Reconnected, RemoteEvent, TurnResult
from limner.frontends.remote.threads import Thread

ABORTED = "the connection was closed (1006)"
MESSAGE = {"type": "agentMessage", "id": "m1", "text": "Red.", "phase": None}
LATER = {"type": "agentMessage", "id": "m2", "text": "And blue.", "phase": None}


def latest(server: StandIn, status: str, *items: Any) -> None:
    """The newest turn that the server lists from now on."""
    turn = {"id": f"turn{server.turns}", "status": status, "items": list(items), "error": None}
    server.answers["thread/turns/list"] = lambda _: {"data": [turn]}


async def test_a_turn_that_the_server_kept_running_goes_on(server: StandIn, thread: Thread) -> None:
    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})
        latest(server, "inProgress", MESSAGE, {**LATER, "text": "And"})
        await server.drop()
        await server.until(lambda: server.sent("thread/turns/list") != [])
        # The client has seen it already, in the list of the newest turn.
        await server.notify("item/completed", turnId="turn1", item=MESSAGE)
        await server.notify("item/completed", turnId="turn1", item=LATER)
        await server.finish()

    server.stories.append(story)
    told = [event async for event in thread.stream("What colours?")]
    assert [type(event) for event in told] == [
        TurnStarted,
        Reconnected,
        ItemAdded,
        ItemAdded,
        TurnResult,
    ]
    assert told[1] == Reconnected(reason=ABORTED, goes_on=True)
    assert isinstance(told[-1], TurnResult)
    result = told[-1]
    assert (result.status, result.text, result.items) == (
        "completed",
        "And blue.",
        (MESSAGE, LATER),
    )
    assert server.sent("thread/turns/list") == [
        {"threadId": "t1", "limit": 1, "sortDirection": "desc", "itemsView": "full"}
    ]


async def test_a_turn_that_ended_meanwhile_has_all_its_items(
    server: StandIn, thread: Thread
) -> None:
    async def story() -> None:
        latest(server, "completed", MESSAGE)
        await server.drop()

    server.stories.append(story)
    reconnected, completed = [event async for event in thread.stream("What colour?")]
    assert reconnected == Reconnected(reason=ABORTED, goes_on=True)
    assert isinstance(completed, TurnResult)
    result = completed
    assert (result.status, result.text, result.items) == ("completed", "Red.", (MESSAGE,))


@pytest.mark.parametrize("status", ["interrupted", None])
async def test_a_turn_that_was_lost_ends_as_interrupted_and_says_why(
    server: StandIn, thread: Thread, status: str | None
) -> None:
    async def story() -> None:
        if status is not None:
            latest(server, status)
        await server.drop()

    server.stories += [story, server.finish]
    result = await thread.run("What colour?")
    assert result.status == "interrupted"
    assert result.error is not None
    assert (result.error.message, result.error.extras) == (
        f"The turn was lost with the connection to the app-server: {ABORTED}",
        {"info": "connectionLost"},
    )
    assert (await thread.run("And now?")).status == "completed"


async def test_the_next_turn_begins_with_a_reconnected_event(
    server: StandIn, client: Client
) -> None:
    thread = await client.thread(developer_instructions="Be brief.")
    server.stories += [server.finish, server.finish, server.finish]
    await thread.run("One")
    await server.drop()
    await server.until_back()
    told = [event async for event in thread.stream("Two")]
    assert told[0] == Reconnected(reason=ABORTED, goes_on=False)
    assert Reconnected not in [type(event) async for event in thread.stream("Three")]
    assert server.sent("thread/resume") == [
        {"threadId": "t1", "excludeTurns": True, "developerInstructions": "Be brief."}
    ]


async def test_a_thread_without_a_turn_is_started_again(server: StandIn, client: Client) -> None:
    thread = await client.thread()
    server.answers["thread/start"] = lambda _: thread_answer("t5")
    await server.drop()
    await server.until(lambda: len(server.sent("thread/start")) == 2)
    server.stories.append(lambda: server.notify("turn/completed", threadId="t5", turn=ENDED))
    assert (await thread.run("Hello")).status == "completed"
    assert (thread.id, server.sent("turn/start")[0]["threadId"]) == ("t5", "t5")


ENDED = {"id": "turn1", "status": "completed", "items": [], "error": None}


async def test_a_call_that_the_server_repeats_does_not_run_again(
    server: StandIn, client: Client
) -> None:
    runs: list[str] = []
    started, go_on = asyncio.Event(), asyncio.Event()

    @limner.tool
    async def draw(what: str) -> str:
        """Draw, for money."""
        runs.append(what)
        started.set()
        await go_on.wait()
        return f"{what}, drawn"

    async def story() -> None:
        latest(server, "inProgress")
        await server.call("draw", what="a fox")
        await started.wait()
        await server.drop()
        await server.until(lambda: server.sent("thread/turns/list") != [])
        await server.call("draw", what="a fox")
        go_on.set()
        await server.reply(0)
        # Once more, after it was answered.
        del server.replies[0]
        await server.call("draw", what="a fox")
        await server.reply(0)
        await server.finish()

    thread = await client.thread(tools=[draw])
    server.stories.append(story)
    told: list[RemoteEvent] = [event async for event in thread.stream("Draw")]
    assert runs == ["a fox"]
    items = [{"type": "inputText", "text": "a fox, drawn"}]
    assert server.replies[0] == {"result": {"contentItems": items, "success": True}}
    kinds = [type(event) for event in told]
    assert (kinds.count(ToolStarted), kinds.count(ToolFinished)) == (1, 1)


async def test_the_tools_of_a_turn_that_was_lost_are_stopped(
    server: StandIn, client: Client
) -> None:
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

    async def story() -> None:
        await server.notify("turn/started", turn={"id": "turn1"})
        await server.call("endless")
        await started.wait()
        await server.drop()

    thread = await client.thread(tools=[endless])
    server.stories.append(story)
    assert (await thread.run("Go")).status == "interrupted"
    await stopped.wait()


async def test_a_thread_that_cannot_be_resumed_is_lost_alone(
    server: StandIn, client: Client
) -> None:
    def resume(params: Any) -> Any:
        if params["threadId"] == "t1":
            raise Refusal("no rollout found")
        return thread_answer(params["threadId"])

    lost = await client.thread()
    kept = await client.resume("t9")
    server.answers["thread/resume"] = resume
    server.stories.append(server.drop)
    result = await lost.run("Hello")
    assert (result.status, result.error is not None) == ("interrupted", True)
    with pytest.raises(LimnerError, match="no rollout found"):
        await lost.run("Hello?")
    server.stories.append(lambda: server.notify("turn/completed", threadId="t9", turn=ENDED))
    server.turns = 0
    assert (await kept.run("Hello")).status == "completed"


async def test_a_server_that_keeps_dying_is_given_up(server: StandIn, thread: Thread) -> None:
    server.stories.append(server.finish)
    await thread.run("Hello")
    for time in range(1, MAX_LOSSES):
        await server.drop()
        await server.until_back(times=time)
    server.stories.append(server.drop)
    result = await thread.run("Hello?")
    assert result.status == "interrupted"
    with pytest.raises(LimnerError) as gone:
        await thread.run("Anybody?")
    assert gone.value.code == "SERVER_GONE"
    assert f"lost {MAX_LOSSES} times in a row" in gone.value.message
