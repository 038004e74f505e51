"""A plain function -> one database transaction on the store's own thread.

Everything that is remembered (sessions, ledger, jobs, pictures) is in one SQLite file. A write is
one short ``BEGIN IMMEDIATE``: it never spans an await, and other processes see all of it or none.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from limner.errors import StorageError
from limner.storage.disk import disk_errors
from limner.storage.queries import migrations, named_queries, statements
from limner.threads import Threads

T = TypeVar("T")
Row: TypeAlias = sqlite3.Row

BUSY_TIMEOUT_S = 30.0
_BUSY_RETRY_S = 0.02


class Transaction:
    """What the function given to ``Store.read`` or ``Store.write`` works with.

    Queries are called by the name they have in ``sql/*.sql``; parameters are theirs.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, query: str, /, **params: Any) -> Row | None:
        """The first row, or None."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.fetchone()

    def all(self, query: str, /, **params: Any) -> list[Row]:
        """Every row."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.fetchall()

    def run(self, query: str, /, **params: Any) -> int:
        """How many rows the statement changed."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.rowcount

    def insert(self, query: str, /, **params: Any) -> int:
        """The rowid of the row the statement added."""
        with closing(self._execute(query, params)) as cursor:
            rowid = cursor.lastrowid
        assert rowid is not None
        return rowid

    def _execute(self, query: str, params: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(named_queries()[query], params)


class Store:
    """The database of one limner home. Making this value touches nothing.

    One connection lives on one thread, opened at first use; any event loop may await it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._thread = Threads(1, name="limner-store")

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` on a consistent view; it cannot change anything.

        Raises:
            StorageError: the database cannot be opened or read.
        """
        return await asyncio.wrap_future(self._submit(work, writing=False))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit what it did; if it raises, nothing is changed.

        Cancelling the awaiting task withdraws a write that has not begun. One that has begun
        completes.

        Raises:
            StorageError: the database cannot be opened or written.
        """
        return await asyncio.wrap_future(self._submit(work, writing=True))

    async def aclose(self) -> None:
        """Finish what is queued and close the file."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Finish what is queued and close the file; the store cannot be used after."""
        with suppress(RuntimeError):  # closed already
            self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=True)

    def _submit(self, work: Callable[[Transaction], T], *, writing: bool) -> Future[T]:
        if self._pid != os.getpid():
            # The thread did not survive the fork, and SQLite forbids a connection across one.
            raise StorageError(
                "This store belongs to the process this one was forked from.",
                hint="Make a new Limner in the child process.",
            )
        return self._thread.submit(self._transact, work, writing=writing)

    def _transact(self, work: Callable[[Transaction], T], *, writing: bool) -> T:
        try:
            connection = self._connect()
            connection.execute(f"PRAGMA query_only = {not writing}")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            try:
                result = work(Transaction(connection))
                connection.execute("COMMIT")
            except BaseException:
                # A full disk has rolled back by itself, and then ROLLBACK is an error.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            raise _translated(error, self._path) from error
        return result

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self._path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open(path: Path) -> sqlite3.Connection:
    with disk_errors(doing="open the database", path=path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the files it puts beside the database the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        # `Threads` sees to it that there is one at a time, also where it is another one at last.
        check_same_thread=False,
    )
    try:
        connection.row_factory = sqlite3.Row
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. While another process does the same, SQLite says busy without waiting."""
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if _name(error) != "SQLITE_BUSY" or time.monotonic() > deadline_s:
                raise
            time.sleep(_BUSY_RETRY_S)
        else:
            return


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables up to date; those of a newer limner are left as they are."""
    for number, script in migrations():
        if _version(connection) >= number:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it between the look and the lock.
            if _version(connection) < number:
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _name(error: sqlite3.Error) -> str:
    """SQLite's own name of the error, without its subtype."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])


def _translated(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """The error for the reader; a mistake in a query or its parameters stays what it is."""
    name = _name(error)
    shown = repr(str(path))
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return StorageError(
            f"The database {shown} is damaged.",
            hint="Move the file away (pictures on disk stay); limner then begins a new one.",
        )
    if name in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return StorageError(
            f"Another process kept the database {shown} locked for {BUSY_TIMEOUT_S:.0f} seconds.",
            hint="Try again; if it stays, end the other limner process.",
            retryable=True,
        )
    if name in ("SQLITE_FULL",):
        return StorageError(
            f"The disk is full: {shown} cannot grow.", hint="Free some space and try again."
        )
    if name in ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM"):
        return StorageError(
            f"The database {shown} cannot be written ({error}).",
            hint="Put LIMNER_HOME on a local disk that you can write.",
        )
    return error
