"""The operating system's file errors -> StorageError, with a message and a hint."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from limner.errors import StorageError

# A text that was mistaken for a path, as a picture in base64, is not shown at any length.
MAX_PATH_CHARS = 300

_FULL = ("the disk is full", "Free some space and try again.")
_FORBIDDEN = ("permission is missing", "Choose another folder, or change who may write there.")
_CAUSES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: ("the disk is read-only", "Choose a folder on a disk that can be written."),
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Choose another path."),
    errno.EISDIR: ("it is a folder", "Add a file name to the path."),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter name."),
    errno.EFBIG: (
        "a file may not be that large here",
        "Raise the limit on file sizes (ulimit -f).",
    ),
    errno.ENOENT: ("it does not exist", "Check the path."),
    errno.EMFILE: ("too many files are open", "Close some, or raise the limit (ulimit -n)."),
}


def storage_error(
    error: OSError, *, doing: str, path: Path, kind: type[StorageError] = StorageError
) -> StorageError:
    """The error for a failure while ``doing`` something to ``path``."""
    cause, hint = _CAUSES.get(
        error.errno or 0, (f"the system says: {error.strerror or error}", None)
    )
    return kind(f"Could not {doing} {str(path)[:MAX_PATH_CHARS]!r}: {cause}.", hint=hint)


def read_only_home(folder: Path) -> StorageError:
    """The error for a home that cannot be written."""
    return StorageError(
        f"The home {str(folder)!r} is read-only: it can be read, but nothing can be stored.",
        code="HOME_READ_ONLY",
        hint="Set LIMNER_HOME to a folder that you can write.",
    )


@contextmanager
def disk_errors(*, doing: str, path: Path) -> Generator[None]:
    """Turn any OSError of the block into a StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing=doing, path=path) from error
