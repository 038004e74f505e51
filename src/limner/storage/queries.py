"""``.sql`` files -> the named statements, as the texts that SQLite or PostgreSQL runs.

One text serves both databases. If it cannot, ``sql/postgres/`` has a second statement of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SQL_FOLDER = Path(__file__).with_name("sql")
POSTGRES_FOLDER = SQL_FOLDER / "postgres"

_HEADER = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)
# What is left as it is comes first: texts, quoted names, comments, casts.
_TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::)"""
    r"|:(?P<parameter>[A-Za-z_]\w*)|(?P<hint>\bINDEXED\s+BY\s+\w+|\bNOT\s+INDEXED\b)",
    re.DOTALL,
)


@cache
def named_queries(folder: Path = SQL_FOLDER) -> Mapping[str, str]:
    """Every statement under a ``-- name: …`` line in the folder's ``.sql`` files.

    Raises:
        ValueError: a name is used twice, or a statement comes before the first name.
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
def postgres_queries() -> Mapping[str, str]:
    """The statements as psycopg takes them."""
    statements = {**named_queries(), **named_queries(POSTGRES_FOLDER)}
    return {name: to_psycopg(statement) for name, statement in statements.items()}


def parameters(statement: str) -> frozenset[str]:
    """The names of the parameters of a statement."""
    return frozenset(found["parameter"] for found in _TOKEN.finditer(statement)) - {None}


@cache
def to_psycopg(statement: str) -> str:
    """A statement with ``%(name)s`` for ``:name``, and without the hints at SQLite's indexes."""

    def replace(found: re.Match[str]) -> str:
        if found["parameter"]:
            return f"%({found['parameter']})s"
        return found["text"] or ""

    return _TOKEN.sub(replace, statement.replace("%", "%%"))


@cache
def migrations(folder: Path = SQL_FOLDER / "migrations") -> tuple[tuple[int, str], ...]:
    """The number and the script of each ``NNNN_name.sql``, in order."""
    return tuple(
        (int(file.name.partition("_")[0]), file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.sql"))
    )
