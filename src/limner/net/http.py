"""An event loop -> its HTTP client, the bodies it sends and one line of log for each message."""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import contextlib
import functools
import io
import logging
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NamedTuple, cast
from urllib.request import getproxies

import httpx2
import msgspec

from limner import __version__
from limner.net.per_loop import PerLoop
from limner.net.redaction import HARMLESS_HEADERS, MARK, header_secrets, redact
from limner.net.transport import DirectTransport

# A server may have hundreds of conversations, and each waits for its model.
MAX_CONNECTIONS = 1_000
MAX_IDLE_CONNECTIONS = 100
CONNECT_TIMEOUT_S = 10.0
# Between two chunks of a response. Calls that wait for a picture set their own.
READ_TIMEOUT_S = 60.0
OBSERVED_BYTES = 2048
CHUNK_BYTES = 1024 * 1024
_STARTED = "limner.started_s"

logger = logging.getLogger("limner.net")

Observe = Callable[[str], None]
# The other packages take these names from here, so that only net imports the HTTP library.
HttpClient = httpx2.AsyncClient
HttpRequest = httpx2.Request
HttpResponse = httpx2.Response
HttpError = httpx2.HTTPError


class _OpenClient(NamedTuple):
    client: httpx2.AsyncClient
    closer: AsyncGenerator[None]


class Http:
    """The HTTP clients of a program, one for each event loop that it uses.

    Args:
        observe: gets one line for each request and one for each response, without secrets.
    """

    def __init__(self, *, observe: Observe | None = None) -> None:
        self._observe = observe
        self._clients = PerLoop(self._open)

    def client(self) -> httpx2.AsyncClient:
        """The client of the running event loop. It follows no redirect and resends nothing."""
        return self._clients.get().client

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        opened = self._clients.pop()
        if opened is not None:
            await opened.closer.aclose()

    def _open(self) -> _OpenClient:
        client = httpx2.AsyncClient(
            headers={
                "User-Agent": f"limner/{__version__}",
                # Pictures do not compress, and decompression is an attack surface.
                "Accept-Encoding": "identity",
            },
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            event_hooks=_hooks(self._observe),
            transport=_transport(),
            # For the transports of the library, which it uses if there is no other.
            verify=_tls_context(),
            limits=httpx2.Limits(
                max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE_CONNECTIONS
            ),
        )
        return _OpenClient(client, _close_with_loop(client))


def _transport() -> httpx2.AsyncBaseTransport | None:
    """The direct connections; None if there is a proxy, which is left to the HTTP library.

    It loads what the first request would load. A paid call opens its client before it reserves: a
    module that cannot be read costs nothing.
    """
    if {"http", "https", "all"} & getproxies().keys():
        from anyio import Lock  # noqa: PLC0415 - only the library's own transport needs it

        Lock()  # loads the part of anyio for this event loop
        return None
    _ = asyncio.sslproto.SSLProtocol  # the command line defers this module
    return DirectTransport(
        tls=_tls_context(), max_connections=MAX_CONNECTIONS, max_idle=MAX_IDLE_CONNECTIONS
    )


def parse_url(text: str) -> httpx2.URL | None:
    """The parts of a URL; None if the text is not one."""
    try:
        return httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        return None


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """The trusted certificates. Loading them takes longer than a request, so it is done once."""
    return httpx2.create_ssl_context()


def _close_with_loop(client: httpx2.AsyncClient) -> AsyncGenerator[None]:
    """Close the client when its event loop ends, even if the program forgets to.

    A loop that ends closes the asynchronous generators that were started in it. No other hook of a
    loop runs while connections can still be closed in order.
    """

    async def wait_for_close() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await client.aclose()

    closer = wait_for_close()
    # It has no await before its yield, so one step by hand starts it.
    with contextlib.suppress(StopIteration):
        closer.__anext__().__await__().__next__()
    return closer


def _hooks(observe: Observe | None) -> dict[str, list[Callable[..., object]]]:
    logging_hooks: dict[str, list[Callable[..., object]]] = {
        "request": [_start_clock],
        "response": [_log_response],
    }
    observing_hooks = {} if observe is None else _observing_hooks(observe)
    return {name: [*own, *observing_hooks.get(name, ())] for name, own in logging_hooks.items()}


async def _start_clock(request: httpx2.Request) -> None:
    request.extensions[_STARTED] = time.monotonic()


async def _log_response(response: httpx2.Response) -> None:
    """Log a request without its query, its headers and its body, which may have secrets."""
    if logger.isEnabledFor(logging.DEBUG):
        request = response.request
        line = f"{request.method} {public_url(request.url)} {response.status_code}"
        elapsed_ms = (time.monotonic() - request.extensions[_STARTED]) * 1000
        logger.debug("%s in %.0f ms", redact(line, header_secrets(request.headers)), elapsed_ms)


def public_url(url: httpx2.URL) -> str:
    """A URL without its user, its query and its fragment, for the log."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}{url.path}"


def _observing_hooks(observe: Observe) -> dict[str, list[Callable[..., object]]]:
    async def on_request(request: httpx2.Request) -> None:
        body = b""
        if isinstance(request.stream, ChunkedBody):
            body = request.stream.start(OBSERVED_BYTES + 1)
        elif isinstance(request.stream, httpx2.ByteStream):
            body = request.content
        line = f"> {request.method} {request.url} {_headers(request.headers)}"
        observe(_line(line, body, request))

    async def on_response(response: httpx2.Response) -> None:
        request = response.request
        line = f"< {response.status_code} {request.method} {request.url}"

        def done(body: bytes) -> None:
            observe(_line(f"{line} {_headers(response.headers)}", body, request))

        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _ObservedBody(response.stream, done)

    return {"request": [on_request], "response": [on_response]}


class _ObservedBody(httpx2.AsyncByteStream):
    """The body of a response; its beginning is reported when the body ends or is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, done: Callable[[bytes], None]) -> None:
        self._stream, self._done = stream, done
        self._seen = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            # One byte more than the limit shows that there was more.
            self._seen += chunk[: OBSERVED_BYTES + 1 - len(self._seen)]
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._done(self._seen)


def _headers(headers: httpx2.Headers) -> str:
    """The headers; only those that are known to be harmless have their value."""
    return " ".join(
        f"{name}: {(value if name in HARMLESS_HEADERS else MARK)!r}"
        for name, value in headers.items()
    )


def _line(line: str, body: bytes, request: httpx2.Request) -> str:
    secrets = header_secrets(request.headers)
    shown = redact(body[:OBSERVED_BYTES].decode("utf-8", "replace"), secrets)
    if len(body) > OBSERVED_BYTES:
        # Drop the end as well: a secret that was cut there is not recognised.
        tail = 6 * max(map(len, secrets), default=0)
        shown = shown[: max(0, len(shown) - tail)] + "…"
    return f"{redact(line, secrets)} {shown!r}" if shown else redact(line, secrets)


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a form: its field, file name, media type and bytes."""

    field: str
    filename: str
    mime: str
    data: bytes


class MultipartForm(msgspec.Struct, frozen=True, kw_only=True):
    """The fields and files of a form; files of the same field are sent in this order.

    There is at least one file: the HTTP library would send a form without files in another
    encoding.
    """

    fields: Mapping[str, str | int | bool] = msgspec.field(
        default_factory=dict[str, str | int | bool]
    )
    uploads: Sequence[Upload]

    def files(self) -> list[tuple[str, tuple[str, io.BytesIO, str]]]:
        """The files in the form that the HTTP library takes.

        It reads them in chunks while it sends. ``BytesIO`` shares the bytes, so there is no second
        copy of a picture.
        """
        return [(up.field, (up.filename, io.BytesIO(up.data), up.mime)) for up in self.uploads]


class ChunkedBody(httpx2.AsyncByteStream):
    """A body in memory, in pieces of any size, that is sent in chunks and not copied for that.

    An event loop that gets megabytes at once copies the rest each time the network has taken a
    part: a conversation with pictures was sent at a quarter of the speed.
    """

    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self._pieces = pieces
        self.size_bytes = sum(map(len, pieces))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Chunks(self._pieces)

    def start(self, most_bytes: int) -> bytes:
        """At most so many bytes of its beginning."""
        taken = b""
        for piece in self._pieces:
            taken += piece[: most_bytes - len(taken)]
        return taken


class _Chunks:
    # Not a generator: the event loop would have to close one that is not read to its end.
    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self._rest = (
            piece[start : start + CHUNK_BYTES]
            for piece in map(memoryview, pieces)
            for start in range(0, len(piece), CHUNK_BYTES)
        )

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._rest:
            return cast("bytes", chunk)  # the transports only measure and send it
        raise StopAsyncIteration
