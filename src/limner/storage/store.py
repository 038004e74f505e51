"""A plain function -> one database transaction on the store's own thread.

One SQLite file has the sessions, ledger, jobs and pictures. A write is one ``BEGIN IMMEDIATE``: it
never spans an await, and other processes see all of it or nothing. Writes that wait at the same
time share one transaction, because the sync to disk is most of their cost. Each one still succeeds
or fails by itself, and its caller gets the result after the sync.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from limner.errors import StorageError
from limner.storage.os_errors import disk_errors
from limner.storage.owners import Ownership
from limner.storage.temp_file import make_folder
from limner.thread_pool import ThreadPool

SQL_FOLDER = Path(__file__).with_name("sql")

_HEADER = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)


@cache
def named_queries(folder: Path = SQL_FOLDER) -> dict[str, str]:
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


T = TypeVar("T")
Row: TypeAlias = sqlite3.Row

BUSY_TIMEOUT_S = 30.0
# The largest number of writes in one transaction, so that no caller waits too long.
MAX_BATCH = 64
_BUSY_RETRY_S = 0.02


class Transaction:
    """The argument of a function that is passed to ``Store.read`` or ``Store.write``.

    Queries are called by their names in ``sql/*.sql``, with their parameters as keywords.
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
        """Run a statement; returns the number of changed rows."""
        with closing(self._execute(query, params)) as cursor:
            return cursor.rowcount

    def insert(self, query: str, /, **params: Any) -> int:
        """Run an insert; returns the rowid of the new row."""
        with closing(self._execute(query, params)) as cursor:
            rowid = cursor.lastrowid
        assert rowid is not None
        return rowid

    def _execute(self, query: str, params: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(named_queries()[query], params)


class _Job(NamedTuple):
    """A function to run in a transaction, and the future its caller waits for."""

    work: Callable[[Transaction], Any]
    writing: bool
    future: Future[Any]


class Store:
    """The database of one limner home. Making this value does not touch the disk.

    It has one connection on one thread, opened at the first use. Any event loop may await it.
    ``owner`` is what it is for the rows of calls and sessions that this process holds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._waiting: deque[_Job] = deque()
        self._thread = ThreadPool(1, name="limner-store")
        self.owner = Ownership(self)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` on a consistent view; it cannot change anything.

        Raises:
            StorageError: the database cannot be opened or read.
        """
        return await asyncio.wrap_future(self._submit(work, writing=False))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit its changes; if it raises, nothing changes.

        If the awaiting task is cancelled, a write that has not started is dropped. A write that has
        started completes.

        Raises:
            StorageError: the database cannot be opened or written.
        """
        return await asyncio.wrap_future(self.submit_write(work))

    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]:
        """As `write`, for a thread without an event loop."""
        return self._submit(work, writing=True)

    async def aclose(self) -> None:
        """Run all waiting jobs and close the file."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Run all waiting jobs and close the file; the store cannot be used afterwards."""
        self.owner.stop()
        with suppress(RuntimeError):  # closed already
            self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=True)

    def _submit(self, work: Callable[[Transaction], T], *, writing: bool) -> Future[T]:
        if self._pid != os.getpid():
            # A fork does not copy the thread, and SQLite forbids using a connection after one.
            raise StorageError(
                "This store belongs to the parent process of this fork.",
                hint="Make a new Limner in the child process.",
            )
        future: Future[T] = Future()
        job = _Job(work, writing, future)
        self._waiting.append(job)
        try:
            self._thread.submit(self._run_next)
        except RuntimeError:  # closed
            self._waiting.remove(job)
            raise
        return future

    def _run_next(self) -> None:
        """Run the next batch of jobs; does nothing if an earlier batch took them all."""
        if jobs := self._next_batch():
            self._run(jobs)

    def _run(self, jobs: Sequence[_Job]) -> None:
        done: list[Callable[[], None]] = []
        try:
            self._transact(jobs, done)
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            # All of them were rolled back. Run each one alone.
            for job in jobs:
                self._run([job])
        else:
            for report in done:
                report()

    def _next_batch(self) -> list[_Job]:
        """The first waiting job; if it is a write, also the writes right behind it."""
        jobs: list[_Job] = []
        while self._waiting and len(jobs) < MAX_BATCH:
            if jobs and not (jobs[0].writing and self._waiting[0].writing):
                break
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
        return jobs

    def _transact(self, jobs: Sequence[_Job], done: list[Callable[[], None]]) -> None:
        """Run jobs in one transaction; ``done`` gets the calls that report each job's result."""
        writing = jobs[0].writing
        try:
            connection = self._connect()
            connection.execute(f"PRAGMA query_only = {not writing}")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            try:
                if len(jobs) == 1:
                    result = jobs[0].work(Transaction(connection))
                    done.append(partial(jobs[0].future.set_result, result))
                else:
                    done.extend(self._run_in_savepoint(connection, job) for job in jobs)
                connection.execute("COMMIT")
            except BaseException:
                # SQLite rolls back by itself on a full disk, and then ROLLBACK is an error.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            raise _translate(error, self._path) from error

    def _run_in_savepoint(self, connection: sqlite3.Connection, job: _Job) -> Callable[[], None]:
        """Run one job of a batch; if it fails, only its own changes are undone."""
        connection.execute("SAVEPOINT job")
        try:
            result = job.work(Transaction(connection))
        except BaseException as error:
            if not connection.in_transaction:
                raise  # the whole batch was rolled back
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            if isinstance(error, sqlite3.DatabaseError):
                error = _translate(error, self._path)
            return partial(job.future.set_exception, error)
        connection.execute("RELEASE job")
        return partial(job.future.set_result, result)

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self._path)
            # A store may also be left unclosed; then this closes the file, at the latest on exit.
            self._close = weakref.finalize(self, _close, self._connection, self._pid)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._close()
            self._connection = None


def _open(path: Path) -> sqlite3.Connection:
    with disk_errors(doing="open the database", path=path):
        make_folder(path.parent)
        # SQLite gives its other files the mode of the database file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        # `ThreadPool` runs one thread at a time, even if a later thread closes the connection.
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


def _close(connection: sqlite3.Connection, pid: int) -> None:
    # SQLite forbids a connection across a fork: there it still belongs to the parent process.
    if pid == os.getpid():
        connection.close()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. If another process does the same, SQLite reports busy without waiting."""
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
    """Migrate the tables; the tables of a newer limner stay as they are."""
    for number, script in migrations():
        if _version(connection) >= number:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated before this one got the lock.
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


def _translate(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """The error for the user; a bug in a query or its parameters is not translated."""
    name = _name(error)
    shown = repr(str(path))
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return StorageError(
            f"The database {shown} is damaged.",
            hint="Move the file away (pictures on disk stay); limner then creates a new one.",
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
