"""YAML in block style <-> the same text with one entry of a table added or removed."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any, cast

import yaml

from limner.settings.config_syntax import Data, Keys, Malformed, nested, newline_of

_CHILD = re.compile(r"([ \t]+)[^ \t#\r\n]")


def parse(text: str) -> Data:
    """Parse a text.

    Raises:
        Malformed: it is not YAML, or not a mapping.
    """
    try:
        data: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Malformed(" ".join(str(error).split())) from None
    if data is not None and not isinstance(data, dict):
        raise Malformed("the file must contain one mapping")
    return cast("Data", data or {})


def document(keys: Keys, value: Any, *, newline: str) -> str:
    """Return a text that contains only this value."""
    written = yaml.safe_dump(nested(keys, value), sort_keys=False, allow_unicode=True, width=1000)
    return written.replace("\n", newline)


def put(text: str, keys: Keys, value: Any) -> str:
    """Return the text with an entry added, or with a member of the entry set."""
    table, name, *member = keys
    found = parse(text).get(table)
    if member:
        value = {**cast("Data", found)[name], member[0]: value}
    if isinstance(found, dict) and name in found:
        text = remove(text, (table, name))
    newline, lines = newline_of(text), text.splitlines(keepends=True)
    at = _header(lines, table)
    if at is None:
        end = "" if not text or text.endswith("\n") else newline
        return f"{text}{end}{document((table, name), value, newline=newline)}"
    child = next(filter(None, map(_CHILD.match, lines[at + 1 :])), None)
    lines[at] = lines[at].rstrip("\r\n") + newline
    entry = document((name,), value, newline=newline)
    lines.insert(at + 1, indent(entry, child[1] if child else "  "))
    return "".join(lines)


def remove(text: str, keys: Keys) -> str:
    """Return the text without the entry; a table that is empty then goes too."""
    table, name = keys
    lines = text.splitlines(keepends=True)
    header = _header(lines, table)
    if header is None:
        return text
    key = re.compile(rf"([ \t]+)(['\"]?){re.escape(name)}\2[ \t]*:")
    for start in range(header + 1, len(lines)):
        if (found := key.match(lines[start])) is None:
            continue
        end = start + 1
        while end < len(lines) and _is_deeper(lines[end], len(found[1])):
            end += 1
        is_last = cast("Data", parse(text)[table]).keys() == {name}
        return "".join(lines[: header if is_last else start] + lines[end:])
    return text


def _header(lines: list[str], table: str) -> int | None:
    header = re.compile(rf"{re.escape(table)}[ \t]*:[ \t]*(?:#.*)?$")
    return next((at for at, line in enumerate(lines) if header.match(line.rstrip("\r\n"))), None)


def _is_deeper(line: str, columns: int) -> bool:
    return bool(line.strip()) and len(line) - len(line.lstrip(" \t")) > columns
