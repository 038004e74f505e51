"""The transport and the library's own one do the same at every kind of server."""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import socket
import ssl
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.net import transport as transport_module
from limner.net.http import ChunkedBody, Http
from limner.net.transport import MAX_UNREAD_BYTES, DirectTransport

PEM = Path(__file__).parents[1] / "servers" / "delivery.pem"
HOST = "out.replicate.delivery"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SHORT_S = 0.2
GUARD_S = 20.0

Script = Callable[[StreamReader, StreamWriter], Awaitable[None]]
Transports = Callable[..., httpx2.AsyncBaseTransport]


class Server:
    """A server that does what a script says with each connection."""

    def __init__(self, script: Script) -> None:
        self.opened = self.closed = 0
        self._script = script
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(
        self, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, host, ssl=tls, limit=1 << 20)
        port = server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        try:
            yield f"{'https' if tls else 'http'}://{shown}:{port}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until_closed(self, count: int) -> None:
        """Wait until the client has closed so many connections."""
        async with asyncio.timeout(GUARD_S), self._changed:
            await self._changed.wait_for(lambda: self.closed >= count)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.opened += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._script(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            async with self._changed:
                self.closed += 1
                self._changed.notify_all()


async def read_request(reader: StreamReader) -> tuple[bytes, bytes]:
    """The head and the body of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    if fields.get(b"transfer-encoding") != b"chunked":
        return head, await reader.readexactly(int(fields.get(b"content-length", b"0")))
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return head, body


def answering(*answers: bytes, close: bool = False) -> Script:
    """Each request on a connection gets the next answer, the last one for ever."""

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        left = list(answers)
        while True:
            await read_request(reader)
            writer.write(left.pop(0) if len(left) > 1 else left[0])
            await writer.drain()
            if close and len(left) == 1:
                return

    return script


async def until_end(reader: StreamReader) -> bytes:
    """All that the client sends until it closes."""
    with suppress(ConnectionError):
        return await reader.read()
    return b""


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(PEM))


def own(*, max_connections: int = 10, max_idle: int = 10) -> httpx2.AsyncBaseTransport:
    return DirectTransport(tls=trusting(), max_connections=max_connections, max_idle=max_idle)


def of_the_library(*, max_connections: int = 10, max_idle: int = 10) -> httpx2.AsyncBaseTransport:
    limits = httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_idle, keepalive_expiry=5.0
    )
    return httpx2.AsyncHTTPTransport(verify=trusting(), limits=limits)


@pytest.fixture(params=[own, of_the_library])
def transports(request: pytest.FixtureRequest) -> Transports:
    return request.param


def client_of(transport: httpx2.AsyncBaseTransport, **timeouts: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=transport, timeout=httpx2.Timeout(GUARD_S, **timeouts))


@asynccontextmanager
async def reached(
    script: Script, transport: httpx2.AsyncBaseTransport, **timeouts: float
) -> AsyncIterator[tuple[Server, str, httpx2.AsyncClient]]:
    server = Server(script)
    async with server.listening() as url, client_of(transport, **timeouts) as client:
        yield server, url, client


async def test_requests_share_a_connection(transports: Transports) -> None:
    async with reached(answering(OK), transports()) as (server, url, client):
        for _ in range(3):
            assert (await client.post(url, json={"a": 1})).content == b"ok"
        assert server.opened == 1


async def test_a_request_arrives_as_it_was_made(transports: Transports) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(OK)

    async with reached(script, transports()) as (_, url, client):
        await client.put(f"{url}/a%20b?q=1", content=b"body", headers={"X-Name": "Value"})
        host = url.removeprefix("http://")
    assert seen == [
        (
            f"PUT /a%20b?q=1 HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n".encode()
            + b"Accept-Encoding: "
            + client.headers["accept-encoding"].encode()
            + b"\r\nConnection: keep-alive\r\nUser-Agent: "
            + client.headers["user-agent"].encode()
            + b"\r\nX-Name: Value\r\nContent-Length: 4\r\n\r\n",
            b"body",
        )
    ]


async def test_a_response_comes_with_its_status_version_reason_and_headers(
    transports: Transports,
) -> None:
    answer = (
        b"HTTP/1.1 418 Short and Stout\r\nX-Twice: a\r\nX-Twice: b\r\nContent-Length: 0\r\n\r\n"
    )
    async with reached(answering(answer), transports()) as (_, url, client):
        response = await client.get(url)
    assert (response.status_code, response.reason_phrase) == (418, "Short and Stout")
    assert response.http_version == "HTTP/1.1"
    assert response.headers.raw == [
        (b"X-Twice", b"a"),
        (b"X-Twice", b"b"),
        (b"Content-Length", b"0"),
    ]


BODIES = {
    "of a known length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n",
    "in chunks, which count more than a length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "after informational responses": b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("answer", BODIES.values(), ids=BODIES)
async def test_a_body_is_read_and_the_connection_is_used_again(
    answer: bytes, transports: Transports
) -> None:
    async with reached(answering(answer), transports()) as (server, url, client):
        for _ in range(2):
            assert (await client.get(url)).content == b"hello"
        assert server.opened == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
async def test_a_connection_that_the_server_ends_is_not_used_again(
    answer: bytes, transports: Transports
) -> None:
    async with reached(answering(answer, close=True), transports()) as (server, url, client):
        for _ in range(2):
            assert (await client.get(url)).content == b"hello"
        assert server.opened == 2


async def test_a_request_can_ask_to_close_the_connection(transports: Transports) -> None:
    async with reached(answering(OK), transports()) as (server, url, client):
        for _ in range(2):
            await client.get(url, headers={"Connection": "close"})
        assert server.opened == 2


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n"),
        ("POST", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
async def test_a_response_without_a_body_ends_with_its_headers(
    method: str, answer: bytes, transports: Transports
) -> None:
    async with reached(answering(answer), transports()) as (server, url, client):
        for _ in range(2):
            assert (await client.request(method, url)).content == b""
        assert server.opened == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\x16\x03\x01",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
    ],
)
async def test_an_answer_that_breaks_off_or_makes_no_sense_is_an_error(
    answer: bytes, transports: Transports
) -> None:
    async with reached(answering(answer, close=True), transports()) as (server, url, client):
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(url, content=b"paid")
        assert server.opened == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"])
async def test_a_connection_that_is_reset_is_an_error(
    answer: bytes, transports: Transports
) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()
        linger = b"\1\0\0\0\0\0\0\0"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with reached(script, transports()) as (server, url, client):
        with pytest.raises(httpx2.ReadError):
            await client.post(url, content=b"paid")
        assert server.opened == 1


async def test_a_server_that_says_nothing_is_a_read_timeout(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        await until_end(reader)

    async with reached(script, transports(), read=SHORT_S) as (server, url, client):
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(url)
        await server.until_closed(1)


async def test_a_body_that_stops_is_a_read_timeout(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
        await until_end(reader)

    async with reached(script, transports(), read=SHORT_S) as (server, url, client):
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(url)
        await server.until_closed(1)


async def test_a_server_that_does_not_read_is_a_write_timeout(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.Event().wait()

    body = bytes(32 * 1024 * 1024)
    async with reached(script, transports(), write=SHORT_S) as (_, url, client):
        with pytest.raises(httpx2.WriteTimeout):
            await client.post(url, content=body)


async def test_a_response_counts_if_the_server_then_reads_no_more_of_the_request() -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nbad")
        await asyncio.Event().wait()

    body = bytes(32 * 1024 * 1024)
    async with reached(script, own(), write=SHORT_S) as (_, url, client):
        response = await client.post(url, content=body)
        assert (response.status_code, response.content) == (401, b"bad")


async def test_a_server_that_does_not_shake_hands_is_a_connect_timeout(
    transports: Transports,
) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await until_end(reader)

    async with reached(script, transports(), connect=SHORT_S) as (server, url, client):
        with pytest.raises(httpx2.ConnectTimeout):
            await client.get(url.replace("http", "https"))
        await server.until_closed(1)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://a..b", f"http://{'a' * 64}.invalid"],
)
async def test_a_host_that_cannot_be_reached_is_a_connect_error(
    url: str, transports: Transports
) -> None:
    async with client_of(transports()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(url)


async def test_a_port_that_does_not_exist_is_not_cut_to_another_one() -> None:
    async with client_of(own()) as client:
        with pytest.raises(httpx2.ConnectError, match="no port 99999"):
            await client.get("http://localhost:99999")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "/relative"])
async def test_another_scheme_is_not_supported(url: str, transports: Transports) -> None:
    async with client_of(transports()) as client:
        with pytest.raises(httpx2.UnsupportedProtocol):
            await client.get(url)


class UnwatchableSelector(selectors.DefaultSelector):
    """The system refuses to watch sockets that lead to ``port`` for some of their ``events``."""

    def __init__(self) -> None:
        super().__init__()
        self.port: int | None = None
        self.events = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._refuse(fileobj, events)
        return super().register(fileobj, events, data)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._refuse(fileobj, events)
        return super().modify(fileobj, events, data)

    def _refuse(self, descriptor: int, events: int) -> None:
        if self.port is not None and events == self.events and _peer_port(descriptor) == self.port:
            raise OSError(errno.ENOSPC, "No space left on device")


def _peer_port(descriptor: int) -> int | None:
    with socket.socket(fileno=os.dup(descriptor)) as same, suppress(OSError):
        address: Any = same.getpeername()
        return address[1] if len(address) > 1 else None
    return None


def run_watched(work: Callable[[UnwatchableSelector], Coroutine[Any, Any, None]]) -> None:
    selector = UnwatchableSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(work(selector))


def test_a_connection_that_cannot_be_watched_fails_before_anything_is_sent() -> None:
    requests: list[bytes] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        requests.append((await read_request(reader))[0])
        writer.write(OK)

    async def work(selector: UnwatchableSelector) -> None:
        server = Server(script)
        async with server.listening() as url, client_of(own(max_connections=1)) as client:
            selector.port, selector.events = httpx2.URL(url).port, selectors.EVENT_READ
            with pytest.raises(httpx2.ConnectError, match="No space left"):
                await client.post(url, content=b"paid")
            await server.until_closed(1)
            assert requests == []
            selector.port = None
            assert (await client.get(url)).text == "ok"

    run_watched(work)


def test_an_upload_that_cannot_be_watched_is_a_write_error() -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()

    async def work(selector: UnwatchableSelector) -> None:
        async with Server(script).listening() as url, client_of(own()) as client:
            selector.port = httpx2.URL(url).port
            selector.events = selectors.EVENT_READ | selectors.EVENT_WRITE
            with pytest.raises(httpx2.WriteError, match="No space left"):
                await client.post(url, content=bytes(32 << 20))

    run_watched(work)


def test_a_download_that_cannot_be_watched_any_more_is_a_read_error() -> None:
    body = bytes(8 << 20)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def work(selector: UnwatchableSelector) -> None:
        async with (
            Server(answering(head + body)).listening() as url,
            client_of(own()) as client,
            client.stream("GET", url) as response,
        ):
            selector.port, selector.events = httpx2.URL(url).port, selectors.EVENT_READ
            for _ in range(100):
                await asyncio.sleep(0)  # the event loop reads, until there is too much to read on
            with pytest.raises(httpx2.ReadError, match="No space left"):
                await response.aread()

    run_watched(work)


async def test_a_header_that_cannot_be_sent_is_an_error_before_anything_is_sent(
    transports: Transports,
) -> None:
    async with reached(answering(OK), transports()) as (_, url, client):
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get(url, headers={"X-Bad": "a\nb"})
        assert (await client.get(url)).content == b"ok"


def tls_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


async def test_tls_verifies_the_name_that_the_request_gives(transports: Transports) -> None:
    server = Server(answering(OK))
    async with server.listening(tls=tls_server()) as url, client_of(transports()) as client:
        for _ in range(2):
            response = await client.get(url, extensions={"sni_hostname": HOST})
            assert response.content == b"ok"
        assert server.opened == 1


@pytest.mark.parametrize("name", [None, "replicate.delivery"])
async def test_tls_refuses_a_certificate_of_another_name(
    name: str | None, transports: Transports
) -> None:
    server = Server(answering(OK))
    async with server.listening(tls=tls_server()) as url, client_of(transports()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(url, extensions={"sni_hostname": name})


async def test_tls_to_a_server_without_tls_is_a_connect_error(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await until_end(reader)

    async with reached(script, transports()) as (_, url, client):
        with pytest.raises(httpx2.ConnectError):
            await client.get(url.replace("http", "https"))


async def test_a_large_body_goes_both_ways_through_tls(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        _, body = await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        await until_end(reader)

    sent = bytes(range(256)) * 12_000
    server = Server(script)
    async with server.listening(tls=tls_server()) as url, client_of(transports()) as client:
        response = await client.post(url, content=sent, extensions={"sni_hostname": HOST})
        assert response.content == sent


async def test_a_tls_connection_that_just_ends_breaks_a_body_off(transports: Transports) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"
    server = Server(answering(answer, close=True))
    async with server.listening(tls=tls_server()) as url, client_of(transports()) as client:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await client.get(url, extensions={"sni_hostname": HOST})


async def test_a_connection_to_one_name_is_not_used_for_another() -> None:
    server = Server(answering(OK))
    async with server.listening(tls=tls_server()) as url, client_of(own()) as client:
        await client.get(url, extensions={"sni_hostname": HOST})
        with pytest.raises(httpx2.ConnectError):
            await client.get(url)


async def test_a_host_can_be_an_ipv6_address(transports: Transports) -> None:
    server = Server(answering(OK))
    try:
        async with server.listening(host="::1") as url, client_of(transports()) as client:
            assert (await client.get(url)).content == b"ok"
    except OSError:
        pytest.skip("this machine has no IPv6")


async def test_a_host_name_leads_to_the_address_that_accepts(transports: Transports) -> None:
    async with reached(answering(OK), transports()) as (_, url, client):
        # It may have an IPv6 address too, where no server is.
        assert (await client.get(url.replace("127.0.0.1", "localhost"))).content == b"ok"


async def test_an_idle_connection_that_the_server_closed_is_not_used(
    transports: Transports,
) -> None:
    async with reached(answering(OK, close=True), transports()) as (server, url, client):
        await client.get(url)
        await server.until_closed(1)
        assert (await client.post(url, content=b"paid")).content == b"ok"
        assert server.opened == 2


def test_a_close_that_the_event_loop_has_not_seen_yet_is_noticed(transports: Transports) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    closed = threading.Event()

    def serve() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(OK)
                # The event loop waits for this event, so it reads nothing meanwhile.
                connection.shutdown(socket.SHUT_WR)
            closed.set()

    async def ask() -> list[bytes]:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with client_of(transports()) as client:
            async with client.stream("GET", url) as response:
                contents = [await response.aread()]
            assert closed.wait(GUARD_S)
            return [*contents, (await client.get(url)).content]

    with listener:
        thread = threading.Thread(target=serve)
        thread.start()
        assert asyncio.run(ask()) == [b"ok", b"ok"]
        thread.join(GUARD_S)


async def test_bytes_that_arrive_while_a_connection_is_idle_end_it(transports: Transports) -> None:
    go, sent = asyncio.Event(), asyncio.Event()

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        await go.wait()
        if not sent.is_set():
            writer.write(OK.replace(b"ok", b"no"))
            await writer.drain()
            sent.set()
        await until_end(reader)

    async with reached(script, transports()) as (server, url, client):
        await client.get(url)
        go.set()
        await sent.wait()
        assert (await client.get(url)).content == b"ok"
        assert server.opened == 2


@pytest.mark.parametrize(
    "answer", [OK, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
)
async def test_bytes_after_a_response_are_no_response_to_the_next_request(answer: bytes) -> None:
    async with reached(answering(answer + OK.replace(b"ok", b"no")), own()) as (
        server,
        url,
        client,
    ):
        for _ in range(2):
            assert (await client.get(url)).content == b"ok"
        assert server.opened == 2


async def test_a_response_during_the_upload_is_read_when_the_server_closes(
    transports: Transports,
) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        writer.write_eof()
        await until_end(reader)

    async with reached(script, transports()) as (server, url, client):
        response = await client.post(url, content=bytes(8 * 1024 * 1024))
        assert (response.status_code, response.content) == (413, b"big")
        await server.until_closed(1)


async def test_a_response_during_the_upload_is_read_after_it(transports: Transports) -> None:
    received: list[int] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 429 Slow Down\r\nContent-Length: 4\r\n\r\nwait")
            received.append(len(await reader.readexactly(8 * 1024 * 1024)))

    async with reached(script, transports()) as (server, url, client):
        for _ in range(2):
            response = await client.post(url, content=bytes(8 * 1024 * 1024))
            assert (response.status_code, response.content) == (429, b"wait")
        # The second request came after all of the first body.
        assert (server.opened, received[:1]) == (1, [8 * 1024 * 1024])


async def test_a_body_of_unknown_length_is_sent_in_chunks(transports: Transports) -> None:
    seen: list[bytes] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        seen.append((await read_request(reader))[1])
        writer.write(OK)

    async def pieces() -> AsyncIterator[bytes]:
        for size in (1, 0, 5, 70_000, 3, 300_000, 2):
            yield b"x" * size

    async with reached(script, transports()) as (_, url, client):
        assert (await client.post(url, content=pieces())).content == b"ok"
    assert seen == [b"x" * 370_011]


async def test_a_body_in_pieces_arrives_whole(transports: Transports) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        seen.append((await read_request(reader))[1])
        writer.write(OK)

    seen: list[bytes] = []
    pieces = [b"a", memoryview(b"b" * 3_000_000), b"c" * 1000, b"", memoryview(b"d" * 100_000)]
    body = ChunkedBody(pieces)
    async with reached(script, transports()) as (_, url, client):
        length = {"Content-Length": str(body.size_bytes)}
        request = client.build_request("POST", url, headers=length)
        request.stream = body
        assert (await client.send(request)).content == b"ok"
    assert seen == [b"".join(pieces)]


async def test_a_body_that_fails_ends_the_request_and_its_connection(
    transports: Transports,
) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await until_end(reader)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"
        raise LookupError

    async with reached(script, transports()) as (server, url, client):
        with pytest.raises(LookupError):
            await client.post(url, content=pieces())
        await server.until_closed(server.opened)


async def test_a_server_cannot_send_more_than_is_read() -> None:
    sent_bytes = 0

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal sent_bytes
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 * len(piece)))
        for _ in range(64):
            writer.write(piece)
            await writer.drain()
            sent_bytes += len(piece)
            moved.set()
        await until_end(reader)

    moved = asyncio.Event()
    piece = bytes(1024 * 1024)
    async with (
        reached(script, own()) as (_, url, client),
        client.stream("GET", url) as response,
    ):
        with suppress(TimeoutError):
            while True:
                moved.clear()
                async with asyncio.timeout(SHORT_S):
                    await moved.wait()
        # What the two sockets hold is up to the system.
        assert MAX_UNREAD_BYTES < sent_bytes < 48 * len(piece)
        assert len(await response.aread()) == 64 * len(piece)


async def test_the_announcement_comes_when_the_connection_is_open_and_nothing_was_sent(
    transports: Transports,
) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        accepted.set()
        received.append(await reader.read(1))
        await read_request(reader)
        writer.write(OK)

    async def trace(event: str, _: Any) -> None:
        if event.endswith(".send_request_headers.started"):
            await accepted.wait()
            announced.append(list(received))

    accepted, received, announced = asyncio.Event(), list[bytes](), list[list[bytes]]()
    async with reached(script, transports()) as (_, url, client):
        response = await client.post(url, content=b"paid", extensions={"trace": trace})
        assert response.content == b"ok"
    assert (announced, received) == ([[]], [b"P"])


async def test_nothing_is_sent_if_the_announcement_fails(transports: Transports) -> None:
    received: list[bytes] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        received.append(await until_end(reader))

    async def trace(event: str, _: Any) -> None:
        if event.endswith(".send_request_headers.started"):
            raise LookupError

    async with reached(script, transports()) as (server, url, client):
        with pytest.raises(LookupError):
            await client.post(url, content=b"paid", extensions={"trace": trace})
        await server.until_closed(1)
    assert received == [b""]


@pytest.mark.parametrize(
    "last_words", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", OK]
)
async def test_nothing_is_sent_if_the_server_ends_the_connection_during_the_announcement(
    last_words: bytes,
) -> None:
    ending, received = asyncio.Event(), list[bytes]()

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        received.append((await read_request(reader))[1])
        writer.write(OK)
        await ending.wait()
        writer.write(last_words)
        writer.write_eof()
        received.append(await until_end(reader))

    transport = own()
    assert isinstance(transport, DirectTransport)

    async def trace(event: str, _: Any) -> None:
        if event.endswith(".send_request_headers.started"):
            ending.set()
            await asyncio.wait([connection.closed for connection in transport.opened])

    async with reached(script, transport) as (server, url, client):
        await client.post(url, content=b"first")
        with pytest.raises(httpx2.ConnectError, match="before anything was sent"):
            await client.post(url, content=b"paid", extensions={"trace": trace})
        await server.until_closed(1)
    assert received == [b"first", b""]


async def test_requests_above_the_limit_wait_for_their_turn(transports: Transports) -> None:
    async with reached(answering(OK), transports(max_connections=2)) as (server, url, client):
        responses = await asyncio.gather(*(client.get(url) for _ in range(20)))
        assert [response.content for response in responses] == [b"ok"] * 20
        assert server.opened <= 2


async def test_a_request_that_waits_too_long_for_its_turn_was_not_sent(
    transports: Transports,
) -> None:
    transport = transports(max_connections=1)
    async with reached(answering(OK), transport, pool=SHORT_S) as (server, url, client):
        async with client.stream("GET", url) as response:
            with pytest.raises(httpx2.PoolTimeout):
                await client.get(url)
            assert await response.aread() == b"ok"
        assert (await client.get(url)).content == b"ok"
        assert server.opened == 1


async def test_idle_connections_to_other_hosts_make_room(transports: Transports) -> None:
    first, second = Server(answering(OK)), Server(answering(OK))
    transport = transports(max_connections=1)
    async with first.listening() as one, second.listening() as two, client_of(transport) as client:
        for url in (one, two, one):
            assert (await client.get(url)).content == b"ok"
        await first.until_closed(1)
        await second.until_closed(1)
        assert (first.opened, second.opened) == (2, 1)


async def test_no_more_than_the_limit_of_idle_connections_are_kept(
    transports: Transports,
) -> None:
    async with reached(answering(OK), transports(max_idle=2)) as (server, url, client):
        await asyncio.gather(*(client.get(url) for _ in range(5)))
        await server.until_closed(server.opened - 2)
        assert server.closed == server.opened - 2


async def test_an_idle_connection_is_closed_after_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with reached(answering(OK), own()) as (server, url, client):
        await client.get(url)
        monkeypatch.setattr(transport_module, "IDLE_S", -1.0)
        await client.get(url)
        await server.until_closed(1)
        assert server.opened == 2


async def silent(reader: StreamReader, writer: StreamWriter) -> None:
    await until_end(reader)


async def stuck(reader: StreamReader, writer: StreamWriter) -> None:
    await asyncio.Event().wait()


async def unfinished(reader: StreamReader, writer: StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    await until_end(reader)


@pytest.mark.parametrize(
    ("script", "size"),
    [(stuck, 1 << 25), (silent, 0), (unfinished, 0)],
    ids=["while it sends", "before the response", "in the response"],
)
async def test_a_cancelled_request_closes_its_connection_and_makes_room(
    script: Script, size: int, transports: Transports
) -> None:
    await cancel_and_ask_again(script, transports(max_connections=1), scheme="http", size=size)


async def test_a_request_that_is_cancelled_in_the_handshake_closes_its_connection() -> None:
    # The library leaves the connection open.
    await cancel_and_ask_again(silent, own(max_connections=1), scheme="https", size=0)


async def cancel_and_ask_again(
    script: Script, transport: httpx2.AsyncBaseTransport, *, scheme: str, size: int
) -> None:
    first = asyncio.Event()

    async def all_scripts(reader: StreamReader, writer: StreamWriter) -> None:
        if first.is_set():
            await answering(OK)(reader, writer)
        first.set()
        await script(reader, writer)

    async with reached(all_scripts, transport) as (server, url, client):
        target = url.replace("http", scheme)
        request = asyncio.ensure_future(client.post(target, content=bytes(size)))
        await first.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert (await client.get(url)).content == b"ok"
        if script is not stuck:  # that one does not notice
            await server.until_closed(1)
        assert server.opened == 2


async def test_a_cancelled_wait_for_a_turn_leaves_it_to_the_next(transports: Transports) -> None:
    async with reached(answering(OK), transports(max_connections=1)) as (_, url, client):
        async with client.stream("GET", url) as response:
            waiting = [asyncio.ensure_future(client.get(url)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await response.aread()
        waiting[1].cancel()
        assert (await waiting[2]).content == b"ok"


async def test_a_response_that_is_not_read_to_its_end_closes_its_connection(
    transports: Transports,
) -> None:
    async with reached(answering(OK), transports()) as (server, url, client):
        async with client.stream("GET", url) as response:
            assert response.status_code == 200
        await server.until_closed(1)
        assert (await client.get(url)).content == b"ok"


@pytest.mark.parametrize("steps", range(2, 10))
async def test_an_idle_tls_connection_that_is_reset_is_not_used(steps: int) -> None:
    writers: list[StreamWriter] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        writers.append(writer)
        await answering(OK)(reader, writer)

    server = Server(script)
    async with server.listening(tls=tls_server()) as url, client_of(own()) as client:
        named = {"sni_hostname": HOST}
        await client.get(url, extensions=named)
        socket_of_server = writers[0].get_extra_info("socket")
        linger = struct.pack("ii", 1, 0)
        socket_of_server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writers[0].transport.abort()
        # The connection ends in several steps of the event loop; a request may come at each.
        for _ in range(steps):
            await asyncio.sleep(0)
        assert (await client.get(url, extensions=named)).content == b"ok"


async def test_a_request_that_connects_while_its_client_is_closed_leaves_no_connection() -> None:
    async with reached(answering(OK), own()) as (server, url, client):
        asking = asyncio.ensure_future(client.get(url))
        for _ in range(2):
            await asyncio.sleep(0)
        await client.aclose()
        with suppress(httpx2.TransportError):
            await asking
        await server.until_closed(1)


async def test_a_client_that_is_closed_ends_its_requests_and_connections(
    transports: Transports,
) -> None:
    async with reached(unfinished, transports()) as (server, url, client):
        async with client.stream("GET", url) as response:
            await client.aclose()
            with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
                await response.aread()
        await server.until_closed(1)


async def test_a_proxy_of_the_environment_gets_the_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[bytes] = []

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        heads.append((await read_request(reader))[0])
        writer.write(OK)

    async with Server(script).listening() as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        http = Http()
        assert (await http.client().get("http://example.invalid/a")).content == b"ok"
        await http.aclose()
    assert heads[0].startswith(b"GET http://example.invalid/a HTTP/1.1\r\n")


@settings(max_examples=examples(30, 2_000))
@given(
    body=st.binary(max_size=300),
    cuts=st.lists(st.integers(0, 600), max_size=8),
    chunks=st.none() | st.lists(st.integers(1, 100), min_size=1, max_size=5),
)
def test_a_response_is_the_same_however_it_is_cut(
    body: bytes, cuts: list[int], chunks: list[int] | None
) -> None:
    if chunks is None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    else:
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        left = body
        for size in chunks * len(body):
            part, left = left[:size], left[size:]
            answer += b"%x\r\n%b\r\n" % (len(part), part) if part else b""
        answer += b"0\r\n\r\n"

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            await read_request(reader)
            for start, end in pairwise(edges):
                writer.write(answer[start:end])
                await writer.drain()
                await asyncio.sleep(0)

    async def ask() -> None:
        async with reached(script, own()) as (server, url, client):
            for _ in range(2):
                assert (await client.get(url)).content == body
            assert server.opened == 1

    edges = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    asyncio.run(ask())
