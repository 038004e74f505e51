"""What nothing refers to is removed; everything else stays."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agent.agent_pictures import encoded, handle_of, program, unique
from tests.agent.rollout_samples import output, said, shown
from tests.databases import change

from limner.client import Limner
from limner.content import Picture
from limner.errors import StorageError
from limner.imaging.fit import FitRequest
from limner.money.records import Reservation
from limner.pictures.gc import GRACE_S, SETTLING_S, FreedSpace
from limner.storage.blobs import Blobs
from limner.storage.store import Store, Transaction
from limner.wires.base import HANDLE_URL

NOTHING = FreedSpace(pictures=0, files=0, size_bytes=0, young=0)


@pytest.fixture
async def lim(tmp_path: Path, database: str | None) -> AsyncIterator[Limner]:
    async with program(tmp_path, store=database) as made:
        yield made


async def take(lim: Limner, data: bytes, **lineage: Any) -> Picture:
    with lim.pictures.sink() as sink:
        sink.write(data)
        return await lim.pictures.take(sink, lineage=lineage)


async def age(lim: Limner, *, days: float = 2) -> None:
    """Make all that is here older: rows and files."""
    back_s = int(days * 24 * 60 * 60)
    older = (
        "UPDATE pictures SET created_ms = created_ms - :back_ms, stored_ms = stored_ms - :back_ms"
    )
    await change(lim.store, older, back_ms=back_s * 1000)
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


async def test_a_young_row_keeps_a_file_that_looks_old(lim: Limner) -> None:
    picture = await take(lim, unique())
    os.utime(lim.pictures.local_path(picture), (0, 0))
    assert await lim.garbage.collect() == msgspec.structs.replace(NOTHING, young=1)
    assert files(lim) == {picture.handle}


async def test_a_young_picture_keeps_its_ancestors(lim: Limner) -> None:
    source = await take(lim, unique())
    await age(lim)
    await take(lim, unique(), parents=[source.handle])
    assert (await lim.garbage.collect()).pictures == 0
    assert source.handle in files(lim)


async def test_bytes_that_no_table_knows_go_when_they_are_old(lim: Limner) -> None:
    kept = [await take(lim, unique()) for _ in range(2)]
    await name_in_session(lim, *kept)
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
    assert files(lim) == {*(one.handle for one in kept), about_to}


def add_stray(lim: Limner, data: bytes = b"stray") -> str:
    """Bytes whose process died before it wrote their row."""
    return Blobs(lim.home.blobs).add(data)


async def send(lim: Limner, *, job: bool = True) -> Reservation:
    """A drawing that was paid for, and whose process has died."""
    call: dict[str, Any] = {"session_id": "s", "tool": "t", "provider": "p", "model": "m"}
    reservation = await lim.money.reserve(5, **call)
    await lim.money.mark_sent(reservation, request_json="{}" if job else None)
    return reservation


async def age_calls(lim: Limner, *, days: float) -> None:
    older = "UPDATE ledger SET created_ms = created_ms - :back_ms"
    await change(lim.store, older, back_ms=int(days * 86_400_000))


async def close(lim: Limner, reservation: Reservation, state: str) -> None:
    if state == "unknown":
        await lim.money.mark_unknown(reservation, error_code="OWNER_DIED")


@pytest.mark.parametrize("state", ["sent", "unknown"])
async def test_bytes_that_an_open_or_unknown_row_may_own_stay_however_old(
    lim: Limner, state: str
) -> None:
    reservation = await send(lim)
    paid = [add_stray(lim), (await take(lim, unique(), provider="p", prompt="x")).handle]
    free = await take(lim, unique(), provider="other", prompt="x")
    await name_in_session(lim, await take(lim, unique()))
    await close(lim, reservation, state)
    await age(lim, days=9)
    await age_calls(lim, days=9)
    freed = await lim.garbage.collect(grace_s=0)
    # A call in flight may own anything that was stored since it began.
    kept = {free.handle} if state == "sent" else set[str]()
    assert (freed.pictures, freed.owed) == (1 - len(kept), 1)
    assert {*paid, *kept} < files(lim)
    assert free.handle in files(lim) or state == "unknown"
    await lim.money.release(reservation)
    freed = await lim.garbage.collect(grace_s=0)
    assert (freed.files, freed.owed) == (2 + len(kept), 0)
    assert files(lim).isdisjoint({*paid, free.handle})


async def test_bytes_of_the_minute_before_their_row_stay(lim: Limner) -> None:
    reservation = await send(lim)
    paid = [add_stray(lim), (await take(lim, unique(), provider="p", prompt="x")).handle]
    leftover = lim.home.blobs / ".limner-0123456789abcdef.tmp"
    leftover.write_bytes(b"half")
    await name_in_session(lim, *[await take(lim, unique()) for _ in range(2)])
    await close(lim, reservation, "unknown")
    await age(lim, days=9 + 30 / 86_400)
    await age_calls(lim, days=9)
    freed = await lim.garbage.collect(grace_s=0)
    assert (freed.pictures, freed.files, freed.owed) == (0, 0, 1)
    assert {*paid, leftover.name} < files(lim)


async def test_bytes_that_were_delivered_for_a_job_without_a_picture_stay(lim: Limner) -> None:
    await name_in_session(lim, *[await take(lim, unique()) for _ in range(2)])
    delivered, stray = add_stray(lim, b"delivered"), add_stray(lim)
    await age(lim)
    reservation = await send(lim)

    await change(lim.store, "UPDATE jobs SET delivered_sha256 = :handle", handle=delivered)
    await lim.money.settle(reservation, cost_nano=5, cost_source="table", picture=None)
    would = await lim.garbage.collect(dry_run=True)
    assert await lim.garbage.collect() == would
    assert (would.files, stray in files(lim), delivered in files(lim)) == (1, False, True)


async def test_delivered_bytes_go_only_when_their_job_has_ended(lim: Limner) -> None:
    open_call, ended = await send(lim), await send(lim)
    rows = await lim.store.read(lambda tx: tx.all("jobs_unfinished"))
    jobs = {row["ledger_id"]: row["id"] for row in rows}
    lim.home.incoming.mkdir(parents=True)
    lost = "job_0123456789abcdef"
    for job_id in (*jobs.values(), lost):
        (lim.home.incoming / f"{job_id}.0").write_bytes(b"paid")
    await lim.money.settle(
        ended, cost_nano=5, cost_source="table", picture=(await take(lim, unique())).handle
    )
    freed = await lim.garbage.collect()
    assert (freed.files, freed.size_bytes) == (1, 4)
    left = {f"{jobs[open_call.ledger_id]}.0", f"{lost}.0"}
    assert {file.name for file in lim.home.incoming.iterdir()} == left


async def test_bytes_older_than_every_open_row_go(lim: Limner) -> None:
    await name_in_session(lim, *[await take(lim, unique()) for _ in range(2)])
    stray = add_stray(lim)
    await age(lim)
    await send(lim)
    assert (await lim.garbage.collect()).files == 1
    assert stray not in files(lim)


async def test_a_look_whose_end_is_unknown_keeps_no_bytes(lim: Limner) -> None:
    await close(lim, await send(lim, job=False), "unknown")
    add_stray(lim)
    await name_in_session(lim, await take(lim, unique()))
    await age(lim, days=9)
    await age_calls(lim, days=9)
    assert (await lim.garbage.collect()).files == 1


async def test_files_that_are_mostly_unknown_are_listed_and_stay(lim: Limner) -> None:
    await name_in_session(lim, *[await take(lim, unique()) for _ in range(2)])
    strays = sorted(add_stray(lim, bytes([number])) for number in range(3))
    gone = await take(lim, unique())
    await age(lim)
    lim.pictures.local_path(gone).unlink()
    for dry_run in (True, False):
        with pytest.raises(StorageError, match="does not know 3 of 5 stored files") as caught:
            await lim.garbage.collect(dry_run=dry_run)
        assert caught.value.extras == {
            "stray_count": 3,
            "strays": [str(lim.home.blobs / one[:2] / one) for one in strays],
        }
    assert gone.handle in await handles(lim)
    freed = await lim.garbage.collect(strays=True)
    assert (freed.pictures, freed.files, len(files(lim))) == (1, 3, 2)


async def test_a_picture_that_a_repair_recorded_stays_until_the_user_insists(lim: Limner) -> None:
    await take(lim, unique(), repaired=True)
    await age(lim)
    assert await lim.garbage.collect() == NOTHING
    assert (await lim.garbage.collect(strays=True)).pictures == 1


async def test_a_reference_that_appears_while_pictures_are_removed_keeps_its_picture(
    lim: Limner, database: str | None
) -> None:
    session = (await lim.sessions.create(cwd="/")).id
    made = [add_stray(lim, number.to_bytes(2)) for number in range(100)]
    row: dict[str, Any] = {"mime": "image/png", "width": 1, "height": 1, "size_bytes": 2}
    parents = dict(zip(made[::2], made[1::2], strict=True))

    def record(tx: Transaction) -> None:
        for handle in made[1::2]:
            tx.run("picture_add", handle=handle, parent=None, lineage="{}", created_ms=1, **row)
        for handle, parent in parents.items():
            tx.run("picture_add", handle=handle, parent=parent, lineage="{}", created_ms=1, **row)

    await lim.store.write(record)
    await age(lim)
    named: set[str] = set()
    other = Store(lim.home.database, url=database)

    def name_one(tx: Transaction) -> None:
        left = [row["handle"] for row in tx.all("picture_handles")]
        for handle in [one for one in left if one in parents and one not in named][:1]:
            values = {"session": session, "handle": handle}
            tx.raw("INSERT INTO item_pictures VALUES (:session, :handle, 0)", values)
            named.update((handle, parents[handle]))

    # Another process refers to a picture that is left.
    freed = await lim.garbage.collect(progress=lambda *_: other.submit_write(name_one).result())
    await other.aclose()
    assert len(named) >= 4
    assert files(lim) == await handles(lim) == named
    assert freed.pictures == freed.files == 100 - len(named)


async def test_a_few_pictures_are_removed_at_a_time_and_forms_go_together(lim: Limner) -> None:
    picture = await take(lim, unique())
    made = [picture.handle, *(handle_of(bytes([number])) for number in range(1, 28))]
    row: dict[str, Any] = {"mime": "image/png", "width": 1, "height": 1, "size_bytes": 2}

    def pair(tx: Transaction) -> None:
        for number, handle in enumerate(made[1:], start=1):
            parent = made[number - 1] if number % 2 else None
            tx.run("picture_add", handle=handle, parent=parent, lineage="{}", created_ms=1, **row)

    await lim.store.write(pair)
    await age(lim)
    done: list[tuple[int, int]] = []
    freed = await lim.garbage.collect(progress=lambda *numbers: done.append(numbers))
    assert (freed.pictures, done) == (28, [(26, 28), (28, 28)])


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
    blob = lim.pictures.local_path(picture)
    data = blob.read_bytes()
    await lim.garbage.collect()
    # The process that gives it out had found it before.
    blob.write_bytes(data)
    fitted, _ = await lim.pictures.give(picture, FitRequest(max_width=8, max_height=8))
    assert (fitted.width, fitted.height) == (8, 8)
    assert await handles(lim) == set()


async def test_a_picture_that_one_program_stores_again_another_cannot_collect(
    tmp_path: Path, database: str | None
) -> None:
    data = [unique() for _ in range(30)]
    programs = [program(tmp_path, store=database) for _ in range(2)]
    async with programs[0] as taking, programs[1] as collecting:
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
        os.utime(lim.pictures.local_path(picture), (moment, moment))
        later = datetime.now(UTC) + timedelta(seconds=SETTLING_S + 5)
        collector = msgspec.structs.replace(lim.garbage, clock=lambda: later)
        await (await lim.sessions.create(cwd="/")).append([said(f"not {handle_of(b'x')}")])
        assert (await collector.collect(grace_s=0)).pictures == 1
