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
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from limner.errors import StorageError
from limner.storage.daily_copy import DailyCopier
from limner.storage.database import (
    SQL_FOLDER,
    Database,
    error_name,
    open_database,
    raise_translated,
    translate,
)
from limner.storage.os_errors import read_only_home
from limner.storage.owners import Ownership
from limner.thread_pool import ThreadPool

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


T = TypeVar("T")
Row: TypeAlias = sqlite3.Row

# The largest number of writes in one transaction, so that no caller waits too long.
MAX_BATCH = 64


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
        self._pid, self._is_used = os.getpid(), False
        self._database: Database | None = None
        self._copier = DailyCopier(path)
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

    async def open(self) -> bool:
        """Open the database now if it is not open, and say whether it can be written.

        Raises:
            StorageError: it cannot be opened.
        """
        await self.read(lambda _: None)
        return self._database is not None and not self._database.read_only

    async def aclose(self) -> None:
        """Run all waiting jobs and close the file."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Run all waiting jobs and close the file; the store cannot be used afterwards."""
        self.owner.stop()
        with suppress(RuntimeError):  # closed already
            self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=True)
        self._copier.close()

    def _submit(self, work: Callable[[Transaction], T], *, writing: bool) -> Future[T]:
        if not self._is_used and self._pid != os.getpid():
            # Nothing was opened before the fork. Each child owns its rows under an id of its own.
            self._pid, self.owner = os.getpid(), Ownership(self)
        self._is_used = True
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
            database = self._open()
            if writing and database.read_only:
                raise read_only_home(self._path.parent)
            connection = database.connection
            connection.execute(f"PRAGMA query_only = {not writing}")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            try:
                changes = connection.total_changes
                if len(jobs) == 1:
                    result = jobs[0].work(Transaction(connection))
                    done.append(partial(jobs[0].future.set_result, result))
                else:
                    done.extend(self._run_in_savepoint(connection, job) for job in jobs)
                # A write that changed nothing costs no sync.
                writes = database.count_write() if connection.total_changes > changes else None
                connection.execute("COMMIT")
            except BaseException:
                # SQLite rolls back by itself on a full disk, and then ROLLBACK is an error.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            if error_name(error) == "SQLITE_PROTOCOL":
                # The system did not release a lock of this connection. It would fail for ever, and
                # SQLite waits ten seconds each time. The next transaction opens a new one.
                self._disconnect()
            raise_translated(error, self._path)
        if writes is not None:
            # The jobs are committed: what fails from here on must not fail them.
            with suppress(Exception):
                database.note_writes(writes)
                self._copier.start(is_new=database.is_new)

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
                error = translate(error, self._path)
            return partial(job.future.set_exception, error)
        connection.execute("RELEASE job")
        return partial(job.future.set_result, result)

    def _open(self) -> Database:
        if self._database is None:
            self._database = open_database(self._path)
            # A store may also be left unclosed; then this closes the file, at the latest on exit.
            self._close = weakref.finalize(self, self._database.close)
        return self._database

    def _disconnect(self) -> None:
        if self._database is not None:
            self._close()
            self._database = None
