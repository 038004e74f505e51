"""A client's configuration <-> the same configuration with limner's entry, or without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from limner.errors import InputInvalid
from limner.settings.config_syntax import Keys, Malformed, Syntax, look_up, put, read, remove

# All ways to start limner: the script, `python -m`, or `uvx --from 'limner[mcp]' limner`.
_PROGRAM = re.compile(r"(?:.*[/\\])?limner(?:\.exe|\[.*\]|(?:\.\w+)+)?", re.IGNORECASE)
# limner sets these keys. The user owns all other keys of an existing entry.
_ESSENTIAL = ("command", "cmd", "args")
# Both limner and the user add to this list: new names are appended to the existing ones.
_SHARED = "env_vars"


def with_entry(syntax: Syntax, text: str, keys: Keys, entry: Mapping[str, Any]) -> str:
    """Return the text with limner's entry; what the user added to that entry stays.

    Raises:
        InputInvalid: the name is taken by an entry that does not start limner.
        Malformed: the text cannot be parsed, or the entry cannot be added.
    """
    existing = look_up(read(syntax, text), keys)
    if existing is None:
        return put(syntax, text, keys, dict(entry))
    _check_ours(existing, keys[-1])
    for key, value in entry.items():
        wanted = _wanted_value(key, existing, value)
        if key not in existing or existing[key] != wanted:
            text = put(syntax, text, (*keys, key), wanted)
    return text


def without_entry(syntax: Syntax, text: str, keys: Keys, *, before: str | None) -> str | None:
    """Return the text without limner's entry; None if there was no file before it.

    Args:
        syntax: the syntax of the text.
        text: the current configuration.
        keys: the keys of the entry.
        before: the configuration before limner's entry was added, if it is known.

    Raises:
        InputInvalid: the entry does not start limner.
        Malformed: the text cannot be parsed, or the entry cannot be removed alone.
    """
    existing = look_up(read(syntax, text), keys)
    if existing is None:
        return text
    _check_ours(existing, keys[-1])
    if _is_only_change(syntax, before or "", keys, existing, text):
        return before
    return remove(syntax, text, keys)


def has_ours(syntax: Syntax, text: str, table: Keys) -> bool:
    """Whether any entry of a table starts limner."""
    servers = look_up(read(syntax, text), table)
    return isinstance(servers, dict) and any(map(is_ours, cast("dict[str, Any]", servers).values()))


def is_ours(entry: Any) -> bool:
    """Whether an entry starts limner's server."""
    if not isinstance(entry, dict):
        return False
    fields = cast("dict[str, Any]", entry)
    words: list[Any] = []
    for key in ("command", "cmd", "args"):
        found = fields.get(key)
        words += cast("list[Any]", found) if isinstance(found, list) else [found]
    words = [word for word in words if word is not None]
    return any(
        isinstance(program, str) and bool(_PROGRAM.fullmatch(program)) and command == "mcp"
        for program, command in pairwise(words)
    )


def _wanted_value(key: str, existing: Mapping[str, Any], value: Any) -> Any:
    """Return the value that limner's entry should have for a key."""
    if key in _ESSENTIAL or key not in existing:
        return value
    found = existing[key]
    if key == _SHARED and isinstance(found, list):
        return [*found, *(name for name in value if name not in found)]
    return found


def _check_ours(entry: Any, name: str) -> None:
    if not is_ours(entry):
        raise InputInvalid(
            f"A server named {name!r} exists already, and it does not start limner.",
            field="name",
            hint="Choose another name with --name.",
        )


def _is_only_change(syntax: Syntax, before: str, keys: Keys, entry: Any, text: str) -> bool:
    """Whether adding the entry to the earlier text gives exactly the current text."""
    try:
        return look_up(read(syntax, before), keys) is None and (
            put(syntax, before, keys, entry) == text
        )
    except Malformed:
        return False
