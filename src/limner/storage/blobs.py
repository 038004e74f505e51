"""Bytes -> a handle (their sha256) and one copy in a store of blobs; a handle -> the bytes."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from limner.errors import ImageTooLarge, InputInvalid, StorageError
from limner.storage.os_errors import disk_errors, storage_error
from limner.storage.temp_file import (
    make_folder,
    send_file,
    sync_folder,
    temp_file_in,
    temporary_name,
    write_all,
)

DATABASES = "databases"
"""The folder of a shared place that has the name of each database that counts on it."""
_HANDLE = re.compile(r"[0-9a-f]{64}")
_READ_BYTES = 1 << 24


def is_handle(text: str) -> bool:
    """Whether ``text`` has the form of a handle."""
    return _HANDLE.fullmatch(text) is not None


def parse_handle(text: str) -> str:
    """Check that ``text`` is a handle, and return it.

    Raises:
        InputInvalid: it is not a handle, so it must not become part of a path.
    """
    if not is_handle(text):
        raise InputInvalid(
            f"{text[:80]!r} is not a picture handle.",
            field="handle",
            hint="A handle is the 64 hexadecimal digits that came with the picture.",
        )
    return text


Upload = Callable[[str, Callable[[], bytes]], None]
"""Stores bytes elsewhere as well; gets their handle and the function that reads them."""


class BlobFacts(NamedTuple):
    """What a store knows about the bytes of a handle.

    ``stored_at_s`` is the unix time of their last storing. A process that stores them counts on
    them until its row is written, so the garbage collector leaves young ones alone.
    """

    size_bytes: int
    stored_at_s: float


class BlobStore(Protocol):
    """A place for the bytes of pictures, each under its sha256.

    `Blobs` is a folder, `ObjectBlobs` a bucket. Making one touches neither disk nor network. All
    methods block; an event loop calls them in a thread. All of them raise InputInvalid for a text
    that is no handle, and StorageError if the place cannot be read or written.
    """

    min_age_s: float
    """How old bytes must be before the garbage collector may delete them."""
    is_shared: bool
    """Whether another database could use the place too."""

    @property
    def place(self) -> str:
        """The folder or the bucket, to name to the user."""
        ...

    def check(self) -> None:
        """Raise StorageError if the place cannot be read or written now."""
        ...

    def claim(self, database_id: str) -> None:
        """Note in a shared place that a database counts on it."""
        ...

    def claimants(self) -> set[str]:
        """The databases that count on a shared place."""
        ...

    def writer(self, *, max_bytes: int) -> BlobWriter:
        """A writer for the bytes of one picture as they arrive."""
        ...

    def add(self, data: bytes) -> str:
        """Store ``data`` and return its handle."""
        ...

    def adopt(self, file: Path, handle: str, parts: Callable[[], Iterator[bytes]]) -> None:
        """Store the bytes of a file under their handle as well; ``parts`` reads them."""
        ...

    def has(self, handle: str) -> bool:
        """Whether the bytes of a handle are stored."""
        ...

    def read(self, handle: str) -> bytes:
        """The bytes of a handle.

        Raises:
            StorageError: they are not stored (``PICTURE_MISSING``), do not match the handle
                (``PICTURE_DAMAGED``), or cannot be read.
        """
        ...

    def local_path(self, handle: str) -> Path:
        """A file of this machine with the bytes, to name to the user.

        In a folder it is the blob itself, which need not exist; otherwise a copy, brought here if
        it is not here. It must not be changed.
        """
        ...

    def checked_path(self, handle: str) -> Path:
        """As `local_path`, to copy from: the bytes are there and match the handle; see `read`."""
        ...

    def is_whole(self, handle: str) -> bool | None:
        """Whether the stored bytes match their handle; None if there are none."""
        ...

    def facts(self, handles: Iterable[str]) -> dict[str, BlobFacts]:
        """What is known about those of the handles that are stored."""
        ...

    def location(self, handle: str) -> str:
        """Where the bytes of a handle are, to name to the user."""
        ...

    def remove_unless_stored_since(self, handle: str, *, since_s: float) -> int:
        """Delete the bytes of a handle, unless they were stored again since a time.

        Returns:
            How many bytes were deleted.
        """
        ...

    def remove_leftovers(self, *, before_s: float) -> list[int]:
        """Delete what no handle needs and is older than a time; returns the size of each."""
        ...

    def handles(self) -> Iterator[str]:
        """The handles of all stored bytes, in no order."""
        ...


class Blobs:
    """A folder with one file for each content, named by its sha256; only the owner can read it.

    Making this value does not touch the disk. All methods block; an event loop calls them in a
    thread.
    """

    min_age_s: float = 0

    def __init__(self, folder: Path, *, is_shared: bool = False) -> None:
        self._folder, self.is_shared = folder, is_shared

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    def check(self) -> None:
        """Raise StorageError if the folder exists and cannot be written."""
        if self._folder.exists():
            self.writer(max_bytes=0).discard()

    def claim(self, database_id: str) -> None:
        """Note that a database counts on this folder."""
        folder = self._folder / DATABASES
        with disk_errors(doing="write", path=folder):
            make_folder(folder)
            (folder / database_id).touch(mode=0o600)
            sync_folder(folder)

    def claimants(self) -> set[str]:
        """The databases that count on this folder."""
        return {file.name for file in (self._folder / DATABASES).glob("*")}

    def writer(self, *, max_bytes: int, upload: Upload | None = None) -> BlobWriter:
        """A writer for the bytes of one picture as they arrive.

        Raises:
            StorageError: the folder cannot be made or written.
        """
        with disk_errors(doing="write", path=self._folder):
            return BlobWriter(self._folder, max_bytes=max_bytes, upload=upload)

    def add(self, data: bytes) -> str:
        """Store ``data`` and return its handle.

        Raises:
            StorageError: it cannot be written.
        """
        with self.writer(max_bytes=len(data)) as writer:
            writer.write(data)
            return writer.commit()

    def adopt(self, file: Path, handle: str, parts: Callable[[], Iterator[bytes]]) -> None:
        """Store the bytes of a file under their handle as well; ``parts`` reads them.

        The file and the blob share the bytes. If the system refuses that, the blob becomes a copy.

        Raises:
            StorageError: they cannot be stored.
        """
        path = self.local_path(handle)
        with disk_errors(doing="write", path=path):
            make_folder(path.parent)
            try:
                if not _is_same_file(file, path):
                    self._link(file, path)
                sync_folder(path.parent)
            except OSError:
                with temp_file_in(self._folder) as copy:
                    copy.fill(parts())
                    copy.sync()
                    copy.publish_over(_relative(handle))

    def _link(self, file: Path, path: Path) -> None:
        try:
            os.link(file, path)
        except FileExistsError:
            # It replaces the older copy, which may be damaged and may need a newer time.
            aside = self._folder / temporary_name()
            os.link(file, aside)
            aside.replace(path)

    def local_path(self, handle: str) -> Path:
        """The path of a handle's bytes, which need not exist.

        Raises:
            InputInvalid: it is not a handle.
        """
        return self._folder / _relative(parse_handle(handle))

    def location(self, handle: str) -> str:
        """The path of a handle's bytes, to name to the user."""
        return str(self.local_path(handle))

    def has(self, handle: str) -> bool:
        """Whether the bytes of a handle are stored."""
        return self.local_path(handle).is_file()

    def read(self, handle: str) -> bytes:
        """The bytes of a handle.

        Raises:
            StorageError: they are not stored (``PICTURE_MISSING``), do not match the handle
                (``PICTURE_DAMAGED``), or cannot be read.
        """
        path = self.local_path(handle)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise missing_blob(handle) from None
        except OSError as error:
            raise storage_error(error, doing="read", path=path) from error
        if hashlib.sha256(data).hexdigest() != handle:
            raise damaged_blob(handle)
        return data

    def checked_path(self, handle: str) -> Path:
        """The path of a handle's bytes, to copy from: they are there and match the handle.

        Raises:
            StorageError: as `read`.
        """
        path = self.local_path(handle)
        with disk_errors(doing="read", path=path):
            try:
                intact = digest_of(path) == handle
            except FileNotFoundError:
                raise missing_blob(handle) from None
        if not intact:
            raise damaged_blob(handle)
        return path

    def is_whole(self, handle: str) -> bool | None:
        """Whether the stored bytes match their handle; None if there are none."""
        try:
            return digest_of(self.local_path(handle)) == handle
        except FileNotFoundError:
            return None
        except OSError:  # as a bad sector answers
            return False

    def facts(self, handles: Iterable[str]) -> dict[str, BlobFacts]:
        """What is known about those of the handles that are stored.

        Raises:
            StorageError: the folder cannot be read.
        """
        found: dict[str, BlobFacts] = {}
        for handle in handles:
            path = self.local_path(handle)
            with disk_errors(doing="read", path=path), suppress(FileNotFoundError):
                status = path.stat()
                found[handle] = BlobFacts(status.st_size, status.st_mtime)
        return found

    def remove_unless_stored_since(self, handle: str, *, since_s: float) -> int:
        """Delete the bytes of a handle, unless they were stored again since a time.

        Another process may store the same bytes between the check and the deletion. So the file is
        renamed first: a process that stores the bytes after that writes a new file, and one that
        stored them before has changed the time of the file.

        Returns:
            How many bytes were deleted.

        Raises:
            StorageError: they cannot be deleted.
        """
        path, aside = self.local_path(handle), self._folder / temporary_name()
        with disk_errors(doing="delete", path=path):
            try:
                if path.stat().st_mtime >= since_s:
                    return 0
                path.rename(aside)
                status = aside.stat()
                if status.st_mtime >= since_s:
                    aside.replace(path)
                    return 0
                aside.unlink()
            except FileNotFoundError:  # another process deletes them
                return 0
            return status.st_size

    def remove_leftovers(self, *, before_s: float) -> list[int]:
        """Delete the temporary files of killed processes; returns the size of each.

        Raises:
            StorageError: they cannot be deleted.
        """
        sizes: list[int] = []
        with disk_errors(doing="delete", path=self._folder):
            for file in self._folder.glob(temporary_name("*")):
                with suppress(FileNotFoundError):
                    status = file.stat()
                    if status.st_mtime < before_s:
                        file.unlink()
                        sizes.append(status.st_size)
        return sizes

    def handles(self) -> Iterator[str]:
        """The handles of all stored bytes, in no order."""
        for file in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if _HANDLE.fullmatch(file.name) and file.parent.name == file.name[:2]:
                yield file.name


class BlobWriter:
    """Writes one picture's bytes: hashes them and checks the limit, and stores them on ``commit``.

    The end of the ``with`` block discards what was not committed. Until the commit the file has no
    name, so a killed process leaves nothing behind if the system supports it (see ``temp_file``).
    """

    def __init__(self, folder: Path, *, max_bytes: int, upload: Upload | None = None) -> None:
        self._path, self._upload = folder, upload
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        # Bytes arrive on the event loop, and threads read and commit them. A discard must wait for
        # those threads: the descriptor of a closed file may already belong to another file.
        self._lock = threading.Lock()
        self._temp_file = temp_file_in(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: more bytes than a picture may have; the rest is not written.
            StorageError: the disk is full.
        """
        size_bytes = self.size_bytes + len(data)
        if size_bytes > self._max_bytes:
            raise ImageTooLarge(f"The picture is larger than {self._max_bytes:,} bytes.")
        with self._lock:
            self._check_open()
            try:
                write_all(self._temp_file.fd, data)
            except OSError as error:
                self._temp_file.close()  # a part may have been written, so the hash is wrong now
                raise storage_error(error, doing="write", path=self._path) from error
            self._hash.update(data)
            self.size_bytes = size_bytes

    def send_to(self, pipe: int) -> None:
        """Write the bytes so far to a pipe, so that its reader can check them before the commit.

        Raises:
            BrokenPipeError: the reader is gone.
            StorageError: the bytes cannot be read.
        """
        with self._lock:
            self._check_open()
            send_file(self._temp_file.fd, pipe, size_bytes=self.size_bytes, path=self._path)

    def commit(self) -> str:
        """Store the bytes and return their handle; equal bytes are stored once.

        Raises:
            StorageError: the disk is full.
        """
        with self._lock, disk_errors(doing="write", path=self._path):
            self._check_open()
            handle = self._hash.hexdigest()
            if self._upload is not None:
                self._upload(handle, self._read_all)
            if not self._is_stored(handle):
                self._store(handle)
        self.discard()
        return handle

    def discard(self) -> None:
        """Discard the bytes, unless they were committed; safe to call twice."""
        with self._lock:
            self._temp_file.close()

    def _read_all(self) -> bytes:
        with disk_errors(doing="read", path=self._path):
            os.lseek(self._temp_file.fd, 0, os.SEEK_SET)
            parts: list[bytes] = []
            while part := os.read(self._temp_file.fd, _READ_BYTES):
                parts.append(part)
            return b"".join(parts)

    def _check_open(self) -> None:
        if self._temp_file.closed:
            raise StorageError(
                "These bytes were already committed or discarded, or a write failed."
            )

    def _is_stored(self, handle: str) -> bool:
        path = self._path / _relative(handle)
        try:
            with path.open("rb", buffering=0) as file:
                before = os.fstat(file.fileno())
                # The disk may have damaged the older copy: then these bytes replace it.
                if before.st_size != self.size_bytes or _digest(file) != handle:
                    return False
                # Stored again: see `Blobs.remove_unless_stored_since`.
                os.utime(file.fileno() if os.utime in os.supports_fd else path)
            # The file may have lost its name just before it got its new time.
            return os.path.samestat(before, path.stat())
        except FileNotFoundError:
            return False

    def _store(self, handle: str) -> None:
        self._temp_file.sync()
        make_folder(self._path / handle[:2])
        try:
            self._temp_file.publish_new(_relative(handle))
        except FileExistsError:
            # Another process just stored the same bytes, or a damaged file has the name.
            if not self._is_stored(handle):
                self._temp_file.publish_over(_relative(handle))


def _is_same_file(file: Path, path: Path) -> bool:
    try:
        return file.samefile(path)
    except FileNotFoundError:
        return False


def digest_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits; raises OSError."""
    with path.open("rb", buffering=0) as file:
        return _digest(file)


def _digest(file: FileIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def missing_blob(handle: str) -> StorageError:
    """The error for bytes that are not stored."""
    return StorageError(
        f"The picture {handle} is not in this home.",
        code="PICTURE_MISSING",
        hint="Check LIMNER_HOME, or give the picture again.",
    )


def damaged_blob(handle: str) -> StorageError:
    """The error for stored bytes that do not match their handle."""
    return StorageError(
        f"The stored bytes of the picture {handle} are damaged.",
        code="PICTURE_DAMAGED",
        hint="limner doctor --repair restores it if a file in the generated folder still has it; "
        "drawing or giving the same picture again does too.",
    )


def _relative(handle: str) -> str:
    return f"{handle[:2]}/{handle}"
