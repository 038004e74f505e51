"""Bytes -> a file at a path that ``reach`` resolved; a path -> the file that is really there.

A path is judged first and used later. In between somebody may swap a folder for a symlink, so
every function here walks from the filesystem's root, one open folder to the next, and follows no
symlink: what was judged is what is used, or the call fails with ReachDenied. Windows has no
such calls: there the path is used as it is, which leaves that gap open.

Everything here blocks; an event loop calls it in a thread.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from limner.errors import OutputExists, ReachDenied, StorageError
from limner.storage.os_errors import disk_errors, storage_error
from limner.storage.temp_file import Folder, Source, TempFile, sync_folder

_CONFINED = {os.open, os.mkdir, os.link, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# O_PATH needs no permission to list a folder, only to pass through it.
_FOLDER_FLAGS = _NO_FOLLOW | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
# Opening a named pipe must not wait for somebody to write to it.
_READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NAME_MAX_BYTES = 255
_MOST_NUMBERS = 100_000


def write_new(path: Path, source: Source, *, overwrite: bool = False, mode: int = 0o666) -> Path:
    """Write a file in one step, making its folders: it is there whole, or it is not there.

    Args:
        path: resolved by ``Reach.resolve_write``.
        source: the bytes, or a file of ours to copy them from.
        overwrite: replace a plain file that has the name.
        mode: who may do what with the file; the umask is respected.

    Raises:
        OutputExists: the name is taken, or by something that is not a plain file.
        ReachDenied: a folder on the way has become a symlink.
        StorageError: the disk is full, read-only, or permission is missing.
    """

    def publish(draft: TempFile, folder: Folder) -> None:
        if overwrite:
            _check_plain(folder, path)
            draft.publish_over(path.name)
            return
        try:
            draft.publish_new(path.name)
        except FileExistsError:
            raise _exists(path) from None

    _write(path.parent, source, mode, publish, shown=path)
    return path


def write_numbered(folder: Path, stem: str, suffix: str, source: Source) -> Path:
    """Write ``<stem><suffix>``, or ``<stem>-1<suffix>`` and so on where the name is taken.

    Who gets which name is decided by the filesystem, so any number of threads and processes may
    ask for the same stem at once. Raises as ``write_new`` does.

    Args:
        folder: one of limner's own, never chosen by a model: it may lie behind symlinks.
        stem: the name without its end.
        suffix: the end of the name, with its dot.
        source: the bytes, or a file of ours to copy them from.
    """
    chosen = stem + suffix
    if chosen in ("", ".", "..") or {"/", "\0", os.sep} & set(chosen):
        raise ValueError(f"{chosen!r} is not a plain file name")

    def publish(draft: TempFile, _: Folder) -> None:
        nonlocal chosen
        for number in range(1, _MOST_NUMBERS):
            try:
                draft.publish_new(chosen)
            except FileExistsError:
                chosen = f"{stem}-{number}{suffix}"
            else:
                return
        raise _exists(folder / (stem + suffix))

    _write(Path(os.path.realpath(folder)), source, 0o666, publish, shown=folder / chosen)
    return folder / chosen


def check_new(path: Path, *, overwrite: bool = False) -> None:
    """Find out, before anything is paid for, whether ``write_new`` would fail; touches nothing.

    Raises:
        OutputExists: the name is taken.
        ReachDenied: a folder on the way has become a symlink.
        StorageError: a folder cannot be made or written.
    """
    with disk_errors(doing="write", path=path):
        nearest = _nearest_folder(path)
        missing = path.relative_to(nearest).parts
        if any(len(os.fsencode(part)) > _NAME_MAX_BYTES for part in missing):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        with _entered(nearest, make=False) as folder:
            if len(missing) == 1:
                _check_free(folder, path, overwrite=overwrite)
            _check_writable(folder, nearest)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading; a pipe, device or folder is refused.

    Args:
        path: resolved by ``Reach.resolve_read``.

    Raises:
        ReachDenied: the file, or a folder on the way, has become a symlink.
        StorageError: there is no such file (``FILE_NOT_FOUND``), or it cannot be read.
    """
    try:
        with _entered(path.parent, make=False) as folder:
            name, dir_fd = _at(folder, path.name)
            _check_no_symlink(folder, path.name, path)
            fd = os.open(name, _READ_FLAGS, dir_fd=dir_fd)
    except ReachDenied as error:
        error.code = "PATH_DENIED"
        raise
    except OSError as error:
        code = "FILE_NOT_FOUND" if isinstance(error, FileNotFoundError) else None
        raise storage_error(error, doing="read", path=path, code=code) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
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
        _entered(folder, make=True) as opened,
        TempFile(opened, mode=mode) as draft,
    ):
        draft.fill(source)
        draft.sync()
        publish(draft, opened)


@contextmanager
def _entered(path: Path, *, make: bool) -> Generator[Folder]:
    """The folder at a resolved path, opened step by step without following a symlink."""
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
            below = _step(here, part, path, make=make)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _step(here: int, part: str, path: Path, *, make: bool) -> int:
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
    except FileExistsError:  # somebody else made it first, as a folder or as a trap
        pass
    return _step(here, part, path, make=False)


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
            hint="Something else is changing these folders; use one that only you write.",
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
        f"{str(path)!r} is already there.", hint="Choose another path, or ask to overwrite it."
    )


def _nearest_folder(path: Path) -> Path:
    """The deepest folder above ``path`` that exists; a dangling symlink counts as there."""
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
