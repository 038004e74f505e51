"""One vendor's HTTP API: a request out; an answer, or one of our errors, back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, TypeVar

import httpx2

from limner.errors import (
    LimnerError,
    ProviderAuth,
    ProviderError,
    ProviderRateLimited,
    SettingsError,
)
from limner.net.clock import Clock
from limner.net.download import DownloadSource, download
from limner.net.failures import (
    HttpAnswer,
    Vendor,
    failure_of_answer,
    failure_of_transport,
    failure_within_answer,
    is_safe_to_resend,
)
from limner.net.http import CONNECT_TIMEOUT_S, parse_url
from limner.net.json_pictures import MAX_JSON_BYTES, read_json_with_pictures
from limner.net.redaction import redact
from limner.net.request_body import PIECE_BYTES, ChunkedBody, MultipartForm
from limner.net.sink import Sink

MAX_ERROR_BYTES = 64 * 1024
FIRST_RETRY_S = 0.5
# A connection that is refused is seldom accepted a minute later; a rate limit often is.
MAX_UNREACHED_S = 4.0
MAX_UNTOLD_S = 20.0
MAX_TOLD_S = 60.0

_VERSION = re.compile(r"/v\d+\w*$")

T = TypeVar("T")


class Access(Protocol):
    """How a service is reached: through which client, where, and with whose key."""

    @property
    def http(self) -> httpx2.AsyncClient:
        """The client of the running event loop."""
        ...

    @property
    def base_url(self) -> str:
        """The address of the API, without a slash at its end."""
        ...

    @property
    def key(self) -> str:
        """The secret; empty where none is needed."""
        ...

    @property
    def clock(self) -> Clock:
        """The time between two attempts."""
        ...


class Service:
    """A vendor's API at its base URL, with the key.

    Args:
        picture_hosts: where the vendor's output addresses may point, besides the base URL.
        headers: what every request carries, the key included; most vendors take a bearer's.

    Raises:
        SettingsError: the base URL is not an address.
        ProviderAuth: the key cannot be one.
    """

    def __init__(
        self,
        access: Access,
        vendor: Vendor,
        *,
        picture_hosts: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.vendor = vendor
        self.clock = access.clock
        self.base_url = _checked_base_url(access.base_url, vendor)
        self._http = access.http
        self._secrets = (_checked_key(access.key, vendor),)
        bearer = {"Authorization": f"Bearer {access.key}"}
        self._headers = bearer if headers is None else headers
        self._source = DownloadSource(
            base_url=self.base_url, hosts=picture_hosts, headers=self._headers
        )

    async def call(
        self,
        method: str,
        url: str,
        *,
        body: Mapping[str, Any] | bytes | None = None,
        form: MultipartForm | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float,
        paid: bool = False,
        wanted: Collection[str] = (),
        sink: Sink | None = None,
        last: bool = False,
        max_json_bytes: int = MAX_JSON_BYTES,
    ) -> Any:
        """Send one request and read its JSON, pouring a picture inside it into the sink.

        ``body`` is JSON, encoded already where it is bytes; or ``form`` is sent. Of several
        pictures the sink gets the first, or the ``last``. The request is sent once; ``paid`` says
        that it buys something: then nobody may send it again unless it is known not to have
        arrived.

        Raises:
            ProviderError: the vendor or the network failed.
            BadProviderImage: the answer is a success, but not what was promised.
        """
        content = body if isinstance(body, bytes) else None
        json = None if isinstance(body, bytes) else body
        if content is not None:
            headers = {"Content-Type": "application/json", **(headers or {})}
        async with (
            self._answer(
                method,
                url,
                headers,
                read_timeout_s,
                paid=paid,
                json=json,
                content=content,
                form=form,
            ) as response,
            aclosing(response.aiter_bytes()) as chunks,
        ):
            return await read_json_with_pictures(
                chunks, wanted=wanted, sink=sink, last=last, max_json_bytes=max_json_bytes
            )

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        content: bytes | None = None,
        form: MultipartForm | None = None,
        read_timeout_s: float,
        paid: bool,
    ) -> AsyncGenerator[httpx2.Response]:
        """Post a body of JSON, or a form, and yield the successful answer, read as it arrives.

        It is sent once, as by `call`. ``read_timeout_s`` bounds the silence between two pieces.

        Raises:
            ProviderError: the vendor or the network failed, also while the answer is being read.
        """
        headers = {"Accept": "text/event-stream"}
        if form is None:
            headers["Content-Type"] = "application/json"
        async with self._answer(
            "POST", url, headers, read_timeout_s, paid=paid, content=content, form=form
        ) as response:
            yield response

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
        parsed = parse_url(url)
        return parsed is not None and parsed.is_absolute_url and self._source.is_own_origin(parsed)

    def for_reader(self, text: str) -> str:
        """The vendor's own words, safe to show: without secrets and without broken characters."""
        return redact(text.encode("utf-8", "replace").decode(), self._secrets)

    def failure_within_answer(
        self, code: str | None, message: str | None, *, paid: bool
    ) -> ProviderError:
        """The error for a failure that the vendor tells of in the middle of an answer."""
        return failure_within_answer(code, message, self.vendor, secrets=self._secrets, paid=paid)

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        read_timeout_s: float,
        *,
        paid: bool,
        json: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        form: MultipartForm | None = None,
    ) -> AsyncGenerator[httpx2.Response]:
        """A successful answer whose body is still to be read."""
        request = self._http.build_request(
            method,
            url,
            json=json,
            content=content,
            data=None if form is None else form.fields,
            files=None if form is None else form.files(),
            headers={**self._headers, **(headers or {})},
            timeout=httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S),
        )
        if content is not None and len(content) > PIECE_BYTES:
            request.stream = ChunkedBody(content)
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
        answer = HttpAnswer(status=response.status_code, headers=response.headers, body=body)
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


def versioned(base_url: str, version: str) -> str:
    """A base URL with the API's version, which some write at its end and some do not."""
    return base_url if _VERSION.search(base_url) else f"{base_url}/{version}"


def _patience_s(error: ProviderError) -> float:
    if "retry_after_s" in error.extras:
        return MAX_TOLD_S
    return MAX_UNTOLD_S if isinstance(error, ProviderRateLimited) else MAX_UNREACHED_S


def _checked_base_url(base_url: str, vendor: Vendor) -> str:
    if not base_url:
        raise SettingsError(
            f"{vendor.base_url_env} is not set",
            hint="Set it to the address of the server's API, such as http://127.0.0.1:8080/v1.",
        )
    url = parse_url(base_url)
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
