"""An HTTP request over a real socket -> the reply that a test scripted, byte for byte."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

MAX_HEAD_BYTES = 64 * 1024
GUARD_S = 30.0
MAX_ROUNDS = 100


class ReceivedRequest(msgspec.Struct, frozen=True, kw_only=True):
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
    """The server waits for it until the test opens it, from any thread."""

    def __init__(self) -> None:
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()

    def open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    async def wait(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._opened))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the server sends, and how the connection ends.

    Attributes:
        pieces: the body; the server waits at each `Gate` between them.
        length: the value of Content-Length, if it differs from the length of the body.
        chunked: send the body in chunks, without Content-Length.
        ending: "keep" leaves the connection open, "close" closes it, "reset" aborts it.
        hold: the server waits for it before it sends anything.
        head: with False the server sends nothing at all.
    """

    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    pieces: tuple[bytes | Gate, ...] = ()
    length: int | None = None
    chunked: bool = False
    ending: Literal["keep", "close", "reset"] = "keep"
    hold: Gate | None = None
    head: bool = True


def json_reply(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply with a JSON body."""
    return bytes_reply(
        json.dumps(value).encode(),
        status=status,
        headers={"Content-Type": "application/json", **(headers or {})},
    )


def bytes_reply(
    body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """A reply with a body of any kind."""
    return Reply(status=status, headers=headers or {}, pieces=(body,))


def html_reply(*, status: int = 200) -> Reply:
    """The page of a proxy or a captive portal."""
    page = b'<!DOCTYPE html><html><body class="x">{"data": [1]}</body></html>'
    return bytes_reply(page, status=status, headers={"Content-Type": "text/html"})


def dropped() -> Reply:
    """The server aborts the connection before it sends anything."""
    return Reply(head=False, ending="reset")


def cut_short(reply: Reply, *, keep: float = 0.5) -> Reply:
    """The same reply, but the connection closes in the middle of its body."""
    body = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))
    return Reply(
        status=reply.status,
        headers=reply.headers,
        pieces=(body[: int(len(body) * keep)],),
        length=len(body),
        ending="close",
    )


class LocalServer:
    """An HTTP server on 127.0.0.1, in its own thread; it records every request.

    A subclass decides its replies in `answer`. A test can script other replies with `script`.

    Attributes:
        requests: every request that arrived.
        hangups: how many clients left before their reply was complete.
        mount: the path of this server's root; another server passes the requests below it on.
    """

    mount = ""

    def __init__(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[ReceivedRequest] = []
        self.hangups = 0
        self.port = port
        self._tls = tls
        self._scripts: dict[str, deque[Reply]] = {}
        self._always: dict[str, Reply | None] = {}
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._failures: list[Exception] = []

    def answer(self, seen: ReceivedRequest) -> Reply:
        """The reply to a request that has no scripted reply."""
        return json_reply({"detail": f"nothing at {seen.path}"}, status=404)

    def route(self, seen: ReceivedRequest) -> str:
        """The kind of a request, as `script` and `always` name it."""
        return "any"

    def script(self, route: str, *replies: Reply) -> None:
        """Set the replies to the next requests of a kind, one for each."""
        self._scripts.setdefault(route, deque()).extend(replies)

    def always(self, route: str, reply: Reply | None) -> None:
        """Set the reply to every request of a kind; None removes it."""
        self._always[route] = reply

    def sent(self, route: str) -> list[ReceivedRequest]:
        """The requests of a kind that have arrived."""
        return [seen for seen in self.requests if self.route(seen) == route]

    async def wait_until(self, route: str, *, count: int = 1) -> None:
        """Wait until so many requests of a kind have arrived."""
        await asyncio.to_thread(self._wait, lambda: len(self.sent(route)) >= count)

    async def wait_for_hangup(self) -> None:
        """Wait until a client has left before its reply was complete."""
        await asyncio.to_thread(self._wait, lambda: self.hangups > 0)

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{self.mount}"

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

    async def serve(self, *, announce: Callable[[int], object] = lambda _: None) -> None:
        """Serve until the context ends (in a thread) or an interrupt comes (in a process)."""
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
            # If a server is closed, asyncio loses a connection that is half accepted.
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
            await self._hang_up()
            server.close()

    async def _hang_up(self) -> None:
        """End every connection; one that was just accepted must start before it can end."""
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
        self, seen: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Reply to one request; returns whether the connection stays open."""
        reply = self._reply_to(seen)
        if reply.hold is not None and not await self._held(reply.hold, reader):
            return False
        if reply.head and not await _send(reply, writer, lambda gate: self._held(gate, reader)):
            return False
        if reply.ending == "reset":
            _reset(writer)
        return reply.ending == "keep" and seen.headers.get("connection", "") != "close"

    def _reply_to(self, seen: ReceivedRequest) -> Reply:
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
        """Wait for the gate; False if the client leaves first."""
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


def _summary(seen: ReceivedRequest) -> dict[str, str]:
    return {
        "method": seen.method,
        "target": seen.target,
        "body": seen.body.decode("utf-8", "replace"),
    }


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
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
    return ReceivedRequest(method=method, target=target, headers=headers, body=body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


async def _send(
    reply: Reply, writer: asyncio.StreamWriter, wait: Callable[[Gate], Awaitable[bool]]
) -> bool:
    """Send a reply; False if the client left while the server waited for a gate."""
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
    # A chunked reply that breaks off has no last, empty chunk.
    if reply.chunked and reply.ending == "keep":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    linger_none = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_none)
    writer.transport.abort()
