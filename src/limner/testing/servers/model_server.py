"""The answer that a test scripted -> one API's JSON or events: what the model servers share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from limner.testing.servers.http_server import Gate, LocalServer, ReceivedRequest, Reply, json_reply

TEXT = "A red fox — “hello” — in the snow 🦊."


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens: the input includes the cached ones, the output includes reasoning."""

    input: int = 1200
    cached: int = 1024
    output: int = 45
    reasoning: int = 20


class StreamError(msgspec.Struct, frozen=True, kw_only=True):
    """A failure that the service reports in the middle of an answer."""

    code: str
    message: str


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model calls; ``arguments`` is JSON."""

    name: str
    arguments: str
    call_id: str


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answers, and how that ends.

    Attributes:
        pieces: the text, as it is streamed.
        usage: the tokens that the service counts; None if it does not count.
        stop: why the answer ends: the model is done, or the limit of the output is reached.
        refusal: the text of a refusal.
        error: a failure that the service reports after the pieces.
        gate: the server waits for it after the pieces.
        is_whole: with False the stream ends after the pieces.
        calls: the tools that the model calls after the pieces, in parallel.
    """

    pieces: tuple[str, ...] = ("A red fox — “hel", "lo” — in ", "", "the snow 🦊.")
    usage: TokenCounts | None = TokenCounts()
    stop: Literal["end", "length"] = "end"
    refusal: str | None = None
    error: StreamError | None = None
    gate: Gate | None = None
    is_whole: bool = True
    calls: tuple[ScriptedCall, ...] = ()

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One server-sent event: its name, if the API has names, and its JSON."""

    data: Any
    name: str | None = None

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        named = "" if self.name is None else f"event: {self.name}\n"
        return f"{named}data: {data}\n\n".encode()


class ModelServer(LocalServer):
    """Gives the same answer every time. The route of a request is "ask"."""

    model_answer = ModelAnswer()
    comments = True

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        return "ask"

    def answer(self, seen: ReceivedRequest) -> Reply:
        return self.objection(seen) or self.reply_with(self.model_answer, seen)

    def reply_with(self, answer: ModelAnswer, seen: ReceivedRequest) -> Reply:
        """The reply with an answer, streamed if the client asked for that."""
        body = seen.json()
        if not self.wants_stream(seen, body):
            return json_reply(self.whole(answer, body))
        return self.streamed(answer, body)

    def streamed(self, answer: ModelAnswer, body: Any) -> Reply:
        """The events over the wire, with comments in between that keep a connection alive."""
        before, after = self.events(answer, body)
        pieces: list[bytes | Gate] = [event.encode() for event in before]
        if self.comments:
            pieces = [b": stay awake\n\n", *pieces, b":\r\n\r\n"]
        if answer.gate is not None:
            pieces.append(answer.gate)
        if answer.is_whole:
            pieces += _in_halves(event.encode() for event in after)
        return Reply(
            headers={"Content-Type": "text/event-stream; charset=utf-8"},
            pieces=tuple(pieces),
            chunked=True,
        )

    @abstractmethod
    def objection(self, seen: ReceivedRequest) -> Reply | None:
        """The error for a request with a wrong URL, without a key, or with an illegal history."""

    @abstractmethod
    def wants_stream(self, seen: ReceivedRequest, body: Any) -> bool:
        """Whether the answer is wanted in pieces."""

    @abstractmethod
    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        """The answer in one piece."""

    @abstractmethod
    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        """The answer as events: up to the last piece of text, and after it."""


def halves(text: str) -> tuple[str, str]:
    """A text cut in the middle."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def _in_halves(encoded: Iterable[bytes]) -> Iterable[bytes]:
    """Every event cut in the middle, as networks do."""
    for event in encoded:
        yield event[: len(event) // 2]
        yield event[len(event) // 2 :]
