"""A process id -> what it and everything below it takes of memory, read from ``/proc`` (Linux)."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_S = 0.02


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """One figure of ``/proc/PID/status``, summed over the family."""
    return sum(_status_kib(one, field) for one in family(pid)) / 1024


def _status_kib(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)


class Peak:
    """Watches a family for as long as the block runs; ``mb`` is the most it had at one moment."""

    def __init__(self, pid: int) -> None:
        self.mb = 0.0
        self._pid = pid
        self._done = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._watching.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._watching.join()

    def _watch(self) -> None:
        while True:
            self.mb = max(self.mb, memory_mb(self._pid))
            if self._done.wait(SAMPLE_S):
                return
