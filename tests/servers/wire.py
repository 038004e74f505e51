"""A small HTTP/1.1 server over real sockets that does exactly what a test tells it to."""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import contextlib
import json
import socket
import ssl
import struct
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

MAX_HEAD_BYTES = 64 * 1024
GUARD_S = 30.0
MAX_ROUNDS = 100


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    def json(self) -> Any:
        return json.loads(self.body)


class Gate:
    """Holds the server back until the test opens it, from whatever thread."""

    def __init__(self) -> None:
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()

    def open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    async def wait(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._opened))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the server sends back, down to the way the connection ends.

    ``hold`` is waited for before anything is sent; a Gate among the pieces of the body is waited
    for at that point. ``length`` is what Content-Length claims; a body that falls short of it is
    a truncated one. ``ending`` "close" closes the connection in order, "reset" tears it down;
    ``head`` False sends no status line at all.
    """

    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    pieces: tuple[bytes | Gate, ...] = ()
    length: int | None = None
    chunked: bool = False
    ending: Literal["keep", "close", "reset"] = "keep"
    hold: Gate | None = None
    head: bool = True


def json_reply(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """An ordinary answer of JSON."""
    return bytes_reply(
        json.dumps(value).encode(),
        status=status,
        headers={"Content-Type": "application/json", **(headers or {})},
    )


def bytes_reply(
    body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """An ordinary answer of anything."""
    return Reply(status=status, headers=headers or {}, pieces=(body,))


def html_reply(*, status: int = 200) -> Reply:
    """What a proxy or a captive portal says instead."""
    page = b'<!DOCTYPE html><html><body class="x">{"data": [1]}</body></html>'
    return bytes_reply(page, status=status, headers={"Content-Type": "text/html"})


def dropped() -> Reply:
    """The connection is torn down before a word is said."""
    return Reply(head=False, ending="reset")


def cut_short(reply: Reply, *, keep: float = 0.5) -> Reply:
    """The same answer, broken off in the middle of its body."""
    body = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))
    return Reply(
        status=reply.status,
        headers=reply.headers,
        pieces=(body[: int(len(body) * keep)],),
        length=len(body),
        ending="close",
    )


class WireServer:
    """Answers on 127.0.0.1, in a thread of its own; records every request.

    Subclasses say what is answered in `answer`; a test may put replies before that with `script`.
    """

    def __init__(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Seen] = []
        self.hangups = 0
        self.port = port
        self._tls = tls
        self._scripts: dict[str, deque[Reply]] = {}
        self._always: dict[str, Reply | None] = {}
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._failures: list[Exception] = []

    def answer(self, seen: Seen) -> Reply:
        """What is answered where no script says otherwise."""
        return json_reply({"detail": f"nothing at {seen.path}"}, status=404)

    def route(self, seen: Seen) -> str:
        """The name under which `script` knows this kind of request."""
        return "any"

    def script(self, route: str, *replies: Reply) -> None:
        """Answer the next requests of a kind with these, one after the other."""
        self._scripts.setdefault(route, deque()).extend(replies)

    def always(self, route: str, reply: Reply | None) -> None:
        """Answer every request of a kind with this; with None, as usual."""
        self._always[route] = reply

    def sent(self, route: str) -> list[Seen]:
        """The requests of a kind that have arrived."""
        return [seen for seen in self.requests if self.route(seen) == route]

    async def wait_until(self, route: str, *, count: int = 1) -> None:
        """Wait for so many requests of a kind to have arrived."""
        await asyncio.to_thread(self._wait, lambda: len(self.sent(route)) >= count)

    async def wait_for_hangup(self) -> None:
        """Wait for a client to have left before its answer was complete."""
        await asyncio.to_thread(self._wait, lambda: self.hangups > 0)

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)
        self._thread.start()
        assert self._started.wait(GUARD_S)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(GUARD_S)
        assert not self._failures, self._failures

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, GUARD_S)

    def _run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self, *, announce: Callable[[int], object] = lambda port: None) -> None:
        """Answer until told to stop (as a thread) or interrupted (as a process)."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(
            self._connected,
            "127.0.0.1",
            self.port,
            limit=MAX_HEAD_BYTES,
            backlog=256,
            ssl=self._tls,
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        announce(self.port)
        try:
            await self._stop.wait()
        finally:
            # asyncio loses a connection that is half accepted when its server is closed.
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
            await self._hang_up()
            server.close()

    async def _hang_up(self) -> None:
        """End every connection; one that was accepted a moment ago has to begin before it can."""
        for _ in range(MAX_ROUNDS):
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if not others:
                return
            for task in self._connections:
                task.cancel()
            await asyncio.wait(others, timeout=0.05)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (seen := await _read_request(reader)) is not None:
                if not await self._exchange(seen, reader, writer):
                    break
        except ConnectionError:
            self._note_hangup()
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError, ssl.SSLError):
                await writer.wait_closed()

    async def _exchange(
        self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection goes on."""
        reply = self._reply_to(seen)
        if reply.hold is not None and not await self._held(reply.hold, reader):
            return False
        if reply.head and not await _send(reply, writer, lambda gate: self._held(gate, reader)):
            return False
        if reply.ending == "reset":
            _reset(writer)
        return reply.ending == "keep" and seen.headers.get("connection", "") != "close"

    def _reply_to(self, seen: Seen) -> Reply:
        if seen.path == "/_seen":
            return json_reply([_summary(one) for one in self.requests])
        route = self.route(seen)
        try:
            if self._scripts.get(route):
                reply = self._scripts[route].popleft()
            else:
                reply = self._always.get(route) or self.answer(seen)
        except Exception as failure:
            self._failures.append(failure)
            reply = json_reply({"detail": "the test server failed"}, status=500)
        with self._changed:
            self.requests.append(seen)
            self._changed.notify_all()
        return reply

    async def _held(self, gate: Gate, reader: asyncio.StreamReader) -> bool:
        """Wait for the gate; False where the client leaves first."""
        opened = asyncio.ensure_future(gate.wait())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
            gone.cancel()
            await asyncio.gather(opened, gone, return_exceptions=True)
        if opened.done() and not opened.cancelled():
            return True
        self._note_hangup()
        return False

    def _note_hangup(self) -> None:
        with self._changed:
            self.hangups += 1
            self._changed.notify_all()


def _summary(seen: Seen) -> dict[str, str]:
    return {
        "method": seen.method,
        "target": seen.target,
        "body": seen.body.decode("utf-8", "replace"),
    }


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([piece async for piece in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method=method, target=target, headers=headers, body=body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


async def _send(
    reply: Reply, writer: asyncio.StreamWriter, wait: Callable[[Gate], Awaitable[bool]]
) -> bool:
    """Send an answer; False where the client left while it was being held."""
    length = sum(len(piece) for piece in reply.pieces if isinstance(piece, bytes))
    framing = (
        {"Transfer-Encoding": "chunked"}
        if reply.chunked
        else {"Content-Length": str(length if reply.length is None else reply.length)}
    )
    reason = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else "Odd"
    head = [f"HTTP/1.1 {reply.status} {reason}"]
    head += [f"{name}: {value}" for name, value in {**framing, **reply.headers}.items()]
    writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
    for piece in reply.pieces:
        if isinstance(piece, Gate):
            await writer.drain()
            if not await wait(piece):
                return False
        elif piece:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.chunked else piece)
            await writer.drain()
    # A chunked answer that is to break off lacks its last, empty chunk.
    if reply.chunked and reply.ending == "keep":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    linger_none = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_none)
    writer.transport.abort()


def arguments(description: str) -> argparse.ArgumentParser:
    """The command line that the servers share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free one")
    parser.add_argument("--picture", required=True, help="the file that is drawn every time")
    parser.add_argument("--hold", action="store_true", help="never answer the paid request")
    return parser


def run(server: WireServer, *, held_routes: Iterable[str] = ()) -> None:
    """Serve as a process: the port on standard output, then until killed."""

    def announce(port: int) -> None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()

    for route in held_routes:
        server.always(route, Reply(hold=Gate()))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(announce=announce))
