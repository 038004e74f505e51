"""An HTTP request -> its response, over a direct connection that is kept for the next request.

httpx2 brings a transport of its own; it stays in use behind proxies. This one does the same work
with fewer layers: asyncio moves the bytes, and h11 reads and writes the protocol.
"""

from __future__ import annotations

import asyncio
import contextvars
import select
import ssl
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

import h11
import httpx2

# How long a connection without a request is kept, as in httpx2.
IDLE_S = 5.0
# If the first address of a host has not answered by then, the next is tried beside it (RFC 8305).
NEXT_ADDRESS_S = 0.25
# The first line and the headers of a response, which h11 holds until they are complete.
MAX_HEAD_BYTES = 100 * 1024
# The server has to wait if more was not read yet than this, which the event loop reads at once.
MAX_UNREAD_BYTES = 256 * 1024
# A socket takes about so much at once. The event loop copies what it does not take.
WRITE_BYTES = 256 * 1024
# Smaller parts of a request are joined: each write is a call of the kernel.
JOINED_BYTES = 64 * 1024
MAX_PORT = 65535
_PORTS = {"http": 80, "https": 443}

_Timeouts = Mapping[str, float | None]
_Trace = Callable[[str, object], Awaitable[None]]


class Destination(NamedTuple):
    """Where a connection leads; TLS verifies that the server is ``name``."""

    scheme: str
    host: str
    port: int
    name: str


class DirectTransport(httpx2.AsyncBaseTransport):
    """The connections of one event loop. It sends each request once.

    Args:
        tls: the trusted certificates.
        max_connections: how many requests may be under way; the others wait.
        max_idle: how many connections without a request are kept.
    """

    def __init__(self, *, tls: ssl.SSLContext, max_connections: int, max_idle: int) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._max_connections, self._max_idle = max_connections, max_idle
        self._slots = asyncio.Semaphore(max_connections)
        self._under_way = 0
        self.opened: set[_Connection] = set()
        # Both are ordered: the first connection is idle for the longest time.
        self._idle: dict[_Connection, None] = {}
        self._idle_at: dict[Destination, dict[_Connection, None]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return when the headers of its response are here."""
        origin, head = _origin(request), _head(request)
        timeouts: _Timeouts = request.extensions.get("timeout", {})
        await self._take_slot(timeouts.get("pool"))
        connection: _Connection | None = None
        try:
            connection = self._take_idle(origin)
            if connection is None:
                connection = await self.connect(origin, timeouts.get("connect"))
            trace: _Trace | None = request.extensions.get("trace")
            if trace is not None:
                await trace("http11.send_request_headers.started", {"request": request})
            assert isinstance(request.stream, httpx2.AsyncByteStream)
            await connection.send(head, request.stream, timeouts.get("write"))
            response = await connection.receive_head(request.method, timeouts.get("read"))
        except BaseException:
            self.release(connection)
            raise
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw_items(),
            stream=_Body(self, connection, timeouts.get("read")),
            extensions={
                "http_version": b"HTTP/" + response.http_version,
                "reason_phrase": response.reason,
            },
        )

    async def connect(self, origin: Destination, timeout_s: float | None) -> _Connection:
        """Open a connection, with TLS if the scheme asks for it.

        Raises:
            ConnectError: the host has no address, or did not accept, or is not who it should be.
            ConnectTimeout: it took too long.
        """
        # Its callbacks would hold the context of this request, with keys, as long as it is open.
        opening = asyncio.get_running_loop().create_task(
            self._open(origin), context=contextvars.Context()
        )
        try:
            async with asyncio.timeout(timeout_s):
                return await opening
        except BaseException as error:
            opening.add_done_callback(_abandon)
            if isinstance(error, TimeoutError):
                raise httpx2.ConnectTimeout(str(error)) from error
            if isinstance(error, OSError | UnicodeError):  # the latter: a name with an empty part
                raise httpx2.ConnectError(str(error)) from error
            raise

    async def _open(self, origin: Destination) -> _Connection:
        is_tls, loop = origin.scheme == "https", asyncio.get_running_loop()
        options: dict[str, Any] = {}
        # Other loops, as uvloop, try one address after the other and have no such option.
        if isinstance(loop, asyncio.BaseEventLoop) and not _is_address(origin.host):
            options["happy_eyeballs_delay"] = NEXT_ADDRESS_S
        _, connection = await loop.create_connection(
            lambda: _Connection(self, origin),
            origin.host,
            origin.port,
            ssl=self._tls if is_tls else None,
            server_hostname=origin.name if is_tls else None,
            **options,
        )
        try:
            connection.start_reading()
        except OSError:
            connection.abort()
            raise
        return connection

    def release(self, connection: _Connection | None) -> None:
        """End a request; its connection is kept if the next request may use it."""
        self._under_way -= 1
        self._slots.release()
        if connection is None:
            return
        if not connection.become_idle():
            connection.abort()
            return
        self._idle[connection] = None
        self._idle_at.setdefault(connection.origin, {})[connection] = None
        if len(self._idle) > self._max_idle:
            self._oldest_idle().abort()

    def forget_idle(self, connection: _Connection) -> None:
        """The connection is not idle any more, if it was."""
        if connection in self._idle:
            del self._idle[connection]
            siblings = self._idle_at[connection.origin]
            del siblings[connection]
            if not siblings:
                del self._idle_at[connection.origin]

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        self._max_idle = 0  # a request that still connects keeps no connection behind it
        opened = list(self.opened)
        for connection in opened:
            connection.abort()
        if opened:
            await asyncio.wait([connection.closed for connection in opened])

    async def _take_slot(self, timeout_s: float | None) -> None:
        if not self._slots.locked():
            await self._slots.acquire()  # does not wait
        else:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise httpx2.PoolTimeout("Too many requests are under way.") from error
        self._under_way += 1

    def _take_idle(self, origin: Destination) -> _Connection | None:
        """The connection to an origin that was used last; None if a new one has to be opened."""
        expired = asyncio.get_running_loop().time() - IDLE_S
        while self._idle and self._oldest_idle().idle_since < expired:
            self._oldest_idle().abort()
        while siblings := self._idle_at.get(origin):
            connection = next(reversed(siblings))
            self.forget_idle(connection)
            if connection.begin():
                return connection
            connection.abort()
        if self._idle and self._under_way + len(self._idle) > self._max_connections:
            self._oldest_idle().abort()
        return None

    def _oldest_idle(self) -> _Connection:
        return next(iter(self._idle))


class _Connection(asyncio.Protocol):
    """A connection and the request that is under way on it."""

    def __init__(self, pool: DirectTransport, origin: Destination) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pool = pool
        self._transport: asyncio.Transport
        self._h11 = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
        self._waiter: asyncio.Future[None] | None = None
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        # What is left of a body with a known length; None if h11 finds the end of the body.
        self._missing_bytes: int | None = None
        self._is_idle = self._is_ended = self._is_reading_paused = self._is_write_blocked = False
        self._failure: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # A write waits until the socket has taken everything.
        self._transport.set_write_buffer_limits(high=1)
        # By default the event loop starts to read by itself, and only logs that it could not.
        self._transport.pause_reading()
        self._is_reading_paused = True
        self._pool.opened.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended, self._failure = True, self._failure or exc
        self._pool.opened.discard(self)
        self._pool.forget_idle(self)
        self.closed.set_result(None)
        self._notify()

    def eof_received(self) -> None:
        self._is_ended = True
        self._pool.forget_idle(self)
        self._notify()

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # no request asked for it
            self.abort()
            return
        self._unread.append(data)
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        self._notify()

    def pause_writing(self) -> None:
        self._is_write_blocked = True

    def resume_writing(self) -> None:
        self._is_write_blocked = False
        self._notify()

    def start_reading(self) -> None:
        """Read on, if reading is paused.

        Raises:
            OSError: the system cannot watch the socket: nothing would ever arrive.
        """
        if self._is_reading_paused and self._unread_bytes <= MAX_UNREAD_BYTES:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_ended = True
        self._failure = self._failure or ConnectionAbortedError("limner closed the connection")
        self._pool.forget_idle(self)
        self._transport.abort()
        self._notify()

    def become_idle(self) -> bool:
        """Wait for the next request; returns False if there can be none on this connection."""
        is_complete = self._missing_bytes == 0
        if self._missing_bytes is None:
            is_complete = self._h11.their_state is h11.DONE and not self._h11.trailing_data[0]
        # h11 leaves DONE if one of the two sides has said that it closes the connection.
        is_sent = self._h11.our_state is h11.DONE and not self._is_write_blocked
        is_kept = is_sent and not self._is_ended
        # More bytes than the response has are no response to the next request.
        self._is_idle = is_complete and is_kept and not self._unread
        self.idle_since = asyncio.get_running_loop().time()
        return self._is_idle

    def begin(self) -> bool:
        """Begin the next request; returns False if the server has closed the connection."""
        # TLS closes its socket a moment before it says that the connection is lost.
        if self._is_ended or self._transport.is_closing():
            return False
        if _is_readable(self._transport.get_extra_info("socket").fileno()):
            return False
        self._is_idle, self._missing_bytes = False, None
        self._h11 = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
        return True

    async def send(
        self, head: h11.Request, body: httpx2.AsyncByteStream, timeout_s: float | None
    ) -> None:
        """Send a request. If the server stops reading, it may have responded, so this is no error.

        Raises:
            ConnectError: the connection has ended, or the server has said something, before
                anything was sent.
            WriteTimeout: the server did not read for so long, and did not respond.
        """
        if self._is_ended or self._unread:
            # What has arrived is no response to this request.
            raise httpx2.ConnectError("The connection ended before anything was sent.")
        small = bytearray().join(self._frame(head))
        chunks = aiter(body)
        try:
            async for chunk in chunks:
                for part in self._frame(h11.Data(data=chunk)):
                    if len(small) + len(part) <= JOINED_BYTES:
                        small += part
                        continue
                    if not (
                        await self._write(small, timeout_s) and await self._write(part, timeout_s)
                    ):
                        return
                    small = bytearray()
        finally:
            if isinstance(chunks, AsyncGenerator):
                await cast("AsyncGenerator[bytes]", chunks).aclose()
        small += b"".join(self._frame(h11.EndOfMessage()))
        await self._write(small, timeout_s)

    def _frame(self, event: h11.Event) -> list[bytes]:
        return self._h11.send_with_data_passthrough(event) or []

    async def _write(self, part: bytes | bytearray, timeout_s: float | None) -> bool:
        """Write a part; returns False if the server does not read on, but may have responded."""
        view = memoryview(part)
        for start in range(0, len(view), WRITE_BYTES):
            if self._is_ended:
                break
            try:
                self._transport.write(view[start : start + WRITE_BYTES])
            except OSError as error:  # the system cannot watch the socket
                raise httpx2.WriteError(str(error)) from error
            if not await self._is_taken(timeout_s):
                return False
        return not self._is_ended

    async def _is_taken(self, timeout_s: float | None) -> bool:
        """Whether the socket takes what was written; else the server has responded meanwhile."""
        loop = asyncio.get_running_loop()
        end_s = None if timeout_s is None else loop.time() + timeout_s
        while self._is_write_blocked and not self._is_ended:
            left_s = None if end_s is None else max(0.0, end_s - loop.time())
            try:
                await self._wait(left_s, httpx2.WriteTimeout)
            except httpx2.WriteTimeout:
                if not self._unread:
                    raise
                return False
        return True

    async def receive_head(self, method: str, timeout_s: float | None) -> h11.Response:
        """The first line and the headers of the response to a request."""
        response = await self._next_event(timeout_s)
        while isinstance(response, h11.InformationalResponse):
            response = await self._next_event(timeout_s)
        if not isinstance(response, h11.Response):
            raise httpx2.RemoteProtocolError("The server speaks another protocol.")
        self._missing_bytes = _body_bytes(method, response)
        if self._missing_bytes is not None:
            self._put_back(self._h11.trailing_data[0])
        return response

    async def receive_body(self, timeout_s: float | None) -> bytes | None:
        """The next part of the body; None at its end."""
        if self._missing_bytes is None:
            event = await self._next_event(timeout_s)
            return bytes(event.data) if isinstance(event, h11.Data) else None
        if self._missing_bytes == 0:
            return None
        data = await self._read(timeout_s)
        if not data:
            raise httpx2.RemoteProtocolError(
                f"{self._missing_bytes} bytes of the body are missing."
            )
        self._put_back(data[self._missing_bytes :])
        data = data[: self._missing_bytes]
        self._missing_bytes -= len(data)
        return data

    async def _next_event(self, timeout_s: float | None) -> object:
        while True:
            try:
                event = self._h11.next_event()
                if event is not h11.NEED_DATA:
                    return event
                data = await self._read(timeout_s)
                if not data and self._h11.their_state is h11.SEND_RESPONSE:
                    raise httpx2.RemoteProtocolError("The server closed without a response.")
                self._h11.receive_data(data)
            except h11.RemoteProtocolError as error:
                raise httpx2.RemoteProtocolError(str(error)) from error

    async def _read(self, timeout_s: float | None) -> bytes:
        """What has arrived next; empty at the end of the connection."""
        while not self._unread:
            if self._failure is not None:
                raise httpx2.ReadError(str(self._failure)) from self._failure
            if self._is_ended:
                return b""
            await self._wait(timeout_s, httpx2.ReadTimeout)
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        try:
            self.start_reading()
        except OSError as error:
            raise httpx2.ReadError(str(error)) from error
        return data

    def _put_back(self, data: bytes) -> None:
        if data:
            self._unread.appendleft(data)
            self._unread_bytes += len(data)

    async def _wait(self, timeout_s: float | None, error: type[httpx2.TimeoutException]) -> None:
        """Wait until the connection has changed."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if timeout_s is None else loop.call_later(timeout_s, _fail, waiter, error)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(
        self, pool: DirectTransport, connection: _Connection, timeout_s: float | None
    ) -> None:
        self._pool, self._timeout_s = pool, timeout_s
        self._connection: _Connection | None = connection

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        try:
            chunk = await self._connection.receive_body(self._timeout_s)
        except BaseException:
            await self.aclose()
            raise
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)


def _abandon(opening: asyncio.Task[_Connection]) -> None:
    """Close a connection that was opened when its request had ended already."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()


def _fail(waiter: asyncio.Future[None], error: type[httpx2.TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(error(""))


def _origin(request: httpx2.Request) -> Destination:
    url = request.url
    if url.scheme not in _PORTS:
        raise httpx2.UnsupportedProtocol(f"The address is not http or https: {url.scheme!r}")
    host = url.raw_host.decode("ascii")
    port = url.port or _PORTS[url.scheme]
    if port > MAX_PORT:  # the resolver would take its last 16 bits
        raise httpx2.ConnectError(f"There is no port {port}")
    name: str | None = request.extensions.get("sni_hostname")
    return Destination(url.scheme, host, port, name or host)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _head(request: httpx2.Request) -> h11.Request:
    try:
        return h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
    except h11.LocalProtocolError as error:
        raise httpx2.LocalProtocolError(str(error)) from error


def _body_bytes(method: str, response: h11.Response) -> int | None:
    """The length of a body if the response says it; None if h11 has to find its end.

    h11 copies a body three times, which is most of the time that a picture takes.
    """
    headers = dict(response.headers)
    has_no_body = method == "HEAD" or response.status_code in (204, 304)
    if has_no_body or b"transfer-encoding" in headers or b"content-length" not in headers:
        return None
    return int(headers[b"content-length"])


def _is_readable(descriptor: int) -> bool:
    """Whether a socket has bytes or its end to read."""
    if sys.platform == "win32":
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
