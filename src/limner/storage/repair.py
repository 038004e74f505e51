"""A home with a lost or damaged database -> a sound database, and what was done.

The start is the soundest database there is: the one in place, or the newest daily copy. What can
still be read of a damaged one is added to it. A damaged file is put aside and never deleted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from limner.storage.daily_copy import daily_copies
from limner.storage.database import (
    connect,
    damaged,
    identity,
    is_damage,
    migrate,
    quick_check,
    schema_version,
)
from limner.storage.home import Home
from limner.storage.home_mark import HomeMark, Identity
from limner.storage.os_errors import disk_errors
from limner.storage.queries import named_queries
from limner.storage.temp_file import make_folder, sync_folder

# The mark of the home is written at the end, and what follows from other tables is made anew.
_OWN_TABLES = ("home", "spending", "gallery", "gallery_totals", "batch_counts")


class DatabaseRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair did to the database.

    Attributes:
        started_from: the path of the database or of a daily copy; None for a new database.
        put_aside: the path of the folder with the file that was replaced; None if none was.
        salvaged_rows: how many rows of that file were added.
        ledger_rows: how many rows the ledger has now.
        ledger_rows_missing: how many rows are missing between them.
    """

    started_from: str | None
    put_aside: str | None
    salvaged_rows: int
    ledger_rows: int
    ledger_rows_missing: int


def repair_database(home: Home) -> DatabaseRepair:
    """Make the database of a home sound again; a sound one that fits the home stays as it is.

    Raises:
        StorageError: another process uses the home (``HOME_IN_USE``), or the disk fails.
    """
    with disk_errors(doing="repair", path=home.database):
        make_folder(home.folder)
        with HomeMark(home.mark, alone=True) as mark:
            marked = mark.read()
            start = _soundest(home, marked)
            aside = None if start == home.database else _put_aside(home)
            if start not in (None, home.database):
                _copy_synced(start, home.database)
            with closing(connect(home.database)) as connection:
                migrate(connection, home=None)
                salvaged = 0 if aside is None else _salvage(connection, aside, home, marked)
                _add_up(connection)
                done = _summary(connection, start, aside, salvaged)
                mark.write(_mark(connection, marked))
            home.damage_report.unlink(missing_ok=True)
    return done


def _soundest(home: Home, marked: Identity | None) -> Path | None:
    """The sound database with most writes, of those that belong to this home if there are some."""
    found = {file: _sound(file) for file in (home.database, *daily_copies(home))}
    sound = {file: one for file, one in found.items() if one is not None}

    def rank(file: Path) -> tuple[bool, int, bool]:
        is_own = marked is None or sound[file].id == marked.id
        return is_own, sound[file].writes, file == home.database

    return max(sound, key=rank, default=None)


def _sound(file: Path) -> Identity | None:
    """The identity of a database that SQLite's check accepts; None for any other file."""
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(file)) as connection:
            if schema_version(connection) == 0 or quick_check(connection) is not None:
                return None
            with suppress(sqlite3.OperationalError):  # of a limner from before the mark
                return identity(connection)
            return Identity("", 0)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return None


def _put_aside(home: Home) -> Path | None:
    """Move the files of the database into a folder of ``backups``; None if there are none."""
    files = [Path(f"{home.database}{end}") for end in ("", "-wal", "-shm")]
    if not any(file.exists() for file in files):
        return None
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S.%f")
    aside = home.backups / f"damaged-{moment}"
    make_folder(aside)
    for file in files:
        with suppress(FileNotFoundError):
            file.rename(aside / file.name)
    sync_folder(aside)
    sync_folder(home.folder)
    return aside


def _copy_synced(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o600)
    fd = os.open(target, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_folder(target.parent)


def _mark(connection: sqlite3.Connection, marked: Identity | None) -> Identity:
    """Give the database the id of the home, and more writes than any process has noted."""
    found = identity(connection)
    now = Identity(
        found.id if marked is None else marked.id,
        max(found.writes, 0 if marked is None else marked.writes) + 1,
    )
    connection.execute("UPDATE home SET id = ?, writes = ?", now)
    return now


def _summary(
    connection: sqlite3.Connection, start: Path | None, aside: Path | None, salvaged: int
) -> DatabaseRepair:
    rows, last = connection.execute("SELECT count(*), coalesce(max(id), 0) FROM ledger").fetchone()
    return DatabaseRepair(
        started_from=None if start is None else str(start),
        put_aside=None if aside is None else str(aside),
        salvaged_rows=salvaged,
        ledger_rows=rows,
        ledger_rows_missing=last - rows,
    )


def _salvage(
    connection: sqlite3.Connection, aside: Path, home: Home, marked: Identity | None
) -> int:
    """Add every row that can be read of a damaged database; how many they are."""
    file = aside / home.database.name
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(file)) as source:
        with suppress(sqlite3.DatabaseError):
            if marked is not None and identity(source).id != marked.id:
                return 0  # the database of another home
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN IMMEDIATE")
        try:
            tables = [name for name in _tables(connection) if name not in _OWN_TABLES]
            added = sum(_add_rows(connection, source, table) for table in tables)
            _remove_orphans(connection, tables)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("PRAGMA foreign_keys = ON")
    if quick_check(connection) is not None:
        raise damaged(home.database)
    return added


def _add_up(connection: sqlite3.Connection) -> None:
    """Make the sums over the ledger, the gallery and the rows of batches anew."""
    connection.execute("BEGIN IMMEDIATE")
    for query in (
        *("spending_clear", "spending_rebuild"),
        *("gallery_clear", "gallery_totals_clear", "gallery_rebuild"),
        *("batch_counts_clear", "batch_counts_rebuild"),
    ):
        connection.execute(named_queries()[query])
    connection.execute("COMMIT")


def _tables(connection: sqlite3.Connection) -> list[str]:
    # Without the index of the search (`gallery_text`) and the tables in which SQLite keeps it.
    listed = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    names = [name for (name,) in connection.execute(listed).fetchall()]
    return [name for name in names if not name.startswith("sqlite_")]


def _add_rows(connection: sqlite3.Connection, source: sqlite3.Connection, table: str) -> int:
    """Add the rows of a table that can be read from its beginning and from its end."""
    try:
        theirs = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.DatabaseError:
        return 0
    ours = connection.execute(f"PRAGMA table_info({table})").fetchall()
    columns = [row[1] for row in ours if row[1] in theirs]
    if not columns:
        return 0
    has_rowid = connection.execute(
        "SELECT wr FROM pragma_table_list WHERE name = ?", (table,)
    ).fetchone()
    order = ["rowid"] if not has_rowid[0] else [row[1] for row in ours if row[5]]
    statement = (
        f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) "  # noqa: S608 - names of our own schema
        f"VALUES ({', '.join('?' * len(columns))})"
    )
    before = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
    for direction in ("ASC", "DESC"):
        ordered = ", ".join(f"{name} {direction}" for name in order)
        query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {ordered}"  # noqa: S608
        for row in _readable(source, query):
            with suppress(sqlite3.IntegrityError):  # a damaged page can hold anything
                connection.execute(statement, row)
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] - before  # noqa: S608


def _readable(source: sqlite3.Connection, query: str) -> Iterator[tuple[object, ...]]:
    """The rows of a query up to the first that cannot be read."""
    try:
        yield from source.execute(query)
    except sqlite3.DatabaseError:
        return


def _remove_orphans(connection: sqlite3.Connection, tables: list[str]) -> None:
    """Remove references to rows that are lost, and rows that are nothing without them."""
    connection.execute(
        "UPDATE pictures SET parent = NULL WHERE parent NOT IN (SELECT handle FROM pictures)"
    )
    removed = True
    while removed:
        removed = False
        for table in tables:
            for key in connection.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                other, column, target = key[2], key[3], key[4]
                cursor = connection.execute(
                    f"DELETE FROM {table} WHERE {column} IS NOT NULL "  # noqa: S608
                    f"AND {column} NOT IN (SELECT {target} FROM {other})"
                )
                removed |= cursor.rowcount > 0
