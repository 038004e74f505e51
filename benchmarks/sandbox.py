"""A job in a sandboxed worker beside the same job in a worker without a sandbox.

Run as a program, this file is that other worker: the same code with no policy, which keeps only
the limits on memory, files and time. Processor time is the worker's own, read from ``/proc``. Of
the start of a worker, only the lock-down itself is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.corpus import encode
from benchmarks.photos import photo
from benchmarks.processes import family
from limner.imaging import worker
from limner.imaging.decode import load_decoders
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.process import WORKER, WorkerJob, WorkerProcess

ROUNDS = 60
STARTS = 15
LOCK_DOWN = """
import time
from limner.imaging import worker
from limner.imaging.decode import load_decoders
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.sandbox import DECODER, enter_sandbox, restrict_files

load_decoders(DEFAULT_LIMITS)
loaded = time.process_time()
version = restrict_files(DECODER)
enter_sandbox(DEFAULT_LIMITS, DECODER, landlock_abi=version)
print(time.process_time() - loaded, loaded)
"""
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><text y="6">words</text></svg>'
Costs = dict[str, list[tuple[float, float]]]


def main(rounds: int = ROUNDS, starts: int = STARTS) -> None:
    """Print the ratios."""
    _measure_lock_down(starts)
    picture = photo((1024, 768), seed=1)
    png, jpeg = encode(picture, kind="PNG"), encode(picture, kind="JPEG", quality=90)
    svg = json.dumps({"document": DRAWING, "assets": {}}).encode()
    jobs = {
        "verify PNG": WorkerJob(header={"op": "verify"}, payload=png),
        "verify JPEG": WorkerJob(header={"op": "verify"}, payload=jpeg),
        "JPEG to PNG": WorkerJob(
            header={"op": "convert", "to": "png", "cover": None}, payload=jpeg
        ),
        "draw SVG": WorkerJob(
            header={"op": "render_svg", "width": 512, "height": 512}, payload=svg
        ),
    }
    workers = {
        name: _start(module)
        for name, module in {"open": "benchmarks.sandbox", "sandboxed": WORKER}.items()
    }
    for what, job in jobs.items():
        costs: Costs = {name: [] for name in workers}
        for turn in range(rounds):
            # Interleaved, so that a busy moment of the machine falls on both.
            for name in sorted(workers, reverse=bool(turn % 2)):
                process, pid = workers[name]
                started, before = time.perf_counter(), _cpu_s(pid)
                process.do(job)
                used = _cpu_s(pid) - before
                costs[name].append((time.perf_counter() - started, used))
        print(f"{what:12} {_ratio(costs, 0):5.2f}x wall {_ratio(costs, 1):5.2f}x CPU")
    for process, _ in workers.values():
        process.close()


def _measure_lock_down(starts: int) -> None:
    command = [sys.executable, "-c", LOCK_DOWN]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(starts)]
    pairs = [tuple(map(float, run.stdout.split())) for run in runs]
    locking, loading = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{'lock down':12} {1 + locking / loading:5.2f}x CPU of a start, {locking * 1e3:.1f} ms")


def _start(module: str) -> tuple[WorkerProcess, int]:
    known = set(family(os.getpid()))
    process = WorkerProcess(DEFAULT_LIMITS, module)
    (pid,) = set(family(os.getpid())) - known
    return process, pid


def _cpu_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _ratio(cost: Costs, column: int) -> float:
    before, after = (statistics.median(row[column] for row in rows) for rows in cost.values())
    return after / before


if __name__ == "__main__":
    worker.serve(None, load=load_decoders, prepare=worker.prepare)
