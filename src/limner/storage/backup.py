"""A home -> one tar archive of it, which other processes may keep using in the meantime.

The archive has the database as one moment saw it, and after that every stored picture, so that no
row of the database lacks its bytes. Keys are not in it, nor the daily copies.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from limner.storage.blobs import is_handle
from limner.storage.database import (
    copy_readable,
    damaged,
    identity,
    quick_check,
    raise_translated,
)
from limner.storage.files import write_new
from limner.storage.home import Home
from limner.storage.os_errors import disk_errors

_READ_BYTES = 1 << 20
_BLOCK_BYTES = 512
_TEMPORARY = ".limner-"


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup contains.

    Attributes:
        path: the archive.
        files: how many files are in it.
        pictures: how many of them are stored pictures and their derivatives.
        size_bytes: the size of the archive.
        damaged: the handles of stored pictures whose bytes are damaged.
    """

    path: Path
    files: int
    pictures: int
    size_bytes: int
    damaged: tuple[str, ...]


def write_backup(
    home: Home, path: Path, *, overwrite: bool, progress: Callable[[int, int], None]
) -> Backup:
    """Write a home into one archive, atomically. It blocks.

    Args:
        home: the home; its database can be opened.
        path: resolved by ``Reach.resolve_write``.
        overwrite: replace a file of that name.
        progress: gets the number of files that are done, and of all files.

    Raises:
        OutputExists: the file exists.
        StorageError: the database is damaged, or a file cannot be read or written.
    """
    with (
        disk_errors(doing="back up", path=home.folder),
        tempfile.TemporaryDirectory(prefix="limner-") as folder,
    ):
        copy, mark = Path(folder, home.database.name), Path(folder, home.mark.name)
        try:
            _copy_whole(home.database, copy, mark)
        except sqlite3.DatabaseError as error:
            raise_translated(error, home.database)
        archive = _Archive(progress)
        files = [(copy, copy.name), (mark, mark.name), *_files(home)]
        write_new(path, archive.stream(files), overwrite=overwrite, mode=0o600)
    return Backup(
        path=path,
        files=archive.files,
        pictures=archive.pictures,
        size_bytes=archive.size_bytes,
        damaged=tuple(archive.damaged),
    )


def _copy_whole(database: Path, copy: Path, mark: Path) -> None:
    """Copy the database and write the mark that fits the copy."""
    copy_readable(database, copy)
    with closing(sqlite3.connect(copy)) as connection:
        if (found := quick_check(connection)) is not None:
            raise damaged(database, f"is damaged: {found}")
        mark.write_text("{} {:020}\n".format(*identity(connection)))


def _files(home: Home) -> list[tuple[Path, str]]:
    """Every file of a home that is copied as it is, and its name in the archive."""
    single = [home.config, home.chat_history]
    folders = [home.blobs, home.incoming, home.generated, home.personalities]
    found = [file for file in single if file.is_file()]
    for folder in folders:
        found += sorted(file for file in folder.rglob("*") if file.is_file())
    return [
        (file, str(file.relative_to(home.folder)))
        for file in found
        if not file.name.startswith(_TEMPORARY) and not file.is_symlink()
    ]


class _Archive:
    """The bytes of an archive, and what has been put into it."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self._progress = progress
        self.files = self.pictures = self.size_bytes = 0
        self.damaged: list[str] = []

    def stream(self, files: list[tuple[Path, str]]) -> Iterator[bytes]:
        for number, (file, name) in enumerate(files, start=1):
            for part in self._member(file, name):
                self.size_bytes += len(part)
                yield part
            self._progress(number, len(files))
        end = bytes(2 * _BLOCK_BYTES)
        self.size_bytes += len(end)
        yield end

    def _member(self, path: Path, name: str) -> Iterator[bytes]:
        try:
            file = path.open("rb")
        except FileNotFoundError:  # deleted since it was listed
            return
        with file:
            status = path.stat()
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = status.st_size, status.st_mtime, 0o600
            yield member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            digest = hashlib.sha256()
            left = member.size
            while left and (part := file.read(min(left, _READ_BYTES))):
                digest.update(part)
                left -= len(part)
                yield part
        # A file that has become shorter is filled up, so that the archive stays readable.
        yield bytes(left + -member.size % _BLOCK_BYTES)
        self.files += 1
        if name.startswith("blobs/") and is_handle(path.name):
            self.pictures += 1
            if digest.hexdigest() != path.name:
                self.damaged.append(path.name)
