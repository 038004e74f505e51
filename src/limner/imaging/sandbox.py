"""A worker process -> one with bounded memory, files and processor time, and no privileges."""

from __future__ import annotations

import contextlib
import ctypes
import math
import select
import sys
from collections.abc import Callable
from typing import IO, Any

from limner.imaging.formats import BY_NAME
from limner.imaging.limits import WorkerLimits

try:
    import resource
except ImportError:  # Windows has no such limits; the pixel cap and the timeout protect the host
    resource = None

# A font, a module that is loaded late, the three pipes: a worker never needs more.
_MAX_OPEN_FILES = 32
_IDLE_S = 5.0

_PR_SET_NO_NEW_PRIVS = 38
_M_ARENA_MAX = -8


def enter_sandbox(limits: WorkerLimits) -> None:
    """Limit memory and open files; forbid written files, core dumps, children and privileges."""
    # From here on no file may be written, so Python must not write compiled modules.
    sys.dont_write_bytecode = True
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if resource is None:
        return
    _lower(resource.RLIMIT_AS, limits.memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    if not any(BY_NAME[name].needs_threads for name in limits.accept):
        _lower(resource.RLIMIT_NPROC, 0)


def limit_cpu(seconds: int) -> None:
    """Let the next job use that much processor time; the system kills the worker after it."""
    if resource is None:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = math.ceil(usage.ru_utime + usage.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = used + seconds if hard == resource.RLIM_INFINITY else min(used + seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _lower(kind: int, value: int) -> None:
    assert resource is not None
    _, hard = resource.getrlimit(kind)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    # macOS refuses some limits that it does not enforce; the other limits still apply.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (wanted, wanted))


def share_one_heap() -> None:
    """Let all later threads use one heap, so that one can reuse the memory another has freed."""
    _call_libc("mallopt", _M_ARENA_MAX, 1)


def wait_for_job(jobs: IO[bytes], *, on_idle: Callable[[], None], idle_s: float = _IDLE_S) -> None:
    """Wait for the next job, and after ``idle_s`` seconds return unused memory to the system.

    Not at once: between pictures that follow each other, allocating it again costs more time.
    ``on_idle`` drops what was kept for a job that has not come.
    """
    if sys.platform == "linux" and not select.select([jobs], [], [], idle_s)[0]:
        on_idle()
        _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> None:
    function: Any = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*arguments)
