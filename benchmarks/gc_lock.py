"""How long `limner gc` keeps other processes from writing: a home with 100,000 pictures.

40,000 pictures are garbage, in families of two. Another process tries to take the write lock every
half millisecond and notes how long it is refused each time. Beside it, a transaction of one row is
written and synced again and again, for comparison: nothing can hold the lock for less.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from limner.storage.blobs import Blobs
from limner.storage.database import open_database
from limner.storage.home import Home

PICTURES = 100_000
GARBAGE = 40_000
POLL_S = 0.0005
PAUSE_S = 0.005
PICTURE = (
    "INSERT INTO pictures (handle, mime, width, height, size_bytes, parent, lineage, created_ms) "
    'VALUES (?, \'image/png\', 1, 1, 8, ?, \'{"provider":"p","prompt":"x"}\', 1)'
)
PAYMENT = (
    "INSERT INTO ledger (session_id, tool, provider, model, state, quoted_nano, cost_nano, "
    "cost_source, day, created_ms, updated_ms, owner_pid, owner_start, owner_boot, picture) "
    "VALUES ('s', 't', 'p', 'm', 'settled', 1, 1, 'table', '2026-11-01', 1, 1, 1, '', '', ?)"
)
PROBE = """
import json, select, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
held, since = [], None
print("ready", flush=True)
deadline = time.monotonic() + 600
while not select.select([sys.stdin], [], [], float(sys.argv[2]))[0] and time.monotonic() < deadline:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        since = time.perf_counter() if since is None else since
    else:
        if since is not None:
            held.append(time.perf_counter() - since)
        since = None
print(json.dumps(sorted(held)))
"""


def main(pictures: int = PICTURES, garbage: int = GARBAGE) -> None:
    """Print how long the lock was held, while one row is written and while gc runs."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        _fill(home, pictures, garbage)
        print("| | times held | median | 99 % | longest |\n|---|--:|--:|--:|--:|")
        _report("transactions of one row", _probed(home, lambda: _write_rows(home)))
        began_s = time.monotonic()
        _report(f"`limner gc`, {garbage:,} of {pictures:,}", _probed(home, lambda: _collect(home)))
        print(f"\ngc took {time.monotonic() - began_s:.0f} s; load {os.getloadavg()[0]:.1f}")


def _fill(home: Home, pictures: int, garbage: int) -> None:
    database = open_database(home.database)
    blobs = Blobs(home.blobs)
    old_s = time.time() - 7 * 86_400
    rows: list[tuple[str, str | None]] = []
    for number in range(pictures):
        # The bytes need not be a picture, and are written without a sync: this is only the stage.
        data = number.to_bytes(8, "big")
        handle = _put(blobs, data, old_s)
        parent = rows[-1][0] if number % 2 else None
        rows.append((handle, parent))
    database.connection.execute("BEGIN")
    database.connection.executemany(PICTURE, rows)
    database.connection.executemany(PAYMENT, [(handle,) for handle, _ in rows[garbage:]])
    database.connection.execute("COMMIT")
    database.close()


def _put(blobs: Blobs, data: bytes, moment_s: float) -> str:
    handle = hashlib.sha256(data).hexdigest()
    path = blobs.local_path(handle)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (moment_s, moment_s))
    return handle


def _write_rows(home: Home) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None, timeout=60)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        for number in range(200):
            connection.execute("UPDATE home SET writes = writes + 1 WHERE ? >= 0", (number,))
            time.sleep(PAUSE_S)  # so that the probe can tell two transactions apart


def _collect(home: Home) -> None:
    environment = {**os.environ, "LIMNER_HOME": str(home.folder)}
    command = [sys.executable, "-m", "limner", "gc", "--json"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    assert json.loads(done.stdout)["pictures"] > 0


def _probed(home: Home, work: Callable[[], None]) -> list[float]:
    probe = subprocess.Popen(
        [sys.executable, "-c", PROBE, str(home.database), str(POLL_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    assert probe.stdout.readline() == "ready\n"
    work()
    out, _ = probe.communicate("stop\n", timeout=60)
    return json.loads(out)


def _report(name: str, held_s: list[float]) -> None:
    def at(share: float) -> str:
        return f"{held_s[min(int(len(held_s) * share), len(held_s) - 1)] * 1000:.1f} ms"

    print(f"| {name} | {len(held_s):,} | {at(0.5)} | {at(0.99)} | {at(1)} |")


if __name__ == "__main__":
    main()
