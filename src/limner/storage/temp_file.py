"""Bytes -> a temporary file without a name -> a name in a folder once the file is complete.

If the system has ``O_TMPFILE``, even ``kill -9`` leaves no unfinished file. Otherwise the file has
a hidden temporary name, which is removed after every failure that the process survives.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from limner.storage.os_errors import disk_errors


class Spliced(msgspec.Struct, frozen=True, kw_only=True):
    """One of limner's files with bytes inserted at one position."""

    path: Path
    at: int
    inserted: bytes


Source = bytes | Path | Spliced | Iterator[bytes]
Folder = int | Path
"""An open directory, or a path if the system cannot open files relative to one (Windows)."""

_CHUNK_BYTES = 1 << 20
_KERNEL_COPY_BYTES = 1 << 30
_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_O_TMPFILE: int = getattr(os, "O_TMPFILE", 0)
_OPEN_FILES = Path("/proc/self/fd")
# The errors of a filesystem, kernel or sandbox without the feature.
_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})
_UNSUPPORTED_TMPFILE = _UNSUPPORTED | {errno.EISDIR, errno.ENOENT}
_UNSUPPORTED_LINKS = _UNSUPPORTED | {errno.EPERM}
_UNSUPPORTED_KERNEL_COPY = _UNSUPPORTED | {errno.EXDEV, errno.EPERM}


class TempFile:
    """A temporary file; the end of its ``with`` block removes it if it was not published.

    It has its own descriptor of the folder, so the caller may close its own at any time. Methods
    raise OSError; the caller translates it.
    """

    def __init__(self, folder: Folder, *, mode: int) -> None:
        self._folder = os.dup(folder) if isinstance(folder, int) else folder
        self._dir_fd = self._folder if isinstance(self._folder, int) else None
        self._mode = mode
        self.closed = False
        self._temporary: str | None = None
        self.fd = -1
        try:
            self.fd = self._open()
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def fill(self, source: Source) -> None:
        """Append all of ``source``; the kernel copies a file if it can."""
        if isinstance(source, bytes | Iterator):
            for part in (source,) if isinstance(source, bytes) else source:
                write_all(self.fd, part)
            return
        path = source if isinstance(source, Path) else source.path
        with disk_errors(doing="read", path=path):
            file = path.open("rb", buffering=0)
        with file:
            if isinstance(source, Spliced):
                write_all(self.fd, file.read(source.at))
                write_all(self.fd, source.inserted)
            _copy(file.fileno(), self.fd)

    def sync(self) -> None:
        """Sync the bytes to the disk: a name must never point to an incomplete file."""
        os.fsync(self.fd)

    def publish_new(self, name: str) -> None:
        """Give the file a new name.

        Raises:
            FileExistsError: the name is taken; the caller may try another.
        """
        if not self._link_open_file(name):
            self._link_temporary(name)
        sync_folder(self._folder, Path(name).parent)

    def publish_over(self, name: str) -> None:
        """Give the file a name; it replaces a file of that name."""
        temporary = temporary_name()
        if self._link_open_file(temporary):
            self._temporary = temporary
        else:
            self._close_file()  # Windows renames only closed files
        self._rename_temporary(name)
        sync_folder(self._folder, Path(name).parent)

    def close(self) -> None:
        """Close the file; it is removed if it was not published. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        self._close_file()
        self._remove_temporary()
        if self._dir_fd is not None:
            os.close(self._dir_fd)

    def _open(self) -> int:
        if _O_TMPFILE and self._dir_fd is not None and _OPEN_FILES.is_dir():
            try:
                return os.open(".", _OPEN_FLAGS | _O_TMPFILE, self._mode, dir_fd=self._dir_fd)
            except OSError as error:
                if error.errno not in _UNSUPPORTED_TMPFILE:
                    raise
        return self._open_named()

    def _open_named(self) -> int:
        name = temporary_name()
        flags = _OPEN_FLAGS | os.O_CREAT | os.O_EXCL
        fd = os.open(self._at(name), flags, self._mode, dir_fd=self._dir_fd)
        self._temporary = name
        return fd

    def _at(self, name: str) -> str | Path:
        return name if isinstance(self._folder, int) else self._folder / name

    def _link_open_file(self, name: str) -> bool:
        """Name the file that has no name; False if it has a temporary name, maybe since now."""
        if self._temporary is not None:
            return False
        source = _OPEN_FILES / str(self.fd)
        try:
            os.link(source, name, dst_dir_fd=self._dir_fd, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            # Some sandboxes and network filesystems open such a file, but do not name it.
            self._copy_to_named()
            return False
        return True

    def _copy_to_named(self) -> None:
        old, self.fd = self.fd, self._open_named()
        try:
            os.lseek(old, 0, os.SEEK_SET)
            _copy(old, self.fd)
            os.fsync(self.fd)
        finally:
            os.close(old)

    def _link_temporary(self, name: str) -> None:
        assert self._temporary is not None
        source, target = self._at(self._temporary), self._at(name)
        try:
            os.link(source, target, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        except OSError as error:
            if error.errno not in _UNSUPPORTED_LINKS:
                raise
            self._claim(name)
        else:
            self._close_file()  # Windows removes only closed files
            self._remove_temporary()

    def _claim(self, name: str) -> None:
        """Take a new name on a filesystem without hard links, such as that of a USB stick."""
        flags = _OPEN_FLAGS | os.O_CREAT | os.O_EXCL
        os.close(os.open(self._at(name), flags, 0o600, dir_fd=self._dir_fd))
        self._close_file()
        try:
            self._rename_temporary(name)
        except OSError:
            os.unlink(self._at(name), dir_fd=self._dir_fd)
            raise

    def _rename_temporary(self, name: str) -> None:
        assert self._temporary is not None
        source, target = self._at(self._temporary), self._at(name)
        os.replace(source, target, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        self._temporary = None

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._at(self._temporary), dir_fd=self._dir_fd)
            self._temporary = None

    def _close_file(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def temp_file_in(folder: Path) -> TempFile:
    """A temporary file in a folder of limner's, which is made if it does not exist."""
    make_folder(folder)
    if os.name == "nt":
        return TempFile(folder, mode=0o600)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return TempFile(fd, mode=0o600)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all bytes; the system may take them in parts."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def send_file(file: int, pipe: int, *, size_bytes: int, path: Path) -> None:
    """Write the first bytes of a file to a pipe; the kernel moves them without a copy if it can.

    Raises:
        BrokenPipeError: the reader of the pipe is gone.
        StorageError: the file cannot be read, or is shorter.
    """
    offset = _splice(file, pipe, size_bytes)
    while offset < size_bytes:
        with disk_errors(doing="read", path=path):
            os.lseek(file, offset, os.SEEK_SET)
            part = os.read(file, min(_CHUNK_BYTES, size_bytes - offset))
            if not part:
                raise OSError(f"only {offset} of {size_bytes} bytes can be read")
        write_all(pipe, part)
        offset += len(part)


def _splice(file: int, pipe: int, size_bytes: int) -> int:
    """Let the kernel move bytes of a file to a pipe; returns how many it moved.

    What it does not move is read, and an error of the disk shows then.
    """
    splice, offset = getattr(os, "splice", None), 0
    try:
        while splice is not None and offset < size_bytes:
            moved = splice(file, pipe, size_bytes - offset, offset_src=offset)
            if not moved:
                break
            offset += moved
    except BrokenPipeError:
        raise
    except OSError:
        pass
    return offset


def sync_folder(folder: Folder, below: str | Path = ".") -> None:
    """Sync the names in a folder to the disk, if the system can open a folder."""
    if os.name == "nt":
        return
    dir_fd = folder if isinstance(folder, int) else None
    path = below if isinstance(folder, int) else folder / below
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    except PermissionError:  # a folder that can be written but not listed
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Make one of limner's own folders, and sync the name of each new folder to the disk."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def temporary_name(token: str | None = None) -> str:
    """A name for a temporary file."""
    return f".limner-{os.urandom(8).hex() if token is None else token}.tmp"


def _copy(source: int, target: int) -> None:
    in_kernel = getattr(os, "copy_file_range", None)
    if in_kernel is not None:
        try:
            while in_kernel(source, target, _KERNEL_COPY_BYTES):
                pass
        except OSError as error:
            if error.errno not in _UNSUPPORTED_KERNEL_COPY:
                raise
    # The rest, which is everything if the kernel cannot copy between these files.
    while chunk := os.read(source, _CHUNK_BYTES):
        write_all(target, chunk)
