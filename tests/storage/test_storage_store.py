"""The database: transactions, processes, migrations, cancellation, damage."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from limner.errors import StorageError
from limner.storage.daily_copy import DailyCopier
from limner.storage.database import REPAIR_HINT
from limner.storage.home import Home
from limner.storage.home_mark import read_mark
from limner.storage.queries import migrations
from limner.storage.store import SqliteEngine, Store, Transaction

PICTURE = {"mime": "image/png", "width": 2, "height": 3, "size_bytes": 4, "lineage": "{}"}


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "limner.db"


@pytest.fixture
def path(sqlite_file: Path) -> Path:
    return sqlite_file


def touch(tx: Transaction, session: str = "s", now_ms: int = 1) -> int:
    return tx.run("session_touch", id=session, now_ms=now_ms, cwd="/w")


def sessions(tx: Transaction) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.all("session_recent", limit=100)]


def start(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def test_a_store_that_is_never_used_touches_nothing(path: Path) -> None:
    store = Store(path)
    threads = threading.active_count()
    store.close()
    assert not path.parent.exists()
    assert threading.active_count() == threads


async def test_only_the_owner_can_read_the_database(store: Store, path: Path) -> None:
    await store.write(touch)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["home-id", "limner.db", "limner.db-shm", "limner.db-wal"], 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_the_connection_is_as_careful_as_money_needs(store: Store, path: Path) -> None:
    def pragmas(tx: Transaction) -> list[Any]:
        connection: Any = tx._connection  # pyright: ignore[reportPrivateUsage]
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await store.read(pragmas) == ["wal", 2, 1, 30_000]


async def test_a_write_that_is_not_synced_is_seen_by_all_and_marked_by_the_next_synced_one(
    sqlite_file: Path,
) -> None:
    def synchronous(tx: Transaction) -> int:
        touch(tx, "s")
        connection: Any = tx._connection  # pyright: ignore[reportPrivateUsage]
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    def marked() -> int:
        mark = read_mark(Home(sqlite_file.parent).mark)
        assert mark is not None
        return mark.writes

    ours, other = Store(sqlite_file), Store(sqlite_file)
    assert await ours.write(synchronous) == 2
    before = marked()
    assert await ours.write(synchronous, synced=False) == 1
    assert await other.read(sessions) == await ours.read(sessions) != []
    assert marked() == before
    both = (ours.write(synchronous), ours.write(synchronous, synced=False))
    assert await asyncio.gather(*both) in ([2, 2], [2, 1])
    await ours.write(touch)
    assert marked() > before + 2
    ours.close()
    other.close()


async def test_a_session_is_started_once_and_touched_after(store: Store) -> None:
    await store.write(lambda tx: (touch(tx, "a", 10), touch(tx, "b", 20)))
    assert await store.write(lambda tx: touch(tx, "a", 30)) == 1
    await store.write(lambda tx: touch(tx, "b", 15))
    assert await store.read(sessions) == [
        {"id": "a", "created_ms": 10, "updated_ms": 30, "cwd": "/w"},
        {"id": "b", "created_ms": 20, "updated_ms": 20, "cwd": "/w"},
    ]
    row = await store.read(lambda tx: tx.one("session_get", id="b"))
    assert row is not None
    assert row["created_ms"] == 20
    assert await store.read(lambda tx: tx.one("session_get", id="c")) is None


async def test_a_picture_keeps_its_first_row(store: Store) -> None:
    def add(tx: Transaction, handle: str, created_ms: int, parent: str | None = None) -> int:
        row = {**PICTURE, "handle": handle, "created_ms": created_ms, "parent": parent}
        return tx.run("picture_add", **row)

    assert await store.write(lambda tx: add(tx, "b", 1)) == 1
    assert await store.write(lambda tx: add(tx, "a", 2, "b")) == 1
    assert await store.write(lambda tx: add(tx, "b", 3)) == 0
    recent = await store.read(lambda tx: tx.all("picture_recent", limit=1))
    assert [dict(row) for row in recent] == [
        {**PICTURE, "handle": "a", "created_ms": 2, "parent": "b"}
    ]
    handles = await store.read(lambda tx: [row[0] for row in tx.all("picture_handles")])
    assert handles == ["a", "b"]
    row = await store.read(lambda tx: tx.one("picture_get", handle="b"))
    assert row is not None
    assert row["created_ms"] == 1
    # A parent that is not there is a bug of ours.
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        await store.write(lambda tx: add(tx, "c", 4, "missing"))


async def test_a_write_that_raises_changes_nothing(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        touch(tx)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        await store.write(fail)
    assert await store.read(sessions) == []
    assert await store.write(touch) == 1


async def test_a_write_that_is_committed_succeeds_even_if_the_copy_of_the_day_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the folder of the copies cannot be read")

    monkeypatch.setattr(DailyCopier, "start", fail)
    assert await store.write(touch) == 1
    assert [row["id"] for row in await store.read(sessions)] == ["s"]


async def test_after_a_lock_that_the_system_did_not_release_the_store_connects_again(
    store: Store, path: Path
) -> None:
    connections: list[Any] = []

    def fail(tx: Transaction) -> None:
        connections.append(tx._connection)  # pyright: ignore[reportPrivateUsage]
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorname = "SQLITE_PROTOCOL"
        raise error

    with pytest.raises(StorageError, match=r"cannot be written \(locking protocol\)"):
        await store.write(fail)
    assert await store.write(touch) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connections[0].in_transaction  # noqa: B018


async def test_a_bug_in_a_query_stays_as_it_is_and_is_not_its_own_cause(store: Store) -> None:
    bug = sqlite3.OperationalError("no such table")

    def fail(_: Transaction) -> None:
        raise bug

    with pytest.raises(sqlite3.OperationalError) as caught:
        await store.write(fail)
    assert (caught.value, bug.__cause__) == (bug, None)


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        await store.read(touch)
    assert await store.read(sessions) == []
    assert await store.write(touch) == 1


async def test_an_unknown_query_is_a_bug(store: Store) -> None:
    with pytest.raises(KeyError, match="no_such_query"):
        await store.read(lambda tx: tx.one("no_such_query"))


def test_one_store_serves_one_event_loop_after_another(path: Path) -> None:
    store = Store(path)
    for n in range(3):
        asyncio.run(store.write(lambda tx, n=n: touch(tx, f"s{n}")))
    assert len(asyncio.run(store.read(sessions))) == 3
    asyncio.run(store.aclose())
    asyncio.run(store.aclose())
    assert sorted(file.name for file in path.parent.iterdir()) == ["home-id", "limner.db"]


async def test_a_write_cancelled_in_the_queue_never_starts(store: Store, path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        started.set()
        assert go_on.wait(30)
        touch(tx, "slow")

    running = asyncio.create_task(store.write(slow))
    await asyncio.to_thread(started.wait)
    queued = asyncio.create_task(store.write(lambda tx: touch(tx, "queued")))
    await asyncio.sleep(0)  # one turn of the loop, in which the write is submitted
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    go_on.set()
    await running
    assert [row["id"] for row in await store.read(sessions)] == ["slow"]


async def test_a_write_cancelled_while_it_runs_completes(store: Store) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        touch(tx, "first")
        started.set()
        assert go_on.wait(30)
        touch(tx, "second")

    running = asyncio.create_task(store.write(slow))
    await asyncio.to_thread(started.wait)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()
    await store.write(lambda _: None)  # it runs alone, so after the other
    assert sorted(row["id"] for row in await store.read(sessions)) == ["first", "second"]


async def test_closing_finishes_what_is_queued(path: Path) -> None:
    store = Store(path)
    writes = [
        asyncio.create_task(store.write(lambda tx, n=n: touch(tx, f"s{n}"))) for n in range(20)
    ]
    await asyncio.sleep(0)  # one turn of the loop, in which the writes are submitted
    await store.aclose()
    assert await asyncio.gather(*writes) == [1] * 20


COUNT = """
    import asyncio, sys
    from pathlib import Path
    from limner.storage.store import Store

    def add_one(tx):
        row = tx.one("session_get", id="counter")
        before = 0 if row is None else int(row["cwd"])
        tx.run("session_touch", id="counter", now_ms=1, cwd=str(before + 1))

    async def main():
        store = Store(Path(sys.argv[1]))
        for _ in range(50):
            await store.write(add_one)
        await store.aclose()

    asyncio.run(main())
"""


async def test_four_processes_counting_lose_no_count(store: Store, path: Path) -> None:
    processes = [start(COUNT, path) for _ in range(4)]
    codes = [await asyncio.to_thread(process.wait, 120) for process in processes]
    for process in processes:
        process.communicate()
    assert codes == [0] * 4
    row = await store.read(lambda tx: tx.one("session_get", id="counter"))
    assert row is not None
    assert row["cwd"] == "200"


OPEN_TOGETHER = """
    import asyncio, sys
    from pathlib import Path
    from limner.storage.store import Store
    store = Store(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(store.write(lambda tx: tx.run("session_touch", id=sys.argv[2], now_ms=1, cwd="/")))
    store.close()
"""


@pytest.mark.slow
async def test_processes_that_open_a_fresh_home_at_once_all_succeed(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / str(attempt) / "limner.db"
        processes = [start(OPEN_TOGETHER, path, f"p{n}") for n in range(4)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate(timeout=60)
        assert [process.returncode for process in processes] == [0] * 4
        store = Store(path)
        found = await store.read(
            lambda tx: {row["id"] for row in tx.all("session_recent", limit=9)}
        )
        await store.aclose()
        assert found == {f"p{n}" for n in range(4)}


async def test_a_store_that_is_left_open_closes_its_file_when_it_is_collected(path: Path) -> None:
    store = Store(path)
    await store.write(touch)
    engine = store._engine  # pyright: ignore[reportPrivateUsage]
    thread = store._threads  # pyright: ignore[reportPrivateUsage]
    assert isinstance(engine, SqliteEngine)
    database = engine.database
    assert database is not None
    connection = database.connection
    del database, engine, store
    # The thread may hold the last reference: two threads in one connection crash.
    thread.shutdown(wait=True)
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


async def test_the_version_is_the_number_of_the_last_migration(store: Store, path: Path) -> None:
    await store.write(touch)
    with sqlite3.connect(path) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    assert version == migrations()[-1][0]


async def test_the_database_of_a_newer_limner_opens(path: Path) -> None:
    first = Store(path)
    await first.write(touch)
    await first.aclose()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    again = Store(path)
    assert len(await again.read(sessions)) == 1
    assert await again.write(touch) == 1
    await again.aclose()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 9999
    connection.close()


@pytest.mark.parametrize("damage", ["not a database", "torn pages"])
async def test_a_damaged_database_is_named_with_what_to_do(path: Path, damage: str) -> None:
    if damage == "not a database":
        path.parent.mkdir()
        path.write_bytes(b"this is no database at all\n" * 100)
    else:
        store = Store(path)
        await store.write(lambda tx: [touch(tx, f"{n:0500d}") for n in range(100)])
        await store.aclose()
        whole = bytearray(path.read_bytes())
        whole[4096:] = os.urandom(len(whole) - 4096)
        path.write_bytes(bytes(whole))
    store = Store(path)
    with pytest.raises(StorageError) as caught:
        await store.read(sessions)
    await store.aclose()
    assert caught.value.message.startswith(f"The database {str(path)!r} is damaged")
    assert (caught.value.code, caught.value.hint) == ("DATABASE_DAMAGED", REPAIR_HINT)


async def test_a_folder_in_place_of_the_database_is_said(path: Path) -> None:
    path.mkdir(parents=True)
    store = Store(path)
    with pytest.raises(StorageError, match=r"Could not open the database .*: it is a folder"):
        await store.read(sessions)
    await store.aclose()


async def test_a_store_recovers_when_the_trouble_is_gone(path: Path) -> None:
    path.parent.parent.joinpath("home").write_bytes(b"in the way")
    store = Store(path)
    with pytest.raises(StorageError):
        await store.write(touch)
    path.parent.unlink()
    assert await store.write(touch) == 1
    await store.aclose()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
async def test_a_forked_child_is_told_to_make_its_own(store: Store) -> None:
    await store.write(touch)

    def use() -> None:
        try:
            asyncio.run(store.write(touch))
        except StorageError as error:
            os._exit(0 if error.hint == "Make a new Limner in the child process." else 2)
        os._exit(3)

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
async def test_a_store_that_was_not_used_before_a_fork_works_after_it(
    store: Store, tmp_path: Path
) -> None:
    before = store.owner.id

    def use() -> None:
        done = asyncio.run(store.write(touch))
        (tmp_path / "owner").write_text(store.owner.id)
        os._exit(0 if done == 1 else 2)

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == 0
    assert (tmp_path / "owner").read_text() != before == store.owner.id
    await store.read(lambda _: None)


KILLED = """
    import asyncio, sys
    from pathlib import Path
    from limner.storage.store import Store

    def half(tx):
        tx.run("session_touch", id="half", now_ms=1, cwd="/")
        print("half", flush=True)
        sys.stdin.read()

    store = Store(Path(sys.argv[1]))
    asyncio.run(store.write(lambda tx: tx.run("session_touch", id="whole", now_ms=1, cwd="/")))
    asyncio.run(store.write(half))
"""


async def test_kill_minus_nine_inside_a_write_leaves_all_before_it_and_none_of_it(
    path: Path,
) -> None:
    with start(KILLED, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.kill()
    store = Store(path)
    assert [row["id"] for row in await store.read(sessions)] == ["whole"]
    await store.aclose()


def test_no_two_migrations_have_the_same_number() -> None:
    numbers = [number for number, _ in migrations()]
    assert numbers == sorted(set(numbers))


CHECK_WITH_LITTLE_MEMORY = """
import sqlite3, sys
from limner.storage.database import quick_check
connection = sqlite3.connect(sys.argv[1])
connection.execute(f"PRAGMA hard_heap_limit = {sys.argv[2]}").fetchone()
try:
    print(quick_check(connection))
except MemoryError:
    print("no memory")
"""


@pytest.mark.parametrize("heap_bytes", [200_000, 400_000, 800_000])
def test_a_check_that_runs_out_of_memory_finds_no_damage(tmp_path: Path, heap_bytes: int) -> None:
    path = tmp_path / "large.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE kept (a, b)")
        connection.execute("CREATE INDEX kept_by_a ON kept (a, b)")
        rows = ((f"{row * 7919 % 3001}", "x" * 900) for row in range(3000))
        connection.executemany("INSERT INTO kept VALUES (?, ?)", rows)
    command = [sys.executable, "-c", CHECK_WITH_LITTLE_MEMORY, str(path), str(heap_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "no memory\n"
