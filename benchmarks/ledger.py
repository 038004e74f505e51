"""A reservation under every cap, with 1,000 and with 1,000,000 rows of today.

The rows are written as an earlier version of limner left them; opening the home adds them up once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from limner.money.ledger import Caps, Money
from limner.storage.database import statements
from limner.storage.queries import migrations
from limner.storage.store import Store

ROWS = {"few": 1_000, "many": 1_000_000}
SESSIONS = 1_000
ROUNDS = 200
MOST = 1.5
# The last schema without sums.
BEFORE_SUMS = 10
CALL: dict[str, Any] = {"session_id": "s0", "tool": "t", "provider": "p", "model": "m"}
FILL = """
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?)
INSERT INTO ledger (
    session_id, tool, provider, model, state, quoted_nano, cost_nano, cost_source, day, created_ms,
    updated_ms, owner_pid, owner_start, owner_boot
)
SELECT 's' || (n % ?), 't', 'p', 'm', 'settled', 10, 10, 'table', ?, n, n, 1, '', '' FROM numbers
"""


def main(rows: dict[str, int] = ROWS, rounds: int = ROUNDS) -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), rows, rounds))


async def _measure(folder: Path, rows: dict[str, int], rounds: int) -> None:
    cap_nano = 10**15
    caps = Caps(call_nano=cap_nano, session_nano=cap_nano, program_nano=cap_nano, day_nano=cap_nano)
    stores: dict[str, Store] = {}
    ledgers: dict[str, Money] = {}
    for name, count in rows.items():
        path = folder / name / "limner.db"
        path.parent.mkdir()
        _fill(path, count)
        stores[name] = Store(path)
        ledgers[name] = Money(stores[name], caps=caps, clock=lambda: datetime.now(UTC), program="p")
        started_s = time.perf_counter()
        await ledgers[name].spent()
        print(f"opening {count:,} rows the first time: {time.perf_counter() - started_s:.1f} s")
    for what, work in WORK.items():
        times: dict[str, list[float]] = {name: [] for name in rows}
        for turn in range(rounds):
            # Whichever comes first may wait for the disk.
            for name in sorted(times, reverse=bool(turn % 2)):
                times[name].append(await work(ledgers[name]))
        few, many = times.values()
        ratio = statistics.median(many) / statistics.median(few)
        kept = "kept" if ratio <= MOST else "MISSED"
        print(
            f"{what:10} {ratio:5.2f}x   {statistics.median(few) * 1e3:6.2f} ms, then "
            f"{statistics.median(many) * 1e3:6.2f} ms   at most {MOST}x: {kept}"
        )
    wrong = [name for name, money in ledgers.items() if await money.wrong_counters()]
    print(f"sums that differ from their rows: {wrong or 'none'}")
    for store in stores.values():
        await store.aclose()


def _fill(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        for number, script in migrations():
            if number > BEFORE_SUMS:
                break
            for statement in statements(script):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {number}")
        today = datetime.now(UTC).date().isoformat()
        database.execute(FILL, (count, min(SESSIONS, count), today))


async def _reserve(money: Money) -> float:
    started_s = time.perf_counter()
    reservation = await money.reserve(10, **CALL)
    taken = time.perf_counter() - started_s
    await money.release(reservation)
    return taken


async def _settle(money: Money) -> float:
    reservation = await money.reserve(10, **CALL)
    await money.mark_sent(reservation, request_json=None)
    started_s = time.perf_counter()
    await money.settle(reservation, cost_nano=5, cost_source="table", picture=None)
    return time.perf_counter() - started_s


async def _spend(money: Money) -> float:
    started_s = time.perf_counter()
    await money.spend()
    return time.perf_counter() - started_s


async def _spent(money: Money) -> float:
    started_s = time.perf_counter()
    await money.spent(session_id="s0")
    return time.perf_counter() - started_s


WORK: dict[str, Callable[[Money], Awaitable[float]]] = {
    "reserve": _reserve,
    "settle": _settle,
    "spend": _spend,
    "spent": _spent,
}

if __name__ == "__main__":
    main()
