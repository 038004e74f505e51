"""The events of a streamed answer -> the items of the conversation that they contain.

The readers of all wires parse events and keep the answer with the tools of this module.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any, TypeVar

import msgspec

from limner.errors import ModelBadAnswer
from limner.wires.base import Answer, Stop, Usage

MAX_CHARS = 16_000_000

DONE = "[DONE]"
"""How Chat Completions ends a stream; proxies end other APIs' streams with it too."""

Count = Annotated[int, msgspec.Meta(ge=0)]
EventT = TypeVar("EventT")


class _Kind(msgspec.Struct):
    type: str = ""


def event_kind(data: str) -> str:
    """The kind of an event that states it in its data; empty if it does not.

    Raises:
        ModelBadAnswer: the event is not a JSON object.
    """
    return "" if data.strip() == DONE else parse_event(data, _Kind).type


def parse_event(data: str, event: type[EventT]) -> EventT:
    """The data of an event as that type; fields that the type does not have are skipped.

    Raises:
        ModelBadAnswer: the data is not JSON, or does not match the type.
    """
    try:
        return msgspec.json.decode(data, type=event)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ModelBadAnswer(
            "The answer is not what its API promises", may_be_billed=True
        ) from problem


def convert_or_none(value: Any, wanted: type[EventT]) -> EventT | None:
    """A value as that type; None if it is missing or does not match.

    For token counts above all: an answer is not lost because its usage cannot be parsed.
    """
    try:
        return None if value is None else msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return None


def usage_beside_cache(
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read: int | None,
    cache_write: int | None,
    reasoning: int | None = None,
) -> Usage:
    """The usage of a service that does not count cached tokens among its input."""
    return Usage(
        input_tokens=input_tokens + (cache_read or 0) + (cache_write or 0),
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=reasoning,
    )


class TextBuilder(msgspec.Struct):
    """A message, as far as it has arrived."""

    pieces: list[str] = msgspec.field(default_factory=list[str])


class ReasoningBuilder(msgspec.Struct):
    """Reasoning, as far as it has arrived; its service wants the ``signature`` back with it.

    Hidden reasoning has a signature and no text.
    """

    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str = ""
    is_hidden: bool = False


class CallBuilder(msgspec.Struct):
    """A call of a tool, as far as it has arrived."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = msgspec.field(default_factory=list[str])


Builder = TextBuilder | ReasoningBuilder | CallBuilder
BuilderT = TypeVar("BuilderT", bound=Builder)


class ItemBuilder:
    """The items of one answer, in the order in which the model made them.

    Args:
        api: the wire; reasoning is marked with it, because only its service can read the signature.
    """

    def __init__(self, api: str) -> None:
        self._api = api
        self._builders: list[Builder] = []
        self._chars = 0
        # The ids of items contain the service's own id of the answer, so that they are unique.
        self.answer_id: str | None = None

    @property
    def text(self) -> str:
        """The whole text of the answer."""
        return "".join(
            piece for one in self._builders if isinstance(one, TextBuilder) for piece in one.pieces
        )

    @property
    def last(self) -> Builder | None:
        """The item that was started last."""
        return self._builders[-1] if self._builders else None

    def add_text(self, piece: str) -> str:
        """Add a piece of text, and return it.

        Raises:
            ModelBadAnswer: the answer is too long.
        """
        if piece:
            last = self.last
            text = last if isinstance(last, TextBuilder) else self.start(TextBuilder())
            self.add_piece(text, piece)
        return piece

    def start(self, builder: BuilderT) -> BuilderT:
        """Start another item, with the pieces that it has already.

        Raises:
            ModelBadAnswer: the answer is too long.
        """
        self.count_chars("".join(builder.pieces))
        self._builders.append(builder)
        return builder

    def add_piece(self, builder: Builder, piece: str) -> None:
        """Add a piece to an item.

        Raises:
            ModelBadAnswer: the answer is too long.
        """
        self.count_chars(piece)
        builder.pieces.append(piece)

    def count_chars(self, piece: str) -> None:
        """Count a text that is kept.

        Raises:
            ModelBadAnswer: the answer is too long.
        """
        self._chars += len(piece)
        if self._chars > MAX_CHARS:
            raise ModelBadAnswer(
                f"The answer has more than {MAX_CHARS:,} characters", may_be_billed=True
            )

    def build(self) -> tuple[dict[str, Any], ...]:
        """The items, without empty ones."""
        items = [self._item(at, builder) for at, builder in enumerate(self._builders)]
        return tuple(item for item in items if item is not None)

    def _item(self, at: int, builder: Builder) -> dict[str, Any] | None:
        text = "".join(builder.pieces)
        match builder:
            case TextBuilder():
                content = [{"type": "output_text", "text": text}]
                return (
                    {"type": "message", "role": "assistant", "content": content} if text else None
                )
            case ReasoningBuilder():
                return self._reasoning(at, text, builder) if text or builder.signature else None
            case CallBuilder():
                return {
                    "type": "function_call",
                    "call_id": builder.call_id or self._id("call", at),
                    "name": builder.name,
                    "arguments": text or "{}",
                }

    def _reasoning(self, at: int, text: str, builder: ReasoningBuilder) -> dict[str, Any]:
        content = [{"type": "reasoning_text", "text": text}]
        return {
            "type": "reasoning",
            "id": self._id("rs", at),
            "summary": [],
            "content": None if builder.is_hidden else content,
            "encrypted_content": builder.signature or None,
            "origin": self._api,
        }

    def _id(self, prefix: str, at: int) -> str:
        return f"{prefix}_{self.answer_id or uuid.uuid4().hex}_{at}"


class AnswerReader:
    """What a reader of events knows about the answer so far."""

    def __init__(self, api: str) -> None:
        self._items = ItemBuilder(api)
        self._stop: Stop | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._message: str | None = None
        self._code: str | None = None

    @property
    def has_usage(self) -> bool:
        """Whether the service has reported tokens."""
        return self._usage is not None

    def finish(self) -> Answer | None:
        """The whole answer; None if the stream broke off."""
        if self._stop is None:
            return None
        return Answer(
            text=self._items.text,
            stop=self._stop,
            model=self._model,
            usage=self._usage,
            message=self._message,
            code=self._code,
            items=self._items.build(),
        )
