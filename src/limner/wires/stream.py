"""The pieces of a streamed answer -> the items of the conversation that they are."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, TypeVar

import msgspec

from limner.errors import ModelBadAnswer

Count = Annotated[int, msgspec.Meta(ge=0)]
ViewT = TypeVar("ViewT")

DONE = "[DONE]"
"""How Chat Completions ends a stream; proxies end other APIs' streams with it too."""


class _Kind(msgspec.Struct):
    type: str = ""


def kind_of(data: str) -> str:
    """What kind of event it is, of the APIs that say so in its data; empty where it does not.

    Raises:
        ModelBadAnswer: the event is no JSON object.
    """
    return "" if data.strip() == DONE else read(data, _Kind).type


def read(data: str, view: type[ViewT]) -> ViewT:
    """The event as that view sees it; what the view does not name is passed over.

    Raises:
        ModelBadAnswer: the event is no JSON, or not of that shape.
    """
    try:
        return msgspec.json.decode(data, type=view)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ModelBadAnswer(
            "The answer is not what its API promises", may_be_billed=True
        ) from problem


def counted(usage: Any, view: type[ViewT]) -> ViewT | None:
    """A usage object as that view sees it; None where it is missing or of another shape.

    An answer is worth more than its bill: a count that cannot be read does not cost the answer.
    """
    try:
        return None if usage is None else msgspec.convert(usage, view)
    except msgspec.ValidationError:
        return None


MAX_CHARS = 16_000_000
T = TypeVar("T", bound="TextBuilder | ReasoningBuilder | CallBuilder")


class TextBuilder(msgspec.Struct):
    """A message, as far as it came."""

    pieces: list[str] = msgspec.field(default_factory=list[str])


class ReasoningBuilder(msgspec.Struct):
    """A thought, as far as it came; ``signature`` is what its service wants back with it.

    Of a thought that is hidden there is only that.
    """

    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str = ""
    is_hidden: bool = False


class CallBuilder(msgspec.Struct):
    """A call, as far as it came."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = msgspec.field(default_factory=list[str])


class ItemBuilder:
    """Everything a model made in one answer, in its order.

    Args:
        api: the wire, which thoughts are marked with: their signatures are for its service alone.
    """

    def __init__(self, api: str) -> None:
        self._api = api
        self._found: list[TextBuilder | ReasoningBuilder | CallBuilder] = []
        self._chars = 0
        # Whatever the service calls its answer makes ids that are as unique.
        self.answer_id: str | None = None

    @property
    def text(self) -> str:
        """All words of the answer."""
        return "".join(
            piece for one in self._found if isinstance(one, TextBuilder) for piece in one.pieces
        )

    @property
    def last(self) -> TextBuilder | ReasoningBuilder | CallBuilder | None:
        """What came last."""
        return self._found[-1] if self._found else None

    def say(self, piece: str) -> str:
        """Words that go on, or begin; they are given back."""
        if piece:
            words = self.last
            if not isinstance(words, TextBuilder):
                words = self.open(TextBuilder())
            self.add(words, piece)
        return piece

    def open(self, new: T) -> T:
        """Something new begins, perhaps with its first pieces; raises as `count`."""
        self.count("".join(new.pieces))
        self._found.append(new)
        return new

    def add(self, to: TextBuilder | ReasoningBuilder | CallBuilder, piece: str) -> None:
        """The next piece of something; raises as `count`."""
        self.count(piece)
        to.pieces.append(piece)

    def count(self, kept: str) -> None:
        """Something more is kept.

        Raises:
            ModelBadAnswer: the answer has no end.
        """
        self._chars += len(kept)
        if self._chars > MAX_CHARS:
            raise ModelBadAnswer(
                f"The answer has more than {MAX_CHARS:,} characters", may_be_billed=True
            )

    def items(self) -> tuple[dict[str, Any], ...]:
        """The items, those left out that say nothing."""
        found = [self._item(at, one) for at, one in enumerate(self._found)]
        return tuple(item for item in found if item is not None)

    def _item(
        self, at: int, one: TextBuilder | ReasoningBuilder | CallBuilder
    ) -> dict[str, Any] | None:
        text = "".join(one.pieces)
        match one:
            case TextBuilder():
                said = [{"type": "output_text", "text": text}]
                return {"type": "message", "role": "assistant", "content": said} if text else None
            case ReasoningBuilder():
                return self._thought(at, text, one) if text or one.signature else None
            case CallBuilder():
                return {
                    "type": "function_call",
                    "call_id": one.call_id or self._id("call", at),
                    "name": one.name,
                    "arguments": text or "{}",
                }

    def _thought(self, at: int, text: str, one: ReasoningBuilder) -> dict[str, Any]:
        shown = [{"type": "reasoning_text", "text": text}]
        return {
            "type": "reasoning",
            "id": self._id("rs", at),
            "summary": [],
            "content": None if one.is_hidden else shown,
            "encrypted_content": one.signature or None,
            "origin": self._api,
        }

    def _id(self, prefix: str, at: int) -> str:
        return f"{prefix}_{self.answer_id or uuid.uuid4().hex}_{at}"
