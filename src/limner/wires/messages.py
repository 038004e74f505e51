"""A prompt's items -> its messages, every picture loaded: what all wires have in common.

A picture that is named but not there, and an item or part that has no place, are errors: nothing
that somebody meant the model to see is left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL, Prompt, Sight

Role = Literal["user", "assistant"]
Part = str | Sight

_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One side's turn to speak: texts and pictures in their order."""

    role: Role
    parts: Sequence[Part]


def messages(prompt: Prompt) -> Iterator[Message]:
    """The messages of a prompt.

    Raises:
        InputInvalid: an item, a role or a part has no place here, or a picture is not there.
    """
    for item in prompt.items:
        kind, role = item.get("type", "message"), item.get("role")
        if kind != "message":
            raise _no_place(f"an item of the kind {kind!r}")
        if role not in ("user", "assistant"):
            raise _no_place(f"a message of the role {role!r}")
        content: object = item.get("content")
        found = cast("list[object]", content) if isinstance(content, list) else [content]
        parts = [_part(part, prompt.pictures) for part in found]
        if role == "assistant" and any(isinstance(part, Sight) for part in parts):
            raise _no_place("a picture in a message of the assistant")
        yield Message(role=role, parts=parts)


def _part(part: object, pictures: Mapping[str, Sight]) -> Part:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise _no_place(f"a part that is {type(part).__name__}")
    fields = cast("Mapping[str, Any]", part)
    kind = fields.get("type")
    if kind in ("input_text", "output_text") and isinstance(fields.get("text"), str):
        return fields["text"]
    if kind == "input_image":
        return _sight(fields, pictures)
    raise _no_place(f"a part of the kind {kind!r}")


def _sight(fields: Mapping[str, Any], pictures: Mapping[str, Sight]) -> Sight:
    url = fields.get("image_url")
    if not isinstance(url, str) or not url.startswith(HANDLE_URL):
        raise _no_place(f"a picture without a handle, {str(url)[:_SHOWN_CHARS]!r},")
    handle = url.removeprefix(HANDLE_URL)
    if handle not in pictures:
        raise InputInvalid(
            f"The picture {handle[:_SHOWN_CHARS]!r} was not loaded", field="image_url"
        )
    sight, detail = pictures[handle], fields.get("detail")
    return sight if sight.detail is not None or detail is None else replace(sight, detail=detail)


def _no_place(what: str) -> InputInvalid:
    return InputInvalid(f"{what} has no place in a request to a model"[:300], field="items")
