"""The life of a row, the journal of jobs, and what `limner spend` shows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from money_clock import Clock

from limner.errors import JobTaken, StorageError
from limner.money.ledger import JobRow, Money, Reservation, Spend
from limner.money.records import LedgerRow, SpendLine
from limner.storage.queries import named_queries

CENT = 10_000_000
NOW_MS = 1_794_744_000_500
CALL: dict[str, Any] = {
    "session_id": "s",
    "tool": "image_generate",
    "provider": "replicate-flux",
    "model": "black-forest-labs/flux-schnell",
}

Move = Callable[[Money, Reservation], Awaitable[Any]]
MOVES: dict[str, Move] = {
    "sent": lambda money, row: money.mark_sent(row, request_json="{}"),
    "settled": lambda money, row: money.settle(
        row, cost_nano=CENT, cost_source="computed", picture="h"
    ),
    "released": lambda money, row: money.release(row, error_code="X"),
    "unknown": lambda money, row: money.mark_unknown(row, error_code="X"),
    "placed": lambda money, row: money.record_path(row, "/tmp/fox.png"),
}
PATHS: dict[str, list[str]] = {
    "reserved": [],
    "sent": ["sent"],
    "settled": ["sent", "settled"],
    "unknown": ["sent", "unknown"],
    "released": ["released"],
}
LEGAL = {
    ("reserved", "sent"),
    ("reserved", "released"),
    ("sent", "settled"),
    ("sent", "unknown"),
    ("sent", "released"),
    ("unknown", "settled"),
    ("unknown", "released"),
    ("unknown", "unknown"),
    ("settled", "placed"),
}


def test_the_clock_of_these_tests_has_this_time_in_milliseconds() -> None:
    assert Clock().now == datetime.fromtimestamp(NOW_MS / 1000, UTC)


async def at(money: Money, state: str) -> Reservation:
    reservation = await money.reserve(4 * CENT, **CALL)
    for move in PATHS[state]:
        await MOVES[move](money, reservation)
    return reservation


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", PATHS)
async def test_a_row_only_moves_forward(money: Money, state: str, move: str) -> None:
    reservation = await at(money, state)
    before = (await money.spend()).recent
    if (state, move) in LEGAL:
        await MOVES[move](money, reservation)
        (row,) = (await money.spend()).recent
        assert row.state == ("settled" if move == "placed" else move)
    else:
        with pytest.raises(StorageError) as caught:
            await MOVES[move](money, reservation)
        assert caught.value.message == f"Ledger row 1 is {state}: it cannot become {move}."
        assert (await money.spend()).recent == before


async def test_a_row_that_does_not_exist_cannot_change(money: Money) -> None:
    missing = Reservation(ledger_id=7, quote_nano=0, **CALL)
    with pytest.raises(StorageError, match="Ledger row 7 is missing"):
        await money.release(missing)


async def test_a_finished_row_has_price_picture_and_path(money: Money) -> None:
    reservation = await money.reserve(4 * CENT, **CALL)
    assert reservation == Reservation(ledger_id=1, quote_nano=4 * CENT, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    await money.settle(reservation, cost_nano=3 * CENT, cost_source="computed", picture="ab12")
    await money.record_path(reservation, "/tmp/fox.png")
    (row,) = (await money.spend()).recent
    assert row == LedgerRow(
        id=1,
        created_ms=NOW_MS,
        **CALL,
        state="settled",
        quoted_nano=4 * CENT,
        cost_nano=3 * CENT,
        cost_source="computed",
        error_code=None,
        picture="ab12",
        path="/tmp/fox.png",
    )


async def test_a_failure_that_was_paid_for_keeps_its_cost_and_its_reason(money: Money) -> None:
    reservation = await at(money, "sent")
    await money.settle(
        reservation,
        cost_nano=4 * CENT,
        cost_source="table",
        picture=None,
        error_code="IMAGE_GEN_BAD_RESPONSE",
    )
    (row,) = (await money.spend()).recent
    assert (row.state, row.cost_nano, row.picture, row.error_code) == (
        "settled",
        4 * CENT,
        None,
        "IMAGE_GEN_BAD_RESPONSE",
    )


async def test_a_request_is_journalled_with_the_move_to_sent(money: Money) -> None:
    reservation = await money.reserve(4 * CENT, **CALL)
    assert await money.unfinished_jobs() == []
    job_id = await money.mark_sent(reservation, request_json='{"prompt": "a fox"}')
    assert job_id is not None
    assert job_id.startswith("job_")
    job = JobRow(
        id=job_id,
        ledger_id=1,
        **CALL,
        request='{"prompt": "a fox"}',
        remote_id=None,
        remote_url=None,
        created_ms=NOW_MS,
        state="sent",
        quoted_nano=4 * CENT,
        cost_nano=4 * CENT,
        cost_source="unknown",
        picture=None,
        in_flight=True,
    )
    assert await money.unfinished_jobs() == [job]
    assert await money.job(job_id) == job
    assert job.reservation == reservation


async def test_a_job_is_listed_until_its_picture_has_a_file(money: Money) -> None:
    reservation = await money.reserve(4 * CENT, **CALL)
    job_id = await money.mark_sent(reservation, request_json="{}")
    assert job_id is not None
    await money.note_job(job_id, remote_id="abc", remote_url="http://127.0.0.1/abc")
    await money.mark_unknown(reservation, error_code="IMAGE_GEN_PROVIDER_UNAVAILABLE")
    (job,) = await money.unfinished_jobs()
    assert (job.remote_id, job.remote_url, job.state, job.in_flight) == (
        "abc",
        "http://127.0.0.1/abc",
        "unknown",
        False,
    )
    await money.settle(job.reservation, cost_nano=CENT, cost_source="table", picture="h")
    (job,) = await money.unfinished_jobs()
    assert (job.state, job.picture, job.cost_nano, job.in_flight) == ("settled", "h", CENT, True)
    await money.record_path(job.reservation, "/tmp/fox.png")
    assert await money.unfinished_jobs() == []
    found = await money.job(job_id)
    assert found is not None
    assert found.state == "settled"


async def test_a_wrong_move_to_sent_leaves_no_job_behind(money: Money) -> None:
    reservation = await at(money, "released")
    with pytest.raises(StorageError):
        await money.mark_sent(reservation, request_json="{}")
    assert await money.unfinished_jobs() == []


async def test_a_job_that_does_not_exist_is_none_and_cannot_be_noted(money: Money) -> None:
    assert await money.job("job_0") is None
    with pytest.raises(StorageError, match="There is no job 'job_0'"):
        await money.note_job("job_0", remote_id="abc", remote_url="http://127.0.0.1/abc")


async def test_an_empty_ledger_has_an_empty_report(money: Money) -> None:
    assert await money.spend() == Spend(
        settled_nano=0,
        unknown_nano=0,
        in_flight_nano=0,
        by_day=(),
        by_model=(),
        by_session=(),
        recent=(),
    )


async def test_the_report_adds_up_by_state_day_model_and_session(
    money: Money, clock: Clock
) -> None:
    await at(money, "settled")
    await at(money, "released")
    await at(money, "reserved")
    clock.now = datetime(2026, 11, 16, tzinfo=UTC)
    other = await money.reserve(4 * CENT, **dict(CALL, session_id="t", model="m"))
    await money.mark_sent(other, request_json="{}")
    await money.mark_unknown(other, error_code=None)
    await at(money, "sent")
    spend = await money.spend(recent=2)
    assert (spend.settled_nano, spend.unknown_nano, spend.in_flight_nano, spend.total_nano) == (
        CENT,
        4 * CENT,
        8 * CENT,
        5 * CENT,
    )
    flux = "replicate-flux/black-forest-labs/flux-schnell"
    assert (spend.by_day, spend.by_model, spend.by_session) == (
        (
            SpendLine(name="2026-11-16", nano=4 * CENT, calls=1),
            SpendLine(name="2026-11-15", nano=CENT, calls=1),
        ),
        (
            SpendLine(name="replicate-flux/m", nano=4 * CENT, calls=1),
            SpendLine(name=flux, nano=CENT, calls=1),
        ),
        (
            SpendLine(name="s", nano=CENT, calls=1),
            SpendLine(name="t", nano=4 * CENT, calls=1),
        ),
    )
    assert [row.id for row in spend.recent] == [5, 4]


async def test_spent_may_be_asked_by_session_and_by_day(money: Money, clock: Clock) -> None:
    await at(money, "settled")
    clock.now = datetime(2026, 11, 16, tzinfo=UTC)
    await at(money, "unknown")
    assert [
        await money.spent(),
        await money.spent(session_id="s"),
        await money.spent(session_id="t"),
        await money.spent(day=date(2026, 11, 15)),
        await money.spent(day=date(2026, 11, 16)),
        await money.spent(day=date(2026, 11, 17)),
    ] == [5 * CENT, 5 * CENT, 0, CENT, 4 * CENT, 0]


async def test_the_report_is_json_in_dollars(money: Money) -> None:
    await at(money, "settled")
    line = {"cost_usd": 0.01, "calls": 1}
    assert (await money.spend()).as_json() == {
        "total_usd": 0.01,
        "settled_usd": 0.01,
        "unknown_usd": 0.0,
        "in_flight_usd": 0.0,
        "by_day": [{"name": "2026-11-15", **line}],
        "by_model": [{"name": "replicate-flux/black-forest-labs/flux-schnell", **line}],
        "by_session": [{"name": "s", **line}],
        "next": None,
        "recent": [
            {
                "id": 1,
                "created_ms": NOW_MS,
                **CALL,
                "state": "settled",
                "quoted_usd": 0.04,
                "cost_usd": 0.01,
                "cost_source": "computed",
                "error_code": None,
                "picture": "h",
                "path": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("spending_of", ["SEARCH spending USING PRIMARY KEY (kind=? AND name=?)"]),
        ("spending_newest_day", ["SEARCH spending USING PRIMARY KEY (kind=?)"]),
        ("spending_by_session", ["SCAN spending USING INDEX spending_by_use"]),
        ("ledger_of_picture", ["SEARCH ledger USING INDEX ledger_by_picture (picture=?)"]),
    ],
)
async def test_a_query_does_not_read_the_rows_of_others(
    money: Money, ledger_path: Path, query: str, plan: list[str]
) -> None:
    await money.record_cost(5, "table", session_id="s", tool="look")
    statement = named_queries()[query]
    with closing(sqlite3.connect(ledger_path)) as connection:
        steps = connection.execute(
            f"EXPLAIN QUERY PLAN {statement}", dict.fromkeys(re.findall(r":(\w+)", statement))
        ).fetchall()
    assert [step[3] for step in steps] == plan


async def test_the_sessions_of_the_report_come_in_pages(money: Money) -> None:
    for name in "abcde":
        await money.record_cost(5, "table", session_id=name, tool="look")
    pages: list[list[str]] = []
    after = None
    while not pages or after is not None:
        page = await money.spend(lines=2, after=after)
        pages.append([line.name for line in page.by_session])
        after = page.next_session
    assert pages == [["e", "d"], ["c", "b"], ["a"]]


async def test_counters_that_differ_from_the_rows_are_named(
    money: Money, ledger_path: Path
) -> None:
    await money.record_cost(5, "table", session_id="s", tool="look")
    before = await money.wrong_counters()
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE spending SET settled_nano = 6 WHERE kind = 'session'")
        connection.execute("DELETE FROM spending WHERE kind = 'day'")
    assert (before, await money.wrong_counters()) == ([], ["day 2026-11-15", "session s"])


async def test_a_job_at_a_service_belongs_to_one_request(money: Money) -> None:
    async def journalled(provider: str) -> str:
        call: dict[str, Any] = CALL | {"provider": provider}
        row = await money.reserve(CENT, **call)
        job_id = await money.mark_sent(row, request_json="{}")
        assert job_id is not None
        return job_id

    url = "https://api.replicate.com/v1/predictions/p1"
    first, second = await journalled("replicate-flux"), await journalled("replicate-flux")
    sibling, stranger = await journalled("replicate"), await journalled("comfyui")
    for _ in range(2):
        await money.note_job(first, remote_id="p1", remote_url=url)
    for taken in (second, sibling):
        with pytest.raises(JobTaken, match="p1 belongs to another request"):
            await money.note_job(taken, remote_id="p1", remote_url=url)
    await money.note_job(stranger, remote_id="p1", remote_url="http://127.0.0.1:8188/p1")
    rows = {row.id: row.remote_id for row in await money.unfinished_jobs()}
    assert rows == {first: "p1", second: None, sibling: None, stranger: "p1"}
