"""A home -> its open SQLite database: checked, migrated, and never silently a new one.

A home that cannot be written is read from a private copy of its database.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from limner.errors import StorageError
from limner.storage.blobs import Blobs
from limner.storage.home import Home
from limner.storage.home_mark import HomeMark, Identity, read_mark
from limner.storage.os_errors import disk_errors
from limner.storage.queries import last_migration, migrations
from limner.storage.temp_file import make_folder

BUSY_TIMEOUT_S = 30.0
# A database of up to this many pages (4 MB) is checked whenever it is opened, in a few
# milliseconds. The daily copy and `limner doctor` check a larger one.
QUICK_CHECK_PAGES = 1024
REPAIR_HINT = (
    "Run `limner doctor --repair`: it puts a damaged file aside, takes the newest good copy from "
    "backups/, and adds what the pictures on disk tell. Or put back a backup of your own."
)

# SQLITE_NOMEM: the check reports it as a page that it cannot read.
_NO_MEMORY = "error code=7"
_BUSY_RETRY_S = 0.02
_MARK_READS = 5
# SQLITE_PROTOCOL: the system did not change a lock as SQLite asked it to.
_CANNOT_WRITE = (
    *("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_PROTOCOL"),
)

logger = logging.getLogger("limner.storage")


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


class Database:
    """An open database, until ``close``.

    ``is_new`` says that this process made it. ``read_only`` says that the home cannot be written,
    and that the connection is to a private copy.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        mark: HomeMark | None = None,
        scratch: Path | None = None,
        is_new: bool = False,
    ) -> None:
        self.connection = connection
        self.is_new = is_new
        self.read_only = scratch is not None
        self._mark, self._scratch = mark, scratch
        self._pid = os.getpid()
        self._synced: bool | None = None

    def prepare(self, *, synced: bool) -> None:
        """Set up the connection for the next write."""
        if self._synced != synced:
            self._synced = None
            # A pragma acts while it is compiled, and `execute` keeps what it has compiled.
            self.connection.executescript(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._synced = synced

    def count_write(self) -> int:
        """Count one more write, in the transaction that makes it."""
        (row,) = self.connection.execute(
            "UPDATE home SET writes = writes + 1 RETURNING writes"
        ).fetchall()
        return row[0]

    def note_writes(self, writes: int) -> None:
        """Note in the home's mark that so many writes are on the disk."""
        if self._mark is not None:
            self._mark.note_writes(writes)

    def close(self) -> None:
        """Close the file, and delete a private copy."""
        # SQLite forbids a connection across a fork: there it still belongs to the parent process.
        if self._pid != os.getpid():
            return
        self.connection.close()
        if self._mark is not None:
            self._mark.close()
        if self._scratch is not None:
            import shutil  # noqa: PLC0415 - few homes are read-only

            shutil.rmtree(self._scratch, ignore_errors=True)


def open_database(path: Path) -> Database:
    """Open the database of a home; a home that was never used gets a new one.

    Raises:
        StorageError: it cannot be opened; or it is missing, empty, damaged, another one, or an
            older one than this home had (``DATABASE_DAMAGED``).
        sqlite3.DatabaseError: SQLite refuses; the caller translates it.
    """
    home = Home(path.parent)
    with disk_errors(doing="open the database", path=path):
        check_report(home)
        if path.is_file() and not (_is_writable(path) and _is_writable(path.parent)):
            return _open_copy(home)
        make_folder(path.parent)
        # In this order: another process may be making this home new at the same time.
        if is_used(home) and not path.exists():
            raise damaged(path, "is missing, and this home has been used")
        # SQLite gives its other files the mode of the database file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(path)
    try:
        is_new = migrate(connection, home=home)
        if not is_new:
            _check_small(connection, path)
        mark = _check_mark(connection, home)
    except BaseException:
        connection.close()
        raise
    return Database(connection, mark=mark, is_new=is_new)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database that this process may write, without any check."""
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
        # The queries read the clock of the database. The hosts that share one have different ones.
        connection.create_function("clock_ms", 0, clock_ms)
    except BaseException:
        connection.close()
        raise
    return connection


def clock_ms() -> int:
    """The time in milliseconds."""
    return time.time_ns() // 1_000_000


def migrate(connection: sqlite3.Connection, *, home: Home | None) -> bool:
    """Migrate the tables, and say whether there were none; those of a newer limner stay.

    Args:
        connection: the open database.
        home: the home whose database must not be empty if the home was used; None to allow it.
    """
    is_new, version = False, schema_version(connection)
    if version >= last_migration():
        return False
    if version > 0 and not _is_small(connection):
        logger.warning("limner brings the tables of this home up to date once; please wait.")
    for number, script in migrations():
        if schema_version(connection) >= number:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated before this one got the lock.
            version = schema_version(connection)
            if version == 0 and home is not None and is_used(home):
                raise damaged(home.database, "is empty, and this home has been used")
            is_new |= version == 0
            if version < number:
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return is_new


def is_used(home: Home) -> bool:
    """Whether a database of this home exists or existed: its mark or a picture is there.

    Both are made after the first commit of the database.
    """
    return read_mark(home.mark) is not None or any(Blobs(home.blobs).handles())


def identity(connection: sqlite3.Connection) -> Identity:
    """The id of a database, and how many writes it has."""
    return Identity(*connection.execute("SELECT id, writes FROM home").fetchone())


def schema_version(connection: sqlite3.Connection) -> int:
    """The number of the last migration; 0 if the database is empty."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def quick_check(connection: sqlite3.Connection) -> str | None:
    """The first thing that SQLite's check finds wrong; None if it finds nothing.

    Raises:
        MemoryError: there is too little memory to check it.
    """
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found = str(error)
    if found.endswith(_NO_MEMORY):
        raise MemoryError
    # The first line of a finding may only name the database.
    return None if found == "ok" else found.splitlines()[-1]


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file is damaged."""
    return error_name(error) in ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def error_name(error: sqlite3.Error) -> str:
    """SQLite's own name of the error, without its subtype."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])


def damaged(path: Path, what: str = "is damaged") -> StorageError:
    """The error for a database that must not be used."""
    return StorageError(
        f"The database {str(path)!r} {what}.", code="DATABASE_DAMAGED", hint=REPAIR_HINT
    )


def raise_translated(error: sqlite3.DatabaseError, path: Path) -> NoReturn:
    """Raise the error for the user."""
    shown = translate(error, path)
    if shown is error:
        raise error
    raise shown from error


def translate(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """The error for the user; a bug in a query or its parameters is not translated."""
    name = error_name(error)
    shown = repr(str(path))
    if is_damage(error):
        return damaged(path)
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
    if name in _CANNOT_WRITE:
        return StorageError(
            f"The database {shown} cannot be written ({error}).",
            hint="Put LIMNER_HOME on a local disk that you can write.",
        )
    return error


def check_report(home: Home) -> None:
    """Refuse a database in which the daily check found damage.

    Raises:
        StorageError: there is a report of damage.
    """
    with suppress(FileNotFoundError):
        found = home.damage_report.read_text(encoding="utf-8", errors="replace").strip()
        raise damaged(home.database, f"is damaged: the daily check found {found!r}")


def copy_database(source: Path, target: Path) -> None:
    """Copy a database, which other processes may be using, into one new file.

    Raises:
        OSError: the copy cannot be made.
        sqlite3.DatabaseError: the database is damaged, or the copy cannot be written.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with (
        closing(sqlite3.connect(_read_only(source), uri=True, timeout=BUSY_TIMEOUT_S)) as original,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        # The copy is synced once, when it is complete.
        copy.execute("PRAGMA synchronous = OFF")
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()


def copy_readable(source: Path, target: Path) -> None:
    """Copy a database into one new file, also from a read-only disk; raises as `copy_database`."""
    try:
        copy_database(source, target)
    except sqlite3.OperationalError:
        # SQLite cannot read a database with a `-wal` file on a read-only disk. There no other
        # process can write it either, so the files can be copied as they are.
        if _is_writable(source.parent):
            raise
        import shutil  # noqa: PLC0415 - as above

        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{source}{end}", f"{target}{end}")
        with closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _read_only(path: Path) -> str:
    return f"file:{quote(str(path))}?mode=ro"


def _open_copy(home: Home) -> Database:
    import shutil  # noqa: PLC0415 - as above
    import tempfile  # noqa: PLC0415 - as above

    scratch = Path(tempfile.mkdtemp(prefix="limner-"))
    copy = scratch / home.database.name
    try:
        copy_readable(home.database, copy)
        connection = connect(copy)
        try:
            if schema_version(connection) == 0 and is_used(home):
                raise damaged(home.database, "is empty, and this home has been used")
            migrate(connection, home=None)
            _compare(read_mark(home.mark), identity(connection), home)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Database(connection, scratch=scratch)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. If another process does the same, SQLite reports busy without waiting."""
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error_name(error) != "SQLITE_BUSY" or time.monotonic() > deadline_s:
                raise
            time.sleep(_BUSY_RETRY_S)
        else:
            return


def _check_small(connection: sqlite3.Connection, path: Path) -> None:
    if _is_small(connection) and (found := quick_check(connection)) is not None:
        raise damaged(path, f"is damaged: {found}")


def _is_small(connection: sqlite3.Connection) -> bool:
    """Whether reading every page takes no time that a user notices."""
    return connection.execute("PRAGMA page_count").fetchone()[0] <= QUICK_CHECK_PAGES


def _check_mark(connection: sqlite3.Connection, home: Home) -> HomeMark:
    with disk_errors(doing="write", path=home.mark):
        mark = HomeMark(home.mark)
        try:
            for reads_left in reversed(range(_MARK_READS)):
                # First the file, then the database: a process writes them in the other order.
                marked = mark.read()
                found = identity(connection)
                if marked is None:
                    mark.write(found)
                    break
                try:
                    _compare(marked, found, home)
                    break
                except StorageError:
                    # Another process may have been writing the file at this moment.
                    if not reads_left:
                        raise
        except BaseException:
            mark.close()
            raise
        return mark


def _compare(marked: Identity | None, found: Identity, home: Home) -> None:
    if marked is None:
        return
    if found.id != marked.id:
        raise damaged(home.database, "is not the one of this home")
    if found.writes < marked.writes:
        lost = marked.writes - found.writes
        raise damaged(
            home.database,
            f"lacks the last {lost:,} of its {marked.writes:,} writes: it is an older copy, or "
            "its -wal file is missing or cut",
        )
