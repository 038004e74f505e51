"""Many calls at once, in one process and in several, together stay below a cap."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import money_child
import pytest
from money_child import CALL, FOUR_CENTS, race
from money_clock import Clock

from limner.errors import BudgetExceeded
from limner.money.ledger import Caps, Money
from limner.storage.store import Store

TEN_CENTS = Caps(session_nano=100_000_000)
FIVE_CENTS = 50_000_000


async def test_of_forty_tasks_exactly_two_fit_under_ten_cents(store: Store, clock: Clock) -> None:
    money = Money(store, caps=TEN_CENTS, clock=clock)
    assert sum(await asyncio.gather(*(race(money) for _ in range(4)))) == 2
    assert (await money.spend()).in_flight_nano == 2 * FOUR_CENTS


@pytest.mark.parametrize(
    ("caps", "own_cap"), [(Caps(session_nano=FIVE_CENTS), None), (Caps(), FIVE_CENTS)]
)
async def test_forty_calls_that_ask_what_remains_never_spend_more_than_five_cents(
    store: Store, clock: Clock, caps: Caps, own_cap: int | None
) -> None:
    money = Money(store, caps=caps, clock=clock)
    looked = asyncio.Barrier(40)

    async def buy_what_is_left() -> int:
        bought = 0
        await looked.wait()
        while left := await money.remaining(CALL["session_id"], session_cap_nano=own_cap):
            quote = min(left, FOUR_CENTS)
            with contextlib.suppress(BudgetExceeded):
                await money.reserve(quote, **CALL, session_cap_nano=own_cap)
                bought += quote
        return bought

    bought = await asyncio.gather(*(buy_what_is_left() for _ in range(40)))
    assert sum(bought) == (await money.spend()).in_flight_nano == FIVE_CENTS


def test_of_forty_calls_in_four_threads_exactly_two_fit_under_ten_cents(ledger_path: Path) -> None:
    start = threading.Barrier(4)

    async def race_alone() -> int:
        store = Store(ledger_path)
        start.wait(timeout=60)
        try:
            return await race(Money(store, caps=TEN_CENTS, clock=lambda: datetime.now(UTC)))
        finally:
            await store.aclose()

    with ThreadPoolExecutor(4) as threads:
        racing = [threads.submit(asyncio.run, race_alone()) for _ in range(4)]
        assert sum(race.result() for race in racing) == 2


def test_of_forty_calls_in_four_processes_exactly_two_fit_under_ten_cents(
    ledger_path: Path,
) -> None:
    command = [sys.executable, money_child.__file__, str(ledger_path), "race"]
    with contextlib.ExitStack() as children:
        racing = [
            children.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(4)
        ]
        assert [_line_of(child) for child in racing] == ["ready"] * 4
        for child in racing:
            _tell(child)
        assert sum(int(_line_of(child)) for child in racing) == 2
        for child in racing:
            _tell(child)
    assert [child.returncode for child in racing] == [0] * 4


def _line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go on\n")
    child.stdin.flush()


async def test_a_cancelled_reservation_is_released_even_if_it_was_being_written(
    store: Store, clock: Clock
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def slow_clock() -> datetime:
        writing.set()
        assert go_on.wait(timeout=60)
        return clock.now

    money = Money(store, caps=TEN_CENTS, clock=slow_clock)
    reserving = asyncio.ensure_future(money.reserve(FOUR_CENTS, **CALL))
    await asyncio.to_thread(writing.wait, 60)
    reserving.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await reserving
    spend = await money.spend()
    assert (spend.in_flight_nano, [row.state for row in spend.recent]) == (0, ["released"])


async def test_a_cancelled_reservation_that_is_refused_stays_cancelled(
    store: Store, clock: Clock
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def slow_clock() -> datetime:
        writing.set()
        assert go_on.wait(timeout=60)
        return clock.now

    money = Money(store, caps=Caps(call_nano=0), clock=slow_clock)
    reserving = asyncio.ensure_future(money.reserve(FOUR_CENTS, **CALL))
    await asyncio.to_thread(writing.wait, 60)
    reserving.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await reserving
    assert (await money.spend()).recent == ()
    with pytest.raises(BudgetExceeded):
        await money.reserve(FOUR_CENTS, **CALL)
