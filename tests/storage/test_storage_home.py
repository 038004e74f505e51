"""A home whose database is lost, damaged, older or read-only: nothing is paid, deleted or $0.00."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from limner.errors import StorageError
from limner.storage.blobs import Blobs
from limner.storage.daily_copy import KEPT_COPIES, copy_of, daily_copies, make_copy
from limner.storage.database import (
    QUICK_CHECK_PAGES,
    REPAIR_HINT,
    open_database,
    statements,
)
from limner.storage.home import Home
from limner.storage.home_mark import HomeMark, read_mark
from limner.storage.queries import migrations
from limner.storage.repair import repair_database
from limner.storage.store import Store, Transaction

TODAY = date(2026, 11, 16)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def touch(tx: Transaction, session: str = "s") -> None:
    tx.run("session_touch", id=session, now_ms=1, cwd="/w")


async def sessions(home: Home) -> int:
    store = Store(home.database)
    try:
        return len(await store.read(lambda tx: tx.all("session_recent", limit=100)))
    finally:
        await store.aclose()


async def fill(home: Home, *, count: int = 3, closed: bool = True) -> None:
    """Write some rows; without ``closed`` they stay in the -wal file, as after `kill -9`."""
    store = Store(home.database)
    for number in range(count):
        await store.write(lambda tx, number=number: touch(tx, f"s{number}"))
    if not closed:
        for end in ("", "-wal"):
            shutil.copyfile(f"{home.database}{end}", f"{home.folder}/kept{end}")
        mark = home.mark.read_bytes()
        await store.aclose()
        for end in ("", "-wal"):
            Path(f"{home.folder}/kept{end}").replace(f"{home.database}{end}")
        home.mark.write_bytes(mark)
    else:
        await store.aclose()


def wal(home: Home) -> Path:
    return Path(f"{home.database}-wal")


def cut_wal(home: Home) -> None:
    data = wal(home).read_bytes()
    wal(home).write_bytes(data[: len(data) - 5000])


def overwrite_header(home: Home) -> None:
    data = bytearray(home.database.read_bytes())
    data[100:4096] = os.urandom(3996)
    home.database.write_bytes(data)


LOSSES: dict[str, tuple[Callable[[Home], object], str]] = {
    "deleted": (lambda home: home.database.unlink(), "is missing"),
    "emptied": (lambda home: home.database.write_bytes(b""), "is empty"),
    "header overwritten": (overwrite_header, "is damaged"),
    # The last pages may be empty, and then the file is whole without them.
    "cut": (
        lambda home: os.truncate(home.database, home.database.stat().st_size // 2),
        "is damaged",
    ),
}
WAL_LOSSES: dict[str, Callable[[Home], object]] = {
    "cut": cut_wal,
    "deleted": lambda home: wal(home).unlink(),
    "garbage": lambda home: wal(home).write_bytes(os.urandom(50_000)),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_lost_database_is_an_error_and_not_a_new_one(home: Home, loss: str) -> None:
    await fill(home)
    damage, message = LOSSES[loss]
    damage(home)
    for _ in range(2):  # the first attempt must not make a new one for the second
        with pytest.raises(StorageError, match=message) as caught:
            await sessions(home)
        assert (caught.value.code, caught.value.hint) == ("DATABASE_DAMAGED", REPAIR_HINT)


@pytest.mark.parametrize("loss", WAL_LOSSES)
async def test_writes_that_were_lost_with_the_wal_file_are_noticed(home: Home, loss: str) -> None:
    await fill(home, closed=False)
    assert wal(home).stat().st_size > 0
    WAL_LOSSES[loss](home)
    with pytest.raises(StorageError) as caught:
        await sessions(home)
    assert caught.value.code == "DATABASE_DAMAGED"


async def test_an_intact_wal_file_is_read(home: Home) -> None:
    await fill(home, closed=False)
    assert await sessions(home) == 3


async def test_pictures_without_a_database_are_a_lost_database_without_a_mark_too(
    home: Home,
) -> None:
    Blobs(home.blobs).add(b"pixels")
    with pytest.raises(StorageError, match="is missing, and this home has been used"):
        await sessions(home)
    assert not home.database.exists()


async def test_the_database_of_another_home_is_refused(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    await fill(home)
    await fill(other)
    shutil.copyfile(other.database, home.database)
    with pytest.raises(StorageError, match="is not the one of this home"):
        await sessions(home)


async def test_an_older_copy_of_the_database_is_refused(home: Home) -> None:
    await fill(home)
    older = home.database.read_bytes()
    await fill(home, count=5)
    # A connection of the daily copy may have kept this file, with the writes.
    wal(home).unlink(missing_ok=True)
    home.database.write_bytes(older)
    with pytest.raises(StorageError, match="lacks the last 5 of its 8 writes: it is an older copy"):
        await sessions(home)


async def test_a_read_and_a_write_without_changes_do_not_count(home: Home) -> None:
    await fill(home, count=2)
    store = Store(home.database)
    await store.write(lambda tx: tx.all("session_recent", limit=1))
    await store.aclose()
    mark = read_mark(home.mark)
    assert mark is not None
    assert mark.writes == 2


async def test_a_home_from_before_the_mark_gets_one(home: Home) -> None:
    await fill(home)
    home.mark.unlink()
    assert await sessions(home) == 3
    with closing(sqlite3.connect(home.database)) as connection:
        row = connection.execute("SELECT id, writes FROM home").fetchone()
    assert read_mark(home.mark) == row


async def test_a_zeroed_page_of_a_small_database_stops_every_use(home: Home) -> None:
    await fill(home)
    whole = home.database.read_bytes()
    noticed = 0
    for start in range(4096, len(whole), 4096):
        home.database.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
        with pytest.raises(StorageError, match="is damaged"):
            await sessions(home)
        noticed += 1
    assert noticed == len(whole) // 4096 - 1 > 20
    home.database.write_bytes(whole)
    assert await sessions(home) == 3


async def test_a_home_is_used_or_repaired_but_not_both(home: Home) -> None:
    await fill(home)
    store = Store(home.database)
    await store.open()
    with pytest.raises(StorageError, match="Another limner process is using the home"):
        HomeMark(home.mark, alone=True)
    await store.aclose()
    with (
        HomeMark(home.mark, alone=True),
        pytest.raises(StorageError, match="Another limner process is repairing the home") as caught,
    ):
        await sessions(home)
    assert caught.value.code == "HOME_IN_USE"


async def test_the_second_process_of_a_home_makes_the_copy_of_the_day(home: Home) -> None:
    await fill(home)
    assert daily_copies(home) == []
    assert await sessions(home) == 3  # it only reads
    assert daily_copies(home) == []
    await fill(home, count=4)
    [copy] = daily_copies(home)
    assert copy == copy_of(home, datetime.now(UTC).date())
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone()[0] >= 3
    assert [file.name for file in home.backups.iterdir()] == [copy.name]


async def test_seven_daily_copies_stay(home: Home) -> None:
    await fill(home)
    for day in range(1, 11):
        make_copy(home, TODAY.replace(day=day))
    assert [copy.name for copy in daily_copies(home)] == [
        f"limner-2026-11-{day:02}.db" for day in range(10, 10 - KEPT_COPIES, -1)
    ]
    newest = daily_copies(home)[0].stat().st_ino
    make_copy(home, TODAY.replace(day=10))
    assert daily_copies(home)[0].stat().st_ino == newest


async def test_damage_that_the_daily_copy_finds_stops_the_next_process(home: Home) -> None:
    await fill(home)
    whole = home.database.read_bytes()
    home.database.write_bytes(whole[:-4096] + bytes(4096))
    make_copy(home, TODAY)
    assert daily_copies(home) == []
    # A process that does not read that page cannot know it.
    home.database.write_bytes(whole)
    with pytest.raises(StorageError, match=r"is damaged: the daily check found '\w") as caught:
        await sessions(home)
    assert caught.value.hint == REPAIR_HINT


@pytest.mark.parametrize(("size_bytes", "count"), [(5 << 20, 1), (1 << 10, 0)])
def test_a_large_home_of_an_earlier_version_says_that_it_is_brought_up_to_date(
    home: Home, caplog: pytest.LogCaptureFixture, size_bytes: int, count: int
) -> None:
    home.folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home.database)) as earlier:
        earlier.execute("PRAGMA user_version = 0")
        for number, script in migrations()[:-1]:
            for statement in statements(script):
                earlier.execute(statement)
            earlier.execute(f"PRAGMA user_version = {number}")
        earlier.execute("CREATE TABLE filler AS SELECT zeroblob(?) AS filler", (size_bytes,))
        earlier.commit()
    for _ in range(2):
        open_database(home.database).close()
    said = "limner brings the tables of this home up to date once; please wait."
    assert [record.getMessage() for record in caplog.records] == [said] * count


READER = """
    import asyncio, os, sys
    import shutil, tempfile  # as nobody it may be unable to load more
    from pathlib import Path
    from limner.errors import StorageError
    from limner.storage.blobs import Blobs
    from limner.storage.incoming_files import Incoming
    from limner.storage.store import Store
    if os.geteuid() == 0:
        os.seteuid(65534)  # permissions do not bind root

    async def main():
        store = Store(Path(sys.argv[1]))
        print(len(await store.read(lambda tx: tx.all("session_recent", limit=9))))
        print(await store.open())
        try:
            await store.write(lambda tx: tx.run("session_touch", id="x", now_ms=1, cwd="/"))
        except StorageError as error:
            print(error.code)
        await store.aclose()
        home = Path(sys.argv[1]).parent
        try:
            Incoming(home / "incoming", Blobs(home)).open("job_1", room_bytes=1, max_bytes=1)
        except StorageError as error:
            print(error.code)

    asyncio.run(main())
"""


@pytest.mark.parametrize("closed", [True, False])
async def test_a_read_only_home_is_read_and_left_as_it_is(home: Home, closed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "home"
        await fill(home, closed=closed)
        shutil.copytree(home.folder, folder)
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        folder.parent.chmod(0o755)
        command = [sys.executable, "-c", textwrap.dedent(READER), str(folder / "limner.db")]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
        assert done.stdout.split() == ["3", "False", *["HOME_READ_ONLY"] * 2], done.stderr
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == files
        folder.chmod(0o755)


def fill_ledger(home: Home, count: int) -> None:
    with closing(open_database(home.database)) as database:
        connection = database.connection
        connection.execute("BEGIN")
        for number in range(count):
            connection.execute(
                "INSERT INTO ledger (session_id, tool, provider, model, state, quoted_nano, "
                "cost_nano, cost_source, day, created_ms, updated_ms, owner_pid, owner_start, "
                "owner_boot) VALUES (?, 't', 'p', 'm', 'settled', 1, 1, 'table', '2026-11-16', "
                "1, 1, 1, '', '')",
                (session(number),),
            )
        connection.execute("COMMIT")


def session(number: int) -> str:
    return f"session {number:0900}"


def zero_page_of(home: Home, number: int) -> None:
    """Lose the page of the ledger that has the row of a session."""
    whole = home.database.read_bytes()
    start = whole.index(f"{session(number)}tpmsettled".encode()) // 4096 * 4096
    home.database.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])


async def test_a_page_that_no_command_reads_is_found_by_the_daily_copy(home: Home) -> None:
    fill_ledger(home, 1_700)
    assert home.database.stat().st_size // 4096 > QUICK_CHECK_PAGES
    zero_page_of(home, 800)
    await fill(home, count=1)
    assert daily_copies(home) == []
    with pytest.raises(StorageError, match="is damaged: the daily check found"):
        await sessions(home)


async def test_a_repair_keeps_every_row_that_can_be_read(home: Home) -> None:
    await fill(home)
    fill_ledger(home, 1000)
    size_bytes = home.database.stat().st_size
    zero_page_of(home, 500)
    done = repair_database(home)
    assert done.started_from is None
    assert done.put_aside is not None
    assert Path(done.put_aside, "limner.db").stat().st_size == size_bytes
    assert 990 < done.ledger_rows < 1000
    assert done.ledger_rows + done.ledger_rows_missing == 1000
    assert await sessions(home) == 3
    store = Store(home.database)
    wrong = await store.read(lambda tx: tx.all("spending_wrong"))
    total = await store.read(lambda tx: tx.one("spending_of", kind="all", name=""))
    await store.aclose()
    assert wrong == []
    assert total is not None
    assert total["settled_nano"] == done.ledger_rows


async def test_a_repair_of_a_sound_home_changes_nothing_but_the_count(home: Home) -> None:
    await fill(home)
    done = repair_database(home)
    assert (done.started_from, done.put_aside) == (str(home.database), None)
    assert await sessions(home) == 3


async def test_a_repair_prefers_a_copy_of_this_home_to_the_database_of_another(
    home: Home, tmp_path: Path
) -> None:
    other = Home(tmp_path / "other")
    await fill(home)
    make_copy(home, TODAY)
    await fill(other, count=5)
    shutil.copyfile(other.database, home.database)
    done = repair_database(home)
    assert done.started_from == str(copy_of(home, TODAY))
    assert done.salvaged_rows == 0
    assert await sessions(home) == 3
