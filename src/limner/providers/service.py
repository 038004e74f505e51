"""One vendor's HTTP API: a request out; an answer, or one of our errors, back."""

from __future__ import annotations

import contextlib
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

import httpx2

from limner.errors import (
    LimnerError,
    ProviderAuth,
    ProviderError,
    ProviderRateLimited,
    SettingsError,
)
from limner.net.clock import Clock
from limner.net.download import Source, download
from limner.net.http import CONNECT_TIMEOUT_S
from limner.net.json_pictures import MAX_JSON_BYTES, read_json_with_pictures
from limner.net.redact import redact
from limner.pictures.order import Sink
from limner.providers.base import Connection
from limner.providers.failures import (
    Answer,
    Vendor,
    failure_of_answer,
    failure_of_transport,
    is_safe_to_resend,
)

MAX_ERROR_BYTES = 64 * 1024
FIRST_RETRY_S = 0.5
# A connection that is refused is seldom accepted a minute later; a rate limit often is.
MAX_UNREACHED_S = 4.0
MAX_UNTOLD_S = 20.0
MAX_TOLD_S = 60.0

T = TypeVar("T")


class Service:
    """A vendor's API at its base URL, with the key.

    Args:
        picture_hosts: where the vendor's output addresses may point, besides the base URL.

    Raises:
        SettingsError: the base URL is not an address.
        ProviderAuth: the key cannot be one.
    """

    def __init__(
        self, connection: Connection, vendor: Vendor, *, picture_hosts: Collection[str]
    ) -> None:
        self.vendor = vendor
        self.clock = connection.clock
        self.base_url = _checked_base_url(connection.base_url, vendor)
        self._http = connection.http
        self._secrets = (_checked_key(connection.key, vendor),)
        self._headers = {"Authorization": f"Bearer {connection.key}"}
        self._source = Source(base_url=self.base_url, hosts=picture_hosts, headers=self._headers)

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float,
        paid: bool = False,
        wanted: Collection[str] = (),
        sink: Sink | None = None,
        max_json_bytes: int = MAX_JSON_BYTES,
    ) -> Any:
        """Send one request and read its JSON, pouring a picture inside it into the sink.

        It is sent once. ``paid`` says that it buys something: then nobody may send it again
        unless it is known not to have arrived.

        Raises:
            ProviderError: the vendor or the network failed.
            BadProviderImage: the answer is a success, but not what was promised.
        """
        async with (
            self._answer(method, url, body, headers, read_timeout_s, paid=paid) as response,
            aclosing(response.aiter_bytes()) as chunks,
        ):
            return await read_json_with_pictures(
                chunks, wanted=wanted, sink=sink, max_json_bytes=max_json_bytes
            )

    async def fetch(self, url: str, sink: Sink) -> None:
        """Pour a picture from one of the vendor's output addresses into the sink.

        Raises:
            BadProviderImage: the address is not one of the vendor's, or nothing is there.
            ProviderUnavailable: it cannot be read now; the picture is paid for.
        """
        with self._naming_provider():
            await download(url, sink, client=self._http, source=self._source)

    def is_own(self, url: str) -> bool:
        """Whether an address is at the API's own origin, so that the key may be sent there."""
        try:
            return self._source.is_own_origin(httpx2.URL(url))
        except (httpx2.InvalidURL, ValueError):
            return False

    def for_reader(self, text: str) -> str:
        """The vendor's own words, safe to show: without secrets and without broken characters."""
        return redact(text.encode("utf-8", "replace").decode(), self._secrets)

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        read_timeout_s: float,
        *,
        paid: bool,
    ) -> AsyncGenerator[httpx2.Response]:
        """A successful answer whose body is still to be read."""
        request = self._http.build_request(
            method,
            url,
            json=body,
            headers={**self._headers, **(headers or {})},
            timeout=httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S),
        )
        try:
            response = await self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    raise await self._failure(response, paid=paid)
                with self._naming_provider():
                    yield response
            finally:
                await response.aclose()
        except httpx2.RequestError as problem:
            raise failure_of_transport(problem, self.vendor, paid=paid) from problem

    async def _failure(self, response: httpx2.Response, *, paid: bool) -> ProviderError:
        body = b""
        with contextlib.suppress(httpx2.RequestError):
            # The status has been said: an error page that breaks off says no less.
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk[: MAX_ERROR_BYTES - len(body)]
                    if len(body) == MAX_ERROR_BYTES:
                        break
        answer = Answer(status=response.status_code, headers=response.headers, body=body)
        return failure_of_answer(answer, self.vendor, secrets=self._secrets, paid=paid)

    @contextlib.contextmanager
    def _naming_provider(self) -> Generator[None]:
        """Errors from below do not know whose answer it was."""
        try:
            yield
        except LimnerError as error:
            error.extras.setdefault("provider", self.vendor.provider)
            raise


async def patiently(attempt: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Make an attempt, and again after a while where nothing can have been begun.

    A pause that the service asks for is kept, up to a minute in all; otherwise the pauses grow,
    for at most twenty seconds in all.

    Raises:
        ProviderError: what the last attempt raised.
    """
    began, pause_s = clock.now(), FIRST_RETRY_S
    while True:
        try:
            return await attempt()
        except ProviderError as error:
            told_s: float | None = error.extras.get("retry_after_s")
            wait_s = pause_s if told_s is None else max(told_s, FIRST_RETRY_S)
            waited_s = clock.now() - began
            if not is_safe_to_resend(error) or waited_s + wait_s > _patience_s(error):
                raise
        await clock.sleep(wait_s)
        pause_s *= 2


def _patience_s(error: ProviderError) -> float:
    if "retry_after_s" in error.extras:
        return MAX_TOLD_S
    return MAX_UNTOLD_S if isinstance(error, ProviderRateLimited) else MAX_UNREACHED_S


def _checked_base_url(base_url: str, vendor: Vendor) -> str:
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise SettingsError(
            f"{vendor.base_url_env} is not a web address: {base_url[:100]!r}",
            hint="Set it to an address such as https://example.com/v1, or unset it.",
        )
    return base_url


def _checked_key(key: str, vendor: Vendor) -> str:
    # A header can hold neither; the message of the library that refuses it would show the key.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderAuth(
            f"The key in {vendor.key_env} holds characters that no key has",
            hint=f"Set {vendor.key_env} again, without spaces, quotes or line ends.",
            extras={"provider": vendor.provider},
        )
    return key
