"""A process -> the identity it leaves in the store, and whether that process is still alive.

A process id alone is not an identity: it is given out again after a while, and after a reboot. On
Linux the start time and the boot id tell those apart. Elsewhere an id in use counts as alive: a
reservation is then kept too long rather than released while its owner may be about to pay.
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
    """Which process, of which boot; ``start`` and ``boot`` are "unknown" where nobody can say."""

    pid: int
    start: str
    boot: str


def this_process() -> Owner:
    """The identity of the running process."""
    pid = os.getpid()
    # Asked for every time: after a fork, a remembered answer would be the parent's.
    return Owner(pid=pid, start=_start_of(pid) or UNKNOWN, boot=_boot_id())


def is_alive(owner: Owner) -> bool:
    """Whether the very process that this names is running."""
    return owner.boot == _boot_id() and owner.start == _start_of(owner.pid)


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN


def _start_of(pid: int) -> str | None:
    """When the process started, "unknown" where that cannot be told, None where there is none."""
    if not _BOOT_ID.exists():
        return UNKNOWN if is_in_use(pid) else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command's name may hold spaces and brackets; the last bracket is the one that ends it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else fields[_START_TICKS]


def is_in_use(pid: int) -> bool:
    """Whether some process has this number; yes where nobody can say."""
    if sys.platform == "win32":
        # There, signal 0 is Ctrl-C: it would stop the process it asks about.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
