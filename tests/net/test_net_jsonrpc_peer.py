"""Two peers over real pipes: each serves the other, and both end."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec
import pytest

from limner.net.jsonrpc import METHOD_NOT_FOUND, Notification, RpcError
from limner.net.jsonrpc_lines import DescriptorTransport
from limner.net.jsonrpc_peer import (
    IncomingCall,
    Peer,
    PendingRequests,
    RequestServer,
    overloaded_error,
)


class Side:
    """One end of two pipes, which echoes and remembers notifications."""

    def __init__(self, source: int, target: int) -> None:
        self.log: list[str] = []
        self.notifications: list[Notification] = []
        self.server = RequestServer(
            self._serve, log=self.log.append, max_unanswered=2, overloaded=overloaded_error("Test")
        )
        self.peer = Peer(
            DescriptorTransport(source, target),
            server=self.server,
            pending=PendingRequests(self.log.append),
            on_notification=self.notifications.append,
            log=self.log.append,
        )
        self.running = asyncio.create_task(self.peer.run())

    async def _serve(self, call: IncomingCall[Peer]) -> object:
        if call.method == "wait":
            await asyncio.Event().wait()
        if call.method != "echo":
            raise RpcError(METHOD_NOT_FOUND, f"no {call.method}")
        return call.request.params


def sides() -> tuple[Side, Side]:
    (there_in, here_out), (here_in, there_out) = os.pipe(), os.pipe()
    return Side(here_in, here_out), Side(there_in, there_out)


async def request(side: Side, method: str, params: object) -> Any:
    return msgspec.json.decode(await side.peer.request(method, params, timeout_s=30))


async def test_both_sides_send_requests_and_notifications() -> None:
    here, there = sides()
    large = "x" * 1_000_000
    assert await asyncio.gather(
        request(here, "echo", {"a": 1}), request(there, "echo", [large]), request(here, "echo", 2)
    ) == [{"a": 1}, [large], 2]
    here.peer.notify("hello")
    with pytest.raises(RpcError, match=r"^no such$"):
        await request(here, "such", None)
    assert [one.method for one in there.notifications] == ["hello"]


async def test_too_many_open_requests_are_refused() -> None:
    here, there = sides()
    waiting = [asyncio.create_task(request(here, "wait", n)) for n in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(RpcError, match=r"^Test overloaded; retry later\.$"):
        await request(here, "echo", 3)
    here.peer.close()
    for task in waiting:
        with pytest.raises(ConnectionError):
            await task
    await here.running
    await there.server.aclose()


async def test_the_end_of_the_stream_ends_the_other_side() -> None:
    (there_in, here_out), (here_in, _) = os.pipe(), os.pipe()
    there, here = Side(there_in, here_out), Side(here_in, here_out)
    os.close(here_out)
    await there.running
    here.peer.close()
    await here.running
