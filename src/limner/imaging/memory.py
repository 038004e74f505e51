"""What a worker does so that memory freed by a job goes back to the system.

The C library keeps freed memory for the next time, and for each thread apart; a worker that has met
one large picture would stay large. These are calls of glibc; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import select
import sys
from collections.abc import Callable
from typing import IO, Any

_IDLE_S = 5.0
_M_ARENA_MAX = -8


def share_one_heap() -> None:
    """Let all threads to come use one heap, so that what one has freed another can take."""
    _call("mallopt", _M_ARENA_MAX, 1)


def wait_for(jobs: IO[bytes], *, at_rest: Callable[[], None], idle_s: float = _IDLE_S) -> None:
    """Wait for the next job, and after a while of waiting give unused memory back.

    Not at once: between pictures that follow each other, taking it again would cost more time.
    ``at_rest`` lets go of what was kept for a job that has not come.
    """
    if sys.platform == "linux" and not select.select([jobs], [], [], idle_s)[0]:
        at_rest()
        _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function: Any = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*arguments)
