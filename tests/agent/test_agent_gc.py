"""What nothing refers to is removed; everything else stays."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agent.agent_pictures import encoded, handle_of, program, unique
from tests.agent.rollout_samples import output, said, shown

from limner.agent.gc import GRACE_S, SETTLING_S, FreedSpace
from limner.client import Limner
from limner.content import Picture
from limner.imaging.fit import FitRequest
from limner.storage.store import Transaction
from limner.wires.base import HANDLE_URL

NOTHING = FreedSpace(pictures=0, files=0, size_bytes=0, young=0)


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    async with program(tmp_path) as made:
        yield made


async def take(lim: Limner, data: bytes, **lineage: Any) -> Picture:
    with lim.pictures.sink() as sink:
        sink.write(data)
        return await lim.pictures.take(sink, lineage=lineage)


async def age(lim: Limner, *, days: float = 2) -> None:
    """Make all that is here older: rows and files."""
    back_s = days * 24 * 60 * 60

    def older(tx: Transaction) -> None:
        connection = tx._connection  # pyright: ignore[reportPrivateUsage]
        connection.execute("UPDATE pictures SET created_ms = created_ms - ?", (back_s * 1000,))

    await lim.store.write(older)
    for file in lim.home.blobs.rglob("*"):
        if file.is_file():
            moment = file.stat().st_mtime - back_s
            os.utime(file, (moment, moment))


def files(lim: Limner) -> set[str]:
    return {path.name for path in lim.home.blobs.rglob("*") if path.is_file()}


async def handles(lim: Limner) -> set[str]:
    rows = await lim.store.read(lambda tx: tx.all("picture_handles"))
    return {row["handle"] for row in rows}


async def name_in_session(lim: Limner, *pictures: Picture) -> str:
    session = await lim.sessions.create(cwd="/")
    parts = [shown(f"{HANDLE_URL}{picture.handle}") for picture in pictures]
    await session.append([output("a", parts)])
    return session.id


async def pay_for(lim: Limner, picture: Picture) -> None:
    money: dict[str, Any] = {"session_id": "s", "tool": "t", "provider": "p", "model": "m"}
    reservation = await lim.money.reserve(5, **money)
    await lim.money.mark_sent(reservation, request_json=None)
    await lim.money.settle(reservation, cost_nano=5, cost_source="table", picture=picture.handle)


async def test_an_unused_picture_is_removed_with_its_bytes(lim: Limner) -> None:
    kept, gone = await take(lim, unique()), await take(lim, unique())
    await name_in_session(lim, kept)
    await age(lim)
    assert await lim.garbage.collect() == FreedSpace(
        pictures=1, files=1, size_bytes=gone.size_bytes, young=0
    )
    assert await handles(lim) == files(lim) == {kept.handle}
    assert await lim.garbage.collect() == NOTHING


async def test_a_paid_picture_stays_with_its_sources(lim: Limner) -> None:
    source = await take(lim, unique())
    other = await take(lim, unique())
    bought = await take(lim, unique(), parents=[source.handle, other.handle])
    png = await lim.pictures.convert(bought, to="webp")
    await pay_for(lim, bought)
    await age(lim)
    assert await lim.garbage.collect(grace_s=0) == NOTHING
    assert files(lim) == {source.handle, other.handle, bought.handle, png.handle}


async def test_fits_and_conversions_go_with_their_parent_and_stay_with_it(lim: Limner) -> None:
    request = FitRequest(max_width=8, max_height=8)
    kept, gone = await take(lim, encoded(10)), await take(lim, encoded(200))
    for picture in (kept, gone):
        await lim.pictures.give(picture, request)
        await lim.pictures.convert(picture, to="jpeg")
    await name_in_session(lim, kept)
    assert len(files(lim)) == 6
    await age(lim)
    freed = await lim.garbage.collect()
    assert (freed.pictures, freed.files) == (3, 3)
    assert len(files(lim)) == len(await handles(lim)) == 3
    fits = await lim.store.read(lambda tx: tx.all("garbage_fits"))
    assert [row["parent"] for row in fits] == [kept.handle]


async def test_a_session_that_names_a_derivative_keeps_the_original(lim: Limner) -> None:
    original = await take(lim, unique())
    made = await lim.pictures.convert(original, to="jpeg")
    await name_in_session(lim, made)
    await age(lim)
    assert await lim.garbage.collect(grace_s=0) == NOTHING
    assert await handles(lim) == {original.handle, made.handle}


async def test_a_fit_that_two_pictures_share_stays_with_the_one_that_stays(lim: Limner) -> None:
    gone, kept = await take(lim, unique()), await take(lim, unique())
    fit = await lim.pictures.convert(gone, to="jpeg")

    def share(tx: Transaction) -> None:
        more = {"request": "{}", "fitted": "{}", "created_ms": 1}
        tx.run("fit_add", parent=kept.handle, picture=fit.handle, **more)

    await lim.store.write(share)
    await name_in_session(lim, kept)
    await age(lim)
    assert (await lim.garbage.collect()).pictures == 1
    assert await handles(lim) == files(lim) == {kept.handle, fit.handle}
    row = await lim.store.read(lambda tx: tx.one("picture_get", handle=fit.handle))
    assert row is not None
    assert row["parent"] == kept.handle


async def test_a_picture_of_today_stays_unless_the_grace_is_zero(lim: Limner) -> None:
    picture = await take(lim, unique())
    await age(lim, days=0.5)
    assert await lim.garbage.collect() == FreedSpace(pictures=0, files=0, size_bytes=0, young=1)
    assert (await lim.garbage.collect(grace_s=0)).size_bytes == picture.size_bytes


async def test_a_picture_of_the_last_minute_always_stays(lim: Limner) -> None:
    picture = await take(lim, unique())
    assert await lim.garbage.collect(grace_s=0) == FreedSpace(
        pictures=0, files=0, size_bytes=0, young=1
    )
    assert files(lim) == {picture.handle}


async def test_a_picture_that_is_taken_in_again_is_young_again(lim: Limner) -> None:
    data = unique()
    picture = await take(lim, data)
    await age(lim)
    assert await take(lim, data) == picture
    assert (await lim.garbage.collect()).young == 1
    assert await lim.pictures.original(picture) == data


async def test_a_young_picture_keeps_its_ancestors(lim: Limner) -> None:
    source = await take(lim, unique())
    await age(lim)
    await take(lim, unique(), parents=[source.handle])
    assert (await lim.garbage.collect()).pictures == 0
    assert source.handle in files(lim)


async def test_bytes_that_no_table_knows_go_when_they_are_old(lim: Limner) -> None:
    kept = await take(lim, unique())
    await name_in_session(lim, kept)
    stray, young = lim.pictures.sink(), lim.pictures.sink()
    with stray, young:
        stray.write(b"a process died before it wrote the row")
        handle = stray.commit()
        path = lim.home.blobs / handle[:2] / handle
        moment = time.time() - GRACE_S - 60
        os.utime(path, (moment, moment))
        young.write(b"a process is about to write the row")
        about_to = young.commit()
    leftover = lim.home.blobs / ".limner-0123456789abcdef.tmp"
    leftover.write_bytes(b"half")
    os.utime(leftover, (moment, moment))
    would = await lim.garbage.collect(dry_run=True)
    assert would == FreedSpace(pictures=0, files=1, size_bytes=38, young=0)
    assert await lim.garbage.collect() == FreedSpace(pictures=0, files=2, size_bytes=42, young=0)
    assert files(lim) == {kept.handle, about_to}


async def test_a_dry_run_tells_and_removes_nothing(lim: Limner) -> None:
    picture = await take(lim, unique())
    await age(lim)
    told = await lim.garbage.collect(dry_run=True)
    assert told == FreedSpace(pictures=1, files=1, size_bytes=picture.size_bytes, young=0)
    assert files(lim) == await handles(lim) == {picture.handle}
    assert await lim.garbage.collect() == told


async def test_the_sources_of_a_request_that_is_not_finished_stay(lim: Limner) -> None:
    source = await take(lim, unique())
    money: dict[str, Any] = {"session_id": "s", "tool": "t", "provider": "p", "model": "m"}
    reservation = await lim.money.reserve(5, **money)
    await lim.money.mark_sent(reservation, request_json=f'{{"parents": ["{source.handle}"]}}')
    await age(lim)
    assert await lim.garbage.collect() == NOTHING
    await lim.money.release(reservation)
    assert (await lim.garbage.collect()).pictures == 1


async def test_deleting_a_session_frees_the_pictures_that_only_it_has(lim: Limner) -> None:
    shared, own = await take(lim, unique()), await take(lim, unique())
    elsewhere = await take(lim, unique())
    first = await name_in_session(lim, shared, own)
    await name_in_session(lim, shared)
    await lim.pictures.give(own, FitRequest(max_width=8, max_height=8))
    await age(lim, days=0.01)
    freed = await lim.delete_session(first[:-1])
    assert (freed.pictures, freed.files) == (2, 2)
    # What no session ever named is a matter for `limner gc`.
    assert files(lim) == {shared.handle, elsewhere.handle}


async def test_a_fork_keeps_the_pictures_of_the_session_it_came_from(lim: Limner) -> None:
    picture = await take(lim, unique())
    first = await name_in_session(lim, picture)
    await lim.sessions.fork(first)
    await age(lim)
    assert await lim.delete_session(first) == NOTHING
    assert files(lim) == {picture.handle}


async def test_giving_out_a_picture_while_it_is_collected_still_gives_it(lim: Limner) -> None:
    picture = await take(lim, unique(size=(64, 64)))
    await age(lim)
    blob = lim.pictures.path(picture)
    data = blob.read_bytes()
    await lim.garbage.collect()
    # The process that gives it out had found it before.
    blob.write_bytes(data)
    fitted, _ = await lim.pictures.give(picture, FitRequest(max_width=8, max_height=8))
    assert (fitted.width, fitted.height) == (8, 8)
    assert await handles(lim) == set()


async def test_a_picture_that_one_program_stores_again_another_cannot_collect(
    tmp_path: Path,
) -> None:
    data = [unique() for _ in range(30)]
    async with program(tmp_path) as taking, program(tmp_path) as collecting:
        for one in data:
            await take(taking, one)
        await age(taking)
        session = await taking.sessions.create(cwd="/")
        freed = [NOTHING]

        async def take_again() -> None:
            for one in data[::2]:
                picture = await take(taking, one)
                await session.append([output("a", [shown(f"{HANDLE_URL}{picture.handle}")])])

        async def collect() -> None:
            while not again.done():
                freed.append(await collecting.garbage.collect(grace_s=0))

        again = asyncio.create_task(take_again())
        await asyncio.gather(again, collect())
        freed.append(await collecting.garbage.collect(grace_s=0))
        named = {handle_of(one) for one in data[::2]}
        assert files(taking) == await handles(taking) == named
        assert sum(one.files for one in freed) >= 15
        assert set(await taking.sessions.delete(session.id)) == named


async def test_the_program_s_own_clock_tells_how_old_a_row_is(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        picture = await take(lim, encoded(5))
        moment = time.time() - SETTLING_S - 5
        os.utime(lim.pictures.path(picture), (moment, moment))
        later = datetime.now(UTC) + timedelta(seconds=SETTLING_S + 5)
        collector = type(lim.garbage)(store=lim.store, blobs=lim.garbage.blobs, clock=lambda: later)
        await (await lim.sessions.create(cwd="/")).append([said(f"not {handle_of(b'x')}")])
        assert (await collector.collect(grace_s=0)).pictures == 1
