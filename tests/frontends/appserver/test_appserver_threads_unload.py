"""Threads that nobody needs any more are let go, and come back from the store."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_hall import Hall, rest

from limner.frontends.appserver.protocol.notifications import WarningNotification
from limner.frontends.appserver.thread_state import ThreadState
from limner.net.jsonrpc import RpcError


async def test_a_thread_is_let_go_when_nobody_listens_and_nothing_happens(studio: Studio) -> None:
    hall = Hall(studio, idle_s=0.0)
    threads, client = hall.threads, hall.client
    thread = await threads.begin(ThreadState())
    threads.listen(thread, client)
    thread.audience.release(client)
    await rest()
    assert threads.get(thread.id) is thread
    client.close()
    await rest()
    with pytest.raises(RpcError, match="thread not found"):
        threads.get(thread.id)
    again = await threads.load((await threads.stored(thread.id))[0])
    assert (again is thread, again.kept) == (False, thread.kept)
    await hall.aclose()


async def test_a_client_that_is_shown_a_thread_misses_nothing_meanwhile(studio: Studio) -> None:
    hall = Hall(studio)
    thread = await hall.threads.begin(ThreadState())
    hall.threads.listen(thread, hall.client)
    with thread.audience.asked(hall.asking.open("item/tool/call", {})):
        thread.audience.tell(WarningNotification(message="meanwhile"))
        await rest()
        assert hall.wire.messages == []
        thread.audience.release(hall.client)
    await hall.client.flush()
    told, asked = hall.wire.messages
    assert (b"meanwhile" in told, b"item/tool/call" in asked) == (True, True)
    await hall.aclose()
