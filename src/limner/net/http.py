"""The only builder of HTTP clients: one for each event loop, and a tap on what crosses them."""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NamedTuple

import httpx2

from limner import __version__
from limner.net.per_loop import PerLoop
from limner.net.redaction import redact
from limner.net.request_body import ChunkedBody

# A server may have hundreds of conversations, each waiting for its model.
MAX_CONNECTIONS = 1_000
MAX_IDLE_CONNECTIONS = 100
CONNECT_TIMEOUT_S = 10.0
# Between two pieces of an answer; calls that wait for a picture to be drawn set their own.
READ_TIMEOUT_S = 60.0
OBSERVED_BYTES = 2048
_CREDENTIAL_HEADERS = ("Authorization", "api-key", "x-api-key", "x-goog-api-key")

Observe = Callable[[str], None]


class _Held(NamedTuple):
    client: httpx2.AsyncClient
    keeper: AsyncGenerator[None]


class Http:
    """The HTTP client of a program, in as many event loops as it uses.

    Args:
        observe: gets one line for each request and one for each answer, without secrets.
    """

    def __init__(self, *, observe: Observe | None = None) -> None:
        self._observe = observe
        self._held = PerLoop(self._open)

    def client(self) -> httpx2.AsyncClient:
        """The client of the running event loop. It follows no redirect and resends nothing."""
        return self._held.get().client

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        held = self._held.pop()
        if held is not None:
            await held.keeper.aclose()

    def _open(self) -> _Held:
        client = httpx2.AsyncClient(
            headers={
                "User-Agent": f"limner/{__version__}",
                # A picture does not compress; unpacking would only cost time and trust.
                "Accept-Encoding": "identity",
            },
            verify=_trusted(),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(
                max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE_CONNECTIONS
            ),
            event_hooks=_tap(self._observe) if self._observe else None,
        )
        return _Held(client, _closed_with_loop(client))


def parse_url(text: str) -> httpx2.URL | None:
    """The parts of a URL; None if the text is not one."""
    try:
        return httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        return None


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Whom to believe; reading the certificates takes longer than a request, so it is done once."""
    return httpx2.create_ssl_context()


def _closed_with_loop(client: httpx2.AsyncClient) -> AsyncGenerator[None]:
    """Have the client closed when its event loop ends, for those who forget to.

    A loop that ends closes the asynchronous generators that were begun in it. It is the one
    notice a loop gives while connections can still be closed in order.
    """

    async def keep() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await client.aclose()

    keeper = keep()
    # It has no await before its yield, so one step by hand begins it.
    with contextlib.suppress(StopIteration):
        keeper.__anext__().__await__().__next__()
    return keeper


def _tap(observe: Observe) -> dict[str, list[Callable[..., object]]]:
    async def on_request(request: httpx2.Request) -> None:
        is_at_hand = isinstance(request.stream, (httpx2.ByteStream, ChunkedBody))
        body = request.content if is_at_hand else b""
        line = f"> {request.method} {request.url} {_headers(request.headers)}"
        observe(_line(line, body, request))

    async def on_response(response: httpx2.Response) -> None:
        request = response.request
        line = f"< {response.status_code} {request.method} {request.url}"

        def done(body: bytes) -> None:
            observe(_line(f"{line} {_headers(response.headers)}", body, request))

        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Tapped(response.stream, done)

    return {"request": [on_request], "response": [on_response]}


class _Tapped(httpx2.AsyncByteStream):
    """The body of an answer; its beginning is reported when the body ends or is given up."""

    def __init__(self, stream: httpx2.AsyncByteStream, done: Callable[[bytes], None]) -> None:
        self._stream, self._done = stream, done
        self._seen = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            # One byte more than is shown tells that there was more.
            self._seen += chunk[: OBSERVED_BYTES + 1 - len(self._seen)]
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._done(self._seen)


def _headers(headers: httpx2.Headers) -> str:
    return " ".join(f"{name}: {value!r}" for name, value in headers.items())


def _line(line: str, body: bytes, request: httpx2.Request) -> str:
    secrets = _credentials(request)
    shown = redact(body[:OBSERVED_BYTES].decode("utf-8", "replace"), secrets)
    if len(body) > OBSERVED_BYTES:
        # Drop the end as well: a secret cut in two would not have been recognised there.
        tail = 6 * max(map(len, secrets), default=0)
        shown = shown[: max(0, len(shown) - tail)] + "…"
    return f"{redact(line, secrets)} {shown!r}" if shown else redact(line, secrets)


def _credentials(request: httpx2.Request) -> list[str]:
    """The keys that this request carries: the last word of each header that names the caller."""
    values = (request.headers.get(name, "") for name in _CREDENTIAL_HEADERS)
    return [words[-1] for value in values if (words := value.split())]
