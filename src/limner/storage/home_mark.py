"""The home's database <-> a small file beside it that remembers the database.

The file has the id of the database and the number of its writes. A process notes a write in the
file after the database has synced it. So a database with another id, or with fewer writes than the
file says, is not the one that this home had, or has lost its last writes. SQLite alone cannot tell:
a missing or cut ``-wal`` file looks like an older database.

Every process that has the database open holds a shared lock on the file. A repair needs it alone.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from limner.errors import StorageError

if sys.platform != "win32":
    import fcntl

_ID_CHARS = 32
_WRITES_CHARS = 20
_MAX_BYTES = _ID_CHARS + 1 + _WRITES_CHARS + 1


class Identity(NamedTuple):
    """The id of a database, and how many writes it has."""

    id: str
    writes: int


class HomeMark:
    """The open file. Methods raise OSError; the caller translates it."""

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self._lock(alone=alone)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> Identity | None:
        """What the file says; None if it is new or unreadable."""
        return _parse(os.pread(self._fd, _MAX_BYTES, 0))

    def write(self, identity: Identity) -> None:
        """Remember a database."""
        os.pwrite(self._fd, b"%s %020d\n" % (identity.id.encode(), identity.writes), 0)

    def note_writes(self, writes: int) -> None:
        """Remember how many writes the database has. If it fails, only the check is weaker."""
        with suppress(OSError):
            os.pwrite(self._fd, b"%020d" % writes, _ID_CHARS + 1)

    def close(self) -> None:
        """Close the file and release the lock; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _lock(self, *, alone: bool) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(
                f"Another limner process is {'using' if alone else 'repairing'} the home "
                f"{str(self.path.parent)!r}.",
                code="HOME_IN_USE",
                hint="End the other limner processes first." if alone else "Try again later.",
                retryable=True,
            ) from None


def read_mark(path: Path) -> Identity | None:
    """What the file says, without a lock; None if there is no file, or an unreadable one."""
    try:
        return _parse(path.read_bytes()[:_MAX_BYTES])
    except OSError:
        return None


def _parse(data: bytes) -> Identity | None:
    name, _, writes = data.decode("ascii", "replace").strip().partition(" ")
    return Identity(name, int(writes)) if len(name) == _ID_CHARS and writes.isdecimal() else None
