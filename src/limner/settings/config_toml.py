"""TOML <-> the same text with one table, or one key of it, added or removed.

The text is split into statements (a header, or a key with its value). The standard parser parses
each statement alone to find its keys.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from limner.settings.config_syntax import Data, Keys, Malformed, newline_of

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+|\#[^\n]*)
    | (?P<newline>\r?\n)
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<text>"{3}(?:\\.|[^\\])*?"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\\n])*" | '[^'\n]*'
        | [^\s\#\[\]{}"']+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_ON_LINE = re.compile(r"(?:[ \t]*#[^\r\n]*)?")
_REST_OF_LINE = re.compile(r"[^\r\n]*")
_LINES_BEFORE = re.compile(r"(?:\r?\n[ \t]*){1,2}\Z")
_LINE_BEFORE = re.compile(r"\r?\n[ \t]*\Z")
_LINES_AFTER = re.compile(r"[ \t]*(?:\r?\n){0,2}")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def parse(text: str) -> Data:
    """Parse a text.

    Raises:
        Malformed: it is not TOML.
    """
    try:
        # Floats stay strings: nan would differ from itself.
        return tomllib.loads(text, parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from None


def document(keys: Keys, value: Any, *, newline: str) -> str:
    """Return a text that contains only this table."""
    return newline.join([*_table(keys, value), ""])


def put(text: str, keys: Keys, value: Any) -> str:
    """Return the text with a table added at the end, or with a key of a table set."""
    newline = newline_of(text)
    if isinstance(value, Mapping):
        body = text.rstrip(" \t\r\n")
        table = newline.join(_table(keys, cast("Mapping[str, Any]", value)))
        # Keep the end of the file, so that removing the table restores the original text.
        return body + 2 * newline + table + text[len(body) :]
    line = f"{_key(keys[-1])} = {_value(value)}"
    header: _Statement | None = None
    for statement in _statements(text):
        if statement.table != keys[:-1]:
            continue
        if statement.is_header:
            header = statement
        elif list(statement.data) == [keys[-1]]:
            return text[: statement.start] + line + text[statement.end :]
    if header is None:
        raise Malformed(f"{'.'.join(keys[:-1])!r} has no header")
    at = _end(_REST_OF_LINE, text, header.end)
    return text[:at] + newline + line + text[at:]


def remove(text: str, keys: Keys) -> str:
    """Return the text without the table, its sub-tables and its dotted keys."""
    for first, last in reversed(list(_runs(text, keys))):
        end = _end(_COMMENT_ON_LINE, text, last.end)
        # The blank line before a header is removed with it.
        lines = (_LINES_BEFORE if first.is_header else _LINE_BEFORE).search(text, 0, first.start)
        if lines is not None and text[: lines.start()].strip():
            text = text[: lines.start()] + text[end:]
        else:
            text = text[: first.start] + text[_end(_LINES_AFTER, text, end) :]
    return text


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header, or a key with its value, and the table that it opens or belongs to."""

    start: int
    end: int
    table: Keys
    data: Data
    is_header: bool

    def is_about(self, keys: Keys) -> bool:
        """Whether it sets a value at or below these keys."""
        if self.table[: len(keys)] == keys:
            return True
        found: Any = self.data
        if self.is_header or self.table != keys[: len(self.table)]:
            return False
        for key in keys[len(self.table) :]:
            if not isinstance(found, dict) or key not in found:
                return False
            found = cast("Data", found)[key]
        return True


def _statements(text: str) -> Iterator[_Statement]:
    table: Keys = ()
    for start, end in _spans(text):
        data = parse(text[start:end])
        is_header = text[start] == "["
        if is_header:
            table = _only_path(data)
        yield _Statement(start, end, table, data, is_header)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start, end, depth = -1, -1, 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "newline" and depth == 0 and start >= 0:
            yield start, end
            start = -1
        elif kind not in ("newline", "blank"):
            start = token.start() if start < 0 else start
            end = token.end()
            depth += (kind == "open") - (kind == "close")
    if start >= 0:
        yield start, end


def _only_path(header: Data) -> Keys:
    """Return the keys of a header from the empty table that it defines."""
    path: list[str] = []
    found: Any = header
    while found:
        if isinstance(found, list):
            found = cast("list[Any]", found)[0]
        else:
            ((key, found),) = cast("Data", found).items()
            path.append(key)
    return tuple(path)


def _runs(text: str, keys: Keys) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield the first and last statement of each run about these keys."""
    statements = list(_statements(text))
    about = [False, *(statement.is_about(keys) for statement in statements), False]
    edges = [at for at, (here, there) in enumerate(pairwise(about)) if here != there]
    for first, past in zip(edges[::2], edges[1::2], strict=True):
        yield statements[first], statements[past - 1]


def _table(keys: Keys, value: Mapping[str, Any]) -> list[str]:
    header = f"[{'.'.join(map(_key, keys))}]"
    return [header, *(f"{_key(key)} = {_value(item)}" for key, item in value.items())]


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in items)} }}"
    # Strings, integers and lists of them have the same syntax as in JSON.
    return json.dumps(value, ensure_ascii=False)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None, "the pattern also matches the empty string"
    return match.end()
