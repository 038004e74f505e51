"""The database of a team: its tables, queries, locks, connections and errors."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres_server import PostgresServer, needs_postgres

from limner.errors import BudgetExceeded, StorageError
from limner.money.ledger import Caps, Money
from limner.storage.database import clock_ms, statements
from limner.storage.postgres_engine import MIGRATION_LOCK
from limner.storage.queries import (
    POSTGRES_FOLDER,
    migrations,
    named_queries,
    parameters,
    postgres_queries,
    to_psycopg,
)
from limner.storage.store import Store, Transaction

pytestmark = needs_postgres

OVERRIDES = named_queries(POSTGRES_FOLDER)
# SQLite's text is valid here too, and means something else or is slow.
OTHER_MEANING = {
    "batch_claim": "it would wait for the rows that another process is claiming",
    "item_search": "LIKE would tell small letters from capital ones",
    "ledger_ids_go_on": "the next row would get an id that is taken",
    "spending_by_session": "the view would add up all sessions for one page",
}
# Columns that only one of the databases needs.
ONLY_POSTGRES = {
    *(f"{table}.rowid" for table in ("calls", "pictures", "sessions")),
    "gallery.found_by",
    "schema_version.number",
}
PARTS = {
    "spending_parts": "spending",
    "gallery_total_parts": "gallery_totals",
    "batch_count_parts": "batch_counts",
}


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    made = postgres.new_url()
    store = Store(Path("unused"), url=made)
    asyncio.run(store.open())
    store.close()
    return made


@pytest.fixture
async def stores(postgres: PostgresServer) -> AsyncIterator[Callable[[], Store]]:
    made = postgres.new_url()
    opened: list[Store] = []

    def new() -> Store:
        opened.append(Store(Path("unused"), url=made))
        return opened[-1]

    yield new
    for store in opened:
        await store.aclose()


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.create_function("clock_ms", 0, clock_ms)
        for _, script in migrations():
            for statement in statements(script):
                connection.execute(statement)
        yield connection


def described(url: str, statement: str) -> tuple[str, list[str]]:
    """What the server says about a statement: an error or nothing, and the names of its columns."""
    import psycopg
    from psycopg._queries import PostgresQuery
    from psycopg.adapt import Transformer

    with psycopg.connect(url) as connection:
        query = PostgresQuery(Transformer(connection))
        query.convert(to_psycopg(statement).encode(), dict.fromkeys(parameters(statement)))
        prepared = connection.pgconn.prepare(b"", query.query)
        columns = connection.pgconn.describe_prepared(b"")
        names = [columns.fname(place) or b"" for place in range(columns.nfields)]
        return prepared.error_message.decode(), [name.decode() for name in names]


def test_every_query_fits_the_tables_of_postgres(url: str) -> None:
    texts = {**named_queries(), **OVERRIDES}
    assert {name: said for name in texts if (said := described(url, texts[name])[0])} == {}


def test_a_query_of_its_own_is_needed_and_has_the_same_parameters_and_columns(
    url: str, sqlite: sqlite3.Connection
) -> None:
    for name, statement in OVERRIDES.items():
        twin = named_queries()[name]
        assert bool(described(url, twin)[0]) != (name in OTHER_MEANING), name
        if name == "home_check":  # a command of SQLite
            continue
        assert parameters(statement) == parameters(twin), name
        sqlite.execute("BEGIN")
        cursor = sqlite.execute(twin, dict.fromkeys(parameters(twin), 1))
        columns = [column[0] for column in cursor.description or ()]
        cursor.close()
        sqlite.execute("ROLLBACK")
        assert described(url, statement)[1] == columns, name


def test_both_databases_have_the_same_tables_and_columns(
    url: str, postgres: PostgresServer, sqlite: sqlite3.Connection
) -> None:
    found = postgres.run(
        "SELECT table_name || '.' || column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema()",
        url=url,
    )
    theirs = {str(row[0]) for row in found} - ONLY_POSTGRES
    theirs = {one for one in theirs if one.partition(".")[0] not in PARTS}
    tables = sqlite.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'gallery_text%' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    ours = {
        f"{table}.{row[1]}"
        for (table,) in tables
        for row in sqlite.execute(f"PRAGMA table_info({table})")
    }
    assert theirs == ours


def test_only_parameters_become_placeholders() -> None:
    text = "SELECT ':a', x::text, \"b:c\", :d -- :e\n/* :f */ FROM t INDEXED BY i WHERE x LIKE '5%'"
    assert to_psycopg(text) == (
        "SELECT ':a', x::text, \"b:c\", %(d)s -- :e\n/* :f */ FROM t  WHERE x LIKE '5%%'"
    )
    assert parameters(text) == {"d"}
    assert set(postgres_queries()) == set(named_queries())


async def test_a_row_behaves_as_in_sqlite(stores: Callable[[], Store]) -> None:
    def work(tx: Transaction) -> Any:
        tx.run("session_touch", id="a\0b", now_ms=2**40, cwd="/w")
        row = tx.one("session_get", id="a\ufffdb")
        assert row is not None
        return row["id"], row[1], row.keys(), dict(row), list(row), len(row), dict(**row)

    facts = {"id": "a\ufffdb", "created_ms": 2**40, "updated_ms": 2**40, "cwd": "/w"}
    assert await stores().write(work) == (
        *("a\ufffdb", 2**40, list(facts), facts, list(facts.values()), 4, facts),
    )


async def test_calls_of_different_sessions_do_not_wait_for_each_other(
    stores: Callable[[], Store],
) -> None:
    first, second = stores(), stores()
    clock = lambda: datetime(2026, 11, 16, tzinfo=UTC)  # noqa: E731
    moneys = [Money(store, caps=Caps(session_nano=100), clock=clock) for store in (first, second)]
    call: dict[str, Any] = {"tool": "t", "provider": "p", "model": "m"}
    for money in moneys:
        await money.spend()
    inside, go_on = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        tx.lock("session a")
        moneys[0].write_sent(tx, held)
        inside.set()
        assert go_on.wait(60)

    held = await moneys[0].reserve(60, session_id="a", **call)
    holding = asyncio.create_task(first.write(hold, shared=True))
    await asyncio.to_thread(inside.wait)
    # The same day, the same model, another session.
    paid = await moneys[1].reserve(60, session_id="b", **call)
    await moneys[1].mark_sent(paid, request_json="{}")
    await moneys[1].settle(paid, cost_nano=50, cost_source="table", picture=None)
    waiting = asyncio.create_task(moneys[1].reserve(60, session_id="a", **call))
    alone = asyncio.create_task(second.write(lambda tx: tx.run("session_rename", id="a", name="x")))
    done, _ = await asyncio.wait({waiting, alone}, timeout=0.1)
    assert done == set()
    go_on.set()
    await holding
    with pytest.raises(BudgetExceeded):
        await waiting
    assert await alone == 0
    assert await moneys[0].wrong_counters() == []


async def test_a_cap_holds_for_many_processes_at_once(stores: Callable[[], Store]) -> None:
    clock = lambda: datetime(2026, 11, 16, tzinfo=UTC)  # noqa: E731
    moneys = [Money(stores(), caps=Caps(day_nano=100), clock=clock) for _ in range(3)]
    call: dict[str, Any] = {"tool": "t", "provider": "p", "model": "m"}

    async def pay(money: Money, number: int) -> int:
        try:
            paid = await money.reserve(10, session_id=f"s{number}", **call)
        except BudgetExceeded:
            return 0
        await money.mark_sent(paid, request_json=None)
        await money.settle(paid, cost_nano=10, cost_source="table", picture=None)
        return 1

    went = await asyncio.gather(*(pay(moneys[n % 3], n) for n in range(30)))
    assert sum(went) == 10
    assert (await moneys[0].spend()).settled_nano == 100
    assert await moneys[0].wrong_counters() == []


async def test_a_write_that_meets_a_deadlock_runs_again(
    stores: Callable[[], Store], postgres: PostgresServer
) -> None:
    store = stores()
    for name in "ab":
        await store.write(lambda tx, name=name: tx.run("rate_set", name=name, free_us=0))
    meeting = threading.Barrier(2)
    runs: list[str] = []

    def work(tx: Transaction, names: str) -> None:
        runs.append(names)
        tx.run("rate_set", name=names[0], free_us=1)
        if len(runs) <= 2:
            meeting.wait(60)
        tx.run("rate_set", name=names[1], free_us=1)

    both = [lambda tx: work(tx, "ab"), lambda tx: work(tx, "ba")]
    await asyncio.gather(*(store.write(one, shared=True) for one in both))
    assert len(runs) >= 3


async def test_a_connection_that_the_server_closed_is_opened_again(
    stores: Callable[[], Store], postgres: PostgresServer
) -> None:
    store = stores()
    touch: Callable[[Transaction], int] = lambda tx: tx.run(  # noqa: E731
        "session_touch", id="s", now_ms=1, cwd="/"
    )
    assert await store.write(touch) == 1
    postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'limner'"
    )
    assert await store.write(touch) == 1


async def failure(url: str) -> StorageError:
    store = Store(Path("unused"), url=url)
    with pytest.raises(StorageError) as caught:
        await store.read(lambda tx: tx.one("session_get", id="s"))
    await store.aclose()
    return caught.value


async def test_what_is_wrong_is_said_without_the_password(postgres: PostgresServer) -> None:
    postgres.run("CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE weak LOGIN")
    found = {
        case: await failure(url)
        for case, url in {
            "nowhere": "postgresql://u:s3cret@127.0.0.1:1/d",
            "no host": "postgresql://u:s3cr@et@nowhere.invalid/d",
            "password": postgres.url(user="guarded:s3cret"),
            "no password": postgres.url(user="guarded"),
            "database": postgres.url(database="missing"),
            "rights": postgres.url(user="weak"),
        }.items()
    }
    assert {case: error.message.partition(": ")[2] for case, error in found.items()} == {
        "nowhere": "no server answers there.",
        "no host": "the name of the host is not known.",
        **dict.fromkeys(["password", "no password", "database", "rights"], ""),
    }
    endings = {case: error.message.rpartition("postgres")[2] for case, error in found.items()}
    assert "//u@nowhere.invalid/d" in found["no host"].message
    assert endings["password"] == endings["no password"] == " refuses this user or its password."
    assert found["database"].message.endswith("missing has no such database.")
    assert found["rights"].message.startswith("This user may not create or change the tables of")
    for error in found.values():
        assert "s3cr" not in f"{error} {error.hint} {error.__cause__}"


async def test_the_tables_of_a_newer_limner_are_used_as_they_are(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()
    for _ in range(2):
        store = Store(Path("unused"), url=url)
        assert await store.open()
        await store.aclose()
        postgres.run("UPDATE schema_version SET number = 9999", url=url)
    assert postgres.run("SELECT number FROM schema_version", url=url) == [(9999,)]


async def test_a_process_that_waited_for_the_first_migration_does_not_repeat_it(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()
    store = Store(Path("unused"), url=url)
    await store.open()
    await store.aclose()
    postgres.run("ALTER TABLE schema_version RENAME TO later", url=url)
    waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    late = Store(Path("unused"), url=url)
    with psycopg.connect(url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION_LOCK,))
        opening = asyncio.create_task(late.open())  # it sees a database without tables
        while not await asyncio.to_thread(postgres.run, waiting, url=url):
            assert not opening.done()
        other.execute("ALTER TABLE later RENAME TO schema_version")
    assert await opening
    await late.aclose()


async def test_a_server_that_cannot_be_written_can_be_read(postgres: PostgresServer) -> None:
    url = postgres.new_url()
    store = Store(Path("unused"), url=url)
    assert await store.open()
    await store.aclose()
    store = Store(Path("unused"), url=f"{url}%20-cdefault_transaction_read_only%3Don")
    assert not await store.open()
    await store.aclose()
