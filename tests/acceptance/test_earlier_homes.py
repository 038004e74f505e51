"""Homes that earlier versions of limner made open here, with nothing lost."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import AUTUMN, Studio, picture

from limner.errors import UserError
from limner.storage.database import statements
from limner.storage.owners import this_process
from limner.storage.queries import migrations

# The index of the words in the gallery, which a later version builds anew.
INDEX = "gallery_text"
NOW_MS = int(AUTUMN.timestamp() * 1000)
SESSION = "01890a5d-ac96-774b-bcce-b302099a8057"
COSTS = {"settled": 30, "unknown": 40, "released": 0, "reserved": 40, "sent": 40}

PARENT = picture(40, 30)
CHILD = picture(30, 40)
HANDLES = [hashlib.sha256(data).hexdigest() for data in (PARENT, CHILD)]


def make_home(studio: Studio, version: int) -> None:
    """A home as that version left it: two pictures, one session, a call in each state."""
    studio.home.mkdir()
    for data, handle in zip((PARENT, CHILD), HANDLES, strict=True):
        blob = studio.home / "blobs" / handle[:2] / handle
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
    with closing(sqlite3.connect(studio.home / "limner.db")) as database, database:
        for number, script in migrations()[:version]:
            for statement in statements(script):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {number}")
        add(database, "sessions", id=SESSION, created_ms=1, updated_ms=NOW_MS, cwd="/tmp")
        me = this_process()
        for number, (state, cost) in enumerate(COSTS.items(), start=1):
            add(database, "ledger", id=number, session_id=SESSION, tool="image_generate",
                provider="p", model="m", state=state, quoted_nano=40, cost_nano=cost,
                cost_source="table", day="2026-11-14", created_ms=NOW_MS, updated_ms=NOW_MS,
                owner_pid=me.pid, owner_start=me.start, owner_boot=me.boot,
                picture=HANDLES[1] if state == "settled" else None,
                path="/tmp/fox.png" if state == "settled" else None)  # fmt: skip
        add(database, "jobs", id="job_1", ledger_id=2, provider="p", request="{}", created_ms=1,
            updated_ms=1)  # fmt: skip
        for handle, lineage in zip(HANDLES, ({}, {"parents": [HANDLES[0]]}), strict=True):
            add(database, "pictures", handle=handle, mime="image/png", width=1, height=1,
                size_bytes=1, lineage=json.dumps(lineage), created_ms=1)  # fmt: skip
        if version >= 4:
            database.execute("UPDATE sessions SET items = 1")
            add(database, "items", session_id=SESSION, seq=0, created_ms=1,
                item='{"type": "note"}')  # fmt: skip
        if version >= 7:
            add(database, "calls", call_id="c", ledger_id=1, tool="t", digest="d", created_ms=1)
        if version >= 8:
            add(database, "session_leases", session_id=SESSION, holder="an older one",
                owner_pid=os.getppid(), owner_start=start_of(os.getppid()),
                owner_boot=me.boot)  # fmt: skip


def add(database: sqlite3.Connection, table: str, **row: Any) -> None:
    names = ", ".join(row)
    database.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
    )


def start_of(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    return stat.rpartition(")")[2].split()[19]


def rows_of(home: Path, columns: dict[str, list[str]]) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / "limner.db")) as database:
        return {
            table: database.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1").fetchall()
            for table, names in columns.items()
        }


def columns_of(home: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(home / "limner.db")) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            for (table,) in tables
            if not table.startswith(("sqlite_", INDEX))
        }


VERSIONS = [number for number, _ in migrations()][:-1]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_home_of_an_earlier_schema_opens_with_nothing_lost(
    studio: Studio, version: int
) -> None:
    make_home(studio, VERSIONS.index(version) + 1)
    columns = columns_of(studio.home)
    before = rows_of(studio.home, columns)
    async with studio.open() as lim:
        spend = await lim.money.spend()
        assert (spend.settled_nano, spend.unknown_nano, spend.in_flight_nano) == (30, 40, 80)
        assert [(line.name, line.nano) for line in spend.by_session] == [(SESSION, 70)]
        assert [row.state for row in reversed(spend.recent)] == [*COSTS]
        assert await lim.money.wrong_counters() == []
        assert [job.id for job in await lim.money.unfinished_jobs()] == ["job_1"]
        about = await (await lim.sessions.open(SESSION[:8])).about()
        assert (about.spent_nano, about.items) == (70, int(version >= 4))
        shown = await lim.picture_info.show(HANDLES[0], lim.person())
        assert shown.family is not None
        assert [child.picture.handle for child in shown.family.offspring] == [HANDLES[1]]
        (bought,) = (await lim.picture_info.show(HANDLES[1], lim.person())).purchases
        assert (bought.cost_nano, bought.path) == (30, "/tmp/fox.png")
    assert rows_of(studio.home, columns) == before


async def test_a_session_that_an_older_process_holds_is_not_taken(studio: Studio) -> None:
    make_home(studio, 8)
    async with studio.open() as lim:
        with pytest.raises(UserError, match=f"is in use by process {os.getppid()}"):
            await lim.sessions.hold(SESSION)
