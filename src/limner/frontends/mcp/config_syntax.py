"""A configuration text <-> the same text with one value put in or taken out, nothing else touched.

A syntax edits text, since parsing and writing back would lose comments and formatting. Whatever it
did is checked here by reading the result again: the data may differ in that one value alone.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol, cast

Data = dict[str, Any]
Keys = tuple[str, ...]
BOM = "\ufeff"


class Malformed(Exception):
    """The text breaks its syntax, or has something else where the value belongs; says where."""


class Syntax(Protocol):
    """What each syntax can do. Texts come without a byte order mark and are not blank."""

    def parse(self, text: str) -> Data:
        """All data of a text; numbers with fractions stay as they are spelled."""
        ...

    def document(self, keys: Keys, value: Any, *, newline: str) -> str:
        """A text that holds this value alone."""
        ...

    def put(self, text: str, keys: Keys, value: Any) -> str:
        """The text with a value added, or replaced where one has these keys."""
        ...

    def remove(self, text: str, keys: Keys) -> str:
        """The text without the value that has these keys."""
        ...


def read(syntax: Syntax, text: str) -> Data:
    """The data of a text; a blank one has none.

    Raises:
        Malformed: the text breaks its syntax.
    """
    _, body = _split(text)
    return syntax.parse(body) if body.strip() else {}


def look_up(data: Data, keys: Keys) -> Any:
    """The value with these keys, or None.

    Raises:
        Malformed: something on the way is no table of names.
    """
    found: Any = data
    for depth, key in enumerate(keys):
        if not isinstance(found, dict):
            raise Malformed(f"{'.'.join(keys[:depth])!r} is no table of names")
        if key not in found:
            return None
        found = cast("Data", found)[key]
    return found


def put(syntax: Syntax, text: str, keys: Keys, value: Any) -> str:
    """The text with a value added or replaced.

    Raises:
        Malformed: the text breaks its syntax, or is arranged so that the value cannot be put in.
    """
    mark, body = _split(text)
    expected = deepcopy(read(syntax, text))
    look_up(expected, keys)
    table = expected
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = value
    if body.strip():
        edited = syntax.put(body, keys, value)
    else:
        edited = syntax.document(keys, value, newline=newline_of(body))
    return mark + _checked(syntax, edited, expected)


def remove(syntax: Syntax, text: str, keys: Keys) -> str:
    """The text without a value that it has.

    Raises:
        Malformed: the text is arranged so that the value cannot be taken out alone.
    """
    mark, body = _split(text)
    expected = deepcopy(read(syntax, text))
    table = look_up(expected, keys[:-1])
    del table[keys[-1]]
    allowed = [expected]
    if not table:  # which may go with its last entry
        allowed.append({key: expected[key] for key in expected if key != keys[0]})
    return mark + _checked(syntax, syntax.remove(body, keys), *allowed)


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    first, found, _ = text.partition("\n")
    return "\r\n" if found and first.endswith("\r") else "\n"


def nested(keys: Keys, value: Any) -> Any:
    """A value inside one table for each key."""
    for key in reversed(keys):
        value = {key: value}
    return value


def _split(text: str) -> tuple[str, str]:
    body = text.removeprefix(BOM)
    return text[: len(text) - len(body)], body


def _checked(syntax: Syntax, edited: str, *expected: Data) -> str:
    try:
        found = read(syntax, edited)
    except Malformed as error:
        raise Malformed("its arrangement leaves no place for the entry") from error
    if found not in expected:
        raise Malformed("the entry cannot be changed without changing something else")
    return edited
