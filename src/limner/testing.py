"""For those who write a provider: fakes of what limner hands it, and the contract it must keep.

Inherit `ProviderContract` in a test module, give it the provider's spec and a local server that
speaks its wire, and run it with pytest; it needs no plugin and no network beyond loopback.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import httpx2

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
from limner.net.clock import Clock
from limner.net.http import Http
from limner.pictures.order import Desk, ImageRequest, Job, Progress, Receipt
from limner.providers.base import Connection, ProviderSpec

__all__ = ["FakeClock", "FakeDesk", "FakeSink", "ProviderContract", "Stage"]

SECRET = "sk-contract/0123456789+abcdef"  # noqa: S105 - a key of no value
PICTURE = bytes(range(256)) * 800
GUARD_S = 30.0
SHORT_S = 0.2

E = TypeVar("E", bound=BaseException)


class FakeClock:
    """Time that passes only by being waited for, and at once; ``slept`` has every wait."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        """The clock to build a `Connection` with."""
        return Clock(now=lambda: self.now_s, sleep=self.sleep)


class FakeSink:
    """A sink that keeps what it gets, up to a limit."""

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.data = bytearray()
        self._max_bytes = max_bytes

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: over the limit.
        """
        self.data += data
        if len(self.data) > self._max_bytes:
            raise ImageTooLarge(f"more than {self._max_bytes} bytes")


@dataclass(slots=True)
class FakeDesk:
    """Remembers what a provider tells while it works."""

    jobs: list[Job] = field(default_factory=list[Job])
    progress: list[Progress] = field(default_factory=list[Progress])
    withdrawn: int = 0

    @property
    def desk(self) -> Desk:
        """The desk to hand to a provider."""
        return Desk(journal=self._journal, progress=self.progress.append, withdraw=self._withdraw)

    async def _journal(self, job: Job) -> None:
        self.jobs.append(job)

    def _withdraw(self) -> None:
        self.withdrawn += 1


class Stage(Protocol):
    """A local server that speaks the provider's wire and plays what it is told to.

    What is said here holds for every request from then on, until something else is said.
    """

    base_url: str

    def draw(self, picture: bytes) -> None:
        """Answer as the service does when all is well, with this picture."""
        ...

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer with exactly this."""
        ...

    def break_off(self, picture: bytes) -> None:
        """Begin to answer as when all is well, and close the connection in the middle."""
        ...

    def say_nothing(self) -> None:
        """Take the request that buys the picture, and do not answer it."""
        ...

    def bought(self) -> int:
        """How many requests that buy a picture have arrived."""
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
    _Expected(409, ProviderUnavailable),
    _Expected(422, ProviderBadRequest),
    _Expected(500, ProviderUnavailable),
    _Expected(502, ProviderUnavailable, may_be_billed=True),
    _Expected(503, ProviderUnavailable),
    _Expected(504, ProviderUnavailable, may_be_billed=True),
    _Expected(529, ProviderUnavailable),
)


@dataclass(slots=True)
class _Run:
    """One provider, built for one test."""

    http: httpx2.AsyncClient
    time: FakeClock
    desk: FakeDesk
    sink: FakeSink
    draw: Callable[[], Awaitable[Receipt]]


class ProviderContract:
    """What every provider with a network owes: inherit it and fill in the two parts.

    Attributes:
        spec: the provider under test.
    """

    spec: ClassVar[ProviderSpec]

    def stage(self) -> AbstractContextManager[Stage]:
        """A fresh server, for as long as the context lasts."""
        raise NotImplementedError

    def test_a_picture_arrives_whole_and_with_a_receipt(self) -> None:
        """All is well: the bytes are the picture's, and the receipt makes sense."""
        with self.stage() as stage:
            stage.draw(PICTURE)
            asyncio.run(self._draws_whole(stage))

    async def _draws_whole(self, stage: Stage) -> None:
        async with self._running(stage) as run:
            receipt = await run.draw()
            assert bytes(run.sink.data) == PICTURE
            assert receipt.prompt_used.strip()
            assert receipt.cost_nano is None or receipt.cost_nano >= 0
            assert stage.bought() == 1
            assert run.desk.withdrawn == 0

    def test_every_status_is_the_right_error_and_is_sent_once(self) -> None:
        """The service fails: by its status alone it is known how, and what it may cost."""
        for expected in STATUSES:
            with self.stage() as stage:
                # Words and numbers in a message decide nothing.
                body = b'{"error": {"message": "1500 characters, 429, 503 timeout"}}'
                stage.answer(expected.status, body, {"Location": "https://example.com/"})
                error = self._failure(stage, expected.error)
                assert type(error) is expected.error, expected
                assert error.may_be_billed == expected.may_be_billed, expected
                assert error.extras["status"] == expected.status
                assert error.extras["provider"] == self.spec.name
                assert stage.bought() == 1, expected

    def test_no_failure_shows_the_key(self) -> None:
        """The service echoes the key wherever it can: nobody gets to read it."""
        echo = f'{{"error": {{"message": "{SECRET}", "code": "{SECRET}"}}, "detail": "{SECRET}"}}'
        escaped = echo.replace("/", "\\/")
        for status in (400, 401, 429, 500, 502, 200):
            for body in (echo, escaped, SECRET):
                with self.stage() as stage:
                    stage.answer(status, body.encode(), {"X-Request-Id": SECRET})
                    error = self._failure(stage, LimnerError)
                    shown = f"{error} {error!r} {error.hint} {error.as_json()}"
                    assert SECRET not in shown, (status, shown)
                    assert "0123456789" not in shown, (status, shown)

    def test_a_rate_limit_is_waited_for_and_then_reported(self) -> None:
        """Too many requests: tried again for a while, since nothing was begun."""
        with self.stage() as stage:
            stage.answer(429, b"{}", {})
            error = self._failure(stage, ProviderRateLimited)
            assert (error.retryable, error.may_be_billed, error.retry_after_s) == (
                True,
                False,
                None,
            )
            assert stage.bought() > 1
        with self.stage() as stage:
            stage.answer(429, b"{}", {"Retry-After": "3600"})
            error = self._failure(stage, ProviderRateLimited)
            assert error.retry_after_s == 3600.0
            assert stage.bought() == 1

    def test_a_service_that_cannot_be_reached_costs_nothing(self) -> None:
        """Nobody listens there."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with self.stage() as stage:
            stage.base_url = f"http://127.0.0.1:{port}/v1"
            error = self._failure(stage, ProviderUnavailable)
            assert (error.retryable, error.may_be_billed) == (True, False)

    def test_silence_may_be_billed_and_is_not_resent(self) -> None:
        """The request arrived and no answer came in time: nobody knows what became of it."""
        with self.stage() as stage:
            stage.say_nothing()
            error = self._failure(stage, ProviderUnavailable, impatient=True)
            assert (error.retryable, error.may_be_billed) == (False, True)
            assert "may be billed" in error.message
            assert stage.bought() == 1

    def test_an_answer_that_breaks_off_may_be_billed_and_is_not_resent(self) -> None:
        """Half an answer: the picture was drawn, and is lost on the way."""
        with self.stage() as stage:
            stage.break_off(PICTURE)
            error = self._failure(stage, ProviderUnavailable)
            assert (error.retryable, error.may_be_billed) == (False, True)
            assert stage.bought() == 1

    def test_a_web_page_instead_of_an_answer_is_a_bad_answer(self) -> None:
        """A proxy or a login page speaks instead of the service."""
        page = b'<!DOCTYPE html><html><body>{"data": [{"b64_json": "AAAA"}]}</body></html>'
        for body in (page, b"", b"{}", b"[]", b"null", b'{"data": [], "status": "done"}'):
            with self.stage() as stage:
                stage.answer(200, body, {"Content-Type": "text/html"})
                error = self._failure(stage, BadProviderImage)
                assert error.extras["provider"] == self.spec.name
                assert stage.bought() == 1

    def test_a_sink_that_is_full_stops_the_picture(self) -> None:
        """More bytes than a picture may have: the sink's own error is what the caller sees."""
        with self.stage() as stage:
            stage.draw(PICTURE)
            self._failure(stage, ImageTooLarge, max_bytes=1000)

    def test_giving_up_stops_the_request(self) -> None:
        """The caller cancels while the service is thinking."""
        with self.stage() as stage:
            stage.say_nothing()
            asyncio.run(self._gives_up(stage))

    async def _gives_up(self, stage: Stage) -> None:
        async with self._running(stage) as run, asyncio.timeout(GUARD_S):
            drawing = asyncio.ensure_future(run.draw())
            while not stage.bought():
                await asyncio.wait([drawing], timeout=0.01)
            drawing.cancel()
            await asyncio.wait([drawing])
            assert drawing.cancelled()
            assert stage.bought() == 1

    @asynccontextmanager
    async def _running(self, stage: Stage, *, max_bytes: int = 1 << 30) -> AsyncGenerator[_Run]:
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
        request = ImageRequest(
            prompt="a fox in the snow",
            model=self.spec.models[0].id,
            width=1024,
            height=1024,
            seed=7,
        )
        try:
            yield _Run(
                http.client(), time, desk, sink, lambda: provider.generate(request, sink, desk.desk)
            )
        finally:
            await http.aclose()

    def _failure(
        self, stage: Stage, kind: type[E], *, impatient: bool = False, max_bytes: int = 1 << 30
    ) -> E:
        """Draw, and return the error it ends with."""

        async def attempt() -> BaseException | None:
            async with self._running(stage, max_bytes=max_bytes) as run:
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


async def _hurry(request: httpx2.Request) -> None:
    request.extensions["timeout"]["read"] = SHORT_S


async def _no_illustrator(request: ImageRequest) -> tuple[bytes, Mapping[str, Any]]:
    raise AssertionError(f"nobody draws {request.prompt!r} here")
