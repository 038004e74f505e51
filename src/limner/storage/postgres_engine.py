"""A function that waits -> one transaction of a PostgreSQL database that several hosts share.

Every write holds one lock of the database: a write that runs alone holds it exclusively, a shared
write holds it together with other shared writes. So a write that runs alone sees the database as
in SQLite. A shared write also locks the names of what it checks (`Transaction.lock`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode
from zlib import crc32

import psycopg
from psycopg import errors as pg
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import no_result

from limner.errors import StorageError
from limner.storage.queries import (
    POSTGRES_FOLDER,
    Job,
    Transaction,
    migrations,
    postgres_queries,
    to_psycopg,
)

CONNECTIONS = 4
CONNECT_TIMEOUT_S = 10
# A host that is cut off inside a transaction, and a process that is suspended there, keep others
# waiting for so long.
IDLE_TIMEOUT_S = 20
# Longer, so that the others outlast it.
LOCK_TIMEOUT_S = 60
# Both ends notice within half a minute that the other end is gone.
SILENT_S, PROBE_S, PROBES = 10, 5, 4
# How long to look for the outcome of a COMMIT that got no answer, and how often.
OUTCOME_S, LOOK_S = 30.0, 0.25
_GONE_MS = (SILENT_S + PROBE_S * PROBES) * 1000
MAX_TRIES = 10

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# Another server that took over may have given the number of a lost transaction to another one.
_TIMELINE = "left(pg_walfile_name(pg_current_wal_lsn()), 8)"
_MARK = f"SELECT pg_current_xact_id()::text, {_TIMELINE}"
_OUTCOME = f"SELECT pg_xact_status(%s::xid8), {_TIMELINE} = %s"
MIGRATION_LOCK = crc32(b"limner") // 2
# The transaction was rolled back and can run again: another one was in its way.
_AGAIN = (pg.DeadlockDetected, pg.SerializationFailure, pg.UniqueViolation)

_LASTING = (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction, pg.DiskFull)

logger = logging.getLogger("limner.storage")

Connection: TypeAlias = psycopg.Connection[Any]


class PostgresEngine:
    """Up to four connections to one database, opened when they are needed."""

    threads = CONNECTIONS
    max_batch = 1

    def __init__(self, url: str) -> None:
        self._url = url
        self.place = shown_address(url)
        self.is_writable = False
        self._pid = os.getpid()
        self._idle: list[Connection] = []
        self._opening = threading.Lock()
        # Chosen by the database, so that two databases of one server have different locks.
        self._lock_space: int | None = None

    def was_made(self) -> bool:
        """True: an administrator makes a PostgreSQL database."""
        return True

    def transact(self, jobs: Sequence[Job], done: list[Callable[[], None]]) -> None:
        """Run the one job in a transaction; ``done`` gets the call that reports its result."""
        (job,) = jobs
        try:
            result = self._run_until_done(job)
        except psycopg.Error as error:
            shown = translate(error, self.place)
            if shown is error:
                raise
            raise shown from error
        done.append(partial(job.future.set_result, result))

    def disconnect(self) -> None:
        """Close the connections; the next transaction opens one again."""
        idle, self._idle = self._idle, []
        # After a fork the connections still belong to the parent process.
        if self._pid == os.getpid():
            for connection in idle:
                connection.close()

    def close(self) -> None:
        """Do nothing: nothing runs beside the transactions."""

    def _run_until_done(self, job: Job) -> Any:
        for tries_left in reversed(range(MAX_TRIES)):
            connection, is_new = self._take()
            try:
                result = self._run(connection, job)
            except BaseException as error:
                if connection.closed:
                    self.disconnect()
                # A connection that was idle may have been closed by the server.
                may_help = isinstance(error, _AGAIN) or (connection.closed and not is_new)
                if isinstance(error, _Uncertain):
                    is_committed = self._is_committed(error.mark)
                    if is_committed:
                        return error.result
                    may_help = is_committed is False
                if not (may_help and tries_left):
                    raise
            else:
                return result
            finally:
                if not connection.closed:
                    self._idle.append(connection)
        raise AssertionError("the last try returns or raises")

    def _run(self, connection: Connection, job: Job) -> Any:
        if job.writing:
            lock = "pg_advisory_xact_lock_shared" if job.shared else "pg_advisory_xact_lock"
            begin = f"{_WRITE}; SELECT {lock}({self._lock_space}, 0); {_MARK}"
        else:
            begin = _READ
        named = partial(self._lock, connection) if job.shared else None
        try:
            mark = _execute(connection, begin)
            made = Transaction(connection, postgres_queries(), lock=named, dialect=to_psycopg)
            result = job.work(made)
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            if job.writing and connection.closed:
                raise _Uncertain(mark, result) from error
            raise
        return result

    def _is_committed(self, mark: Any) -> bool | None:
        """Whether a transaction whose COMMIT got no answer was committed; None if it is not known.

        A server that did not get the COMMIT ends the transaction after `IDLE_TIMEOUT_S`.
        """
        deadline_s = time.monotonic() + OUTCOME_S
        while time.monotonic() < deadline_s:
            with suppress(psycopg.Error, StorageError), closing(_connect(self._url)) as connection:
                row = connection.execute(_OUTCOME, tuple(mark)).fetchone()
                status, is_same_server = row or (None, False)
                if status != "in progress" or not is_same_server:
                    return status == "committed" if status and is_same_server else None
            time.sleep(LOOK_S)
        return None

    def _lock(self, connection: Connection, names: tuple[str, ...]) -> None:
        # Always in the same order, so that no two transactions wait for each other. 0 is the lock
        # of every write.
        keys = sorted({crc32(name.encode()) // 2 or 1 for name in names})
        for key in keys:
            _execute(connection, f"SELECT pg_advisory_xact_lock({self._lock_space}, {key})")

    def _take(self) -> tuple[Connection, bool]:
        with suppress(IndexError):
            return self._idle.pop(), False
        connection = _connect(self._url)
        try:
            with self._opening:
                if self._lock_space is None:
                    self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection, True

    def _prepare(self, connection: Connection) -> None:
        row = connection.execute("SHOW transaction_read_only").fetchone()
        self.is_writable = row is not None and row[0] == "off"
        _migrate(connection)
        row = connection.execute("SELECT id FROM home").fetchone()
        assert row is not None
        self._lock_space = crc32(row[0].encode()) // 2


class ServerFacts(NamedTuple):
    """A server as this host sees it.

    ``tables`` is the number of the last migration, ``newest`` that of this version of limner.
    ``ahead_s`` is how far the clock of this host is ahead of the server's.
    """

    version: str
    tables: int
    newest: int
    answer_ms: float
    ahead_s: float


def read_server_facts(tx: Transaction) -> ServerFacts:
    """Ask a server for its version and its clock, and measure how long it takes to answer."""
    rounds: list[tuple[float, float, Any]] = []
    for _ in range(3):
        before_s = time.time()
        (row,) = tx.raw(
            "SELECT extract(epoch FROM clock_timestamp())::float8 AS now_s, "
            "current_setting('server_version') AS version, "
            "(SELECT number FROM schema_version) AS tables"
        )
        rounds.append((time.time() - before_s, before_s, row))
    took_s, before_s, row = min(rounds, key=lambda one: one[0])
    return ServerFacts(
        version=row["version"].partition(" ")[0],
        tables=row["tables"],
        newest=migrations(POSTGRES_FOLDER / "migrations")[-1][0],
        answer_ms=took_s * 1000,
        ahead_s=before_s + took_s / 2 - row["now_s"],
    )


class _Uncertain(psycopg.OperationalError):
    """The connection was lost during COMMIT: the changes may be there or not.

    ``mark`` names the transaction, and ``result`` is its result if it was committed.
    """

    def __init__(self, mark: Any, result: Any) -> None:
        super().__init__("the connection was lost during COMMIT")
        self.mark, self.result = mark, result


class _Text(Dumper):
    """PostgreSQL has no character 0 in a text."""

    def dump(self, obj: str) -> bytes:
        return obj.replace("\0", "\ufffd").encode()


class _Row(tuple[Any, ...]):
    """A row that behaves as SQLite's: values by name or by place."""

    _places: dict[str, int]

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._places[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        return list(self._places)


def _rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Any]:
    if cursor.description is None:
        return no_result
    places = {column.name: place for place, column in enumerate(cursor.description)}

    def row(values: Sequence[Any]) -> _Row:
        made = _Row(values)
        made._places = places  # pyright: ignore[reportPrivateUsage]
        return made

    return row


def shown_address(url: str) -> str:
    """The address of a database without its password and its options."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    # A password with an @ that is not escaped is partly in the name of the host.
    host = str(parts.get("host") or "").rpartition("@")[2]
    return f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"


def without_password(url: str) -> str:
    """The address of a database with its options and without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    kept = {name: part for name, part in parts.items() if not name.endswith("password")}
    if "host" in kept:
        # As in `shown_address`.
        kept["host"] = str(kept["host"]).rpartition("@")[2]
    return f"postgresql:///?{urlencode(kept, quote_via=quote)}"


def _connect(url: str) -> Connection:
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            row_factory=_rows,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="limner",
            keepalives_idle=SILENT_S,
            keepalives_interval=PROBE_S,
            keepalives_count=PROBES,
            tcp_user_timeout=_GONE_MS,
        )
    except psycopg.Error as error:
        raise _unreachable(error, shown_address(url)) from None
    connection.adapters.register_dumper(str, _Text)
    _execute(
        connection,
        f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'; SET client_min_messages = warning;"
        f"SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_S}s';"
        # The server would wait for hours for a host that is gone. Unix sockets ignore these.
        f"SET tcp_keepalives_idle = {SILENT_S}; SET tcp_keepalives_interval = {PROBE_S};"
        f"SET tcp_keepalives_count = {PROBES}; SET tcp_user_timeout = {_GONE_MS}",
    )
    return connection


def _execute(connection: Connection, script: str) -> Any:
    """Run statements without parameters in one round trip; returns a row of the last one."""
    with connection.execute(script.encode()) as cursor:
        while cursor.nextset():
            pass
        return None if cursor.description is None else cursor.fetchone()


def _migrate(connection: Connection) -> None:
    """Migrate the tables; those of a newer limner stay."""
    scripts = migrations(POSTGRES_FOLDER / "migrations")
    if 0 < _version(connection) < scripts[-1][0]:
        logger.warning("limner brings the tables of the database up to date once; please wait.")
    for number, script in scripts:
        if _version(connection) >= number:
            continue
        with connection.transaction():
            _execute(connection, f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK}, 0)")
            # Another process may have migrated before this one got the lock.
            if (version := _version(connection)) >= number:
                continue
            if version == 0:
                connection.execute("CREATE TABLE schema_version (number integer NOT NULL)")
                connection.execute("INSERT INTO schema_version VALUES (0)")
            _execute(connection, script)
            connection.execute("UPDATE schema_version SET number = %s", (number,))


def _version(connection: Connection) -> int:
    """The number of the last migration; 0 if there are no tables.

    It reads `pg_class`, because `to_regclass` looks into a cache of the connection: within one
    transaction it goes on to miss a table that another process has just created.
    """
    found = connection.execute(
        "SELECT FROM pg_class WHERE relname = 'schema_version' AND pg_table_is_visible(oid)"
    ).fetchone()
    if found is None:
        return 0
    row = connection.execute("SELECT number FROM schema_version").fetchone()
    return 0 if row is None else row[0]


def _unreachable(error: psycopg.Error, place: str) -> StorageError:
    """The error for a database that cannot be opened; what the driver says is not shown.

    The driver repeats parts of the address, and a part of a wrong one may be the password.
    """
    said = str(error).lower()
    if "password" in said or "authentication" in said or "role" in said or "pg_hba" in said:
        return StorageError(
            f"The database {place} refuses this user or its password.",
            hint="Check LIMNER_STORE, PGPASSWORD and ~/.pgpass.",
        )
    if "database" in said and "does not exist" in said:
        return StorageError(
            f"The server of {place} has no such database.",
            hint="Create it (createdb), or change LIMNER_STORE.",
        )
    causes = {
        "connection refused": "no server answers there",
        "timeout": "the server did not answer in time",
        "resolve host": "the name of the host is not known",
        "no route": "no network leads there",
        "unreachable": "no network leads there",
        "too many": "it has too many connections",
        "starting up": "it is starting",
    }
    cause = next((text for word, text in causes.items() if word in said), "the driver refuses it")
    return StorageError(
        f"The database {place} cannot be reached: {cause}.",
        hint="Check LIMNER_STORE, and that the server is running.",
        retryable=True,
    )


def translate(error: psycopg.Error, place: str) -> Exception:
    """The error for the user; a bug in a query or its parameters is not translated."""
    for kind, message, hint in (
        (
            _Uncertain,
            f"The connection to {place} was lost while changes were stored. They may be there.",
            "Look at `limner spend` before you try again.",
        ),
        (
            pg.InsufficientPrivilege,
            f"This user may not create or change the tables of {place}.",
            "GRANT CREATE, USAGE ON SCHEMA public TO the user, or use the owner of the tables.",
        ),
        (
            pg.ReadOnlySqlTransaction,
            f"The database {place} cannot be written ({str(error).partition(chr(10))[0]}).",
            "Use the address of the primary server.",
        ),
        (
            (pg.LockNotAvailable, pg.IdleInTransactionSessionTimeout),
            f"Another process kept the database {place} locked for {LOCK_TIMEOUT_S} seconds.",
            "Try again; if it stays, end the other limner process.",
        ),
        (pg.DiskFull, f"The disk of the server of {place} is full.", "Free some space there."),
        (
            psycopg.OperationalError,
            f"The connection to {place} was lost; nothing was changed.",
            "Try again when the server can be reached.",
        ),
    ):
        if isinstance(error, kind):
            return StorageError(message, hint=hint, retryable=kind not in _LASTING)
    return error
