"""Functions that wait -> one transaction of the home's SQLite file.

A write is one ``BEGIN IMMEDIATE``: it never spans an await, and other processes see all of it or
nothing. Writes that wait at the same time share one transaction, because the sync to disk is most
of their cost. Each one still succeeds or fails by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from limner.storage.daily_copy import DailyCopier
from limner.storage.database import (
    Database,
    error_name,
    open_database,
    raise_translated,
    translate,
)
from limner.storage.os_errors import read_only_home
from limner.storage.queries import named_queries
from limner.storage.transaction import Job, Transaction

# The largest number of writes in one transaction, so that no caller waits too long.
MAX_BATCH = 64


class SqliteEngine:
    """One connection to one file, opened at the first use. One thread at a time may use it."""

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

    def transact(self, jobs: Sequence[Job], done: list[Callable[[], None]]) -> None:
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
                    result = jobs[0].work(Transaction(connection, named_queries()))
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
                self.disconnect()
            raise_translated(error, self._path)
        if writes is not None:
            # The jobs are committed: what fails from here on must not fail them.
            with suppress(Exception):
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
