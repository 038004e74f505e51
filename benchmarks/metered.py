"""A command -> a warm process that fits pictures, and what each fit costs it, seen from outside.

Processor time and memory are those of the process and everything below it, read from ``/proc``, so
this is for Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import family

TIMEOUT_S = 180.0
EXIT_TIMEOUT_S = 5.0
RESET_PEAK = "5"  # what /proc/PID/clear_refs takes to forget the highest memory seen


@dataclass(frozen=True, slots=True)
class Cost:
    """What one fit took: time on the wall, time on all processors, the most memory at once.

    ``peak_mb`` is of all processes together, ``largest_mb`` of the one that took the most.
    """

    wall_ms: float
    cpu_ms: float
    peak_mb: float
    largest_mb: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What a process says about the picture it made."""

    mime: str
    width: int
    height: int


class FitError(Exception):
    """Why a process made no picture."""


class Metered:
    """A process that takes the orders ``load``, ``fit`` and ``save``, one JSON line each.

    One that ended is replaced when the next picture comes.
    """

    def __init__(self, command: list[str], *, env: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._env = {**os.environ, **(env or {})}
        self._process = self._start()

    def fit(self, picture: Path, *, mode: str) -> tuple[Claim, Cost]:
        """Fit one picture; only the fit itself is measured, not the reading of the file.

        Raises:
            FitError: the process said so, or ended, or took too long.
        """
        if self._process.poll() is not None:
            self.close()
            self._process = self._start()
        self._ask({"do": "load", "path": str(picture)})
        for pid in family(self._process.pid):
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)
        cpu_before = cpu_ns(self._process.pid)
        start = time.perf_counter_ns()
        answer = self._ask({"do": "fit", "mode": mode})
        wall_ns = time.perf_counter_ns() - start
        spent = cpu_ns(self._process.pid)
        used_ns = sum(now - cpu_before.get(pid, 0) for pid, now in spent.items())
        peaks_mb = [_peak_kib(pid) / 1024 for pid in family(self._process.pid)]
        cost = Cost(wall_ns / 1e6, used_ns / 1e6, sum(peaks_mb), max(peaks_mb))
        return Claim(**answer), cost

    def save(self, path: Path) -> None:
        """Have the last fit written to a file."""
        self._ask({"do": "save", "path": str(path)})

    def close(self) -> None:
        """Let the process end by itself, else end it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._env,
        )

    def _ask(self, order: dict[str, str]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(order), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise FitError("the process has ended") from None
        # One answer for each order, so nothing of this line can be in Python's buffer already.
        ready, _, _ = select.select([self._process.stdout], [], [], TIMEOUT_S)
        if not ready:
            self._process.kill()
            raise FitError(f"more than {TIMEOUT_S:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise FitError(f"the process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise FitError(answer["error"])
        return answer


def cpu_ns(pid: int) -> dict[int, int]:
    """The processor time of a process and of each below it, by their ids."""
    spent: dict[int, int] = {}
    for member in family(pid):
        with contextlib.suppress(OSError):
            # The clock of another process, as clock_getcpuclockid(3) makes its number.
            spent[member] = time.clock_gettime_ns((~member << 3) | 2)
    return spent


def _peak_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
