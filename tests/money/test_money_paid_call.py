"""Every way a call can end: the row in the ledger, and the cost in the error."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from money_child import CALL, FOUR_CENTS
from money_clock import Clock

from limner.catalogue.prices import Quote
from limner.errors import (
    ApprovalDenied,
    BadProviderImage,
    BudgetExceeded,
    Cancelled,
    CorruptImage,
    LimnerError,
    ProviderRefused,
    ProviderUnavailable,
    StorageError,
    UnexpectedError,
    UserError,
    cancellation_cost,
)
from limner.money.ledger import Caps, JobRow, Money
from limner.money.paid_call import (
    PaidCall,
    Payer,
    finish_despite_cancellation,
    paid_call,
    resumed_call,
)
from limner.net.paid_request import announcing_trace
from limner.storage.blobs import Blobs
from limner.storage.incoming_files import Incoming, IncomingFile
from limner.storage.store import Store, Transaction

PICTURE = "f" * 64
FIVE_CENTS = 50_000_000


async def begin(money: Money, *, quote_nano: int = FOUR_CENTS) -> PaidCall:
    reservation = await money.reserve(quote_nano, **CALL)
    return PaidCall(money, reservation, quote_source="table")


async def again(money: Money) -> PaidCall:
    """The call of a process that recovers the only job."""
    (job,) = await money.unfinished_jobs()
    return resumed_call(money, job, quote_source="table")


async def end_of(call: PaidCall, story: Callable[[PaidCall], Awaitable[None]]) -> Any:
    """The error that a call ends with."""
    try:
        async with call:
            await story(call)
    except BaseException as error:
        return error
    raise AssertionError("it ended well")


async def row(money: Money) -> tuple[Any, ...]:
    (only,) = (await money.spend()).recent
    return only.state, only.cost_nano, only.cost_source, only.error_code, only.picture, only.path


def sent_and_then(error: BaseException) -> Callable[[PaidCall], Awaitable[None]]:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        raise error

    return story


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How far a call came, what went wrong then, and what must be left."""

    error: Callable[[], BaseException]
    row: tuple[Any, ...]
    cost: tuple[bool, int, str]
    sent: bool = True
    job: bool = False
    withdrawn: bool = False
    priced: int | None = None
    received: bool = False


ENDINGS = {
    "before it was sent": Ending(
        error=lambda: StorageError("no room"),
        sent=False,
        row=("released", 0, "table", "STORAGE_FAILED", None, None),
        cost=(False, 0, "table"),
    ),
    "the service refused": Ending(
        error=lambda: ProviderRefused("no"),
        row=("released", 0, "table", "IMAGE_GEN_REJECTED", None, None),
        cost=(False, 0, "table"),
    ),
    "the service withdrew": Ending(
        error=lambda: ProviderUnavailable("cancelled", may_be_billed=True),
        withdrawn=True,
        row=("released", 0, "table", "IMAGE_GEN_PROVIDER_UNAVAILABLE", None, None),
        cost=(False, 0, "table"),
    ),
    "it may be billed": Ending(
        error=lambda: ProviderUnavailable("lost", may_be_billed=True),
        row=("unknown", FOUR_CENTS, "unknown", "IMAGE_GEN_PROVIDER_UNAVAILABLE", None, None),
        cost=(True, FOUR_CENTS, "unknown"),
    ),
    "an answer without a picture": Ending(
        error=lambda: BadProviderImage("no picture"),
        row=("settled", FOUR_CENTS, "table", "IMAGE_GEN_BAD_RESPONSE", None, None),
        cost=(True, FOUR_CENTS, "table"),
    ),
    "an answer with a price and a broken picture": Ending(
        error=lambda: CorruptImage("broken"),
        received=True,
        priced=FIVE_CENTS,
        row=("settled", FIVE_CENTS, "computed", "IMAGE_CORRUPT", None, None),
        cost=(True, FIVE_CENTS, "computed"),
    ),
    "a full disk after the answer": Ending(
        error=lambda: StorageError("full"),
        received=True,
        priced=FIVE_CENTS,
        row=("settled", FIVE_CENTS, "computed", "STORAGE_FAILED", None, None),
        cost=(True, FIVE_CENTS, "computed"),
    ),
    "a full disk after the answer of a job that can be asked again": Ending(
        error=lambda: StorageError("full"),
        job=True,
        received=True,
        priced=FIVE_CENTS,
        row=("unknown", FOUR_CENTS, "unknown", "STORAGE_FAILED", None, None),
        cost=(True, FOUR_CENTS, "unknown"),
    ),
    "a broken picture of a job that can be asked again": Ending(
        error=lambda: CorruptImage("broken"),
        job=True,
        received=True,
        row=("unknown", FOUR_CENTS, "unknown", "IMAGE_CORRUPT", None, None),
        cost=(True, FOUR_CENTS, "unknown"),
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
async def test_a_call_that_fails_concludes_its_row_and_its_error_has_the_cost(
    money: Money, ending: Ending
) -> None:
    failure = ending.error()

    async def story(call: PaidCall) -> None:
        if ending.sent:
            await call.send("{}")
        if ending.job:
            await call.note_job("p1", "https://example.com/p1")
        if ending.withdrawn:
            call.withdraw()
        if ending.received:
            call.received(ending.priced, "computed")
        raise failure

    call = await begin(money)
    error = await end_of(call, story)
    assert error is failure
    assert await row(money) == ending.row
    assert (error.billed, error.cost_nano, error.cost_source) == ending.cost
    assert error.extras == ({"job_id": call.job_id} if error.billed else {})
    again = f"`limner jobs recover {call.job_id}` fetches it without paying again."
    assert error.hint == (again if ending.job else None)


async def test_a_call_that_succeeds_is_settled_with_its_picture_and_path(money: Money) -> None:
    async with await begin(money) as call:
        await call.send("{}")
        call.received(None, "provider")
        await call.settle(PICTURE)
        await call.record_path(Path("/pictures/fox.png"))
    assert await row(money) == (
        "settled",
        FOUR_CENTS,
        "table",
        None,
        PICTURE,
        "/pictures/fox.png",
    )


async def test_what_fails_after_the_settlement_was_paid_for(money: Money) -> None:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        await call.settle(PICTURE)
        raise StorageError("the disk is full")

    error = await end_of(await begin(money), story)
    assert (error.message, error.billed, error.cost_nano) == ("the disk is full", True, FOUR_CENTS)
    assert await row(money) == ("settled", FOUR_CENTS, "table", None, PICTURE, None)


async def test_an_unexpected_crash_may_have_been_billed(money: Money) -> None:
    bug, call = KeyError("oops"), await begin(money)
    error = await end_of(call, sent_and_then(bug))
    assert (type(error), error.__cause__) == (UnexpectedError, bug)
    assert error.message == "The call stopped unexpectedly: KeyError: 'oops'"
    assert (error.billed, error.cost_nano, error.cost_source) == (True, FOUR_CENTS, "unknown")
    assert error.extras == {"job_id": call.job_id}
    assert await row(money) == ("unknown", FOUR_CENTS, "unknown", "KeyError", None, None)


async def test_what_is_free_is_released_however_it_ends(money: Money) -> None:
    error = KeyError("oops")
    assert await end_of(await begin(money, quote_nano=0), sent_and_then(error)) is error
    assert await row(money) == ("released", 0, "table", "KeyError", None, None)


async def cancelled(
    call: PaidCall, *, withdrawn: bool = False, times: int = 1, path: Path | None = None
) -> Cancelled:
    """The cost of a call that is cancelled, once or several times, while the provider works.

    With the path of the ledger, another process is writing to it all the while.
    """
    working = asyncio.Event()

    async def wait() -> None:
        async with call:
            await call.send("{}")
            if withdrawn:
                call.withdraw()
            working.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await working.wait()
    with nullcontext() if path is None else locked(path):
        for _ in range(times):
            task.cancel()
            await some_steps()
        assert path is None or not task.done()
    await asyncio.wait([task])
    assert task.cancelled()
    return cost_of(await outcome(task))


async def outcome(task: asyncio.Task[Any]) -> Any:
    try:
        return await task
    except asyncio.CancelledError as stop:
        return stop


def cost_of(stop: asyncio.CancelledError) -> Cancelled:
    cost = cancellation_cost(stop)
    assert cost is not None
    return cost


async def some_steps() -> None:
    """Let the event loop do what it has to do."""
    for _ in range(10):
        await asyncio.sleep(0)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Another writer is at the ledger for as long as the context lasts."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("COMMIT")


async def test_a_cancellation_stays_a_cancellation_and_has_the_cost(money: Money) -> None:
    call = await begin(money)
    error = await cancelled(call)
    assert (error.billed, error.cost_nano, error.cost_source) == (True, FOUR_CENTS, "unknown")
    assert error.extras == {"job_id": call.job_id}
    assert await row(money) == ("unknown", FOUR_CENTS, "unknown", "CANCELLED", None, None)


@pytest.mark.parametrize(
    "make_stop", [KeyboardInterrupt, lambda: SystemExit(3)], ids=["interrupt", "exit"]
)
async def test_an_interrupt_and_an_exit_have_the_cost_too(
    money: Money, make_stop: Callable[[], BaseException]
) -> None:
    stop = make_stop()
    error = await end_of(await begin(money), sent_and_then(stop))
    assert error is stop
    cost = cancellation_cost(stop)
    assert cost is not None
    assert (cost.billed, cost.cost_nano, cost.cost_source) == (True, FOUR_CENTS, "unknown")
    assert stop.__notes__ == ["It may have cost $0.04: limner spend shows what was spent."]
    assert not isinstance(stop, SystemExit) or stop.code == 3
    assert (await row(money))[:2] == ("unknown", FOUR_CENTS)


async def test_a_cancellation_that_the_provider_confirmed_costs_nothing(money: Money) -> None:
    error = await cancelled(await begin(money), withdrawn=True)
    assert (error.billed, error.cost_nano) == (False, 0)
    assert await row(money) == ("released", 0, "table", "CANCELLED", None, None)


async def test_cancelling_several_times_still_concludes_the_row(
    money: Money, ledger_path: Path
) -> None:
    error = await cancelled(await begin(money), times=5, path=ledger_path)
    assert (error.billed, error.cost_nano) == (True, FOUR_CENTS)
    assert await row(money) == ("unknown", FOUR_CENTS, "unknown", "CANCELLED", None, None)


async def test_a_failure_that_is_cancelled_while_it_is_recorded_still_has_its_cost(
    money: Money, ledger_path: Path
) -> None:
    sent, failing = asyncio.Event(), asyncio.Event()

    async def fail(call: PaidCall) -> None:
        async with call:
            await call.send("{}")
            sent.set()
            await failing.wait()
            raise ProviderUnavailable("lost", may_be_billed=True)

    task = asyncio.create_task(fail(await begin(money)))
    await sent.wait()
    with locked(ledger_path):
        failing.set()
        await some_steps()
        task.cancel()
        await some_steps()
    error = cost_of(await outcome(task))
    assert (error.billed, error.cost_nano) == (True, FOUR_CENTS)
    assert (await row(money))[:2] == ("unknown", FOUR_CENTS)


async def test_a_cancellation_after_the_picture_was_written_has_its_path(
    money: Money,
) -> None:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        await call.settle(PICTURE)
        await call.record_path(Path("/pictures/fox.png"))
        raise asyncio.CancelledError

    call = await begin(money)
    error = cost_of(await end_of(call, story))
    places = {"job_id": call.job_id, "path": "/pictures/fox.png"}
    assert (error.cost_nano, error.extras) == (FOUR_CENTS, places)


def test_a_cancellation_outside_of_a_paid_call_has_no_cost() -> None:
    assert cancellation_cost(asyncio.CancelledError()) is None
    assert cancellation_cost(asyncio.CancelledError("why")) is None


def lose_the_ledger(path: Path) -> None:
    """Make every further write to the rows fail."""
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM ledger")


@pytest.mark.parametrize(
    ("error", "cost"),
    [
        (ProviderRefused("no"), (False, 0, "table")),
        (ProviderUnavailable("lost", may_be_billed=True), (True, FOUR_CENTS, "unknown")),
        (BadProviderImage("no picture"), (True, FOUR_CENTS, "table")),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_ledger_that_cannot_be_written_does_not_hide_the_first_error(
    money: Money, ledger_path: Path, error: LimnerError, cost: tuple[bool, int, str]
) -> None:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        lose_the_ledger(ledger_path)
        raise error

    assert await end_of(await begin(money), story) is error
    assert (error.billed, error.cost_nano, error.cost_source) == cost
    assert error.extras["unrecorded"].startswith("Ledger row 1 is missing")


async def test_a_ledger_that_cannot_be_written_does_not_hide_a_cancellation(
    money: Money, ledger_path: Path
) -> None:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        lose_the_ledger(ledger_path)
        raise asyncio.CancelledError

    error = cost_of(await end_of(await begin(money), story))
    assert (error.cost_nano, sorted(error.extras)) == (FOUR_CENTS, ["job_id", "unrecorded"])


async def test_a_settlement_that_fails_has_its_price(money: Money, ledger_path: Path) -> None:
    async def story(call: PaidCall) -> None:
        await call.send("{}")
        call.received(FIVE_CENTS, "computed")
        lose_the_ledger(ledger_path)
        await call.settle(PICTURE)

    error = await end_of(await begin(money), story)
    assert error.message == "Ledger row 1 is missing: it cannot become settled."
    assert (error.billed, error.cost_nano, error.cost_source) == (True, FIVE_CENTS, "computed")


async def test_a_settlement_that_fails_once_is_repeated_with_its_picture(
    money: Money, ledger_path: Path
) -> None:
    """The row is out of reach when the picture is settled, and back a moment later."""

    async def story(call: PaidCall) -> None:
        await call.send("{}")
        await call.note_job("p1", "https://example.com/p1")
        call.received(FIVE_CENTS, "computed")
        rename(ledger_path, "id = 1", to="id = 2")
        try:
            await call.settle(PICTURE)
        finally:
            rename(ledger_path, "id = 2", to="id = 1")

    assert isinstance(await end_of(await begin(money), story), StorageError)
    assert await row(money) == (
        "settled",
        FIVE_CENTS,
        "computed",
        "STORAGE_FAILED",
        PICTURE,
        None,
    )


def rename(path: Path, which: str, *, to: str) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"UPDATE ledger SET {to} WHERE {which}")


async def test_a_path_that_cannot_be_recorded_is_not_a_failure(
    money: Money, ledger_path: Path
) -> None:
    async with await begin(money) as call:
        await call.send("{}")
        await call.settle(PICTURE)
        lose_the_ledger(ledger_path)
        await call.record_path(Path("/pictures/fox.png"))


async def left_open(money: Money) -> JobRow:
    late = ProviderUnavailable("late", may_be_billed=True)
    assert await end_of(await begin(money), sent_and_then(late)) is late
    (job,) = await money.unfinished_jobs()
    return job


async def test_the_second_of_two_processes_that_recover_a_job_pays_nothing(money: Money) -> None:
    await left_open(money)
    first = await again(money)

    async def story(second: PaidCall) -> None:
        await second.note_job("p1", "https://example.com/p1")
        async with first:
            await first.settle(PICTURE)
        await second.settle(PICTURE)

    error = await end_of(await again(money), story)
    assert isinstance(error, UserError)
    assert (error.code, error.billed, error.cost_nano) == ("JOB_ALREADY_RECEIVED", False, 0)
    assert error.extras == {}
    assert await row(money) == ("settled", FOUR_CENTS, "table", None, PICTURE, None)


async def test_a_picture_that_is_broken_when_it_is_fetched_again_is_final(money: Money) -> None:
    await left_open(money)

    async def story(call: PaidCall) -> None:
        await call.note_job("p1", "https://example.com/p1")
        call.received(None, "table")
        raise CorruptImage("broken")

    error = await end_of(await again(money), story)
    assert (error.billed, error.cost_nano, error.cost_source) == (True, FOUR_CENTS, "table")
    assert await row(money) == ("settled", FOUR_CENTS, "table", "IMAGE_CORRUPT", None, None)


async def test_two_processes_that_recover_a_failed_job_both_get_the_failure(money: Money) -> None:
    await left_open(money)
    first, second = await again(money), await again(money)

    async def story(call: PaidCall) -> None:
        raise ProviderUnavailable("the prediction failed")

    failures = [await end_of(first, story), await end_of(second, story)]
    assert [(f.billed, f.cost_nano, f.extras) for f in failures] == [(False, 0, {})] * 2
    assert (await row(money))[0] == "released"


async def test_work_that_finishes_despite_cancellation_returns_or_raises_as_usual() -> None:
    async def make() -> int:
        return 7

    async def meet() -> int:
        raise KeyError("oops")

    assert await finish_despite_cancellation(make()) == 7
    with pytest.raises(KeyError):
        await finish_despite_cancellation(meet())


async def test_a_cap_counts_what_failed_and_may_be_billed(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(session_nano=FOUR_CENTS), clock=clock)
    await left_open(money)
    with pytest.raises(LimnerError, match="session"):
        await begin(money)


QUOTE = Quote(nano=FOUR_CENTS, source="table", exact=True)
BOUGHT: dict[str, Any] = {"tool": "image_generate", "provider": "acme", "model": "m"}


class Follower:
    """Approves or refuses, and notes each step in order."""

    def __init__(self, *, approves: bool = True, goes_over: bool = False) -> None:
        self.steps: list[Any] = []
        self._approves, self._goes_over = approves, goes_over

    def payer(self, *, budget_nano: int | None = None) -> Payer:
        return Payer(
            session_id="s1",
            budget_nano=budget_nano,
            approve=self.approve,
            approve_over_cap=self.approve_over_cap,
            on_reserved=self.on_reserved,
            on_sending=lambda: self.steps.append("sending"),
        )

    async def approve(self, quote_nano: int) -> None:
        self.steps.append(("approve", quote_nano))
        if not self._approves:
            raise ApprovalDenied("no")

    async def approve_over_cap(self, refusal: BudgetExceeded, quote_nano: int) -> bool:
        self.steps.append((refusal.extras["cap"], quote_nano))
        return self._goes_over

    async def on_reserved(self, ledger_id: int) -> None:
        self.steps.append(("reserved", ledger_id))


async def test_a_paid_call_asks_then_reserves_then_sends_then_settles(money: Money) -> None:
    follower = Follower()
    async with paid_call(money, QUOTE, payer=follower.payer(), **BOUGHT) as call:
        assert (await row(money))[:2] == ("reserved", FOUR_CENTS)
        await call.send("{}")
        assert (await row(money))[:2] == ("sent", FOUR_CENTS)
        call.received(FIVE_CENTS, "provider")
        await call.settle(PICTURE)
    assert follower.steps == [("approve", FOUR_CENTS), ("reserved", 1), "sending"]
    assert (call.cost_nano, call.cost_source) == (FIVE_CENTS, "provider")
    assert await row(money) == ("settled", FIVE_CENTS, "provider", None, PICTURE, None)


async def test_a_call_is_counted_as_sent_when_its_request_is_announced(money: Money) -> None:
    follower = Follower()
    async with paid_call(money, QUOTE, payer=follower.payer(), **BOUGHT) as call:
        with call.announced(None):
            assert (await row(money))[:2] == ("reserved", FOUR_CENTS)
            trace = announcing_trace()
            assert trace is not None
            await trace("connection.connect_tcp.started", None)
            assert (await row(money))[:2] == ("reserved", FOUR_CENTS)
            for _ in range(2):  # a request that is repeated is counted once
                await trace("http11.send_request_headers.started", None)
                assert (await row(money))[:2] == ("sent", FOUR_CENTS)
        await call.settle(None)
    assert follower.steps == [("approve", FOUR_CENTS), ("reserved", 1), "sending"]
    assert (await row(money))[:2] == ("settled", FOUR_CENTS)


def unannounced(error: BaseException) -> Callable[[PaidCall], Awaitable[None]]:
    async def story(call: PaidCall) -> None:
        with call.announced("{}"):
            raise error

    return story


async def test_what_fails_before_the_request_leaves_costs_nothing(money: Money) -> None:
    bug = KeyError("oops")
    assert await end_of(await begin(money), unannounced(bug)) is bug
    assert await row(money) == ("released", 0, "table", "KeyError", None, None)


async def test_a_provider_that_says_it_may_be_billed_is_believed_without_an_announcement(
    money: Money,
) -> None:
    lost = ProviderUnavailable("lost", may_be_billed=True)
    assert await end_of(await begin(money), unannounced(lost)) is lost
    assert (lost.billed, lost.cost_nano) == (True, FOUR_CENTS)
    assert (await row(money))[:2] == ("unknown", FOUR_CENTS)


async def test_what_is_not_approved_leaves_no_row(money: Money) -> None:
    follower = Follower(approves=False)
    with pytest.raises(ApprovalDenied):
        async with paid_call(money, QUOTE, payer=follower.payer(), **BOUGHT):
            raise AssertionError("the body must not run")
    assert (follower.steps, (await money.spend()).recent) == ([("approve", FOUR_CENTS)], ())


@pytest.mark.parametrize("goes_over", [True, False])
async def test_a_cap_that_refuses_is_put_to_the_payer_once(money: Money, goes_over: bool) -> None:
    follower = Follower(goes_over=goes_over)
    payer = follower.payer(budget_nano=FOUR_CENTS - 1)
    refused = nullcontext() if goes_over else pytest.raises(BudgetExceeded)
    with refused:
        async with paid_call(money, QUOTE, payer=payer, **BOUGHT) as call:
            await call.send(None)
            await call.settle(None)
    asked = [("approve", FOUR_CENTS), ("session", FOUR_CENTS)]
    bought = [("reserved", 1), "sending"]
    assert follower.steps == asked + (bought if goes_over else [])
    assert len((await money.spend()).recent) == goes_over


async def test_a_reservation_that_cannot_be_followed_is_released_and_nothing_is_sent(
    money: Money,
) -> None:
    async def fail(ledger_id: int) -> None:
        raise StorageError(f"row {ledger_id} cannot be noted")

    payer = Payer(session_id="s1", on_reserved=fail)
    with pytest.raises(StorageError, match="row 1 cannot be noted") as caught:
        async with paid_call(money, QUOTE, payer=payer, **BOUGHT):
            raise AssertionError("the body must not run")
    assert (caught.value.billed, caught.value.cost_nano) == (False, 0)
    assert await row(money) == ("released", 0, "table", "STORAGE_FAILED", None, None)


async def test_a_request_that_cannot_be_journalled_was_not_sent(
    money: Money, ledger_path: Path
) -> None:
    """The disk is full at the journal: the user must not hear of a possible charge."""

    async def story(call: PaidCall) -> None:
        lose_the_ledger(ledger_path)
        await call.send("{}")

    error = await end_of(await begin(money), story)
    assert isinstance(error, StorageError)
    assert (error.billed, error.cost_nano, error.cost_source) == (False, 0, "table")


async def test_a_refusal_that_is_charged_for_is_settled_at_its_price(money: Money) -> None:
    refusal = ProviderRefused("no")
    refusal.charge(FIVE_CENTS, "computed")
    assert await end_of(await begin(money), sent_and_then(refusal)) is refusal
    assert (refusal.billed, refusal.cost_nano, refusal.cost_source) == (
        True,
        FIVE_CENTS,
        "computed",
    )
    assert await row(money) == (
        "settled",
        FIVE_CENTS,
        "computed",
        "IMAGE_GEN_REJECTED",
        None,
        None,
    )


async def test_a_cancelled_call_says_so_in_the_words_of_its_tool(money: Money) -> None:
    with pytest.raises(asyncio.CancelledError) as caught:
        async with paid_call(
            money, QUOTE, payer=Payer(session_id="s1"), cancel_message="aborted.", **BOUGHT
        ):
            raise asyncio.CancelledError
    error = cost_of(caught.value)
    assert (error.message, error.billed, error.cost_nano) == ("aborted.", False, 0)


async def test_an_answer_that_cannot_be_stored_is_settled_at_its_price(money: Money) -> None:
    def cannot_be_stored(_: Transaction) -> None:
        raise UserError("the session is gone")

    async def story(call: PaidCall) -> None:
        await call.send(None)
        call.received(FIVE_CENTS, "computed")
        await call.settle(None, also=cannot_be_stored)

    error = await end_of(await begin(money), story)
    assert (error.message, error.cost_nano) == ("the session is gone", FIVE_CENTS)
    assert await row(money) == ("settled", FIVE_CENTS, "computed", UserError.code, None, None)


EXCEPTIONS: list[Callable[[], BaseException]] = [
    lambda: KeyError("oops"),
    lambda: RuntimeError("can't start new thread"),
    lambda: OSError("too many open files"),
    lambda: TimeoutError("late"),
    MemoryError,
    lambda: RecursionError("deep"),
    lambda: ExceptionGroup("several", [KeyError("oops")]),
    lambda: StorageError("full"),
    lambda: CorruptImage("broken"),
    lambda: UserError("no"),
    lambda: ProviderRefused("no"),
    lambda: ProviderUnavailable("lost", may_be_billed=True),
    asyncio.CancelledError,
    KeyboardInterrupt,
    lambda: SystemExit(3),
]
STEPS = "reserved", "sent", "queued", "arriving", "delivered", "settling", "settled", "written"


async def steps(call: PaidCall, file: IncomingFile, stop: Callable[[str], None]) -> None:
    """A whole call, which may be stopped after each step."""

    def in_the_transaction(_: Transaction) -> None:
        stop("settling")

    stop("reserved")
    await call.send("{}")
    stop("sent")
    await call.note_job(f"p{call.job_id}", "https://example.com/p")
    stop("queued")
    file.write(b"a picture")
    stop("arriving")
    await call.deliver(FIVE_CENTS, "computed")
    stop("delivered")
    await call.settle(PICTURE, also=in_the_transaction)
    stop("settled")
    await call.record_path(Path("/pictures/fox.png"))
    stop("written")


def cost_told(error: BaseException) -> int | None:
    """The cost that an error tells; None for those that end the program and tell nothing."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return None
    if isinstance(error, asyncio.CancelledError):
        return cost_of(error).cost_nano
    return error.cost_nano if isinstance(error, LimnerError) else 0


@pytest.mark.parametrize("step", STEPS)
async def test_whatever_stops_a_call_at_whatever_step_tells_what_the_ledger_counts(
    money: Money, tmp_path: Path, step: str
) -> None:
    incoming = Incoming(tmp_path / "incoming", Blobs(tmp_path / "blobs"))
    for number, exception in enumerate(EXCEPTIONS):
        if step == "settling" and not isinstance(exception(), Exception):
            continue  # the thread of the database is never cancelled

        def stop(now: str, exception: Callable[[], BaseException] = exception) -> None:
            if now == step:
                raise exception()

        job_id = f"job_{number:016}"
        with incoming.open(job_id, room_bytes=1, max_bytes=100) as file:
            reservation = await money.reserve(FOUR_CENTS, **CALL)
            call = PaidCall(money, reservation, quote_source="table", delivery=file)
            error = await end_of(call, lambda call, file=file, stop=stop: steps(call, file, stop))
        row = (await money.spend()).recent[0]
        assert row.state in ("settled", "unknown", "released")
        assert cost_told(error) in (None, row.cost_nano), (step, error)
        assert type(error) in (type(exception()), UnexpectedError)
        assert (type(error) is UnexpectedError) <= (row.cost_nano > 0)
        is_stored = row.picture is not None
        has_bytes = STEPS.index(step) >= STEPS.index("arriving")
        is_kept = incoming.find(job_id) is not None
        # The service was paid: then the picture is recorded, or its bytes are here.
        assert is_kept == (has_bytes and row.cost_nano > 0 and not is_stored), (step, error)
