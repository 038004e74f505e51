"""A plain function -> one database transaction on a thread of the store.

One database has the sessions, ledger, jobs and pictures: a SQLite file in the home, or a PostgreSQL
database that a team shares. Both run the same functions with the same results.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from limner import metrics
from limner.errors import StorageError
from limner.storage.daily_copy import DailyCopier
from limner.storage.database import (
    Database,
    error_name,
    is_used,
    open_database,
    raise_translated,
    translate,
)
from limner.storage.home import Home
from limner.storage.os_errors import read_only_home
from limner.storage.owners import Ownership
from limner.storage.queries import Job, Row, Transaction, named_queries
from limner.thread_pool import ThreadPool

__all__ = ["Row", "Store", "Transaction"]

T = TypeVar("T")

# The largest number of writes in one transaction, so that no caller waits too long.
MAX_BATCH = 64


class DatabaseEngine(Protocol):
    """A kind of database. ``place`` is its address as a person may read it."""

    place: str
    threads: int
    max_batch: int

    @property
    def is_writable(self) -> bool:
        """Whether the open database can be written."""
        ...

    def was_made(self) -> bool:
        """Whether there is a database, even if it cannot be opened now."""
        ...

    def transact(self, jobs: Sequence[Job], done: list[Callable[[], None]]) -> None:
        """Run jobs in one transaction; ``done`` gets the calls that report each job's result."""
        ...

    def disconnect(self) -> None:
        """Close the connections; the next transaction opens one again."""
        ...

    def close(self) -> None:
        """End what runs beside the transactions."""
        ...


class SqliteEngine:
    """One connection to one file, opened at the first use. One thread at a time may use it.

    A write is one ``BEGIN IMMEDIATE``: it never spans an await, and other processes see all of it
    or nothing. Writes that wait at the same time share one transaction, because the sync to disk
    is most of their cost. Each one still succeeds or fails by itself.
    """

    threads = 1
    max_batch = MAX_BATCH

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self.database: Database | None = None
        self._path = path
        self._copier = DailyCopier(path)

    @property
    def is_writable(self) -> bool:
        """Whether the open database can be written."""
        return self.database is not None and not self.database.read_only

    def was_made(self) -> bool:
        """Whether the home has or had a database."""
        return self.database is not None or is_used(Home(self._path.parent))

    def transact(self, jobs: Sequence[Job], done: list[Callable[[], None]]) -> None:
        """Run jobs in one transaction; ``done`` gets the calls that report each job's result."""
        is_synced, writes = any(job.synced for job in jobs), None
        try:
            database = self._open()
            if not jobs[0].writing:
                self._read(database.connection, jobs[0], done)
            elif database.read_only:
                raise read_only_home(self._path.parent)
            else:
                database.prepare(synced=is_synced)
                writes = self._write(database, jobs, done)
        except sqlite3.DatabaseError as error:
            if error_name(error) == "SQLITE_PROTOCOL":
                # The system did not release a lock of this connection. It would fail for ever, and
                # SQLite waits ten seconds each time. The next transaction opens a new one.
                self.disconnect()
            raise_translated(error, self._path)
        if writes is not None:
            # The jobs are committed: what fails from here on must not fail them.
            with suppress(Exception):
                if is_synced:
                    database.note_writes(writes)
                self._copier.start(is_new=database.is_new)

    def disconnect(self) -> None:
        """Close the file; the next transaction opens it again."""
        if self.database is not None:
            self.database.close()
            self.database = None

    def close(self) -> None:
        """Wait for the copy of the day."""
        self._copier.close()

    def _read(
        self, connection: sqlite3.Connection, job: Job, done: list[Callable[[], None]]
    ) -> None:
        """Run a read; whatever it changed is undone.

        `PRAGMA query_only` would forbid changes too, but SQLite then compiles every statement
        again, each time that a write follows a read.
        """
        with _transaction(connection, "BEGIN"):
            changes = connection.total_changes
            result = job.work(Transaction(connection, named_queries()))
            if connection.total_changes > changes:
                raise StorageError(f"The database {self.place!r} cannot be written by a read.")
            connection.execute("ROLLBACK")
        done.append(partial(job.future.set_result, result))

    def _write(
        self, database: Database, jobs: Sequence[Job], done: list[Callable[[], None]]
    ) -> int | None:
        """Run writes; returns how many the database has seen, or None if nothing has changed."""
        connection, writes = database.connection, None
        with _transaction(connection, "BEGIN IMMEDIATE"):
            changes = connection.total_changes
            if len(jobs) == 1:
                result = jobs[0].work(Transaction(connection, named_queries()))
                done.append(partial(jobs[0].future.set_result, result))
            else:
                done.extend(self._run_in_savepoint(connection, job) for job in jobs)
            # A write that changed nothing costs no sync.
            if connection.total_changes > changes:
                writes = database.count_write()
            connection.execute("COMMIT")
        return writes

    def _run_in_savepoint(self, connection: sqlite3.Connection, job: Job) -> Callable[[], None]:
        """Run one job of a batch; if it fails, only its own changes are undone."""
        connection.execute("SAVEPOINT job")
        try:
            result = job.work(Transaction(connection, named_queries()))
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
        if self.database is None:
            self.database = open_database(self._path)
        return self.database


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    """A transaction that its block ends; it is rolled back if the block fails."""
    connection.execute(begin)
    try:
        yield
    except BaseException:
        # SQLite rolls back by itself on a full disk, and then ROLLBACK is an error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Store:
    """The database of one limner home. Making this value does not touch the disk.

    Connections are opened at the first use, on threads of the store. Any event loop may await it.
    ``owner`` is what it is for the rows of calls and sessions that this process holds.

    Args:
        path: the SQLite file.
        url: the address of a PostgreSQL database, which is used instead of the file.
    """

    def __init__(self, path: Path, *, url: str | None = None) -> None:
        self._pid, self._is_used = os.getpid(), False
        self._engine = engine = SqliteEngine(path) if url is None else _postgres(url)
        self.place, self.is_shared = engine.place, url is not None
        self._waiting: deque[Job] = deque()
        self._threads = ThreadPool(engine.threads, name="limner-store")
        self.owner = Ownership(self)
        # A store may also be left unclosed; then this closes the file, at the latest on exit.
        weakref.finalize(self, engine.disconnect)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` on a consistent view; it cannot change anything.

        Raises:
            StorageError: the database cannot be opened or read.
        """
        return await asyncio.wrap_future(self._submit(work, writing=False))

    async def write(
        self, work: Callable[[Transaction], T], *, shared: bool = False, synced: bool = True
    ) -> T:
        """Run ``work`` and commit its changes; if it raises, nothing changes.

        ``work`` may run more than once, and all but the last run are undone. If the awaiting task
        is cancelled, a write that has not started is dropped. A write that has started completes.

        Args:
            work: the function.
            shared: other shared writes may run at the same time. ``work`` locks what it checks
                (`Transaction.lock`), or each of its statements is right by itself. All other
                writes run alone, across all processes.
            synced: wait until the changes are on the disk. Without it they survive the end of this
                process, and a failure of the machine only if a later write was synced. It is for
                what can be made again, and for what a synced write must follow before anything
                outside depends on it. PostgreSQL always syncs.

        Raises:
            StorageError: the database cannot be opened or written.
        """
        return await asyncio.wrap_future(self.submit_write(work, shared=shared, synced=synced))

    def submit_write(
        self, work: Callable[[Transaction], T], *, shared: bool = False, synced: bool = True
    ) -> Future[T]:
        """As `write`, for a thread without an event loop."""
        return self._submit(work, writing=True, shared=shared, synced=synced)

    async def open(self) -> bool:
        """Open the database now if it is not open, and say whether it can be written.

        Raises:
            StorageError: it cannot be opened.
        """
        if not (isinstance(self._engine, SqliteEngine) and self._engine.is_writable):
            await self.read(lambda _: None)
        return self._engine.is_writable

    async def was_made(self) -> bool:
        """Whether there is a database, even if it cannot be opened now."""
        return await asyncio.to_thread(self._engine.was_made)

    async def aclose(self) -> None:
        """Run all waiting jobs and close the database."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Run all waiting jobs and close the database; the store cannot be used afterwards."""
        self.owner.stop()
        self._threads.shutdown(wait=True)
        self._engine.disconnect()
        self._engine.close()

    def refuse_shared(self, what: str, *, instead: str) -> None:
        """Refuse what only a SQLite file allows, and say what to do instead.

        Raises:
            StorageError: the database is a PostgreSQL one.
        """
        if self.is_shared:
            raise StorageError(
                f"{what} is for the SQLite file of a home, and this home uses {self.place}.",
                hint=instead,
            )

    def _submit(
        self,
        work: Callable[[Transaction], T],
        *,
        writing: bool,
        shared: bool = False,
        synced: bool = True,
    ) -> Future[T]:
        if not self._is_used and self._pid != os.getpid():
            # Nothing was opened before the fork. Each child owns its rows under an id of its own.
            self._pid, self.owner = os.getpid(), Ownership(self)
        self._is_used = True
        if self._pid != os.getpid():
            # A fork does not copy the threads, and no database allows a connection after one.
            raise StorageError(
                "This store belongs to the parent process of this fork.",
                hint="Make a new Limner in the child process.",
            )
        future: Future[T] = Future()
        job = Job(work, writing, shared, synced, future)
        self._waiting.append(job)
        try:
            self._threads.wake(self._run_next)
        except RuntimeError:  # closed, or the system has no thread
            # If it no longer waits, a thread that runs has taken it.
            if self._withdraw(job):
                raise
        return future

    def _withdraw(self, job: Job) -> bool:
        """Take a job back; False if it no longer waits."""
        with suppress(ValueError):
            self._waiting.remove(job)
            return True
        return False

    def _run_next(self) -> None:
        """Run the next batch of jobs; does nothing if an earlier batch took them all."""
        if jobs := self._next_batch():
            self._run(jobs)

    def _run(self, jobs: Sequence[Job]) -> None:
        done: list[Callable[[], None]] = []
        kind, began_s = "write" if jobs[0].writing else "read", time.monotonic()
        try:
            self._engine.transact(jobs, done)
        except BaseException as error:
            # An error that is not of the database is the answer of a job, such as a full budget.
            outcome = "failed" if isinstance(error, StorageError) else "ok"
            metrics.STORE_SECONDS.observe(time.monotonic() - began_s, kind=kind, outcome=outcome)
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
                return
            # All of them were rolled back. Run each one alone.
            for job in jobs:
                self._run([job])
        else:
            took_s = time.monotonic() - began_s
            for report in done:
                report()
            metrics.STORE_SECONDS.observe(took_s, kind=kind, outcome="ok")

    def _next_batch(self) -> list[Job]:
        """The first waiting job; if it is a write, also the writes right behind it."""
        jobs: list[Job] = []
        with suppress(IndexError):  # another thread has taken the last one
            while len(jobs) < self._engine.max_batch:
                if jobs and not (jobs[0].writing and self._waiting[0].writing):
                    break
                job = self._waiting.popleft()
                if job.future.set_running_or_notify_cancel():
                    jobs.append(job)
        return jobs


def _postgres(url: str) -> DatabaseEngine:
    try:
        from limner.storage.postgres_engine import PostgresEngine  # noqa: PLC0415 - not for SQLite
    except ImportError:
        raise StorageError(
            "The setting `store` names a PostgreSQL database, but psycopg is not installed.",
            hint="pip install 'limner[team]'",
        ) from None
    return PostgresEngine(url)
