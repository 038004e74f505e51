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
from typing import Any

import money_child
import pytest
from money_child import CALL, FOUR_CENTS, race
from money_clock import Clock

from limner.errors import BudgetExceeded, LimnerError
from limner.money.ledger import Caps, Money
from limner.money.records import PaymentTerms, Purchase, Reservation
from limner.storage.store import Store, Transaction

TEN_CENTS = Caps(session_nano=100_000_000)
FIVE_CENTS = 50_000_000


async def test_of_forty_tasks_exactly_two_fit_under_ten_cents(store: Store, clock: Clock) -> None:
    money = Money(store, caps=TEN_CENTS, clock=clock)
    assert sum(await asyncio.gather(*(race(money) for _ in range(4)))) == 2
    assert (await money.spend()).in_flight_nano == 2 * FOUR_CENTS


@pytest.mark.parametrize(
    ("caps", "own_cap"),
    [
        (Caps(session_nano=FIVE_CENTS), None),
        (Caps(), FIVE_CENTS),
        (Caps(program_nano=FIVE_CENTS), None),
    ],
)
async def test_forty_calls_that_fit_one_after_the_other_all_succeed_and_never_pass_the_cap(
    store: Store, clock: Clock, caps: Caps, own_cap: int | None
) -> None:
    money = Money(store, caps=caps, clock=clock, program="p")
    most = 0

    async def buy() -> None:
        nonlocal most
        call = await money.reserve(FOUR_CENTS, **CALL, session_cap_nano=own_cap, wait_s=60)
        counted = await money.spend()
        most = max(most, counted.total_nano + counted.in_flight_nano)
        await money.mark_sent(call, request_json="{}")
        await money.settle(call, cost_nano=250_000, cost_source="table", picture=None)

    await asyncio.gather(*(buy() for _ in range(40)))
    assert most <= FIVE_CENTS
    assert (await money.spend()).total_nano == 40 * 250_000


async def test_a_call_waits_for_a_call_of_another_ledger_of_the_program(
    store: Store, clock: Clock
) -> None:
    program = Money(store, caps=Caps(program_nano=FIVE_CENTS), clock=clock, program="p")
    scope = program.scoped("alice", cap_nano=None)
    held = await scope.reserve(FOUR_CENTS, **CALL)
    waiting = asyncio.ensure_future(program.reserve(FOUR_CENTS, **CALL, wait_s=60))
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    await scope.release(held)
    assert (await waiting).quote_nano == FOUR_CENTS


async def test_a_call_that_waits_in_vain_is_refused_at_its_deadline(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=TEN_CENTS, clock=clock)
    await money.reserve(2 * FOUR_CENTS, **CALL)
    with pytest.raises(BudgetExceeded, match=r"calls in flight hold \$0\.08 of it"):
        await money.reserve(FOUR_CENTS, **CALL, wait_s=0.05)


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


class _Terms:
    """Terms that wait in the transaction of the reservation, until the test goes on."""

    def __init__(self, error: LimnerError | None = None) -> None:
        self.writing, self.go_on, self._error = threading.Event(), threading.Event(), error

    def admit(self, tx: Transaction, reservation: Reservation) -> None:
        self.writing.set()
        assert self.go_on.wait(timeout=60)
        if self._error is not None:
            raise self._error

    async def cancel(self, reserving: asyncio.Future[Any]) -> None:
        await asyncio.to_thread(self.writing.wait, 60)
        reserving.cancel()
        self.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await reserving


async def test_a_cancelled_reservation_whose_terms_are_refused_stays_cancelled(
    money: Money,
) -> None:
    terms = _Terms(LimnerError("Later.", code="RATE_WAIT", retryable=True))
    paid_for = PaymentTerms(key="k", admit=terms.admit)
    await terms.cancel(asyncio.ensure_future(money.reserve(FOUR_CENTS, terms=paid_for, **CALL)))
    assert (await money.spend()).recent == ()


async def test_cancelled_reservations_of_many_calls_are_all_released(money: Money) -> None:
    terms = _Terms()
    call = {name: CALL[name] for name in ("tool", "provider", "model")}
    purchases = [
        Purchase(quote_nano=FOUR_CENTS, terms=PaymentTerms(key=key, admit=terms.admit), **call)
        for key in "ab"
    ]
    reserving = money.reserve_many(purchases, session_id="s", session_cap_nano=10**9)
    await terms.cancel(asyncio.ensure_future(reserving))
    assert [row.state for row in (await money.spend()).recent] == ["released", "released"]


async def test_calls_that_were_not_written_are_not_in_flight(store: Store, clock: Clock) -> None:
    in_flight: dict[int, bool] = {}
    money = Money(store, caps=Caps(), clock=clock, in_flight=in_flight)

    def refuse(tx: Transaction, reservation: Reservation) -> None:
        raise LimnerError("Later.", code="RATE_WAIT", retryable=True)

    with pytest.raises(LimnerError, match="Later"):
        await money.reserve(FOUR_CENTS, terms=PaymentTerms(key="k", admit=refuse), **CALL)
    assert in_flight == {}


async def test_calls_that_have_ended_are_not_in_flight(store: Store, clock: Clock) -> None:
    in_flight: dict[int, bool] = {}
    money = Money(store, caps=Caps(), clock=clock, in_flight=in_flight)
    await money.record_cost(FOUR_CENTS, "provider", session_id="s", tool="sketch")
    unrecorded = await money.reserve(FOUR_CENTS, **CALL)
    money.give_up(unrecorded, is_sent=False)
    assert await money.conclude_dead_calls() == 1
    assert in_flight == {}
