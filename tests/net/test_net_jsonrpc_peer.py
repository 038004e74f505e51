"""Two peers over real pipes: each serves the other, and both end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
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


async def test_a_pipe_without_room_does_not_stop_the_event_loop() -> None:
    source, target = os.pipe()
    capacity = 0
    os.set_blocking(target, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            capacity += os.write(target, b"\n" * 1024)
    os.set_blocking(target, True)
    lines = DescriptorTransport(os.open(os.devnull, os.O_RDONLY), target)
    sending = asyncio.create_task(lines.send([b"1", b"2"]))
    await asyncio.sleep(0)
    assert not sending.done()
    taken = b""
    while len(taken) < capacity + len(b"1\n2\n"):
        taken += await asyncio.to_thread(os.read, source, capacity)
    await sending
    assert taken.strip(b"\n") == b"1\n2"


async def test_a_reader_that_is_gone_is_an_error_of_a_short_message_too() -> None:
    source, target = os.pipe()
    lines = DescriptorTransport(os.open(os.devnull, os.O_RDONLY), target)
    os.close(source)
    with pytest.raises(BrokenPipeError):
        await lines.send([b"1"])


@pytest.mark.parametrize("kind", ["pipe", "socket", "file"])
async def test_lines_are_read_from_a_pipe_a_socket_and_a_file(kind: str, tmp_path: Path) -> None:
    text = b"1\n" + b"x" * 3_000_000 + b"\nlast"
    if kind == "pipe":
        source, target = os.pipe()
    elif kind == "socket":
        source, target = (one.detach() for one in socket.socketpair())
    else:
        target = os.open(tmp_path / "lines", os.O_CREAT | os.O_WRONLY)
        source = os.open(tmp_path / "lines", os.O_RDONLY)

    def write() -> None:
        with os.fdopen(target, "wb") as stream:
            stream.write(text)

    lines = DescriptorTransport(source, os.open(os.devnull, os.O_WRONLY))
    writing = asyncio.ensure_future(asyncio.to_thread(write))
    if kind == "file":
        await writing  # its end is where it ends now
    read = [await lines.receive() for _ in range(3)]
    await writing
    assert b"\n".join(bytes(line) for line in read if isinstance(line, bytes | bytearray)) == text
    assert await lines.receive() is None


async def test_what_comes_after_a_reader_was_cancelled_is_for_the_next_one() -> None:
    source, target = os.pipe()
    lines = DescriptorTransport(source, os.open(os.devnull, os.O_WRONLY))
    waiting = asyncio.create_task(lines.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    os.write(target, b"1\n2\n")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [await lines.receive(), await lines.receive()] == [b"1", b"2"]
