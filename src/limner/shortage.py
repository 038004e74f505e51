"""An error -> whether the system had no more files or memory for this process.

It loads nothing, because a process without memory can load nothing more.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
# Python has no error of its own for these.
_SIGNS_OF_SHORTAGE = (
    "MemoryError",
    "can't start new thread",
    "failed to map segment from shared object",
    "cannot allocate memory",
    "error return without exception set",
)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, the one behind it, and so on, each once: an error may be behind itself."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and not any(following is earlier for earlier in seen):
        seen.append(following)
        yield following
        following = following.__cause__ or following.__context__


def shortage_behind(error: BaseException) -> str | None:
    """What the system says if it has no more files or memory for this process; else None."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _SHORTAGES:
            return cause.strerror
        words = _words(cause)
        if any(sign in words for sign in _SIGNS_OF_SHORTAGE):
            return os.strerror(errno.ENOMEM)
    return None


def _words(error: BaseException) -> str:
    """The type and the text of an error; of one from outside, even the text may fail."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name
