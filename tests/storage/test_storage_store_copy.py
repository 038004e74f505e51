"""Records of one store in another: nothing is left out, and nothing is added."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres_server import PostgresServer, needs_postgres

from limner.agent.sessions import Sessions
from limner.batches.queue import BatchQueue, CheckedRow
from limner.errors import StorageError
from limner.money.ledger import Caps, Money
from limner.storage.database import statements
from limner.storage.queries import migrations
from limner.storage.store import Store, Transaction
from limner.storage.store_copy import _DERIVED, _TABLES, copy_store  # pyright: ignore[reportPrivateUsage]

# The order of pictures in the gallery may differ, and only PostgreSQL has some columns.
HIDDEN = {"gallery.id", "gallery.found_by", "calls.rowid", "pictures.rowid", "sessions.rowid"}
# The leases of processes, what counts the gallery, and the identity of a database.
LEFT_OUT = {"session_leases", "gallery_totals", "gallery_gaps", "home"}


def test_every_table_is_copied_or_left_out_on_purpose() -> None:
    """A new table belongs into `store_copy`, or into `LEFT_OUT` here."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, script in migrations():
            for statement in statements(script):
                connection.execute(statement)
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {name for (name,) in found if not name.startswith("gallery_text")}
    assert tables == {*_TABLES, *_DERIVED} | LEFT_OUT


def clock() -> datetime:
    return datetime(2026, 11, 16, tzinfo=UTC)


async def fill(store: Store) -> None:
    """Calls in every state, a session with items, and pictures that came before their parents."""
    money = Money(store, caps=Caps(), clock=clock, program="program")
    call: dict[str, Any] = {"session_id": "s", "tool": "t", "provider": "p", "model": "m"}
    paid = await money.reserve(9, **call)
    await money.mark_sent(paid, request_json="{}")

    def add(tx: Transaction) -> None:
        facts = {"mime": "image/png", "width": 2, "height": 3, "size_bytes": 4}
        lineage = json.dumps({"provider": "p", "model": "m", "prompt": "A réd fox", "parents": []})
        tx.run("picture_add", handle="a", parent=None, lineage=lineage, created_ms=2, **facts)
        tx.run("picture_add", handle="c", parent="a", lineage="{}", created_ms=1, **facts)
        drawn = json.dumps({"parents": ["a"], "prompt": "two owls"})
        tx.run("picture_add", handle="b", parent=None, lineage=drawn, created_ms=3, **facts)
        tx.raw("UPDATE pictures SET parent = 'b' WHERE handle = 'c'")
        tx.run("picture_text_add", handle="b", words="SALE")
        tx.run("fit_add", parent="a", request="r", picture="c", fitted="{}", created_ms=1)
        tx.run("answer_add", key="k", text="yes", created_ms=1)
        tx.run("rate_set", name="p/m", free_us=5)

    await store.write(add)
    await money.settle(paid, cost_nano=7, cost_source="table", picture="a")
    await money.release(await money.reserve(3, **call))
    lost = await money.reserve(5, **call)
    await money.mark_sent(lost, request_json=None)
    await money.mark_unknown(lost, error_code="LOST")
    session = await Sessions(store=store, clock=clock).create(cwd="/w")
    await session.append([{"type": "message", "role": "user", "content": []}])


def everything(tx: Transaction) -> dict[str, list[dict[str, object]]]:
    tables = {table: order.replace("rowid", "1") for table, order in _TABLES.items()}
    orders = {**tables, "spending": "kind, name", "gallery": "handle", "drawn_from": "picture"}
    return {
        table: [
            {name: row[name] for name in sorted(row.keys()) if f"{table}.{name}" not in HIDDEN}
            for row in tx.raw(f"SELECT * FROM {table} ORDER BY {order}")
        ]
        for table, order in orders.items()
    }


@pytest.mark.slow
@needs_postgres
async def test_a_home_that_moves_to_postgres_and_back_is_the_same(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.new_url()
    places = [
        Store(tmp_path / "a" / "limner.db"),
        Store(Path("unused"), url=url),
        Store(tmp_path / "b" / "limner.db"),
    ]
    await fill(places[0])
    before = await places[0].read(everything)
    first = await copy_store(places[0], places[1])
    assert (first.rows["ledger"], first.rows["pictures"], first.rows["gallery"]) == (3, 3, 2)
    assert await places[1].read(everything) == before
    with pytest.raises(StorageError, match="has records already"):
        await copy_store(places[0], places[1])
    second = await copy_store(places[1], places[2])
    assert second.rows == first.rows
    assert await places[2].read(everything) == before
    assert [row["words"] for row in before["gallery"]] == ["A réd fox", "two owls   SALE"]
    # The next call gets an id of its own.
    money = Money(places[1], caps=Caps(), clock=clock)
    call: dict[str, Any] = {"session_id": "s", "tool": "t", "provider": "p", "model": "m"}
    assert (await money.reserve(1, **call)).ledger_id == 4
    assert await money.wrong_counters() == []
    for store in places:
        await store.aclose()


async def test_a_batch_that_has_lost_all_its_rows_is_copied(tmp_path: Path) -> None:
    places = [Store(tmp_path / name / "limner.db") for name in ("a", "b")]
    queue = BatchQueue(store=places[0], clock=clock)
    terms = {"lane": "fast", "rates": "{}", "caller": "person"}
    batch = await queue.add("b", digest="1", budget_nano=1, **terms)
    row = CheckedRow(key="a", number=1, tool="image_generate", arguments="{}")
    batch = await queue.load(batch, [row], digest="1")
    await queue.load(batch, [], digest="2")
    copied = await copy_store(*places)
    assert (copied.rows["batches"], copied.rows["batch_rows"]) == (1, 0)
    for store in places:
        await store.aclose()
