"""Bytes -> a file at a path that ``reach`` resolved; a resolved path -> its open file.

A path is checked first and used later. In between, another process may replace a folder by a
symlink. So every function here walks from the filesystem's root, from one open folder to the next,
and follows no symlink: either it uses the path that was checked, or it raises ReachDenied. Windows
has no such calls, so there the path is used as it is and the gap stays open.

All functions block; an event loop calls them in a thread.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from limner.errors import NotFound, OutputExists, ReachDenied, StorageError
from limner.storage.os_errors import disk_errors, storage_error
from limner.storage.temp_file import Folder, Source, TempFile, make_folder, sync_folder

if sys.platform != "win32":
    import fcntl

_CONFINED = {os.open, os.mkdir, os.link, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# O_PATH needs only the permission to pass through a folder, not to list it.
_FOLDER_FLAGS = _NO_FOLLOW | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
# Opening a named pipe must not wait for a writer.
_READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NAME_MAX_BYTES = 255
_MAX_NUMBER = 100_000


def write_new(path: Path, source: Source, *, overwrite: bool = False, mode: int = 0o666) -> Path:
    """Write a file atomically and make its folders: the file is complete, or does not exist.

    Args:
        path: resolved by ``Reach.resolve_write``.
        source: the bytes, or one of limner's files to copy.
        overwrite: replace a plain file of this name.
        mode: the permissions of the file; the umask is respected.

    Raises:
        OutputExists: the name is taken; with ``overwrite``, by something that is not a plain file.
        ReachDenied: a folder of the path has become a symlink.
        StorageError: the disk is full, read-only, or permission is missing.
    """

    def publish(temp_file: TempFile, folder: Folder) -> None:
        if overwrite:
            _check_plain(folder, path)
            temp_file.publish_over(path.name)
            return
        try:
            temp_file.publish_new(path.name)
        except FileExistsError:
            raise _exists(path) from None

    _write(path.parent, source, mode, publish, shown=path)
    return path


@contextmanager
def locked_folder(folder: Path, *, doing: str) -> Generator[None]:
    """Make one of limner's own folders, and keep other processes from changing its files.

    The lock is on the folder, because each change replaces a file. Windows has no lock, so there
    the last of two simultaneous changes wins.

    Raises:
        StorageError: the folder cannot be used.
    """
    with disk_errors(doing=doing, path=folder):
        make_folder(folder)
        if sys.platform == "win32":
            yield
            return
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def write_numbered(folder: Path, stem: str, suffix: str, source: Source) -> Path:
    """Write ``<stem><suffix>``, or ``<stem>-1<suffix>`` and so on if the name is taken.

    The filesystem decides, so any number of threads and processes may use the same stem at the
    same time. Raises as ``write_new`` does.

    Args:
        folder: one of limner's own, never chosen by a model; it may be behind symlinks.
        stem: the name without its suffix.
        suffix: the suffix with its dot.
        source: the bytes, or one of limner's files to copy.
    """
    chosen = stem + suffix
    if chosen in ("", ".", "..") or {"/", "\0", os.sep} & set(chosen):
        raise ValueError(f"{chosen!r} is not a plain file name")

    def publish(temp_file: TempFile, _: Folder) -> None:
        nonlocal chosen
        for number in range(1, _MAX_NUMBER):
            try:
                temp_file.publish_new(chosen)
            except FileExistsError:
                chosen = f"{stem}-{number}{suffix}"
            else:
                return
        raise _exists(folder / (stem + suffix))

    _write(Path(os.path.realpath(folder)), source, 0o666, publish, shown=folder / chosen)
    return folder / chosen


def check_new(path: Path, *, overwrite: bool = False) -> None:
    """Check whether ``write_new`` would fail, before the caller pays; changes nothing.

    Raises:
        OutputExists: the name is taken.
        ReachDenied: a folder of the path has become a symlink.
        StorageError: a folder cannot be made or written.
    """
    with disk_errors(doing="write", path=path):
        nearest = _nearest_folder(path)
        missing = path.relative_to(nearest).parts
        if any(len(os.fsencode(part)) > _NAME_MAX_BYTES for part in missing):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        with _open_folder(nearest, make=False) as folder:
            if len(missing) == 1:
                _check_free(folder, path, overwrite=overwrite)
            _check_writable(folder, nearest)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading; a pipe, device or folder is refused.

    Args:
        path: resolved by ``Reach.resolve_read``.

    Raises:
        ReachDenied: the file, or a folder of the path, has become a symlink.
        NotFound: the file does not exist.
        StorageError: it cannot be read.
    """
    try:
        if not path.name:  # the root, which is in no folder
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with _open_folder(path.parent, make=False) as folder:
            name, dir_fd = _at(folder, path.name)
            _check_no_symlink(folder, path.name, path)
            fd = os.open(name, _READ_FLAGS, dir_fd=dir_fd)
    except ReachDenied as error:
        error.code = "PATH_DENIED"
        raise
    except OSError as error:
        kind = NotFound if isinstance(error, FileNotFoundError) else StorageError
        raise storage_error(error, doing="read", path=path, kind=kind) from error
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    if stat.S_ISDIR(mode):
        folder_read = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise storage_error(folder_read, doing="read", path=path)
    raise StorageError(f"Could not read {str(path)!r}: it is not a plain file.")


def _write(
    folder: Path,
    source: Source,
    mode: int,
    publish: Callable[[TempFile, Folder], None],
    *,
    shown: Path,
) -> None:
    with (
        disk_errors(doing="write", path=shown),
        _open_folder(folder, make=True) as opened,
        TempFile(opened, mode=mode) as temp_file,
    ):
        temp_file.fill(source)
        temp_file.sync()
        publish(temp_file, opened)


@contextmanager
def _open_folder(path: Path, *, make: bool) -> Generator[Folder]:
    """Open the folder at a resolved path step by step, without following a symlink."""
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} is not a resolved path")
    if not _CONFINED:
        if make:
            path.mkdir(parents=True, exist_ok=True)
        yield path
        return
    here = os.open(path.anchor, _FOLDER_FLAGS)
    try:
        for part in path.parts[1:]:
            below = _open_subfolder(here, part, path, make=make)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _open_subfolder(here: int, part: str, path: Path, *, make: bool) -> int:
    try:
        return os.open(part, _FOLDER_FLAGS, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            _check_no_symlink(here, part, path)
        raise
    try:
        os.mkdir(part, dir_fd=here)
        sync_folder(here)
    except FileExistsError:  # another process made it first, as a folder or as a trap
        pass
    return _open_subfolder(here, part, path, make=False)


def _at(folder: Folder, name: str) -> tuple[str | Path, int | None]:
    return (name, folder) if isinstance(folder, int) else (folder / name, None)


def _status(folder: Folder, name: str) -> os.stat_result | None:
    target, dir_fd = _at(folder, name)
    try:
        return os.stat(target, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check_no_symlink(folder: Folder, name: str, path: Path) -> None:
    status = _status(folder, name)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise ReachDenied(
            f"{str(path)!r} is refused: a part of it has become a symlink.",
            hint="Another program is changing these folders; use one that only you can write.",
        )


def _check_free(folder: Folder, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        _check_plain(folder, path)
    elif _status(folder, path.name) is not None:
        raise _exists(path)


def _check_plain(folder: Folder, path: Path) -> None:
    status = _status(folder, path.name)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OutputExists(
            f"{str(path)!r} is there and is not a plain file, so it cannot be overwritten.",
            hint="Choose another path.",
        )


def _exists(path: Path) -> OutputExists:
    return OutputExists(
        f"{str(path)!r} is already there.",
        hint="Choose another path, or set overwrite (--overwrite at the command line).",
    )


def _nearest_folder(path: Path) -> Path:
    """The deepest existing folder above ``path``; a dangling symlink counts as existing."""
    for folder in path.parents:
        if os.path.lexists(folder):
            return folder
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _check_writable(folder: Folder, path: Path) -> None:
    target, dir_fd = _at(folder, ".")
    if os.access(target, os.W_OK | os.X_OK, dir_fd=dir_fd):
        return
    read_only = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
    code = errno.EROFS if read_only else errno.EACCES
    raise OSError(code, os.strerror(code))
