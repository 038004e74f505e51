"""The books of a batch on PostgreSQL with 1, 4 and 16 processes, beside Ray Data's HTTP processor.

The rows and the server are those of `benchmarks.batch`. PostgreSQL syncs to disk. The processor of
Ray Data posts the same requests and keeps no books; its start is in its time. Processor time is of
the workers alone, and that of the database is beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from pathlib import Path

from tests.servers.postgres_server import PostgresServer, running_postgres

from benchmarks.batch import BODY, CONCURRENCY, LONG, MOST, plain_loop, run_workers, server
from benchmarks.environments import python_with

ROWS = 2_000
PROCESSES = (1, 4, 16)
RAY_GUARD_S = 300.0


def main(rows: int = ROWS, long: tuple[int, int] = LONG) -> None:
    """Print rows a second and processor time a row, and how both grow with the batch."""
    with (
        server() as url,
        running_postgres(fsync="on") as database,
        tempfile.TemporaryDirectory(prefix="limner-bench-") as folder,
    ):
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"asyncio, no books: {asyncio.run(plain_loop(url, rows)):.0f} rows/s")
        print(f"Ray Data's HTTP processor: {_ray(url, rows)}", flush=True)
        for processes in PROCESSES:
            found = _measure(database, Path(folder, f"p{processes}"), url, rows, processes)
            print(f"limner, {processes} processes: {_said(found)}", flush=True)
        first, last = (
            _measure(database, Path(folder, f"long{count}"), url, count, 1) for count in long
        )
        print(f"{long[0]:,} rows: {_said(first)}\n{long[1]:,} rows: {_said(last)}")
        print(
            f"a row at {long[1]:,} beside {long[0]:,} (at most {MOST}): "
            f"{first[0] / last[0]:.2f} on the clock, {last[1] / first[1]:.2f} of the processor, "
            f"{last[2] / first[2]:.2f} of the database's; load {os.getloadavg()[0]:.1f}"
        )


def _measure(
    database: PostgresServer, home: Path, url: str, rows: int, processes: int
) -> tuple[float, float, float]:
    """Rows a second, and processor seconds a row of the workers and of the database."""
    os.environ["LIMNER_STORE"] = database.new_url()
    before_s = database.cpu_s()
    rate, cpu_s, _ = run_workers(home, url, rows, processes)
    return rate, cpu_s, (database.cpu_s() - before_s) / rows


def _said(found: tuple[float, float, float]) -> str:
    rate, cpu_s, database_s = found
    return f"{rate:.0f} rows/s, {cpu_s * 1e3:.2f} ms of CPU a row, database {database_s * 1e3:.2f}"


def _ray(url: str, rows: int) -> str:
    """What Ray's process prints, in an environment of its own."""
    python = python_with("ray", "ray[data]==2.60.0", "aiohttp", "pydantic")
    program = Path(__file__).with_name("batch_ray.py")
    command = [python, str(program), url, str(rows), str(CONCURRENCY), json.dumps(BODY)]
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=RAY_GUARD_S
        )
    except subprocess.TimeoutExpired:
        return f"not ready after {RAY_GUARD_S:.0f} s"
    said = [line for line in done.stdout.splitlines() if "rows/s" in line]
    return said[-1] if said else f"not measured: {done.stderr.strip().splitlines()[-1:]}"


if __name__ == "__main__":
    main()
