"""What the local model servers share: a saying that the test chooses, told in each API's way."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from tests.servers.wire import Gate, Reply, Seen, WireServer, json_reply

TEXT = "A red fox — “hello” — in the snow 🦊."


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; what the cache gave is among the input, the reasoning among the output."""

    input: int = 1200
    cached: int = 1024
    output: int = 45
    reasoning: int = 20


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A failure that is told in the middle of an answer."""

    code: str
    message: str


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model calls; ``arguments`` is JSON."""

    name: str
    arguments: str
    call_id: str


class Saying(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answers, and how that ends.

    After the pieces the model makes its ``calls``, in parallel.
    ``refusal`` is the model's or the service's words for not answering; ``trouble`` is told, and
    ``gate`` waited for, after the pieces. With ``is_whole`` False the stream just ends there.
    """

    pieces: tuple[str, ...] = ("A red fox — “hel", "lo” — in ", "", "the snow 🦊.")
    usage: Counts | None = Counts()
    stop: Literal["end", "length"] = "end"
    refusal: str | None = None
    trouble: Trouble | None = None
    gate: Gate | None = None
    is_whole: bool = True
    calls: tuple[Calls, ...] = ()

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One server-sent event: its name, if the API has names, and its JSON."""

    data: Any
    name: str | None = None

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        named = "" if self.name is None else f"event: {self.name}\n"
        return f"{named}data: {data}\n\n".encode()


class ModelServer(WireServer):
    """Says the same thing every time. The route of a question is "ask"."""

    saying = Saying()
    comments = True

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: Seen) -> str:
        return "ask"

    def answer(self, seen: Seen) -> Reply:
        problem = self.objection(seen)
        if problem is not None:
            return problem
        body = seen.json()
        if not self.wants_stream(seen, body):
            return json_reply(self.whole(self.saying, body))
        return self.streamed(self.saying, body)

    def streamed(self, saying: Saying, body: Any) -> Reply:
        """The events over the wire, with comments in between that keep a connection alive."""
        before, after = self.events(saying, body)
        pieces: list[bytes | Gate] = [event.encode() for event in before]
        if self.comments:
            pieces = [b": stay awake\n\n", *pieces, b":\r\n\r\n"]
        if saying.gate is not None:
            pieces.append(saying.gate)
        if saying.is_whole:
            pieces += _in_halves(event.encode() for event in after)
        return Reply(
            headers={"Content-Type": "text/event-stream; charset=utf-8"},
            pieces=tuple(pieces),
            chunked=True,
        )

    @abstractmethod
    def objection(self, seen: Seen) -> Reply | None:
        """Why a request is not answered: a wrong address, or no key."""

    @abstractmethod
    def wants_stream(self, seen: Seen, body: Any) -> bool:
        """Whether the answer is wanted in pieces."""

    @abstractmethod
    def whole(self, saying: Saying, body: Any) -> Any:
        """The answer in one piece."""

    @abstractmethod
    def events(self, saying: Saying, body: Any) -> tuple[Sequence[Sent], Sequence[Sent]]:
        """The answer as events: up to the last piece of text, and after it."""


def halves(text: str) -> tuple[str, str]:
    """A text cut in the middle."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def _in_halves(encoded: Iterable[bytes]) -> Iterable[bytes]:
    """Every event cut in the middle, as networks do."""
    for event in encoded:
        yield event[: len(event) // 2]
        yield event[len(event) // 2 :]
