"""Writes that wait for each other go to disk together, and stay each for itself."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from limner.errors import StorageError
from limner.storage.store import MAX_BATCH, Store, Transaction


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limner.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    made = Store(path)
    yield made
    await made.aclose()


def touch(tx: Transaction, name: str) -> str:
    tx.run("session_touch", id=name, now_ms=1, cwd="/w")
    return name


def names(tx: Transaction) -> set[str]:
    return {row["id"] for row in tx.all("session_recent", limit=1000)}


def on_disk(path: Path) -> int:
    """How many sessions another process would find."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM sessions").fetchone()[0]


@asynccontextmanager
async def held(store: Store) -> AsyncGenerator[None]:
    """The store is busy with a read until the block ends, so that all else has to wait."""
    started, go_on = threading.Event(), threading.Event()

    def read(_: Transaction) -> None:
        started.set()
        assert go_on.wait(30)

    reading = asyncio.create_task(store.read(read))
    await asyncio.to_thread(started.wait)
    try:
        yield
    finally:
        go_on.set()
        await reading


async def queued(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)  # one turn of the loop, in which it is submitted
    return task


async def test_writes_that_wait_share_a_transaction_and_are_told_when_it_is_on_disk(
    store: Store, path: Path
) -> None:
    seen: list[int] = []

    def write(name: str) -> Callable[[Transaction], str]:
        def work(tx: Transaction) -> str:
            seen.append(on_disk(path))
            return touch(tx, name)

        return work

    async with held(store):
        tasks = [await queued(store.write(write(f"s{number}"))) for number in range(10)]
    assert await tasks[0] == "s0"
    assert on_disk(path) == 10
    assert await asyncio.gather(*tasks) == [f"s{number}" for number in range(10)]
    assert seen == [0] * 10


async def test_one_that_fails_leaves_the_others_alone(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        touch(tx, "half")
        raise RuntimeError("half way")

    def wrong(tx: Transaction) -> None:
        touch(tx, "other half")
        tx.run("session_touch", id=None, now_ms=1, cwd=None)

    async with held(store):
        tasks = [
            await queued(store.write(work))
            for work in (lambda tx: touch(tx, "a"), fail, wrong, lambda tx: touch(tx, "b"))
        ]
    first, failed, mistaken, last = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, last) == ("a", "b")
    assert repr(failed) == "RuntimeError('half way')"
    assert isinstance(mistaken, sqlite3.IntegrityError)
    assert await store.read(names) == {"a", "b"}


async def test_one_that_is_cancelled_in_the_queue_is_not_among_them(store: Store) -> None:
    async with held(store):
        tasks = [await queued(store.write(lambda tx, name=name: touch(tx, name))) for name in "abc"]
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
    assert await asyncio.gather(tasks[0], tasks[2]) == ["a", "c"]
    assert await store.read(names) == {"a", "c"}


async def test_readers_keep_their_place_among_the_writes(store: Store) -> None:
    async with held(store):
        before = await queued(store.write(lambda tx: touch(tx, "a")))
        reader = await queued(store.read(names))
        after = await queued(store.write(lambda tx: touch(tx, "b")))
    assert await asyncio.gather(before, reader, after) == ["a", {"a"}, "b"]


async def test_more_than_go_together_all_arrive(store: Store) -> None:
    count = 2 * MAX_BATCH + 1
    async with held(store):
        tasks = [
            await queued(store.write(lambda tx, name=str(number): touch(tx, name)))
            for number in range(count)
        ]
    assert await asyncio.gather(*tasks) == [str(number) for number in range(count)]
    assert len(await store.read(names)) == count


async def test_where_none_can_be_written_each_hears_it_for_itself(path: Path) -> None:
    path.mkdir()
    store = Store(path)
    writes = [store.write(lambda tx, name=name: touch(tx, name)) for name in "abc"]
    errors = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(error, StorageError) for error in errors)
    assert len({id(error) for error in errors}) == 3
    await store.aclose()
