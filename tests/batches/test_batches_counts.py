"""The counts of a batch, which triggers keep, beside its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.servers.postgres_server import PostgresServer, needs_postgres

from limner import Limner
from limner.batches.queue import BatchQueue, CheckedRow
from limner.batches.records import Batch, BatchCounts, RowOutcome
from limner.storage.database import open_database, statements
from limner.storage.home import Home
from limner.storage.queries import migrations
from limner.storage.repair import repair_database
from limner.storage.store import Store
from limner.testing import FakeServices

NUMBER = 22
STATES = ("done", "waiting", "done", "failed")
PAID = RowOutcome(cost_nano=5)
FAILED = RowOutcome(error={"code": "UNEXPECTED"})
COUNTS = "SELECT batch_id, waiting, running, done, failed FROM batch_counts"
UNDO = (
    "DROP TRIGGER batch_row_counted ON batch_rows",
    "DROP FUNCTION count_batch_row",
    "DROP VIEW batch_counts",
    "DROP TABLE batch_count_parts",
    f"UPDATE schema_version SET number = {NUMBER - 1}",
)


@pytest.fixture
def store_url(database: str | None) -> str | None:
    return database


def rows(count: int) -> list[CheckedRow]:
    return [
        CheckedRow(key=f"k{number}", number=number, tool="image_generate", arguments="{}")
        for number in range(count)
    ]


async def new_batch(queue: BatchQueue, count: int) -> Batch:
    terms = {"lane": "now", "rates": "{}", "caller": "{}"}
    batch = await queue.add("foxes", digest="", budget_nano=9, **terms)
    return await queue.load(batch, rows(count), digest="first")


async def counted(queue: BatchQueue, batch: Batch) -> BatchCounts:
    """The counts, which are those of the rows."""
    found = await queue.counts(batch)
    states = [row.state async for row in queue.results(batch)]
    assert found == BatchCounts(**{state: states.count(state) for state in states})
    return found


async def test_the_counts_follow_the_rows_through_every_state(
    services: FakeServices, lim: Limner
) -> None:
    queue = lim.batches.queue
    batch = await new_batch(queue, 8)
    assert await counted(queue, batch) == BatchCounts(waiting=8)
    async with services.limner() as another:
        theirs = another.batches.queue
        mine, others = await queue.claim(batch, count=4), await theirs.claim(batch, count=2)
        assert await counted(queue, batch) == BatchCounts(waiting=2, running=6)
        await queue.end(batch, mine[0].row_key, PAID)
        await queue.end(batch, mine[1].row_key, FAILED)
        await queue.end(batch, mine[2].row_key, FAILED, again_in_s=60)
        await theirs.end(batch, others[0].row_key, FAILED)
        await theirs.let_go(batch, [others[1].row_key])
        wanted = BatchCounts(waiting=4, running=1, done=1, failed=2)
        assert await counted(theirs, batch) == wanted
    assert await queue.retry(batch) == 2
    assert await counted(queue, batch) == BatchCounts(waiting=6, running=1, done=1)
    await queue.load(batch, rows(5), digest="second")
    assert await counted(queue, batch) == BatchCounts(waiting=3, running=1, done=1)


def earlier_home(folder: Path, states: Sequence[str] = STATES) -> Home:
    """A home of the version before the counts, with rows in a batch."""
    home = Home(folder)
    with closing(sqlite3.connect(home.database)) as earlier, earlier:
        for _, script in migrations()[: NUMBER - 1]:
            for statement in statements(script):
                earlier.execute(statement)
        earlier.execute(f"PRAGMA user_version = {NUMBER - 1}")
        for statement in add_rows(states):
            earlier.execute(statement)
    return home


def add_rows(states: Sequence[str] = STATES) -> Iterator[str]:
    yield (
        "INSERT INTO batches (id, name, state, digest, load, budget_nano, rates, caller,"
        " created_ms, updated_ms) VALUES ('b', 'b', 'open', '', 1, 0, '{}', '{}', 0, 0)"
    )
    for number, state in enumerate(states):
        yield (
            "INSERT INTO batch_rows (batch_id, row_key, number, load, tool, arguments, state,"
            " tries, not_before_ms, cost_nano, cost_source, updated_ms) VALUES"
            f" ('b', 'k{number}', {number}, 1, 't', '{{}}', '{state}', 0, 0, 0, 'table', 0)"
        )


def test_the_rows_of_an_earlier_version_are_counted_once(tmp_path: Path) -> None:
    home = earlier_home(tmp_path)
    with closing(open_database(home.database)) as database:
        counts = [tuple(row) for row in database.connection.execute(COUNTS)]
    assert counts == [("b", 1, 0, 2, 1)]


def test_a_repair_counts_the_rows_that_it_found(tmp_path: Path) -> None:
    home = earlier_home(tmp_path, ["waiting"] * 500)
    open_database(home.database).close()
    whole = home.database.read_bytes()
    start = whole.index(b"bk250") // 4096 * 4096
    home.database.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
    repair_database(home)
    with closing(open_database(home.database)) as database:
        ask = database.connection.execute
        (left,) = ask("SELECT count(*) FROM batch_rows WHERE state = 'waiting'").fetchone()
        assert 400 < left < 500
        assert [tuple(row) for row in ask(COUNTS)] == [("b", left, 0, 0, 0)]


@pytest.mark.slow
@needs_postgres
async def test_the_rows_of_an_earlier_version_are_counted_on_postgres(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()
    await open_store(url)
    for statement in (*UNDO, *add_rows()):
        postgres.run(statement, url=url)
    await open_store(url)
    assert postgres.run(COUNTS, url=url) == [("b", 1, 0, 2, 1)]


async def open_store(url: str) -> None:
    store = Store(Path("unused"), url=url)
    await store.open()
    await store.aclose()
