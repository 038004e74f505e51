"""A garbage collector and a process that stores the same bytes, at every point between its steps.

Both homes have one database and one place for bytes: a SQLite file and a folder, or PostgreSQL and
a bucket.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agent.agent_pictures import encoded, handle_of, take
from tests.databases import change
from tests.servers.components import needs
from tests.servers.postgres_server import PostgresServer, needs_postgres
from tests.servers.s3_server import BUCKET, S3Server, needs_s3

from limner.client import Limner
from limner.content import Picture
from limner.pictures.gc import FreedSpace, GarbageCollector
from limner.storage.blobs import BlobFacts, BlobStore

pytestmark = pytest.mark.slow

DATA = encoded(7)
DAY_S = 24 * 60 * 60

Step = Callable[[], Awaitable[object]]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3") / "server") as server:
        yield server


@pytest.fixture(
    params=[
        "one home",
        pytest.param("team", marks=[needs_postgres, needs_s3, needs("obstore")]),
    ]
)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The variables of both processes."""
    home = {"LIMNER_HOME": str(tmp_path / "home")}
    if request.param == "one home":
        return home
    postgres: PostgresServer = request.getfixturevalue("postgres")
    server: S3Server = request.getfixturevalue("s3")
    place = f"s3://{BUCKET}/{handle_of(str(tmp_path).encode())[:16]}"
    return home | {**server.env, "LIMNER_STORE": postgres.new_url(), "LIMNER_BLOBS": place}


@pytest.fixture
async def storing(env: dict[str, str], tmp_path: Path) -> AsyncIterator[Limner]:
    async with Limner(env=env, cwd=tmp_path) as lim:
        yield lim


@pytest.fixture
async def collecting(env: dict[str, str], tmp_path: Path) -> AsyncIterator[Limner]:
    async with Limner(env=env, cwd=tmp_path) as lim:
        yield lim


async def store_long_ago(lim: Limner) -> Picture:
    """A picture that nothing refers to, and that is old enough to go."""
    picture = await take(lim, DATA)
    await change(lim.store, "UPDATE pictures SET created_ms = 1")
    blobs: Any = lim.components.blobs
    if not blobs.is_shared:
        os.utime(blobs.local_path(picture.handle), (1, 1))
        return picture
    (copy,) = blobs._copies(picture.handle)
    old = copy.key.replace(copy.key.rpartition("/")[2], "20260101T000000Z-00000000")
    blobs._library.copy(blobs._objects, copy.key, old)
    blobs._library.delete(blobs._objects, copy.key)
    return picture


class WatchedBlobs:
    """The place of the bytes, with something that happens after an answer of it."""

    def __init__(self, blobs: BlobStore, after: dict[str, Step]) -> None:
        self._blobs, self._after = blobs, after
        self._loop = asyncio.get_running_loop()
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def facts(self, handles: Iterable[str]) -> dict[str, BlobFacts]:
        found = self._blobs.facts(handles)
        if found:  # of the pictures that could go: first for the plan, then before their rows go
            self.asked += 1
            self._happen("planned" if self.asked == 1 else "checked")
        return found

    def remove_unless_stored_since(self, handle: str, *, since_s: float) -> int:
        self._happen("dropped")
        freed = self._blobs.remove_unless_stored_since(handle, since_s=since_s)
        self._happen("removed")
        return freed

    def _happen(self, moment: str) -> None:
        if (step := self._after.pop(moment, None)) is not None:
            asyncio.run_coroutine_threadsafe(_run(step), self._loop).result(60)


async def _run(step: Step) -> None:
    await step()


async def collect(lim: Limner, **after: Step) -> FreedSpace:
    watched: Any = WatchedBlobs(lim.components.blobs, after)
    collector: GarbageCollector = msgspec.structs.replace(lim.garbage, blobs=watched)
    freed = await collector.collect(grace_s=0, strays=True)
    assert after == {}, "each moment came"
    return freed


async def assert_there(lim: Limner, picture: Picture) -> None:
    assert await lim.pictures.recall(picture.handle) == picture
    assert lim.components.blobs.is_whole(picture.handle)


@pytest.mark.parametrize("moment", ["planned", "checked"])
async def test_a_picture_that_is_stored_again_while_the_collector_decides_stays(
    storing: Limner, collecting: Limner, moment: str
) -> None:
    picture = await store_long_ago(storing)
    freed = await collect(collecting, **{moment: lambda: take(storing, DATA)})
    assert freed.pictures == 0
    await assert_there(storing, picture)


@pytest.mark.parametrize("moment", ["dropped", "removed"])
async def test_a_picture_that_is_stored_again_after_its_row_has_gone_is_a_new_one(
    storing: Limner, collecting: Limner, moment: str
) -> None:
    picture = await store_long_ago(storing)
    freed = await collect(collecting, **{moment: lambda: take(storing, DATA)})
    assert freed.pictures == 1
    await assert_there(storing, picture)


@pytest.mark.parametrize(
    ("bytes_at", "row_at"),
    [
        ("checked", "dropped"),
        ("checked", "removed"),
        ("dropped", "removed"),
    ],
)
async def test_bytes_that_come_before_a_step_and_their_row_after_it_stay_together(
    storing: Limner, collecting: Limner, bytes_at: str, row_at: str
) -> None:
    picture = await store_long_ago(storing)

    async def store_bytes() -> None:
        with storing.pictures.sink() as sink:
            sink.write(DATA)
            assert await storing.pictures.verify(sink) == picture

    async def write_row() -> None:
        def record(tx: Any) -> None:
            storing.pictures.record(tx, picture, lineage={})

        await storing.store.write(record, shared=True)

    await collect(collecting, **{bytes_at: store_bytes, row_at: write_row})
    await assert_there(storing, picture)


async def test_nobody_waits_while_the_collector_asks_for_the_ages_of_bytes(
    storing: Limner, collecting: Limner
) -> None:
    """A transaction around the question would let this write wait for it, and it for the write."""
    await store_long_ago(storing)
    sessions: list[str] = []

    async def talk() -> None:
        sessions.append((await storing.sessions.create(cwd="/")).id)

    freed = await collect(collecting, planned=talk, checked=talk, dropped=talk, removed=talk)
    assert (freed.pictures, len(sessions)) == (1, 4)


async def test_a_picture_that_comes_again_and_again_writes_its_row_once_a_minute(
    storing: Limner,
) -> None:
    picture = await store_long_ago(storing)

    async def stored_ms() -> int:
        row = await storing.store.read(
            lambda tx: tx.raw(
                "SELECT stored_ms FROM pictures WHERE handle = :handle", {"handle": picture.handle}
            )
        )
        return row[0][0]

    await take(storing, DATA)
    first = await stored_ms()
    await take(storing, DATA)
    assert await stored_ms() == first
    assert abs(first / 1000 - time.time()) < DAY_S
