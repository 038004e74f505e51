"""Threads that nobody needs any more are let go, and come back from the store."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_hall import Hall, rest

from limner.frontends.appserver.protocol.notifications import WarningNotification
from limner.frontends.appserver.thread_state import ThreadState
from limner.net.jsonrpc import RpcError


async def test_a_thread_without_subscribers_and_turns_is_closed(studio: Studio) -> None:
    hall = Hall(studio, idle_s=0.0)
    threads, client = hall.threads, hall.client
    thread = await threads.create(ThreadState())
    threads.subscribe(thread, client)
    thread.subscribers.release(client)
    await rest()
    assert threads.get(thread.id) is thread
    client.close()
    await rest()
    with pytest.raises(RpcError, match="thread not found"):
        threads.get(thread.id)
    again = await threads.load((await threads.stored(thread.id))[0])
    assert (again is thread, again.state) == (False, thread.state)
    await hall.aclose()


async def test_a_client_that_is_shown_a_thread_misses_nothing_meanwhile(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    hall.threads.subscribe(thread, hall.client)
    ids = {"threadId": thread.id, "turnId": "t", "callId": "c"}
    call = hall.pending.open("item/tool/call", {**ids, "tool": "shot", "arguments": {}})
    with thread.subscribers.requested(call):
        thread.subscribers.notify(WarningNotification(message="meanwhile"))
        await rest()
        assert hall.wire.messages == []
        thread.subscribers.release(hall.client)
    await hall.client.flush()
    told, asked = hall.wire.messages
    assert (b"meanwhile" in told, b"item/tool/call" in asked) == (True, True)
    await hall.aclose()
