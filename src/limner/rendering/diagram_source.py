"""A source in a language of others -> what its parsers share: limits, and errors with a line."""

from __future__ import annotations

from typing import NoReturn, TypeVar

import msgspec

from limner.errors import InputInvalid
from limner.rendering.colours import parse_colour
from limner.rendering.elements import DocumentElement

MAX_SOURCE_CHARS = 200_000
Element = TypeVar("Element", bound=DocumentElement)


def check_length(source: str) -> None:
    """Refuse a source that is too long to be a diagram for a reader."""
    if len(source) > MAX_SOURCE_CHARS:
        raise InputInvalid(
            f"the source has {len(source):,} characters; {MAX_SOURCE_CHARS:,} are allowed",
            field="source",
        )


def refuse_line(source: str, at: int, what: str, hint: str) -> NoReturn:
    """Refuse a source, with the number and the text of the line at a position."""
    number = source.count("\n", 0, at) + 1
    line = source.split("\n")[number - 1].strip()
    raise InputInvalid(f"line {number}: {what}: {line[:120]!r}", field="source", hint=hint)


def check_element(element: Element) -> Element:
    """Refuse an element that a document could not contain: too many nodes, a text too long."""
    try:
        return msgspec.convert(msgspec.to_builtins(element), type=type(element))
    except msgspec.ValidationError as error:
        raise InputInvalid(f"the diagram is too large: {error}", field="source") from error


def known_colour(text: str) -> str | None:
    """A colour, or None if it is not known; X11 has shades with a digit at the end."""
    try:
        return parse_colour(text[:7] if text.startswith("#") else text.rstrip("1234"))
    except InputInvalid:
        return None
