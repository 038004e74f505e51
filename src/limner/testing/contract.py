"""A provider's spec -> the tests of the provider contract, which its own tests inherit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar, cast

from limner.catalogue.prices import Free
from limner.errors import (
    BadProviderImage,
    ImageTooLarge,
    LimnerError,
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderUnavailable,
)
from limner.net.http import Http, HttpClient, HttpRequest
from limner.pictures.request import ImageRequest, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.testing.fakes import FakeClock, FakeDesk, FakeSink
from limner.testing.requests import sample_requests

SECRET = "sk-contract/0123456789+abcdef"  # noqa: S105 - a key of no value
PICTURE = bytes(range(256)) * 800
GUARD_S = 30.0
SHORT_S = 0.2

E = TypeVar("E", bound=BaseException)


class Stage(Protocol):
    """A local server that speaks the provider's wire and follows a script.

    Each call sets the behaviour for all later requests, until another call changes it.
    """

    base_url: str

    def draw(self, picture: bytes) -> None:
        """Answer as the service does on success, with this picture."""
        ...

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer with exactly this."""
        ...

    def break_off(self, picture: bytes) -> None:
        """Start to answer as on success, and close the connection in the middle."""
        ...

    def say_nothing(self) -> None:
        """Accept the request that buys the picture, and do not answer it."""
        ...

    def bought(self) -> int:
        """How many requests that buy a picture have arrived, edits included."""
        ...


class EditStage(Stage, Protocol):
    """A stage for a provider that can draw from pictures."""

    def carried(self, data: bytes) -> bool:
        """Whether a request contained these bytes, plain or in the wire's base64."""
        ...


@dataclass(frozen=True, slots=True)
class _Expected:
    status: int
    error: type[ProviderError]
    may_be_billed: bool = False


STATUSES = (
    _Expected(302, ProviderBadRequest),
    _Expected(400, ProviderBadRequest),
    _Expected(401, ProviderAuth),
    _Expected(402, ProviderPaymentRequired),
    _Expected(403, ProviderAuth),
    _Expected(404, ProviderBadRequest),
    _Expected(408, ProviderUnavailable, may_be_billed=True),
    _Expected(409, ProviderUnavailable, may_be_billed=True),
    _Expected(422, ProviderBadRequest),
    _Expected(500, ProviderUnavailable, may_be_billed=True),
    _Expected(502, ProviderUnavailable, may_be_billed=True),
    _Expected(503, ProviderUnavailable, may_be_billed=True),
    _Expected(504, ProviderUnavailable, may_be_billed=True),
    _Expected(529, ProviderUnavailable, may_be_billed=True),
)


@dataclass(slots=True)
class _Run:
    """One provider, built for one test."""

    http: HttpClient
    time: FakeClock
    desk: FakeDesk
    sink: FakeSink
    draw: Callable[[], Awaitable[Receipt]]


class ProviderContract:
    """The contract of every provider with a network: inherit it, set ``spec`` and write ``stage``.

    Each test runs with a drawing from text by the first model, and with an edit of two pictures by
    the first model that can edit, with a mask if that model takes one.

    Attributes:
        spec: the provider under test.
        can_find_jobs: the provider asks its service for lost jobs, and the stage has a list of
            them. Then a request without a job is known to be free.
    """

    spec: ClassVar[ProviderSpec]
    can_find_jobs: ClassVar[bool] = False

    def stage(self) -> AbstractContextManager[Stage]:
        """A new server for the duration of the context; an `EditStage` if the provider can edit."""
        raise NotImplementedError

    def requests(self) -> Mapping[str, ImageRequest]:
        """The requests of each test, by name."""
        return sample_requests(self.spec)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest: run each test once for each request."""
        if "asked" in metafunc.fixturenames:
            requests = self.requests()
            metafunc.parametrize("asked", requests.values(), ids=requests)

    def test_a_picture_arrives_whole_and_with_a_receipt(self, asked: ImageRequest) -> None:
        """On success the sink has the bytes of the picture, and the receipt is valid."""
        with self.stage() as stage:
            stage.draw(PICTURE)
            asyncio.run(self._draws_whole(stage, asked))

    async def _draws_whole(self, stage: Stage, asked: ImageRequest) -> None:
        async with self._running(stage, asked) as run:
            receipt = await run.draw()
            assert bytes(run.sink.data) == PICTURE
            assert receipt.prompt_used.strip()
            assert receipt.cost_nano is None or receipt.cost_nano >= 0
            assert stage.bought() == 1
            assert run.desk.withdrawn == 0
            for source in (*asked.sources, asked.mask):
                # A service that does not get one draws something else, and charges for it.
                assert source is None or cast("EditStage", stage).carried(source.data)

    def test_every_status_is_the_right_error_and_is_sent_once(self, asked: ImageRequest) -> None:
        """The status of a failed response decides the error and whether it may be billed."""
        for expected in STATUSES:
            with self.stage() as stage:
                # The text of a message does not matter.
                body = b'{"error": {"message": "1500 characters, 429, 503 timeout"}}'
                stage.answer(expected.status, body, {"Location": "https://example.com/"})
                error = self._failure(stage, asked, expected.error)
                assert type(error) is expected.error, expected
                may_be_billed = expected.may_be_billed and not self.can_find_jobs
                assert error.may_be_billed == may_be_billed, expected
                assert error.extras["status"] == expected.status
                assert error.extras["provider"] == self.spec.name
                assert stage.bought() == 1, expected

    def test_no_failure_shows_the_key(self, asked: ImageRequest) -> None:
        """The service echoes the key in every field, and no error shows it."""
        echo = f'{{"error": {{"message": "{SECRET}", "code": "{SECRET}"}}, "detail": "{SECRET}"}}'
        escaped = echo.replace("/", "\\/")
        for status in (400, 401, 429, 500, 502, 200):
            for body in (echo, escaped, SECRET):
                with self.stage() as stage:
                    stage.answer(status, body.encode(), {"X-Request-Id": SECRET})
                    error = self._failure(stage, asked, LimnerError)
                    shown = f"{error} {error!r} {error.hint} {error.as_json()}"
                    assert SECRET not in shown, (status, shown)
                    assert "0123456789" not in shown, (status, shown)

    def test_a_rate_limit_is_waited_for_and_then_reported(self, asked: ImageRequest) -> None:
        """A rate limit is retried for a while, because nothing was started."""
        with self.stage() as stage:
            stage.answer(429, b"{}", {})
            error = self._failure(stage, asked, ProviderRateLimited)
            assert (error.retryable, error.may_be_billed, error.retry_after_s) == (
                True,
                False,
                None,
            )
            assert stage.bought() > 1
        with self.stage() as stage:
            stage.answer(429, b"{}", {"Retry-After": "3600"})
            error = self._failure(stage, asked, ProviderRateLimited)
            assert error.retry_after_s == 3600.0
            assert stage.bought() == 1

    def test_a_service_that_cannot_be_reached_costs_nothing(self, asked: ImageRequest) -> None:
        """No server listens at the port."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with self.stage() as stage:
            stage.base_url = f"http://127.0.0.1:{port}/v1"
            error = self._failure(stage, asked, ProviderUnavailable)
            assert (error.retryable, error.may_be_billed) == (True, False)

    def test_silence_may_be_billed_and_is_not_resent(self, asked: ImageRequest) -> None:
        """The request arrived and no answer came in time, so its outcome is unknown."""
        with self.stage() as stage:
            stage.say_nothing()
            error = self._failure(stage, asked, ProviderUnavailable, impatient=True)
            assert (error.retryable, error.may_be_billed) == (False, True)
            charges = not isinstance(self.spec.models[0].price, Free)
            assert ("may be billed" in error.message) == charges
            assert stage.bought() == 1

    def test_an_answer_that_breaks_off_may_be_billed_and_is_not_resent(
        self, asked: ImageRequest
    ) -> None:
        """The connection closes in the middle of the answer, so the picture is lost."""
        with self.stage() as stage:
            stage.break_off(PICTURE)
            error = self._failure(stage, asked, ProviderUnavailable)
            assert (error.retryable, error.may_be_billed) == (False, True)
            assert stage.bought() == 1

    def test_a_web_page_instead_of_an_answer_is_a_bad_answer(self, asked: ImageRequest) -> None:
        """A proxy or a login page answers instead of the service."""
        page = b'<!DOCTYPE html><html><body>{"data": [{"b64_json": "AAAA"}]}</body></html>'
        for body in (page, b"", b"{}", b"[]", b"null", b'{"data": [], "status": "done"}'):
            with self.stage() as stage:
                stage.answer(200, body, {"Content-Type": "text/html"})
                error = self._failure(stage, asked, BadProviderImage)
                assert error.extras["provider"] == self.spec.name
                assert stage.bought() == 1

    def test_a_sink_that_is_full_stops_the_picture(self, asked: ImageRequest) -> None:
        """The picture has too many bytes, and the caller gets the sink's error."""
        with self.stage() as stage:
            stage.draw(PICTURE)
            self._failure(stage, asked, ImageTooLarge, max_bytes=1000)

    def test_giving_up_stops_the_request(self, asked: ImageRequest) -> None:
        """The caller cancels while the service draws."""
        with self.stage() as stage:
            stage.say_nothing()
            asyncio.run(self._gives_up(stage, asked))

    async def _gives_up(self, stage: Stage, asked: ImageRequest) -> None:
        async with self._running(stage, asked) as run, asyncio.timeout(GUARD_S):
            drawing = asyncio.ensure_future(run.draw())
            while not stage.bought():
                await asyncio.wait([drawing], timeout=0.01)
            drawing.cancel()
            await asyncio.wait([drawing])
            assert drawing.cancelled()
            assert stage.bought() == 1

    @asynccontextmanager
    async def _running(
        self, stage: Stage, asked: ImageRequest, *, max_bytes: int = 1 << 30
    ) -> AsyncGenerator[_Run]:
        http, time, desk = Http(), FakeClock(), FakeDesk()
        sink = FakeSink(max_bytes=max_bytes)
        provider = self.spec.build(
            Connection(
                http=http.client(),
                base_url=stage.base_url,
                key=SECRET,
                illustrate=_no_illustrator,
                clock=time.clock,
            )
        )
        try:
            yield _Run(
                http.client(),
                time,
                desk,
                sink,
                lambda: provider.generate(asked, sink, desk.desk),
            )
        finally:
            await http.aclose()

    def _failure(
        self,
        stage: Stage,
        asked: ImageRequest,
        kind: type[E],
        *,
        impatient: bool = False,
        max_bytes: int = 1 << 30,
    ) -> E:
        """Draw, and return the error it ends with."""

        async def attempt() -> BaseException | None:
            async with self._running(stage, asked, max_bytes=max_bytes) as run:
                if impatient:
                    run.http.event_hooks["request"].append(_hurry)
                try:
                    async with asyncio.timeout(GUARD_S):
                        await run.draw()
                except LimnerError as error:
                    return error
                return None

        error = asyncio.run(attempt())
        assert isinstance(error, kind), f"expected {kind.__name__}, not {error!r}"
        return error


async def _hurry(request: HttpRequest) -> None:
    request.extensions["timeout"]["read"] = SHORT_S


async def _no_illustrator(request: ImageRequest) -> tuple[bytes, Mapping[str, Any]]:
    raise AssertionError(f"the illustrator must not draw {request.prompt!r} here")
