"""The name of a benchmark -> its tables, made in a group of processes that ends with it."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess

from benchmarks import comparison

# The time of one benchmark, and the time in which its processes may end by themselves.
LIMIT_S = 3600.0
END_S = 10.0
# The load is a mean of about a minute, so that of the benchmark before stays in it for a while.
QUIET_S = 120.0
LOOK_S = 5.0


def run(name: str, title: str | None) -> bool:
    """Whether it came to its end; what it found is recorded if it has a title."""
    process = multiprocessing.get_context("spawn").Process(target=_lead, args=(name, title))
    process.start()
    try:
        process.join(LIMIT_S)
        if process.is_alive():
            print(f"{name} did not end within {LIMIT_S:g} s", file=sys.stderr, flush=True)
    finally:
        end_group(process)
    return process.exitcode == 0


def end_group(process: BaseProcess) -> None:
    """End a process that leads a group, and whatever else is in the group."""
    assert process.pid is not None
    try:
        if process.is_alive():
            with suppress(ProcessLookupError):  # it leads no group yet
                os.killpg(process.pid, signal.SIGINT)
            process.join(END_S)
    finally:  # also if the user does not wait for that
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()


def _lead(name: str, title: str | None) -> None:
    os.setpgid(0, 0)
    load_before = _load_when_quiet() if title else os.getloadavg()[0]
    print(f"## {name}, at a load of {load_before:.1f}", flush=True)
    start_s = time.perf_counter()
    found = importlib.import_module(f"benchmarks.{name}").main()
    if isinstance(found, str):
        print(f"\n{found}")
    else:
        for one in found or ():
            print(f"\n{comparison.table(one)}")
    if title and found:
        comparison.record(name, title, found, load_before=load_before)
    print(f"{name} took {time.perf_counter() - start_s:.0f} s\n", flush=True)


def _load_when_quiet() -> float:
    """The load as soon as it is low, or after a while, if the machine has other work."""
    give_up_s = time.monotonic() + QUIET_S
    while (load := os.getloadavg()[0]) > comparison.MOST_LOAD and time.monotonic() < give_up_s:
        time.sleep(LOOK_S)
    return load
