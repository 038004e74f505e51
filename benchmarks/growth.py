"""What one operation costs if a home has 10, 1,000, 100,000 or 1,000,000 of what it works on.

Each kind of thing gets a home for every number. The operations alternate between these homes, so a
busy moment of the machine falls on all of them. Their order is random: an operation is faster right
behind one on the same home, and no home may have that more often. Times are processor time of this
process, which has all threads of the store. What is synced to the disk waits longer, but not
because of the rows. What only reads takes 0.1 to 0.5 ms, a third of it by chance, so it is repeated
more often. A ratio above 1.5 is explained in the last column.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import app_server_peers
from benchmarks.app_server_crowd import waits
from limner.client import Limner
from limner.pictures.gallery import GalleryFilter

SIZES = (10, 1_000, 100_000, 1_000_000)
CONNECTIONS = (10, 100, 1_000)
# Rounds of what writes, which adds to the things, and of what only reads.
ROUNDS, READING_ROUNDS = 60, 600
WARM_UP = 5  # rounds that load code and pages
MOST = 1.5
WHY = {
    "`limner spend`": "it shows at most 50 sessions and 20 calls, and of ten calls only ten",
    "a search for a word of every picture": "SQLite walks through the list of the pages that such "
    "a word fills, less than 1 ms",
}
WORDS = ("red", "fox", "lamp", "river", "train", "glass", "chart", "night")
CALL: dict[str, Any] = {"session_id": "s0", "tool": "t", "provider": "p", "model": "m"}

Work = Callable[[Limner], Awaitable[object]]


class Kind(msgspec.Struct, frozen=True):
    """A kind of thing: what puts so many of it into a store, and what is measured."""

    fill: Callable[[sqlite3.Connection, int], None]
    reads: Mapping[str, Work] = {}
    writes: Mapping[str, Work] = {}


class Growth(msgspec.Struct, frozen=True):
    """The times of one operation, in seconds, by the number of things."""

    of: str
    work: str
    times_s: dict[int, list[float]]

    def ratio(self, size: int) -> float:
        """How much longer it takes than with the fewest things."""
        return statistics.median(self.times_s[size]) / self.fewest_s

    @property
    def fewest_s(self) -> float:
        return statistics.median(self.times_s[min(self.times_s)])


def main(
    sizes: tuple[int, ...] = SIZES,
    connections: tuple[int, ...] = CONNECTIONS,
    rounds: int = ROUNDS,
    reading_rounds: int = READING_ROUNDS,
) -> str:
    """The table."""
    found: list[Growth] = []
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            measured = _measure(name, kind, Path(folder), sizes, (reading_rounds, rounds))
            found += asyncio.run(measured)
    found.append(asyncio.run(_connections(connections, rounds)))
    return table(found)


def table(found: list[Growth]) -> str:
    """The growth of every operation, as Markdown; the first column of numbers is the unit."""
    lines: list[str] = []
    for sizes in dict.fromkeys(tuple(growth.times_s) for growth in found):
        first, *others = sizes
        head = [f"{first:,}", *(f"{size:,}" for size in others)]
        lines += [
            "",
            f"| of | operation | {' | '.join(head)} | |",
            "|---|---|" + "--:|" * len(head),
        ]
        lines[-1] += "---|"
        for growth in (one for one in found if tuple(one.times_s) == sizes):
            ratios = [growth.ratio(size) for size in others]
            above = max(ratios) > MOST
            why = WHY.get(growth.work, "MISSED") if above else ""
            cells = [f"{growth.fewest_s * 1e6:,.0f} µs", *(f"{ratio:.2f}x" for ratio in ratios)]
            lines.append(f"| {growth.of} | {growth.work} | {' | '.join(cells)} | {why} |")
    return "\n".join(lines[1:])


async def _measure(
    name: str, kind: Kind, folder: Path, sizes: tuple[int, ...], rounds: tuple[int, int]
) -> list[Growth]:
    async with contextlib.AsyncExitStack() as stack:
        homes: dict[int, Limner] = {}
        for size in sizes:
            home = folder / str(size)
            home.mkdir()
            lim = Limner(env={"LIMNER_HOME": str(home)}, cwd=folder)
            homes[size] = await stack.enter_async_context(lim)
            await lim.store.open()
            with closing(sqlite3.connect(home / "limner.db")) as store, store:
                kind.fill(store, size)
            print(f"{name}: {size:,} of them are stored", file=sys.stderr, flush=True)
        return [
            Growth(name, what, await _times(work, homes, count))
            for works, count in zip((kind.reads, kind.writes), rounds, strict=True)
            for what, work in works.items()
        ]


async def _times(work: Work, homes: dict[int, Limner], rounds: int) -> dict[int, list[float]]:
    times: dict[int, list[float]] = {size: [] for size in homes}
    chance = random.Random(0)
    for turn in range(WARM_UP + rounds):
        for size in chance.sample(list(homes), k=len(homes)):
            started_s = time.process_time()
            await work(homes[size])
            if turn >= WARM_UP:
                times[size].append(time.process_time() - started_s)
    return times


async def _connections(counts: tuple[int, ...], rounds: int) -> Growth:
    with tempfile.TemporaryDirectory() as folder:
        peer = app_server_peers.limner(Path(folder), base_url="http://127.0.0.1:9")
        times_s = {count: await waits(peer, idle=count, rounds=rounds) for count in counts}
    return Growth("connections", "a question of one client of the app-server", times_s)


def _calls(store: sqlite3.Connection, count: int) -> None:
    today = datetime.now(UTC).date().isoformat()
    store.execute(
        f"{_numbers(count)} INSERT INTO ledger (session_id, tool, provider, model, state,"
        " quoted_nano, cost_nano, cost_source, day, created_ms, updated_ms, owner_pid,"
        " owner_start, owner_boot) SELECT 's' || (n % 1000), 't', 'p', 'm', 'settled', 10, 10,"
        " 'table', ?, n, n, 1, '', '' FROM numbers",
        (today,),
    )


def _pictures(store: sqlite3.Connection, count: int) -> None:
    names = "handle, mime, width, height, size_bytes, parent, lineage, created_ms"
    store.executemany(f"INSERT INTO pictures ({names}) VALUES (?,?,?,?,?,?,?,?)", _rows(count))


def _rows(count: int) -> Iterator[tuple[Any, ...]]:
    for number in range(count):
        prompt = " ".join(WORDS[(number >> shift) % len(WORDS)] for shift in range(0, 15, 3))
        rare = "pangolin" if number < 5 else ""
        facts = {"provider": "p", "model": f"m{number % 7}", "prompt": f"every {prompt} {rare}"}
        at_ms = 1_700_000_000_000 + number * 60_000
        yield _handle(number), "image/png", 1024, 1024, 1000, None, json.dumps(facts), at_ms


def _handle(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def _sessions(store: sqlite3.Connection, count: int) -> None:
    store.execute(
        f"{_numbers(count)} INSERT INTO sessions (id, created_ms, updated_ms, cwd, preview)"
        " SELECT printf('session-%08d', n), n, n, '/', 'Draw a fox' FROM numbers"
    )


def _items(store: sqlite3.Connection, count: int) -> None:
    _sessions(store, 1)
    item = json.dumps({"type": "message", "role": "user", "content": "Look again, please."})
    store.execute(
        f"{_numbers(count)} INSERT INTO items (session_id, seq, created_ms, item)"
        " SELECT 'session-00000000', n, n, ? FROM numbers",
        (item,),
    )
    store.execute("UPDATE sessions SET items = ?", (count,))


def _batch_rows(store: sqlite3.Connection, count: int) -> None:
    store.execute(
        "INSERT INTO batches (id, name, state, digest, load, budget_nano, rates, caller,"
        " created_ms, updated_ms) VALUES ('b', 'b', 'open', '', 1, 0, '{}', '{}', 0, 0)"
    )
    # One half is done, as in the middle of a batch.
    store.execute(
        f"{_numbers(count)} INSERT INTO batch_rows (batch_id, row_key, number, load, tool,"
        " arguments, state, tries, not_before_ms, cost_nano, cost_source, updated_ms)"
        " SELECT 'b', printf('row-%08d', n), n, 1, 'image_generate', '{}',"
        " iif(n % 2, 'done', 'waiting'), 0, 0, 0, 'table', 0 FROM numbers"
    )


def _numbers(count: int) -> str:
    return (
        "WITH RECURSIVE numbers (n) AS"
        f" (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count})"
    )


async def _pay(lim: Limner) -> None:
    reservation = await lim.money.reserve(10, **CALL)
    await lim.money.mark_sent(reservation, request_json=None)
    await lim.money.settle(reservation, cost_nano=5, cost_source="table", picture=None)


async def _append(lim: Limner) -> None:
    session = await lim.sessions.open("session-00000000")
    await session.append([{"type": "message", "role": "user", "content": "And again."}])


async def _last_page(lim: Limner) -> None:
    session = await lim.sessions.open("session-00000000")
    about = await session.about()
    await session.page(from_seq=max(about.items - 10, 0), limit=10)


async def _claim(lim: Limner) -> None:
    queue = lim.batches.queue
    batch = await queue.get("b")
    claimed = await queue.claim(batch, count=5)
    await queue.let_go(batch, [row.row_key for row in claimed])


async def _status(lim: Limner) -> None:
    queue = lim.batches.queue
    await queue.counts(await queue.get("b"))


async def _search(lim: Limner, words: str) -> None:
    await lim.gallery.page(GalleryFilter(words=words), limit=5)


async def _jump(lim: Limner) -> None:
    total, _ = await lim.gallery.mark()
    await lim.gallery.page(GalleryFilter(), limit=5, skip=total // 2)


KINDS: dict[str, Kind] = {
    "calls in the ledger": Kind(
        _calls,
        reads={
            "`limner spend`": lambda lim: lim.spend(),
            "what a session has spent": lambda lim: lim.money.spent(session_id="s0"),
        },
        writes={"a paid call, from its reservation to its price": _pay},
    ),
    "pictures": Kind(
        _pictures,
        reads={
            "the first page of the gallery": lambda lim: lim.gallery.page(GalleryFilter(), limit=5),
            "a page in the middle": _jump,
            "a search for a rare word": lambda lim: _search(lim, "pangolin"),
            "a search for a word of every picture": lambda lim: _search(lim, "every"),
            "one picture by its handle": lambda lim: lim.gallery.find([_handle(3)]),
        },
    ),
    "sessions": Kind(
        _sessions,
        reads={"the first page of the list": lambda lim: lim.sessions.list(limit=5)},
        writes={
            "begin one": lambda lim: lim.sessions.create(cwd="/"),
            "open one and add an item": _append,
        },
    ),
    "items in a session": Kind(
        _items,
        reads={"open it with its last page": _last_page},
        writes={"add one": _append},
    ),
    "rows in a batch": Kind(
        _batch_rows,
        reads={"status of the batch": _status},
        writes={"claim five rows and give them back": _claim},
    ),
}
