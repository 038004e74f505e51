"""A client's configuration <-> the same with limner among its servers, or without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from limner.errors import InputInvalid
from limner.frontends.mcp.config_syntax import Keys, Malformed, Syntax, look_up, put, read, remove

# However it is started: the script, `python -m`, or `uvx --from 'limner[mcp]' limner`.
_PROGRAM = re.compile(r"(?:.*[/\\])?limner(?:\.exe|\[.*\]|(?:\.\w+)+)?", re.IGNORECASE)
# What must be ours for the entry to work; the rest of it belongs to the user, once it is there.
_ESSENTIAL = ("command", "args")
# A list that both have a word in: keys that are set by now are added to those that were.
_SHARED = "env_vars"


def with_entry(syntax: Syntax, text: str, keys: Keys, entry: Mapping[str, Any]) -> str:
    """The text with our entry in it; what the user added to an entry of ours stays.

    Raises:
        InputInvalid: the name is taken by an entry that does not start limner.
        Malformed: the text cannot be read, or leaves no place for the entry.
    """
    existing = look_up(read(syntax, text), keys)
    if existing is None:
        return put(syntax, text, keys, dict(entry))
    _check_ours(existing, keys[-1])
    for key, value in entry.items():
        due = _due(key, existing, value)
        if key not in existing or existing[key] != due:
            text = put(syntax, text, (*keys, key), due)
    return text


def without_entry(syntax: Syntax, text: str, keys: Keys, *, before: str | None) -> str | None:
    """The text without our entry; None where there was no file before it.

    Args:
        syntax: how the text is spelled.
        text: the configuration as it is now.
        keys: where the entry stands.
        before: the configuration as it was before ours was put in, where that is known.

    Raises:
        InputInvalid: the entry does not start limner.
        Malformed: the text cannot be read, or the entry cannot be taken out alone.
    """
    existing = look_up(read(syntax, text), keys)
    if existing is None:
        return text
    _check_ours(existing, keys[-1])
    if _makes(syntax, before or "", keys, existing, text):
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
    arguments = fields.get("args")
    words: list[Any] = [fields.get("command")]
    if isinstance(arguments, list):
        words += cast("list[Any]", arguments)
    return any(
        isinstance(program, str) and bool(_PROGRAM.fullmatch(program)) and command == "mcp"
        for program, command in pairwise(words)
    )


def _due(key: str, existing: Mapping[str, Any], value: Any) -> Any:
    """What an entry of ours should have under a key."""
    if key in _ESSENTIAL or key not in existing:
        return value
    found = existing[key]
    if key == _SHARED and isinstance(found, list):
        return [*found, *(name for name in value if name not in found)]
    return found


def _check_ours(entry: Any, name: str) -> None:
    if not is_ours(entry):
        raise InputInvalid(
            f"There is a server named {name!r} already, and it is not limner.",
            field="name",
            hint="Choose another name with --name.",
        )


def _makes(syntax: Syntax, before: str, keys: Keys, entry: Any, text: str) -> bool:
    """Whether putting the entry into the text before is all that happened since."""
    try:
        return look_up(read(syntax, before), keys) is None and (
            put(syntax, before, keys, entry) == text
        )
    except Malformed:
        return False
