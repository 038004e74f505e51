"""A worker process -> one that only computes, by the declared policy of its kind.

A worker loads its libraries, calls `restrict_files`, starts its threads, and calls
`enter_sandbox`; only then it receives the first byte from outside. Landlock holds for the calling
thread and the threads it starts, so it comes before them. The filter holds for all threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import msgspec

from limner.imaging import landlock, seccomp
from limner.imaging.fonts import CJK_PACKAGE
from limner.imaging.formats import BY_NAME
from limner.imaging.limits import Protections, WorkerLimits

try:
    import resource
except ImportError:  # Windows has no such limits; the pixel cap and the timeout protect the host
    resource = None

# A font, a module that is loaded late, the three pipes: a worker never needs more.
_MAX_OPEN_FILES = 32
_IDLE_S = 5.0

_PR_SET_NO_NEW_PRIVS = 38
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8
# Larger blocks of pixels get memory of their own, which goes back when they are freed.
_MAX_HEAP_BLOCK_BYTES = 8 << 20
# If more than the second is free at the end of the heap, all but the first goes back to the system.
_KEPT_BYTES, _MAX_FREE_BYTES = 4 << 20, 8 << 20


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of worker may do. It may write no file, open no socket and start no process.

    ``calls`` are the system calls that it needs from its first job on, measured with strace over
    every format. It reads Python, the packages it has loaded, and also ``packages`` and
    ``readable``. Without `seccomp.READING` it reads these only until its first job.

    ``reserves_addresses``: its engine reserves many times the memory that it uses, so its limit
    counts private memory instead of addresses.
    """

    calls: Mapping[str, seccomp.CallNumbers]
    packages: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    reserves_addresses: bool = False


# Most workers draw no SVG document and no code, and look for none, so these are loaded late, with
# the libraries that they link to.
DECODER = SandboxPolicy(
    calls={**seccomp.COMPUTING, **seccomp.READING},
    packages=("resvg_py", "segno", "zxingcpp", CJK_PACKAGE),
    readable=("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"),
)
# onnxruntime chooses its code by the processor.
OCR = SandboxPolicy(calls=seccomp.COMPUTING, readable=("/proc/cpuinfo", "/sys/devices/system/cpu"))
C2PA = SandboxPolicy(calls=seccomp.COMPUTING)
# Fonts are read when a letter needs them.
TYPST = SandboxPolicy(calls={**seccomp.COMPUTING, **seccomp.READING}, packages=(CJK_PACKAGE,))
# V8 runs compiled JavaScript, and its event loop waits for events.
VEGA_LITE = SandboxPolicy(
    calls={**seccomp.COMPUTING, **seccomp.READING, **seccomp.EVENTS},
    packages=(CJK_PACKAGE,),
    reserves_addresses=True,
)


def restrict_files(policy: SandboxPolicy) -> int:
    """Forbid all files but those of the policy, TCP, and signals to other processes.

    Returns the version of Landlock that holds for the whole process, or 0.
    """
    # From here on no file may be written, so Python must not write compiled modules.
    sys.dont_write_bytecode = True
    if sys.platform != "linux":
        return 0
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    readable = {*_python_paths(), *_package_paths(policy.packages), *map(Path, policy.readable)}
    alone = _is_single_threaded()
    version = landlock.restrict_files(readable)
    return version if alone else 0


def _is_single_threaded() -> bool:
    """Whether no package has started a thread at its import; such a thread would stay free."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - only their number counts
    except OSError:
        return False


def _python_paths() -> Iterator[Path]:
    """Python's own folders, and the folder or file of each package that is loaded.

    Not the folders of `sys.path`: one of them may be the user's project or home.
    """
    yield Path(os.__file__).parent
    yield Path(sys.base_prefix, "lib")
    for name, module in tuple(sys.modules.items()):
        if "." not in name and name != "__main__":
            file = getattr(module, "__file__", None)
            folders = getattr(module, "__path__", None) or [file]
            yield from (Path(folder) for folder in folders if folder)
            # Some installers put links to the files of their cache there.
            if file and Path(file).is_symlink():
                yield Path(file).resolve().parent


def _package_paths(names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        if (spec := find_spec(name)) is not None:
            yield from map(Path, spec.submodule_search_locations or ())


def enter_sandbox(
    limits: WorkerLimits, policy: SandboxPolicy | None, *, landlock_abi: int
) -> Protections:
    """Limit memory and open files, and forbid all system calls but those of the policy."""
    limited = _limit_resources(limits, policy)
    filtered = policy is not None and seccomp.allow_only(policy.calls)
    return Protections(landlock_abi=landlock_abi, seccomp=filtered, memory_limit=limited)


def _limit_resources(limits: WorkerLimits, policy: SandboxPolicy | None) -> bool:
    """Limit memory, files, core dumps and children; whether the memory limit is enforced."""
    if resource is None:
        return False
    reserves = policy is not None and policy.reserves_addresses
    _lower(resource.RLIMIT_DATA if reserves else resource.RLIMIT_AS, limits.memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    if not any(BY_NAME[name].needs_threads for name in limits.accept):
        _lower(resource.RLIMIT_NPROC, 0)
    return sys.platform == "linux"


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
    """Let all later threads use one heap, so that one can reuse the memory another has freed.

    It keeps a part of what a job has freed, because the system has to clear each page that it
    gives again. By default the C library would keep more after each block that is larger than those
    before, and its peak would depend on the order of the pictures.
    """
    _call_libc("mallopt", _M_ARENA_MAX, 1)
    _call_libc("mallopt", _M_MMAP_THRESHOLD, _MAX_HEAP_BLOCK_BYTES)
    _call_libc("mallopt", _M_TRIM_THRESHOLD, _MAX_FREE_BYTES)
    _call_libc("mallopt", _M_TOP_PAD, _KEPT_BYTES)


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
