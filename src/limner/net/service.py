"""A request to a vendor's HTTP API -> its response, or one of limner's errors."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, cast

import httpx2

from limner import metrics
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
    FailedResponse,
    Vendor,
    is_safe_to_resend,
    parse_date,
    reported_error,
    response_error,
    timeout_error,
    transport_error,
)
from limner.net.http import (
    CHUNK_BYTES,
    CONNECT_TIMEOUT_S,
    ChunkedBody,
    MultipartForm,
    parse_url,
)
from limner.net.json_pictures import MAX_JSON_BYTES, read_json_with_pictures
from limner.net.paid_request import announcing_trace
from limner.net.redaction import (
    basic_authorization,
    drop_userinfo,
    header_secrets,
    mask_secrets,
    redact,
)
from limner.net.sink import Sink
from limner.net.waits import report_wait
from limner.settings import ServiceSettings

DEFAULT_TIMEOUT_S = ServiceSettings().timeout_s
MAX_ERROR_BYTES = 64 * 1024
FIRST_RETRY_S = 0.5
# A refused connection seldom succeeds a minute later; a rate limit often ends by then.
MAX_UNREACHABLE_S = 4.0
MAX_RATE_LIMITED_S = 20.0
MAX_RETRY_AFTER_S = 60.0

_VERSION = re.compile(r"/v\d+\w*$")

logger = logging.getLogger("limner.net")

T = TypeVar("T")


class Access(Protocol):
    """How to reach a service: the HTTP client, the base URL, the key and the clock."""

    @property
    def http(self) -> httpx2.AsyncClient:
        """The client of the running event loop."""
        ...

    @property
    def base_url(self) -> str:
        """The URL of the API, without a slash at its end."""
        ...

    @property
    def key(self) -> str:
        """The key; empty if none is needed."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock for pauses between two attempts."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long one request may take, to the last byte of its response."""
        ...


class Service:
    """A vendor's API at its base URL, with the key.

    Args:
        picture_hosts: the hosts of the vendor's picture URLs, besides the base URL.
        headers: the headers of every request, with the key; the default is a bearer token.

    Attributes:
        clock_lead_s: how far the service's clock is ahead of the local one, by the ``Date`` of its
            last response; None before the first.

    Raises:
        SettingsError: the base URL is not a URL.
        ProviderAuth: the key has characters that no key has.
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
        self.clock_lead_s: float | None = None
        url = _check_base_url(access.base_url, vendor)
        # Addresses are shown and stored, so the user and the password leave them here.
        self.base_url = drop_userinfo(access.base_url)
        self._http, self._timeout_s = access.http, access.timeout_s
        key = _check_key(access.key, vendor)
        bearer = {"Authorization": f"Bearer {key}"}
        self._headers = dict(bearer if headers is None else headers)
        if url.userinfo:
            self._headers["Authorization"] = basic_authorization(url.username, url.password)
        encoded = base64.b64encode(key.encode()).decode()
        self._secrets = (key, encoded, *header_secrets(self._headers))
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
    ) -> object:
        """Send one request and parse its JSON; a picture inside it goes into the sink.

        ``body`` is JSON, already encoded if it is bytes; or a ``form`` is sent. If there are
        several pictures, the sink gets the first, or the ``last``. The request is sent once.
        ``paid`` says that it buys something: then the caller must not send it again, unless it is
        certain that it did not arrive.

        Raises:
            ProviderError: the vendor or the network failed.
            BadProviderImage: the response is a success, but not valid.
        """
        content = body if isinstance(body, bytes) else None
        json = None if isinstance(body, bytes) else body
        if content is not None:
            headers = {"Content-Type": "application/json", **(headers or {})}
        async with (
            self._send(
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
            answer = await read_json_with_pictures(
                chunks, wanted=wanted, sink=sink, last=last, max_json_bytes=max_json_bytes
            )
            return self._masked(answer)

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        content: bytes | Sequence[bytes | memoryview] | None = None,
        form: MultipartForm | None = None,
        read_timeout_s: float,
        paid: bool,
    ) -> AsyncGenerator[httpx2.Response]:
        """Post JSON, also in pieces, or a form; yield the successful response as it arrives.

        The request is sent once, as in `call`. ``read_timeout_s`` is the longest pause between two
        chunks.

        Raises:
            ProviderError: the vendor or the network failed, also while the response is read.
        """
        headers = {"Accept": "text/event-stream"}
        if form is None:
            headers["Content-Type"] = "application/json"
        async with self._send(
            "POST", url, headers, read_timeout_s, paid=paid, content=content, form=form
        ) as response:
            yield response

    @asynccontextmanager
    async def transfer(
        self,
        method: str,
        url: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float,
    ) -> AsyncGenerator[httpx2.Response]:
        """Send or get a file, which may take longer than a request; nothing is bought.

        Raises:
            ProviderError: the vendor or the network failed, also while the response is read.
        """
        async with self._send(
            method, url, headers, read_timeout_s, paid=False, content=content, has_deadline=False
        ) as response:
            yield response

    async def fetch(self, url: str, sink: Sink) -> None:
        """Download a picture from one of the vendor's picture URLs into the sink.

        Raises:
            BadProviderImage: the URL is not one of the vendor's, or nothing is there.
            ProviderUnavailable: it cannot be downloaded now; the picture is already paid for.
        """
        with self._with_provider_name():
            await download(url, sink, client=self._http, source=self._source)

    def is_own(self, url: str) -> bool:
        """Whether a URL is at the API's own origin, so that the key may be sent there."""
        parsed = parse_url(url)
        return parsed is not None and parsed.is_absolute_url and self._source.is_own_origin(parsed)

    def safe_text(self, text: str) -> str:
        """A text of the vendor that is safe to show: without secrets and lone surrogates."""
        return redact(text.encode("utf-8", "replace").decode(), self._secrets)

    def mask(self, text: str) -> str:
        """A text of the vendor that is a result: without the secrets of this service."""
        return mask_secrets(text, self._secrets)

    def reported_error(self, code: str | None, message: str | None, *, paid: bool) -> ProviderError:
        """The error for a failure that the vendor reports inside a successful response."""
        return reported_error(code, message, self.vendor, secrets=self._secrets, paid=paid)

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        read_timeout_s: float,
        *,
        paid: bool,
        json: Mapping[str, Any] | None = None,
        content: bytes | Sequence[bytes | memoryview] | None = None,
        form: MultipartForm | None = None,
        has_deadline: bool = True,
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request; yields a successful response whose body is not read yet."""
        pieces = (content,) if isinstance(content, bytes) else content
        chunked = ChunkedBody(pieces or ())
        is_large = chunked.size_bytes > CHUNK_BYTES
        length = {"Content-Length": str(chunked.size_bytes)} if is_large else {}
        request = self._http.build_request(
            method,
            url,
            json=json,
            content=None if pieces is None or is_large else b"".join(pieces),
            data=None if form is None else form.fields,
            files=None if form is None else form.files(),
            headers={**self._headers, **(headers or {}), **length},
            timeout=httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S),
        )
        if is_large:
            request.stream = chunked
        if paid and (trace := announcing_trace()) is not None:
            request.extensions = {**request.extensions, "trace": trace}
        # The HTTP library limits only the pause between two chunks.
        deadline = asyncio.timeout(self._timeout_s if has_deadline else None)
        try:
            async with deadline:
                response = await self._http.send(request, stream=True)
                try:
                    self._note_date(response)
                    metrics.RESPONSES.add(
                        provider=self.vendor.provider, status=str(response.status_code)
                    )
                    if not response.is_success:
                        raise await self._failure(response, paid=paid)
                    with self._with_provider_name():
                        yield response
                finally:
                    await response.aclose()
        except httpx2.RequestError as problem:
            raise transport_error(problem, self.vendor, paid=paid) from problem
        except TimeoutError as problem:
            if not deadline.expired():
                raise
            raise timeout_error(self.vendor, self._timeout_s, paid=paid) from problem

    def _masked(self, answer: Any) -> Any:
        """A parsed response without the secrets of this service, changed in place."""
        waiting: list[dict[Any, Any] | list[Any]] = [answer]
        while waiting:
            inside = waiting.pop()
            members = inside.items() if isinstance(inside, dict) else enumerate(inside)
            for at, value in [*members]:
                if isinstance(value, str):
                    inside[at] = self.mask(value)
                elif isinstance(value, dict | list):
                    waiting.append(cast("list[Any]", value))
        return answer

    def _note_date(self, response: httpx2.Response) -> None:
        date = parse_date(response.headers.get("date", ""))
        if date is not None:
            self.clock_lead_s = (date - datetime.now(UTC)).total_seconds()

    async def _failure(self, response: httpx2.Response, *, paid: bool) -> ProviderError:
        body = b""
        with contextlib.suppress(httpx2.RequestError):
            # The status is already known, so an incomplete error page does not matter.
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk[: MAX_ERROR_BYTES - len(body)]
                    if len(body) == MAX_ERROR_BYTES:
                        break
        failed = FailedResponse(status=response.status_code, headers=response.headers, body=body)
        return response_error(failed, self.vendor, secrets=self._secrets, paid=paid)

    @contextlib.contextmanager
    def _with_provider_name(self) -> Generator[None]:
        """Add the provider's name to errors of lower layers."""
        try:
            yield
        except LimnerError as error:
            error.extras.setdefault("provider", self.vendor.provider)
            raise


async def send_with_retries(attempt: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Make an attempt, and retry it if the service cannot have started anything.

    The service's ``Retry-After`` is respected, up to a minute in total. Without one, the pauses
    grow, up to twenty seconds in total. `waits_reported` learns of each pause.

    Raises:
        ProviderError: what the last attempt raised.
    """
    started, pause_s = clock.now(), FIRST_RETRY_S
    while True:
        try:
            return await attempt()
        except ProviderError as error:
            retry_after_s: float | None = error.extras.get("retry_after_s")
            wait_s = pause_s if retry_after_s is None else max(retry_after_s, FIRST_RETRY_S)
            waited_s = clock.now() - started
            if not is_safe_to_resend(error) or waited_s + wait_s > _max_retry_s(error):
                raise
            logger.info(
                "%s: %s; limner asks again in %.1f s",
                error.extras.get("provider", "The service"),
                error.code,
                wait_s,
            )
            provider = str(error.extras.get("provider", metrics.OTHER))
            metrics.RETRIES.add(provider=provider, code=error.code)
            report_wait(error, wait_s)
        await clock.sleep(wait_s)
        pause_s *= 2


def versioned(base_url: str, version: str) -> str:
    """A base URL with the API's version, which some users leave out."""
    return base_url if _VERSION.search(base_url) else f"{base_url}/{version}"


def _max_retry_s(error: ProviderError) -> float:
    if "retry_after_s" in error.extras:
        return MAX_RETRY_AFTER_S
    return MAX_RATE_LIMITED_S if isinstance(error, ProviderRateLimited) else MAX_UNREACHABLE_S


def _check_base_url(base_url: str, vendor: Vendor) -> httpx2.URL:
    if not base_url:
        raise SettingsError(
            f"{vendor.base_url_env} is not set",
            hint="Set it to the address of the server's API, such as http://127.0.0.1:8080/v1.",
        )
    url = parse_url(base_url)
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise SettingsError(
            f"{vendor.base_url_env} is not a web address: {drop_userinfo(base_url)[:100]!r}",
            hint="Set it to an address such as https://example.com/v1, or unset it.",
        )
    return url


def _check_key(key: str, vendor: Vendor) -> str:
    # A header cannot contain them, and the HTTP library's error message would show the key.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderAuth(
            f"The key in {vendor.key_env} has characters that no key has",
            hint=f"Set {vendor.key_env} again, without spaces, quotes or line ends.",
            extras={"provider": vendor.provider},
        )
    return key
