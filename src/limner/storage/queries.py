"""``.sql`` files -> the named queries that a transaction runs, for SQLite and for PostgreSQL.

One text serves both databases. If it cannot, ``sql/postgres/`` has a second statement of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

SQL_FOLDER = Path(__file__).with_name("sql")
POSTGRES_FOLDER = SQL_FOLDER / "postgres"

_HEADER = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)


@cache
def named_queries(folder: Path = SQL_FOLDER) -> Mapping[str, str]:
    """Every statement under a ``-- name: …`` line in the folder's ``.sql`` files.

    Raises:
        ValueError: a name is used twice, or a statement comes before the first name.
    """
    found: dict[str, str] = {}
    for file in _scripts(folder):
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
    return frozenset(found["parameter"] for found in _token().finditer(statement)) - {None}


@cache
def to_psycopg(statement: str) -> str:
    """A statement with ``%(name)s`` for ``:name``, and without the hints at SQLite's indexes."""

    def replace(found: re.Match[str]) -> str:
        if found["parameter"]:
            return f"%({found['parameter']})s"
        return found["text"] or ""

    return _token().sub(replace, statement.replace("%", "%%"))


@cache
def _token() -> re.Pattern[str]:
    # Only PostgreSQL needs it. What is left as it is comes first: texts, quoted names, comments,
    # casts.
    return re.compile(
        r"""(?P<text>'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::)"""
        r"|:(?P<parameter>[A-Za-z_]\w*)|(?P<hint>\bINDEXED\s+BY\s+\w+|\bNOT\s+INDEXED\b)",
        re.DOTALL,
    )


@cache
def last_migration(folder: Path = SQL_FOLDER / "migrations") -> int:
    """The number of the newest migration; the scripts are not read."""
    return max(int(file.name.partition("_")[0]) for file in _scripts(folder))


@cache
def migrations(folder: Path = SQL_FOLDER / "migrations") -> tuple[tuple[int, str], ...]:
    """The number and the script of each ``NNNN_name.sql``, in order."""
    return tuple(
        (int(file.name.partition("_")[0]), file.read_text(encoding="utf-8"))
        for file in _scripts(folder)
    )


def _scripts(folder: Path) -> list[Path]:
    # Not `glob`: it loads `fnmatch`, and compiles a pattern.
    return sorted(file for file in folder.iterdir() if file.name.endswith(".sql"))


class Row(Protocol):
    """A row of a result: its values by name or by place."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[str]:
        """The names of the columns."""
        ...


class _Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...
    @property
    def description(self) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def close(self) -> None: ...


class _Connection(Protocol):
    def execute(self, query: Any, parameters: Any, /) -> _Cursor: ...


class Transaction:
    """The argument of a function that is passed to ``Store.read`` or ``Store.write``.

    Queries are called by their names in ``sql/*.sql``, with their parameters as keywords.
    """

    def __init__(
        self,
        connection: _Connection,
        queries: Mapping[str, str],
        *,
        lock: Callable[[tuple[str, ...]], None] | None = None,
        dialect: Callable[[str], str] = str,
    ) -> None:
        self._connection, self._queries = connection, queries
        self._lock, self._dialect = lock, dialect

    def one(self, query: str, /, **params: Any) -> Row | None:
        """The first row, or None."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.fetchone()

    def all(self, query: str, /, **params: Any) -> list[Row]:
        """Every row."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.fetchall()

    def run(self, query: str, /, **params: Any) -> int:
        """Run a statement; returns the number of changed rows."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.rowcount

    def raw(self, statement: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Run a statement that has no name, and return its rows; only for modules of storage."""
        with closing(self._connection.execute(self._dialect(statement), params or {})) as cursor:
            return [] if cursor.description is None else cursor.fetchall()

    def lock(self, *names: str) -> None:
        """Let no other shared write go on that locks one of these names, until this one ends.

        A function that is passed to `Store.write` with ``shared=True`` locks what it checks before
        it reads it. In all other writes it does nothing, because these run alone.
        """
        if self._lock is not None and names:
            self._lock(names)

    def _execute(self, query: str, params: dict[str, Any]) -> _Cursor:
        return self._connection.execute(self._queries[query], params)


class Job(NamedTuple):
    """A function to run in a transaction, and the future its caller waits for."""

    work: Callable[[Transaction], Any]
    writing: bool
    shared: bool
    synced: bool
    future: Future[Any]
