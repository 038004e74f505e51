"""What happens to a thread at once: opened and closed, started and ended, asked twice."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import weakref

import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_hall import Hall, rest, until
from tests.servers.appserver_process import Client, Pipes, Stage, function, said
from tests.servers.scripted import calls, says

from limner.agent.session import StoredItem
from limner.agent.stored_turns import group_turns
from limner.frontends.appserver import thread_changes, thread_methods, thread_opener
from limner.frontends.appserver.inputs import ParsedInput
from limner.frontends.appserver.protocol.threads import (
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadReadState,
    ThreadReadStateUpdateParams,
    ThreadResumeParams,
    ThreadRevertParams,
    UnreadOperation,
)
from limner.frontends.appserver.thread import LiveThread
from limner.frontends.appserver.thread_history import read_turns
from limner.frontends.appserver.thread_opener import resume_thread
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import read_specs
from limner.net.jsonrpc import RpcError
from limner.testing.servers.http_server import Gate
from limner.wires.items import message, text_part

pytestmark = pytest.mark.slow


async def _words(thread: LiveThread) -> None:
    """Something to say in a thread, so that it is one."""
    await thread.session.append([message("user", text_part("hello"))])


async def test_a_thread_that_is_resumed_as_it_is_let_go_stays_open(studio: Studio) -> None:
    hall = Hall(studio, idle_s=0.0)
    threads, client = hall.threads, hall.client
    other, thread = await threads.create(ThreadState()), await threads.create(ThreadState())
    await threads.close(other)
    sessions = [(await threads.stored(one.id))[0] for one in (other, thread)]

    async def resume() -> LiveThread:
        found = await threads.load(sessions[1])
        threads.subscribe(found, client)
        found.subscribers.release(client)
        return found

    loading = asyncio.ensure_future(threads.load(sessions[0]))
    await asyncio.sleep(0)
    resuming = asyncio.ensure_future(resume())
    await asyncio.sleep(0)
    threads.unload_later(thread)
    await loading
    found = await resuming
    await rest()
    assert threads.get(thread.id) is found
    await hall.aclose()


async def test_a_thread_whose_resume_is_refused_is_not_kept_open(studio: Studio) -> None:
    hall = Hall(studio, idle_s=0.0)
    thread = await hall.threads.create(ThreadState())
    await hall.threads.close(thread)
    wanted = ThreadResumeParams(thread_id=thread.id, config={"approval.policy": "whatever"})
    with pytest.raises(RpcError, match="invalid config"):
        await resume_thread(hall.threads, wanted)
    await until(lambda: not hall.threads.live)
    await hall.aclose()


async def test_a_client_that_a_thread_could_not_be_shown_does_not_listen_to_it(
    studio: Studio,
) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    with pytest.raises(LookupError), hall.threads.subscribing(thread, hall.client):
        raise LookupError
    assert len(thread.subscribers) == 0
    with hall.threads.subscribing(thread, hall.client):
        pass
    with pytest.raises(LookupError), hall.threads.subscribing(thread, hall.client):
        raise LookupError
    assert hall.client in thread.subscribers  # it listened before
    await hall.aclose()


async def test_a_thread_that_was_let_go_is_not_kept_by_who_listened_once(studio: Studio) -> None:
    hall = Hall(studio, idle_s=0.0)

    async def visit() -> list[weakref.ref[LiveThread]]:
        left, deleted = (
            await hall.threads.create(ThreadState()),
            await hall.threads.create(ThreadState()),
        )
        for thread in (left, deleted):
            with hall.threads.subscribing(thread, hall.client):
                pass
        hall.threads.unsubscribe(left, hall.client)
        wanted = ThreadDeleteParams(thread_id=deleted.id)
        await thread_methods.delete(hall.threads, hall.call("thread/delete"), wanted)
        return [weakref.ref(left), weakref.ref(deleted)]

    gone = await visit()
    await until(lambda: not hall.threads.live)
    await rest()
    gc.collect()
    assert [one() for one in gone] == [None, None]
    await hall.aclose()


@pytest.mark.parametrize("archive_first", [True, False])
async def test_a_thread_that_is_put_away_as_it_is_resumed_is_not_open(
    studio: Studio, archive_first: bool
) -> None:
    hall = Hall(studio)
    for _ in range(5):
        thread = await hall.threads.create(ThreadState())
        await _words(thread)
        await hall.threads.close(thread)
        archiving = thread_methods.archive(
            hall.threads, hall.call("thread/archive"), ThreadArchiveParams(thread_id=thread.id)
        )
        resuming = thread_opener.resume(
            hall.threads, hall.call("thread/resume"), ThreadResumeParams(thread_id=thread.id)
        )
        both = (archiving, resuming) if archive_first else (resuming, archiving)
        ends = await asyncio.gather(*both, return_exceptions=True)
        assert all(end is None or isinstance(end, RpcError) for end in ends)
        _, about = await hall.threads.stored(thread.id)
        assert (about.archived_ms is not None, thread.id in hall.threads.live) == (True, False)
    await hall.aclose()


async def test_what_a_turn_stores_while_a_thread_is_marked_as_unread_stays(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    await _words(thread)
    read_state = ThreadReadState(first_unread=None, revision="r1")
    await thread.save(thread.state.with_extras(read_state=read_state))
    wanted = ThreadReadStateUpdateParams(
        thread_id=thread.id, expected_revision="r1", operation=UnreadOperation()
    )
    call = hall.call("thread/readState/update")
    marking = asyncio.ensure_future(thread_changes.update_read_state(hall.threads, call, wanted))
    found: tuple[str, ...] = ()
    while not marking.done():
        found = (*found, f"tool{len(found)}")
        stored = (*thread.state.extras.found, found[-1])
        thread.state = thread.state.with_extras(found=stored)
        await asyncio.sleep(0)
    await marking
    assert thread.state.extras.found == found
    await hall.aclose()


async def test_a_turn_that_begins_while_turns_are_removed_waits_for_that(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    # Enough that the turn is under way while they are still read.
    names = [*["one"] * 3_000, "two"]
    items = [{**message("user", text_part("hi")), "turn_id": name} for name in names]
    await thread.session.append(items)
    wanted = ThreadRevertParams(thread_id=thread.id, before_turn_id="two")
    call = hall.call("thread/revert")
    reverting = asyncio.ensure_future(thread_changes.revert(hall.threads, call, wanted))
    await asyncio.sleep(0)
    words = ParsedInput(item=message("user", text_part("three")))
    started: list[str] = []
    await thread.start_turn([words], on_started=started.append)
    await reverting
    await thread.ended()
    turns = await read_turns(thread.session)
    assert [turn.id for turn in turns] == ["one", *started]
    await hall.aclose()


async def test_an_ephemeral_thread_that_a_crashed_server_left_can_be_deleted(
    studio: Studio,
) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState().with_extras(ephemeral=True))
    hall.threads.live.clear()  # as after a crash: it is stored, and not open
    await thread.release()
    wanted = ThreadDeleteParams(thread_id=thread.id)
    await thread_methods.delete(hall.threads, hall.call("thread/delete"), wanted)
    with pytest.raises(RpcError, match="no rollout found"):
        await hall.threads.stored(thread.id)
    await hall.aclose()


async def test_a_thread_that_is_being_let_go_begins_no_turn(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    closing = asyncio.ensure_future(hall.threads.close(thread))
    await asyncio.sleep(0)
    with pytest.raises(RpcError, match="thread not found"):
        await thread.start_turn([], on_started=print)
    await closing
    await hall.aclose()


async def test_calls_that_another_resume_saw_to_are_not_made_again(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState(tools=read_specs([function("shot")])))
    call = {"type": "function_call", "call_id": "c1", "name": "shot", "arguments": "{}"}
    await thread.session.append(
        [{**one, "turn_id": "t"} for one in (message("user", text_part("go")), call)]
    )
    with hall.threads.subscribing(thread, hall.client):
        pass
    first, second = [await hall.threads.unfinished_turn(thread) for _ in range(2)]
    assert first is not None
    assert second is not None
    await thread.resume_turn(first)
    await until(lambda: any(b"item/tool/call" in one for one in hall.wire.messages))
    thread.interrupt()
    await thread.ended()
    await thread.resume_turn(second)
    await rest()
    asked = [one for one in hall.wire.messages if b"item/tool/call" in one]
    assert (len(asked), thread.turn_id) == (1, None)
    await hall.aclose()


async def test_a_client_that_saw_a_running_turn_is_notified_if_it_cannot_continue(
    stage: Stage,
) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start(dynamicTools=[function("shot")])
        turn = await client.say(thread, "go")
        await client.next("item/tool/call")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    key = stage.env.pop("TALKER")
    async with stage.piped() as client:
        resumed = await client.request("thread/resume", threadId=thread)
        assert resumed["thread"]["status"]["type"] == "active"
        told = await client.until("error")
        assert (told["turnId"], told["willRetry"]) == (turn, False)
        assert "TALKER" in json.dumps(told["error"])
        assert (await client.until("thread/status/changed"))["status"] == {"type": "idle"}
    # With the key it goes on after all.
    stage.env["TALKER"] = key
    async with stage.piped() as client:
        await client.request("thread/resume", threadId=thread)
        client.answer(await client.next("item/tool/call"), said("here"))
        assert (await client.until("turn/completed"))["turn"]["id"] == turn
    assert stage.outputs() == ["here"]


async def test_turns_that_are_started_at_once_are_one(stage: Stage) -> None:
    gate = Gate()
    stage.script(says("One", gate=gate), says("Two"))
    async with stage.piped() as client:
        thread = await client.start()
        wanted = [
            ("turn/start", {"threadId": thread, "input": [{"type": "text", "text": words}]})
            for words in ("first", "second")
        ]
        numbers = client.ask_at_once(*wanted)
        started = [(await client.answer_to(number))["turn"]["id"] for number in numbers]
        gate.open()
        await client.until("turn/completed")
    assert started[0] == started[1]


async def test_a_turn_that_is_interrupted_as_it_begins_ends(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    words = ParsedInput(item=message("user", text_part("go")))
    started: list[str] = []
    saying = asyncio.ensure_future(thread.start_turn([words], on_started=started.append))
    await asyncio.sleep(0)  # it is under way, and has not taken its first step
    thread.interrupt()
    await saying
    await thread.ended()
    (turn,) = await read_turns(thread.session)
    assert ([turn.id], turn.was_aborted) == (started, True)
    await hall.aclose()


@pytest.mark.timeout(30)
def test_a_history_of_many_messages_is_read_once() -> None:
    said_by_user = [
        StoredItem(seq=at, created_ms=0, item={**message("user", text_part("x"))})
        for at in range(20_000)
    ]
    (turn,) = group_turns(said_by_user)
    assert len(turn.items) == 20_000
