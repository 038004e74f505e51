"""A named query and its parameters -> the rows it returns, inside one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any, NamedTuple, Protocol


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
    future: Future[Any]
