"""A process -> its identity in the store, and whether that process is still alive.

A process id alone is not an identity: the system reuses it. On Linux the start time and the boot id
distinguish processes with the same id. On other systems a process id in use counts as alive: it is
better to keep a reservation too long than to release it while its owner may be about to pay.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

UNKNOWN = "unknown"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/<pid>/stat, counted from the state, the first one after the command's name.
_STATE, _START_TICKS = 0, 19
_ENDED = {"Z", "X", "x"}


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A process and its boot; ``start`` and ``boot`` are "unknown" if the system does not say."""

    pid: int
    start: str
    boot: str


def this_process() -> Owner:
    """The identity of the running process."""
    pid = os.getpid()
    # Not cached: after a fork, a cached value would be the parent's.
    return Owner(pid=pid, start=_start_of(pid) or UNKNOWN, boot=_boot_id())


def is_alive(owner: Owner) -> bool:
    """Whether this exact process is running."""
    return owner.boot == _boot_id() and owner.start == _start_of(owner.pid)


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN


def _start_of(pid: int) -> str | None:
    """When the process started; "unknown" if the system does not say, None if it has ended."""
    if not _BOOT_ID.exists():
        return UNKNOWN if is_in_use(pid) else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command's name may contain spaces and brackets; the last bracket ends it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else fields[_START_TICKS]


def is_in_use(pid: int) -> bool:
    """Whether a process has this id; True if the system does not say."""
    if sys.platform == "win32":
        # On Windows signal 0 is Ctrl-C: it would stop the process.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
