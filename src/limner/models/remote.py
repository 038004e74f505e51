"""A prompt -> a request over the model's wire -> its streamed answer, or one of limner's errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.content import Discreet
from limner.errors import (
    ModelBadAnswer,
    ModelTimeout,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.models import telemetry
from limner.models.base import DEFAULT_TIMEOUT_S, ignore_text
from limner.models.pricing import cost_of
from limner.models.registry import KnownModel
from limner.net.clock import Clock
from limner.net.failures import MAX_MESSAGE_CHARS, MAY_BE_BILLED, Vendor
from limner.net.http import HttpClient, HttpResponse
from limner.net.service import DEFAULT_TIMEOUT_S as DEFAULT_REQUEST_TIMEOUT_S
from limner.net.service import Service, send_with_retries, versioned
from limner.net.sse import EventStream
from limner.wires.base import (
    Answer,
    BatchWire,
    ModelRequest,
    Prompt,
    StreamReader,
    Usage,
    Wire,
    wire,
)

# A model may reason for minutes before its first word, and not every service sends keep-alives.
IDLE_TIMEOUT_S = 180.0
MAX_ANSWER_CHARS = 4_000_000

REPHRASE = "Ask in other words, about another picture, or another model."


class ModelConnection(Discreet, frozen=True, kw_only=True):
    """How to reach one model's service, in the event loop that uses it."""

    unshown = ("base_url", "key")

    http: HttpClient
    key: str
    base_url: str
    clock: Clock = msgspec.field(default_factory=Clock)
    timeout_s: float = DEFAULT_REQUEST_TIMEOUT_S


class RemoteModel:
    """A model behind an API.

    Args:
        model: the model and its URL.
        http: the client of the running event loop.
        key: its key; empty if it needs none.
        kind: the purpose of the requests, for telemetry.
        clock: the clock for pauses between two attempts.
        idle_timeout_s: the longest pause between two chunks.
        request_timeout_s: the longest that a whole request may take.

    Raises:
        SettingsError: its base URL is not a URL.
        ProviderAuth: its key has characters that no key has.
    """

    def __init__(
        self,
        model: KnownModel,
        *,
        http: HttpClient,
        key: str,
        kind: str,
        clock: Clock | None = None,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        request_timeout_s: float = DEFAULT_REQUEST_TIMEOUT_S,
    ) -> None:
        self._model = model
        self._kind = kind
        self._wire = wire(model.api)
        self._idle_timeout_s = idle_timeout_s
        # A service without a key has no account to bill.
        self._paid = bool(key)
        base_url = _versioned(model.base_url, self._wire)
        connection = ModelConnection(
            http=http,
            key=key,
            base_url=base_url,
            clock=clock or Clock(),
            timeout_s=request_timeout_s,
        )
        with _as_model_error():
            self._service = Service(connection, _vendor(model), headers=self._wire.headers(key))

    @property
    def name(self) -> str:
        """``provider/id``."""
        return self._model.name

    async def ask(
        self,
        prompt: Prompt,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        on_text: Callable[[str], None] = ignore_text,
    ) -> Answer:
        """Send a prompt over the model's wire; raises as `Model.ask`."""
        if not self._model.takes_images:
            prompt = replace(prompt, takes_images=False)
        request = self._wire.request(self._model.id, prompt)
        with (
            telemetry.span(
                provider=self._model.provider,
                model=self._model.id,
                kind=self._kind,
                max_tokens=prompt.max_output_tokens,
            ) as record,
            _as_model_error(),
        ):
            answer = await self._answer(request, timeout_s, on_text)
            record.add_answer(answer)
            return self._check(answer)

    @property
    def service(self) -> Service:
        """Its API."""
        return self._service

    @property
    def batch_api(self) -> str | None:
        """The vendor's batch API; None if it has none."""
        return self._wire.batch_api if isinstance(self._wire, BatchWire) else None

    def batch_request(self, prompt: Prompt) -> ModelRequest:
        """The request of a prompt for the vendor's batch API."""
        request = self._wire.request(self._model.id, replace(prompt, stream=False))
        return replace(request, path=f"/v1{request.path}")

    def read_batched(self, whole: Mapping[str, Any]) -> Answer:
        """The answer in a response of the vendor's batch API; raises as `ask`."""
        assert isinstance(self._wire, BatchWire)
        with _as_model_error():
            reader = self._wire.reader()
            for event in self._wire.events(whole):
                data = self._service.mask(msgspec.json.encode(event).decode())
                reader.feed(str(event.get("type", "")), data)
            answer = reader.finish()
            if answer is None:
                raise self._bad_answer("is incomplete")
            return self._check(answer)

    async def _answer(
        self, request: ModelRequest, timeout_s: float | None, on_text: Callable[[str], None]
    ) -> Answer:
        """Send the request and read its answer to the end."""
        reader, has_started = self._wire.reader(), False

        async def attempt() -> None:
            nonlocal has_started
            async with self._service.stream(
                f"{self._service.base_url}{request.path}",
                content=request.pieces,
                read_timeout_s=self._idle_timeout_s,
                paid=self._paid,
            ) as response:
                has_started = True
                await self._read_stream(response, reader, on_text)

        failure: ProviderError | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await send_with_retries(attempt, self._service.clock)
        except TimeoutError:
            failure = self._timeout(timeout_s)
        except ProviderError as error:
            error.may_be_billed = error.may_be_billed and self._paid
            failure = error
        # A complete answer counts, even if the connection failed after it.
        answer = reader.finish()
        if answer is None:
            error = failure or self._bad_answer("is incomplete")
            if has_started and not reader.has_usage and _is_cut(failure):
                error.extras["broke_off"] = True
            raise error
        return answer

    async def _read_stream(
        self, response: HttpResponse, reader: StreamReader, on_text: Callable[[str], None]
    ) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind not in ("", "text/event-stream"):
            raise ModelBadAnswer(
                f"{self._model.title} answered with {kind[:80]!r}, not with a stream of events",
                hint=f"Check that {self._model.base_url_from} is the address of its API.",
                may_be_billed=self._paid,
            )
        events, chars = EventStream(), 0
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                for event in events.feed(chunk):
                    piece = reader.feed(event.name, self._service.mask(event.data))
                    chars += len(piece)
                    if chars > MAX_ANSWER_CHARS:
                        raise self._bad_answer(f"has more than {MAX_ANSWER_CHARS:,} characters")
                    if piece:
                        on_text(piece)

    def _check(self, answer: Answer) -> Answer:
        """Return the answer, or raise the error that it reports."""
        if answer.stop in ("end", "length"):
            return answer
        error = (
            self._refused(answer)
            if answer.stop == "refusal"
            else self._service.reported_error(answer.code, answer.message, paid=self._paid)
        )
        if answer.usage is not None:
            self._charge(error, answer.usage)
        raise error

    def _refused(self, answer: Answer) -> ProviderRefused:
        message = None if answer.message is None else self._service.safe_text(answer.message)
        why = message or answer.code
        return ProviderRefused(
            f"{self.name} will not answer this{f': {why[:MAX_MESSAGE_CHARS]}' if why else ''}",
            provider_message=message,
            may_be_billed=self._paid,
            hint=REPHRASE,
            extras={"provider": self._model.provider}
            | ({} if answer.code is None else {"provider_code": answer.code}),
        )

    def _charge(self, error: ProviderError, usage: Usage) -> None:
        """Charge the tokens that were counted before the failure, if the rate is known."""
        error.extras["usage"] = {
            name: count for name, count in msgspec.to_builtins(usage).items() if count is not None
        }
        if self._model.rate is not None:
            error.may_be_billed = False
            error.charge(cost_of(self._model.rate, usage), "computed")

    def _timeout(self, timeout_s: float | None) -> ModelTimeout:
        return ModelTimeout(
            f"{self.name} did not finish its answer in {timeout_s:g} s"
            + (f"; {MAY_BE_BILLED}" if self._paid else ""),
            may_be_billed=self._paid,
            hint="Allow more time, ask for less, or ask a faster model.",
            extras={"provider": self._model.provider, "timeout_s": timeout_s},
        )

    def _bad_answer(self, problem: str) -> ModelBadAnswer:
        return ModelBadAnswer(
            f"The answer of {self.name} {problem}" + (f"; {MAY_BE_BILLED}" if self._paid else ""),
            may_be_billed=self._paid,
            extras={"provider": self._model.provider},
        )


def _is_cut(failure: ProviderError | None) -> bool:
    """Whether a stream ended too early or lost its connection, and did not take too long."""
    if failure is None:
        return True
    return isinstance(failure, ProviderUnavailable) and not isinstance(
        failure.__cause__, TimeoutError
    )


@contextmanager
def _as_model_error() -> Generator[None]:
    """Give errors the code for models; by default it is the code for pictures."""
    try:
        yield
    except ProviderError as error:
        error.code = error.model_code
        raise


def _versioned(base_url: str, wire: Wire) -> str:
    return base_url if wire.version is None else versioned(base_url, wire.version)


def _vendor(model: KnownModel) -> Vendor:
    return Vendor(
        provider=model.provider,
        title=model.title,
        key_env=model.key_env,
        base_url_env=model.base_url_from,
        account_url=model.account_url or f"the account at {model.title}",
        rephrase=REPHRASE,
        slow_down="Wait a little, or ask less often.",
    )
