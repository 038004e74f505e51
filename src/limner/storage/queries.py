"""``.sql`` files -> named statements and numbered migrations."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SQL_FOLDER = Path(__file__).with_name("sql")

_HEADER = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)


@cache
def named_queries(folder: Path = SQL_FOLDER) -> dict[str, str]:
    """Every statement under a ``-- name: …`` line in the folder's ``.sql`` files.

    Raises:
        ValueError: a name is used twice, or a statement stands before the first name.
    """
    found: dict[str, str] = {}
    for file in sorted(folder.glob("*.sql")):
        preamble, *parts = _HEADER.split(file.read_text(encoding="utf-8"))
        if any(line.strip() and not line.startswith("--") for line in preamble.splitlines()):
            raise ValueError(f"{file.name} has a statement before its first '-- name:' line")
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file.name} names the query {name!r} a second time")
            found[name] = statement.strip()
    return found


@cache
def migrations(folder: Path = SQL_FOLDER / "migrations") -> tuple[tuple[int, str], ...]:
    """The number and the script of each ``NNNN_name.sql``, in order."""
    return tuple(
        (int(file.name.partition("_")[0]), file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.sql"))
    )


def statements(script: str) -> Iterator[str]:
    """Each statement of a script, so that a script can run inside one transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending
