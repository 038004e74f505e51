"""A configuration text <-> the same text with one value added or removed and no other change.

A syntax edits the text, since parsing and serializing would lose comments and formatting. This
module checks each edit by parsing the result: the data may differ only in that one value.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol, cast

Data = dict[str, Any]
Keys = tuple[str, ...]
BOM = "\ufeff"
# `str.strip` would also remove control characters, which a comment may contain.
BLANKS = " \t\r\n"


class Malformed(Exception):
    """The text is invalid, or the value cannot be added or removed; the message says where."""


class Syntax(Protocol):
    """The operations of a syntax. Texts have no byte order mark and are not blank."""

    def parse(self, text: str) -> Data:
        """Parse a text; floats stay strings, so that their spelling is compared."""
        ...

    def document(self, keys: Keys, value: Any, *, newline: str) -> str:
        """Return a text that contains only this value."""
        ...

    def put(self, text: str, keys: Keys, value: Any) -> str:
        """Return the text with a value added, or replaced if the keys exist."""
        ...

    def remove(self, text: str, keys: Keys) -> str:
        """Return the text without the value of these keys."""
        ...


def read(syntax: Syntax, text: str) -> Data:
    """Parse a text; a blank one gives no data.

    Raises:
        Malformed: the text is invalid.
    """
    _, body = _split(text)
    return syntax.parse(body) if body.strip(BLANKS) else {}


def look_up(data: Data, keys: Keys) -> Any:
    """Return the value of these keys, or None.

    Raises:
        Malformed: a parent of the value is not a table.
    """
    found: Any = data
    for depth, key in enumerate(keys):
        if not isinstance(found, dict):
            raise Malformed(f"{'.'.join(keys[:depth])!r} is not a table")
        if key not in found:
            return None
        found = cast("Data", found)[key]
    return found


def put(syntax: Syntax, text: str, keys: Keys, value: Any) -> str:
    """Return the text with a value added or replaced.

    Raises:
        Malformed: the text is invalid, or its layout does not allow the value to be added.
    """
    mark, body = _split(text)
    expected = deepcopy(read(syntax, text))
    look_up(expected, keys)
    table = expected
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    # As the syntax parses it: a float stays a string.
    written = syntax.document(("table",), {"value": value}, newline="\n")
    table[keys[-1]] = look_up(syntax.parse(written), ("table", "value"))
    if body.strip(BLANKS):
        edited = syntax.put(body, keys, value)
    else:
        edited = syntax.document(keys, value, newline=newline_of(body))
    return mark + _checked(syntax, edited, expected)


def remove(syntax: Syntax, text: str, keys: Keys) -> str:
    """Return the text without a value that it contains.

    Raises:
        Malformed: the layout of the text does not allow the value to be removed alone.
    """
    mark, body = _split(text)
    expected = deepcopy(read(syntax, text))
    table = look_up(expected, keys[:-1])
    del table[keys[-1]]
    allowed = [expected]
    if not table:  # an empty table may be removed too
        allowed.append({key: expected[key] for key in expected if key != keys[0]})
    return mark + _checked(syntax, syntax.remove(body, keys), *allowed)


def newline_of(text: str) -> str:
    """Return the line ending of a text."""
    first, found, _ = text.partition("\n")
    return "\r\n" if found and first.endswith("\r") else "\n"


def nested(keys: Keys, value: Any) -> Any:
    """Wrap a value in one table for each key."""
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
        raise Malformed("its layout does not allow the entry to be added") from error
    if found not in expected:
        raise Malformed("the entry cannot be changed without another change")
    return edited
