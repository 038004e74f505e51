"""One event's JSON -> a typed view of it, or an error that says it is not what was promised."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from limner.errors import ModelBadAnswer

Count = Annotated[int, msgspec.Meta(ge=0)]
T = TypeVar("T")

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


def read(data: str, view: type[T]) -> T:
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


def counted(usage: Any, view: type[T]) -> T | None:
    """A usage object as that view sees it; None where it is missing or of another shape.

    An answer is worth more than its bill: a count that cannot be read does not cost the answer.
    """
    try:
        return None if usage is None else msgspec.convert(usage, view)
    except msgspec.ValidationError:
        return None
