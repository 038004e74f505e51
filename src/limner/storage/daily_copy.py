"""A database -> one checked copy of it a day, in ``backups/``; the newest seven stay.

The first process that writes on a day makes the copy, on a thread of its own: no call waits for it.
A copy that SQLite's check refuses is not kept. Instead a report of the damage is left, and limner
opens the database no more until it is repaired.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from limner.errors import StorageError
from limner.storage.database import copy_database, is_damage, quick_check
from limner.storage.home import Home
from limner.storage.temp_file import make_folder, sync_folder, temporary_name

if sys.platform != "win32":
    import fcntl

KEPT_COPIES = 7


class DailyCopier:
    """Makes the copy of the day for one store. Making this value does nothing."""

    def __init__(self, database: Path) -> None:
        self._home = Home(database.parent)
        self._day: date | None = None
        self._thread: threading.Thread | None = None

    def start(self, *, is_new: bool) -> None:
        """Start the copy of the day on a thread, unless this store has done so today.

        Args:
            is_new: this process made the database: there is nothing to keep yet.
        """
        today = datetime.now(UTC).date()
        if today == self._day:
            return
        first, self._day = self._day is None, today
        if (first and is_new) or copy_of(self._home, today).exists():
            return
        self._thread = threading.Thread(
            target=_copy_quietly, args=(self._home, today), name="limner-daily-copy"
        )
        with suppress(RuntimeError):  # no thread can be started: the next process tries again
            self._thread.start()

    def close(self) -> None:
        """Wait for a copy that was started."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()


def copy_of(home: Home, day: date) -> Path:
    """The copy of the database of a day."""
    return home.backups / f"limner-{day.isoformat()}.db"


def daily_copies(home: Home) -> list[Path]:
    """The copies there are, the newest first."""
    return sorted(home.backups.glob("limner-[0-9]*.db"), reverse=True)


def make_copy(home: Home, day: date) -> None:
    """Copy and check the database, and remove the oldest copies; another process may do it instead.

    Raises:
        OSError: the copy cannot be written.
        sqlite3.DatabaseError: the same, as SQLite says it.
    """
    make_folder(home.backups)
    with _claimed(home.backups) as claimed:
        target = copy_of(home, day)
        if not claimed or target.exists():
            return
        temporary = home.backups / temporary_name()
        try:
            damage = _copy_checked(home.database, temporary)
            if damage is not None:
                home.damage_report.write_text(damage, encoding="utf-8")
                return
            _sync(temporary)
            temporary.replace(target)
            sync_folder(home.backups)
        finally:
            temporary.unlink(missing_ok=True)
        leftovers = home.backups.glob(temporary_name("*"))
        for file in (*daily_copies(home)[KEPT_COPIES:], *leftovers):
            file.unlink(missing_ok=True)


def _copy_quietly(home: Home, day: date) -> None:
    # A failure must not end the call that runs at this moment. The next process tries again, and
    # `limner doctor` shows the age of the newest copy.
    with suppress(OSError, MemoryError, sqlite3.DatabaseError, StorageError):
        make_copy(home, day)


def _copy_checked(database: Path, target: Path) -> str | None:
    """Copy the database; what the check of the copy found, or None."""
    try:
        copy_database(database, target)
        with closing(sqlite3.connect(target)) as copy:
            return quick_check(copy)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return str(error)


def _sync(file: Path) -> None:
    fd = os.open(file, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _claimed(folder: Path) -> Generator[bool]:
    """Whether this process is the one that makes the copy: the folder has one lock."""
    if sys.platform == "win32":
        yield True
        return
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(fd)
