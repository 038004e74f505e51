"""Bytes that a service delivers for a job -> a synced file under the job's id -> a blob.

The file has its name before the first byte arrives, and loses it only after the picture is paid for
and recorded. So a killed process leaves the bytes where `limner jobs recover` finds them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from limner.errors import ImageTooLarge, StorageError
from limner.storage.blobs import BlobStore
from limner.storage.os_errors import disk_errors, read_only_home, storage_error
from limner.storage.protected_paths import temp_folders
from limner.storage.temp_file import TempFile, send_file, sync_folder, temp_file_in

if sys.platform != "win32":
    import fcntl

_READ_BYTES = 1 << 24
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Incoming:
    """The folder of delivered bytes that are not yet pictures; only the owner can read it.

    Making this value does not touch the disk. All methods block; an event loop calls them in a
    thread.
    """

    def __init__(self, folder: Path, blobs: BlobStore) -> None:
        self._folder, self._blobs, self._room = folder, blobs, _Room(folder)

    def open(self, job_id: str, *, room_bytes: int, max_bytes: int) -> IncomingFile:
        """A new file for the bytes of a job, with room on the disk set aside for them.

        Raises:
            StorageError: the folder cannot be written, or the disk has no room (``NO_ROOM``).
        """
        release = self._room.set_aside(room_bytes)
        try:
            return IncomingFile(
                self._folder, self._blobs, job_id, max_bytes=max_bytes, release=release
            )
        except BaseException:
            release()
            raise

    def find(self, job_id: str) -> Path | None:
        """The file with the most bytes of a job; None if no byte is here."""
        sizes = {path: _size(path) for path in self._files(job_id)}
        found = max(sizes, key=sizes.__getitem__, default=None)
        return found if found is not None and sizes[found] else None

    def reopen(self, job_id: str, path: Path) -> IncomingFile:
        """The bytes of a job that an earlier process received.

        Raises:
            StorageError: they cannot be read.
        """
        return IncomingFile(self._folder, self._blobs, job_id, existing=path)

    def remove(self, job_id: str) -> None:
        """Delete every file of a job; a file that cannot be deleted stays."""
        for path in self._files(job_id):
            with suppress(OSError):
                path.unlink()

    def job_ids(self) -> set[str]:
        """The jobs that have a file here."""
        return {path.name.partition(".")[0] for path in self._files("job_*")}

    def remove_concluded(self, job_ids: Iterable[str]) -> list[int]:
        """Delete the files of jobs that have ended; returns the size of each.

        A file that a live process holds is locked, and stays.
        """
        sizes: list[int] = []
        for path in (file for job_id in job_ids for file in self._files(job_id)):
            if not _is_locked(path):
                size = _size(path)
                with suppress(OSError):
                    path.unlink()
                    sizes.append(size)
        return sizes

    def _files(self, job_id: str) -> Iterator[Path]:
        yield from self._folder.glob(f"{job_id}.*")
        # The bytes are here if the home could not take them: see `IncomingFile.write`.
        for path in (path for folder in temp_folders() for path in folder.glob(f"{job_id}.*")):
            if _is_ours(path):
                yield path


class IncomingFile:
    """The bytes of one job, as they arrive or as an earlier process received them.

    The end of the ``with`` block closes the file. It stays on disk if ``keep`` is set.
    """

    def __init__(
        self,
        folder: Path,
        blobs: BlobStore,
        job_id: str,
        *,
        max_bytes: int = 0,
        release: Callable[[], None] = lambda: None,
        existing: Path | None = None,
    ) -> None:
        self._folder, self._blobs, self.job_id = folder, blobs, job_id
        self._max_bytes, self._release = max_bytes, release
        # Before the call is paid for: to find it later may need a file that cannot be opened.
        self._temp_folders = temp_folders()
        # Bytes arrive on the event loop, and threads read and commit them.
        self._lock = threading.Lock()
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        self.keep = existing is not None
        with disk_errors(doing="read" if existing else "write", path=existing or folder):
            if existing is None:
                self._fd, self.path = _create(folder, job_id)
            else:
                self._fd, self.path = os.open(existing, _OPEN_FLAGS), existing
                self._read_existing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def handle(self) -> str:
        """The sha256 of the bytes so far."""
        return self._hash.hexdigest()

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes. If the file cannot be written, they go to another one.

        Raises:
            ImageTooLarge: more bytes than a picture may have; the rest is not written.
            StorageError: no file can be written.
        """
        if self.size_bytes + len(data) > self._max_bytes:
            raise ImageTooLarge(f"The picture is larger than {self._max_bytes:,} bytes.")
        with self._lock:
            self._insist(lambda: _write_at(self._fd, data, self.size_bytes))
            self._hash.update(data)
            self.size_bytes += len(data)

    def sync(self) -> None:
        """Sync the bytes and their name to the disk, and release the room that was set aside.

        Raises:
            StorageError: no file can be synced.
        """
        with self._lock:
            self._insist(self._sync)
            self._release_room()

    def send_to(self, pipe: int) -> None:
        """Write the bytes so far to a pipe.

        Raises:
            BrokenPipeError: its reader is gone.
            StorageError: the bytes cannot be read.
        """
        with self._lock:
            send_file(self._fd, pipe, size_bytes=self.size_bytes, path=self.path)

    def commit(self) -> str:
        """Store the bytes as a blob and return their handle; this file stays.

        Raises:
            StorageError: they cannot be stored.
        """
        with self._lock:
            self._blobs.adopt(self.path, self.handle, self._parts)
            return self.handle

    def discard(self) -> None:
        """Close the file, and delete it."""
        self.keep = False
        self.close()

    def close(self) -> None:
        """Close the file, and delete it unless it is to be kept. Safe to call twice."""
        with self._lock:
            self._release_room()
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            with suppress(OSError):
                os.close(fd)
            if not self.keep:
                with suppress(OSError):
                    self.path.unlink()

    def _insist(self, work: Callable[[], None]) -> None:
        """Work on this file; if that fails, on a copy beside it, then on one in the temp folder.

        A failed write or sync may have damaged the file: only a new one can be trusted.
        """
        if self._fd < 0:
            raise StorageError("These bytes were already stored or discarded.")
        failure: OSError | None = None
        for folder in (None, self._folder, *self._temp_folders):
            try:
                if folder is not None:
                    self._release_room()
                    self._move_to(folder)
                work()
                return
            except OSError as error:
                failure = failure or error
        assert failure is not None
        raise storage_error(failure, doing="write", path=self.path) from failure

    def _sync(self) -> None:
        os.fsync(self._fd)
        sync_folder(self.path.parent)

    def _move_to(self, folder: Path) -> None:
        fd, path = _create(folder, self.job_id)
        try:
            offset = 0
            for part in self._parts():
                _write_at(fd, part, offset)
                offset += len(part)
        except OSError:
            os.close(fd)
            path.unlink()
            raise
        old_fd, old_path = self._fd, self.path
        self._fd, self.path = fd, path
        with suppress(OSError):
            os.close(old_fd)
            old_path.unlink()

    def _parts(self) -> Iterator[bytes]:
        offset = 0
        while offset < self.size_bytes:
            part = _read_at(self._fd, min(_READ_BYTES, self.size_bytes - offset), offset)
            if not part:
                raise OSError(f"only {offset} of {self.size_bytes} bytes can be read")
            offset += len(part)
            yield part

    def _read_existing(self) -> None:
        while part := _read_at(self._fd, _READ_BYTES, self.size_bytes):
            self._hash.update(part)
            self.size_bytes += len(part)

    def _release_room(self) -> None:
        release, self._release = self._release, lambda: None
        with suppress(OSError):
            release()


def _create(folder: Path, job_id: str) -> tuple[int, Path]:
    """A new file of a job, locked so that the garbage collector leaves it alone."""
    for number in count(1):
        path = folder / f"{job_id}.{number}"
        with suppress(FileExistsError):
            fd = os.open(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            if sys.platform != "win32":
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd, path
    raise AssertionError("numbers do not end")


class _Room:
    """Room on the disk for the calls in flight: one file without a name, as long as all of it.

    A file for each call would cost the system more than the call's own file does.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._size_bytes = folder, 0
        self._file: TempFile | None = None
        self._lock = threading.RLock()

    def set_aside(self, room_bytes: int) -> Callable[[], None]:
        """Take room for one call, and return what gives it back.

        Raises:
            StorageError: the disk has less room (``NO_ROOM``), or is read-only
                (``HOME_READ_ONLY``).
        """
        try:
            try:
                self._extend(room_bytes)
            except OSError as error:
                if error.errno != errno.EFBIG:
                    raise
                # The system limits the length of a file, and all calls together need more.
                return _file_of(self._folder, room_bytes).close
        except OSError as error:
            if error.errno in _FORBIDDEN:
                raise read_only_home(self._folder.parent) from error
            raise StorageError(
                f"There is no room for a picture of up to {room_bytes >> 20} MB in "
                f"{str(self._folder)!r} ({error.strerror or error}). Nothing was sent.",
                code="NO_ROOM",
                hint="Free some space, raise the limits of this process, or move LIMNER_HOME.",
            ) from error
        return partial(self._shrink, room_bytes)

    def _extend(self, room_bytes: int) -> None:
        with self._lock:
            size_bytes, self._size_bytes = self._size_bytes, self._size_bytes + room_bytes
            try:
                if self._file is None:
                    self._file = temp_file_in(self._folder)
                _allocate(self._file.fd, self._folder, size_bytes, room_bytes)
            except OSError:
                self._shrink(room_bytes)
                raise

    def _shrink(self, room_bytes: int) -> None:
        with self._lock:
            self._size_bytes -= room_bytes
            if self._file is None:
                return
            if self._size_bytes:
                with suppress(OSError):
                    os.ftruncate(self._file.fd, self._size_bytes)
                return
            file, self._file = self._file, None
            with suppress(OSError):
                file.close()


def _file_of(folder: Path, size_bytes: int) -> TempFile:
    """A file without a name that has room of its own."""
    file = temp_file_in(folder)
    try:
        _allocate(file.fd, folder, 0, size_bytes)
    except OSError:
        file.close()
        raise
    return file


def _allocate(fd: int, folder: Path, offset: int, size_bytes: int) -> None:
    if sys.platform == "linux":
        try:
            os.posix_fallocate(fd, offset, size_bytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        else:
            return
    # This system cannot set room aside: at least it must be there now.
    import shutil  # noqa: PLC0415 - few systems get here

    if shutil.disk_usage(folder).free < size_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _is_ours(path: Path) -> bool:
    """Whether a file in a folder that all users may write is a plain file of this user."""
    try:
        status = path.lstat()
    except OSError:
        return False
    is_mine = sys.platform == "win32" or status.st_uid == os.geteuid()
    return is_mine and stat.S_ISREG(status.st_mode)


def _is_locked(path: Path) -> bool:
    """Whether a live process holds a file. If that cannot be determined, it does."""
    if sys.platform == "win32":
        return False  # Windows refuses to delete an open file
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_at(fd: int, data: bytes | memoryview, offset: int) -> None:
    # Each write names its position: after a failure it can be repeated.
    os.lseek(fd, offset, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _read_at(fd: int, size: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)
