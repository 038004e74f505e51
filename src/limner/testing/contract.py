"""A provider's spec -> the tests of the provider contract, which its own tests inherit."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar, cast

from msgspec.structs import replace

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
from limner.net.http import Http, HttpRequest
from limner.pictures.request import ImageRequest, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.providers.jobs import JobProvider
from limner.testing.fakes import FakeClock, FakeDesk, FakeSink
from limner.testing.requests import sample_requests

SECRET = "sk-contract/0123456789+abcdef"  # noqa: S105 - a key of no value
PICTURE = bytes(range(256)) * 800
GUARD_S = 30.0
SHORT_S = 0.2
CANCEL_TIMEOUT_S = 0.5
SHOWN_CHARS = 300
NO_LIMIT_BYTES = 1 << 30

C = TypeVar("C")
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


class _RuleBroken(Exception):
    """One check of a rule failed. ``cause`` is the error of the provider, if there is one."""

    def __init__(self, facts: dict[str, str], cause: BaseException | None) -> None:
        super().__init__(facts)
        self.facts = facts
        self.cause = cause


def _rule(test: Callable[[C, ImageRequest], None]) -> Callable[[C, ImageRequest], None]:
    """A test whose failure names the rule, what was expected and found, and what was played."""
    rule = test.__name__.removeprefix("test_").replace("_", " ")

    @functools.wraps(test)
    def run(self: C, asked: ImageRequest) -> None:
        try:
            test(self, asked)
        except _RuleBroken as broken:
            facts = broken.facts | {"request": _shown_request(asked)}
            lines = [f"  {name + ':':10}{text}" for name, text in facts.items()]
            # The traceback of the cause shows where the provider raised it.
            raise AssertionError("\n".join([f"Rule broken: {rule}", *lines])) from broken.cause

    return run


@dataclass(slots=True)
class _Trial:
    """One provider and one stage: play something, draw, and check what comes of it."""

    spec: ProviderSpec
    stage: Stage
    asked: ImageRequest
    played: str = "nothing"
    ended: BaseException | Receipt | None = None
    sink: FakeSink = field(default_factory=FakeSink)
    callbacks: FakeDesk = field(default_factory=FakeDesk)
    observed: list[str] = field(default_factory=list[str])

    def play_picture(self) -> None:
        self.stage.draw(PICTURE)
        self.played = f"a good response with a picture of {len(PICTURE):,} bytes"

    def play(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.stage.answer(status, body, headers)
        self.played = f"status {status}, body {body!r}, headers {dict(headers)!r}"

    def play_broken_off(self) -> None:
        self.stage.break_off(PICTURE)
        self.played = "the first half of a good response, then the connection closes"

    def play_silence(self) -> None:
        self.stage.say_nothing()
        self.played = "no response to the request that buys the picture"

    def play_nothing_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.stage.base_url = f"http://127.0.0.1:{port}/v1"
        self.played = "no server listens at the base URL"

    def receipt(self) -> Receipt:
        """Draw, and expect success."""
        self._run(self._draw)
        if not isinstance(self.ended, Receipt):
            self.fail("the result of generate", "a Receipt", self.ended)
        return self.ended

    def error(
        self, kind: type[E], *, impatient: bool = False, max_bytes: int = NO_LIMIT_BYTES
    ) -> E:
        """Draw, and expect an error."""
        self.sink = FakeSink(max_bytes=max_bytes)
        self._run(self._draw, impatient=impatient)
        if not isinstance(self.ended, kind):
            self.fail("the error of generate", kind.__name__, self.ended)
        return self.ended

    def cancelled(self) -> None:
        """Cancel a drawing while the service draws, and expect that it ends."""
        self._run(self._give_up)
        if not isinstance(self.ended, asyncio.CancelledError):
            self.fail("the end of a generate that is cancelled", "CancelledError", self.ended)

    def expect(self, what: str, expected: object, found: object) -> None:
        """Check a value."""
        if found != expected:
            self.fail(what, repr(expected), found)

    def expect_bought(self, times: int) -> None:
        """Check how often the provider asked for the picture."""
        self.expect("how many requests that buy a picture arrived", times, self.stage.bought())

    def fail(self, what: str, expected: str, found: object) -> NoReturn:
        facts = {
            "checked": what,
            "expected": expected,
            "found": _shown(found),
            "played": self.played,
        }
        cause = self.ended if isinstance(self.ended, BaseException) else None
        if cause is not None and cause is not found:
            facts["error"] = _shown(cause)
        raise _RuleBroken(facts, cause)

    def _run(
        self, draw: Callable[[Awaitable[Receipt]], Awaitable[Receipt]], *, impatient: bool = False
    ) -> None:
        async def run() -> Receipt:
            http = Http(observe=self.observed.append)
            if impatient:
                http.client().event_hooks["request"].append(_hurry)
            connection = Connection(
                http=http.client(),
                base_url=self.stage.base_url,
                key=SECRET,
                illustrate=_no_illustrator,
                clock=FakeClock().clock,
            )
            try:
                provider = self.spec.build(connection)
                if isinstance(provider, JobProvider):
                    provider.cancel_timeout_s = CANCEL_TIMEOUT_S
                async with asyncio.timeout(GUARD_S):
                    return await draw(
                        provider.generate(self.asked, self.sink, self.callbacks.callbacks)
                    )
            finally:
                await http.aclose()

        try:
            self.ended = asyncio.run(run())
        except (Exception, asyncio.CancelledError) as error:
            # Whatever a provider raises is a finding, not the end of the suite.
            self.ended = error

    async def _draw(self, drawing: Awaitable[Receipt]) -> Receipt:
        return await drawing

    async def _give_up(self, drawing: Awaitable[Receipt]) -> Receipt:
        task = asyncio.ensure_future(drawing)
        while not self.stage.bought() and not task.done():
            await asyncio.wait([task], timeout=0.01)
        task.cancel()
        await asyncio.wait([task])
        return await task


class ProviderContract:
    """The contract of every provider with a network: inherit it, set ``spec`` and write ``stage``.

    Each test is a rule, and a failure names it. Each test runs with a drawing from text by the
    first model, and with an edit of two pictures by the first model that can edit, with a mask if
    that model takes one.

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

    @contextmanager
    def _trial(self, asked: ImageRequest) -> Generator[_Trial]:
        with self.stage() as stage:
            yield _Trial(self.spec, stage, asked)

    @_rule
    def test_a_picture_arrives_whole_and_with_a_receipt(self, asked: ImageRequest) -> None:
        """On success the sink has the bytes of the picture, and the receipt is valid."""
        with self._trial(asked) as trial:
            trial.play_picture()
            receipt = trial.receipt()
            if bytes(trial.sink.data) != PICTURE:
                what = f"the picture, {len(PICTURE):,} bytes"
                trial.fail("the bytes in the sink", what, bytes(trial.sink.data))
            if not receipt.prompt_used.strip():
                trial.fail("the prompt_used of the receipt", "a text", receipt.prompt_used)
            if receipt.cost_nano is not None and receipt.cost_nano < 0:
                trial.fail("the cost_nano of the receipt", "0 or more", receipt.cost_nano)
            trial.expect_bought(1)
            trial.expect("how many jobs were withdrawn", 0, trial.callbacks.withdrawn)
            for number, source in enumerate((*asked.sources, asked.mask), start=1):
                # A service that does not get one draws something else, and charges for it.
                if source is not None and not cast("EditStage", trial.stage).carried(source.data):
                    what = "the mask" if source is asked.mask else f"source picture {number}"
                    trial.fail(f"{what} in the requests", "its bytes", "not there")

    @_rule
    def test_each_quality_is_sent_in_the_words_of_the_service(self, asked: ImageRequest) -> None:
        """The provider sends ``qualities[request.quality]`` of the model, if the model has any."""
        model = next((one for one in self.spec.models if one.id == asked.model), None)
        for quality, word in ({} if model is None else model.qualities).items():
            with self._trial(replace(asked, quality=quality)) as trial:
                if not hasattr(trial.stage, "carried"):
                    return
                trial.play_picture()
                trial.receipt()
                if not cast("EditStage", trial.stage).carried(word.encode()):
                    trial.fail(f"the quality {quality!r} in the requests", repr(word), "not there")

    @_rule
    def test_every_status_is_the_right_error_and_is_sent_once(self, asked: ImageRequest) -> None:
        """The status of a failed response decides the error and whether it may be billed."""
        for expected in STATUSES:
            with self._trial(asked) as trial:
                # The text of a message does not matter.
                body = b'{"error": {"message": "1500 characters, 429, 503 timeout"}}'
                trial.play(expected.status, body, {"Location": "https://example.com/"})
                error = trial.error(expected.error)
                if type(error) is not expected.error:
                    trial.fail("the error of generate", expected.error.__name__, error)
                may_be_billed = expected.may_be_billed and not self.can_find_jobs
                trial.expect("error.may_be_billed", may_be_billed, error.may_be_billed)
                trial.expect("error.extras['status']", expected.status, error.extras.get("status"))
                self._expect_provider(trial, error)
                trial.expect_bought(1)

    @_rule
    def test_no_failure_shows_the_key(self, asked: ImageRequest) -> None:
        """The service echoes the key in every field, and no error shows it."""
        echo = f'{{"error": {{"message": "{SECRET}", "code": "{SECRET}"}}, "detail": "{SECRET}"}}'
        escaped = echo.replace("/", "\\/")
        for status in (400, 401, 429, 500, 502, 200):
            for body in (echo, escaped, SECRET):
                with self._trial(asked) as trial:
                    trial.play(status, body.encode(), {"X-Request-Id": SECRET})
                    error = trial.error(LimnerError)
                    texts = {
                        "message": f"{error} {error!r}",
                        "hint": error.hint or "",
                        "JSON": str(error.as_json()),
                    }
                    for name, text in texts.items():
                        if SECRET in text or "0123456789" in text:
                            trial.fail(f"the {name} of the error", "a text without the key", text)

    @_rule
    def test_no_debug_output_shows_the_key(self, asked: ImageRequest) -> None:
        """The key is sent in a header, so that ``--debug`` and ``Limner(observe=…)`` hide it."""
        with self._trial(asked) as trial:
            trial.play_picture()
            trial.receipt()
            for line in trial.observed:
                # A part of the key is enough: redaction may know its beginning by its form.
                before, found, _ = line.partition("0123456789+")
                if found:
                    trial.fail("the debug output", "no key", f"…{before[-20:]}{found}")

    @_rule
    def test_a_rate_limit_is_waited_for_and_then_reported(self, asked: ImageRequest) -> None:
        """A rate limit is retried for a while, because nothing was started."""
        with self._trial(asked) as trial:
            trial.play(429, b"{}", {})
            error = trial.error(ProviderRateLimited)
            self._expect_outcome(trial, error, retryable=True, may_be_billed=False)
            trial.expect("error.retry_after_s", None, error.retry_after_s)
            if (count := trial.stage.bought()) < 2:
                trial.fail("how many requests that buy a picture arrived", "2 or more", count)
        with self._trial(asked) as trial:
            trial.play(429, b"{}", {"Retry-After": "3600"})
            error = trial.error(ProviderRateLimited)
            trial.expect("error.retry_after_s", 3600.0, error.retry_after_s)
            trial.expect_bought(1)

    @_rule
    def test_a_service_that_cannot_be_reached_costs_nothing(self, asked: ImageRequest) -> None:
        """No server listens at the port."""
        with self._trial(asked) as trial:
            trial.play_nothing_there()
            error = trial.error(ProviderUnavailable)
            self._expect_outcome(trial, error, retryable=True, may_be_billed=False)

    @_rule
    def test_silence_may_be_billed_and_is_not_resent(self, asked: ImageRequest) -> None:
        """The request arrived and no answer came in time, so its outcome is unknown."""
        with self._trial(asked) as trial:
            trial.play_silence()
            error = trial.error(ProviderUnavailable, impatient=True)
            self._expect_outcome(trial, error, retryable=False, may_be_billed=True)
            charges = not isinstance(self.spec.models[0].price, Free)
            if ("may be billed" in error.message) != charges:
                words = "with" if charges else "without"
                trial.fail("error.message", f"a text {words} 'may be billed'", error.message)
            trial.expect_bought(1)

    @_rule
    def test_an_answer_that_breaks_off_may_be_billed_and_is_not_resent(
        self, asked: ImageRequest
    ) -> None:
        """The connection closes in the middle of the answer, so the picture is lost."""
        with self._trial(asked) as trial:
            trial.play_broken_off()
            error = trial.error(ProviderUnavailable)
            self._expect_outcome(trial, error, retryable=False, may_be_billed=True)
            trial.expect_bought(1)

    @_rule
    def test_a_web_page_instead_of_an_answer_is_a_bad_answer(self, asked: ImageRequest) -> None:
        """A proxy or a login page answers instead of the service."""
        page = b'<!DOCTYPE html><html><body>{"data": [{"b64_json": "AAAA"}]}</body></html>'
        for body in (page, b"", b"{}", b"[]", b"null", b'{"data": [], "status": "done"}'):
            with self._trial(asked) as trial:
                trial.play(200, body, {"Content-Type": "text/html"})
                self._expect_provider(trial, trial.error(BadProviderImage))
                trial.expect_bought(1)

    @_rule
    def test_a_sink_that_is_full_stops_the_picture(self, asked: ImageRequest) -> None:
        """The picture has too many bytes, and the caller gets the sink's error."""
        with self._trial(asked) as trial:
            trial.play_picture()
            trial.error(ImageTooLarge, max_bytes=1000)

    @_rule
    def test_giving_up_stops_the_request(self, asked: ImageRequest) -> None:
        """The caller cancels while the service draws."""
        with self._trial(asked) as trial:
            trial.play_silence()
            trial.cancelled()
            trial.expect_bought(1)

    def _expect_provider(self, trial: _Trial, error: LimnerError) -> None:
        trial.expect("error.extras['provider']", self.spec.name, error.extras.get("provider"))

    def _expect_outcome(
        self, trial: _Trial, error: ProviderError, *, retryable: bool, may_be_billed: bool
    ) -> None:
        trial.expect("error.retryable", retryable, error.retryable)
        trial.expect("error.may_be_billed", may_be_billed, error.may_be_billed)


def _shown(found: object) -> str:
    if isinstance(found, BaseException):
        return f"{type(found).__name__}: {found}"
    text = f"{len(found):,} bytes" if isinstance(found, bytes) else repr(found)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _shown_request(asked: ImageRequest) -> str:
    work = f"an edit of {len(asked.sources)} pictures" if asked.sources else "a drawing"
    return f"{work} by {asked.model}, {asked.width}x{asked.height}"


async def _hurry(request: HttpRequest) -> None:
    request.extensions["timeout"]["read"] = SHORT_S


async def _no_illustrator(request: ImageRequest) -> NoReturn:
    raise AssertionError(f"the illustrator must not draw {request.prompt!r} here")
