"""A batch in the store -> its rows, run side by side until none is left.

A row is claimed, run and ended by one process. Before it pays, the transaction of the reservation
checks that this process still has the row, that the row was not paid for, that the budget of the
batch lasts, and that the provider's rate admits one more request. What an interrupted row has paid
is found out in the ledger, and never paid again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from limner import metrics
from limner.batches import rates
from limner.batches.queue import BatchQueue
from limner.batches.records import Batch, BatchStatus, ClaimedRow, RowOutcome
from limner.errors import (
    BudgetExceeded,
    Cancelled,
    LimnerError,
    ProviderError,
    ProviderRateLimited,
    StorageError,
)
from limner.log_fields import log_fields
from limner.money.ledger import ALREADY_PAID, Money
from limner.money.records import KeyedPayment, PaymentTerms, Reservation
from limner.net.waits import waits_reported
from limner.storage.store import Transaction

# A row that fails without a cost is tried again, if another try may help.
MAX_TRIES = 4
FIRST_PAUSE_S = 1.0
# How often an idle run looks for rows of processes that ended, and for rows that may be tried now.
LOOK_EVERY_S = 1.0
REPORT_EVERY_S = 1.0
# How long a run waits for a database or a bucket that cannot be reached.
UNREACHABLE_S = 600.0
WARN_EVERY_S = 60.0
_UNREACHABLE = (StorageError.code, "BLOBS_UNREACHABLE")

# Why a batch stopped whose caller was cancelled while rows were in flight.
WINDS_DOWN = "Interrupted: the rows in flight end first."

T = TypeVar("T")

logger = logging.getLogger("limner.batches")


class RowCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What runs the call of a row.

    Attributes:
        run: runs it; the terms belong to its payment.
        recover: finds out what became of a payment, and fetches the result if it can.
        key_hash: tells keys of a provider apart, without being one.
    """

    run: Callable[[Batch, ClaimedRow, PaymentTerms], Awaitable[RowOutcome]]
    recover: Callable[[Batch, ClaimedRow, KeyedPayment, PaymentTerms], Awaitable[RowOutcome]]
    key_hash: Callable[[str], str]


class BatchRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the rows of batches; ``concurrency`` is how many at once."""

    queue: BatchQueue
    money: Money
    calls: RowCalls
    concurrency: int

    async def run(
        self,
        batch: Batch,
        *,
        resume: bool = False,
        keys: Sequence[str] | None = None,
        on_status: Callable[[BatchStatus], None] | None = None,
    ) -> BatchStatus:
        """Run rows until none is left, the batch is cancelled, or a cap refuses a row.

        If the caller is cancelled, rows in flight end first; a second cancellation stops them too.

        Args:
            batch: the batch; it must be open.
            resume: try failed rows again that cost nothing, and ask about uncertain payments.
            keys: run only the rows with these keys.
            on_status: gets the state of the batch every second.
        """
        await self.money.conclude_dead_calls()
        run = _Run(self, batch, keys=keys, on_status=on_status)
        if resume:
            await self.queue.retry(batch, keys=keys)
        return await run.to_end(uncertain=resume)

    async def status(self, batch: Batch, *, stopped: str | None = None) -> BatchStatus:
        """The state of a batch now."""
        sums, counts = await self.money.sums_of_session(batch.id), await self.queue.counts(batch)
        for state, count in msgspec.structs.asdict(counts).items():
            metrics.BATCH_ROWS.set(count, state=state)
        return BatchStatus(
            batch=await self.queue.get(batch.id),
            counts=counts,
            spent_nano=sums.settled_nano + sums.unknown_nano,
            unknown_nano=sums.unknown_nano,
            stopped=stopped,
            remote=tuple(await self.queue.remote_batches(batch)),
        )


class _Run:
    """One process at work on one batch."""

    def __init__(
        self,
        runner: BatchRunner,
        batch: Batch,
        *,
        keys: Sequence[str] | None,
        on_status: Callable[[BatchStatus], None] | None,
    ) -> None:
        self._runner, self._batch, self._on_status = runner, batch, on_status
        self._keys = keys
        self._queue, self._calls = runner.queue, runner.calls
        self._rates = rates.parse_rates(msgspec.json.decode(batch.rates, type=list[str]))
        self._claimed: deque[ClaimedRow] = deque()
        self._running: dict[asyncio.Task[None], str] = {}
        self._waiting_for: dict[str, int] = {}
        self._stopped: str | None = None
        self._looked_s, self._reported_s = 0.0, -REPORT_EVERY_S
        self._warned_s = -WARN_EVERY_S

    async def to_end(self, *, uncertain: bool) -> BatchStatus:
        try:
            self._claimed += await self._queue.claim_interrupted(
                self._batch, uncertain=uncertain, keys=self._keys
            )
            while await self._when_reachable(self._step):
                pass
        except BaseException:
            await self._wind_down()
            raise
        await self._wind_down()
        return await self._when_reachable(self._status)

    async def _when_reachable(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something with the database, as soon as it can be reached."""
        deadline_s = time.monotonic() + UNREACHABLE_S
        while True:
            try:
                return await work()
            except StorageError as error:
                if not error.retryable or time.monotonic() > deadline_s:
                    raise
                if time.monotonic() - self._warned_s > WARN_EVERY_S:
                    self._warned_s = time.monotonic()
                    logger.warning("The batch waits: %s", error.message)
                await asyncio.sleep(LOOK_EVERY_S)

    async def _status(self) -> BatchStatus:
        return await self._runner.status(self._batch, stopped=self._stopped)

    async def _step(self) -> bool:
        """Start rows, wait until something ends; False if nothing is left to do."""
        await self._report()
        if self._stopped is None:
            await self._fill()
        if self._running:
            await asyncio.wait(
                self._running, timeout=REPORT_EVERY_S, return_when=asyncio.FIRST_COMPLETED
            )
            return True
        if self._stopped is not None:
            return False
        return await self._wait_for_rows()

    async def _fill(self) -> None:
        room = self._runner.concurrency - len(self._running)
        if room > 0 and not self._claimed:
            # As many as run at once: one transaction for all of them.
            self._claimed += await self._queue.claim(
                self._batch, count=self._runner.concurrency, keys=self._keys
            )
        while self._claimed and len(self._running) < self._runner.concurrency:
            row = self._claimed.popleft()
            task = asyncio.ensure_future(self._run_row(row))
            self._running[task] = row.row_key
            task.add_done_callback(self._forget)

    async def _wait_for_rows(self) -> bool:
        """Wait for rows of other processes, and for rows that pause; False if there are none."""
        counts = await self._queue.counts(self._batch, keys=self._keys)
        batch = await self._queue.get(self._batch.id)
        if batch.state != "open" or counts.waiting + counts.running == 0:
            return False
        pause_s = await self._queue.next_in_s(self._batch, keys=self._keys)
        await asyncio.sleep(LOOK_EVERY_S if pause_s is None else min(pause_s, LOOK_EVERY_S))
        if time.monotonic() - self._looked_s > LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            await self._runner.money.conclude_dead_calls()
            self._claimed += await self._queue.claim_interrupted(
                self._batch, uncertain=False, keys=self._keys
            )
        return True

    async def _run_row(self, row: ClaimedRow) -> None:
        with log_fields(batch=self._batch.id, row=row.row_key):
            try:
                outcome = await self._outcome(row)
            except asyncio.CancelledError:
                # The payment, if there was one, is in the ledger; the next claim looks there.
                outcome = await self._after_cancellation(row)
            await self._when_reachable(partial(self._end, row, outcome))

    async def _outcome(self, row: ClaimedRow) -> RowOutcome:
        terms, bucket = self._terms(row)
        if row.interrupted:
            found = await self._recovered(row, terms)
            if found is not None:
                return found
        while True:
            with waits_reported(partial(self._pause, bucket)):
                outcome = await self._calls.run(self._batch, row, terms)
            if outcome.error is not None and outcome.code == rates.RATE_WAIT:
                await self._wait_for_rate(bucket, outcome.error["wait_s"])
                continue
            if outcome.code != ALREADY_PAID and not _may_be_finished(outcome):
                return outcome
            found = await self._recovered(row, terms)
            # What an interrupted try had reserved is released now: the row can run.
            if found is not None or outcome.code != ALREADY_PAID:
                return found or outcome

    async def _recovered(self, row: ClaimedRow, terms: PaymentTerms) -> RowOutcome | None:
        """What the payment of a row came to, as soon as it is known; None if nothing was paid."""
        deadline_s = time.monotonic() + UNREACHABLE_S
        while True:
            found = await self._when_reachable(partial(self._recover, row, terms))
            if found is None or not _is_unreachable(found) or time.monotonic() > deadline_s:
                return found
            await asyncio.sleep(LOOK_EVERY_S)

    async def _recover(self, row: ClaimedRow, terms: PaymentTerms) -> RowOutcome | None:
        money = self._runner.money
        payment = await money.payment(terms.key)
        if payment is not None and payment.state in ("reserved", "sent"):
            # Its process has ended since the ledger was last looked through.
            await money.conclude_dead_calls()
            payment = await money.payment(terms.key)
        if payment is None:
            return None
        return await self._calls.recover(self._batch, row, payment, terms)

    async def _after_cancellation(self, row: ClaimedRow) -> RowOutcome:
        terms, _ = self._terms(row)
        cancelled = Cancelled("The row was interrupted.").as_json()
        payment = await self._when_reachable(partial(self._runner.money.payment, terms.key))
        if payment is None:
            return RowOutcome(error=cancelled)
        # As if this process had ended: the next run finds out.
        return RowOutcome(error=cancelled, cost_nano=payment.cost_nano, cost_source="unknown")

    async def _end(self, row: ClaimedRow, outcome: RowOutcome) -> None:
        error = outcome.error
        if error is None:
            await self._queue.end(self._batch, row.row_key, outcome)
            metrics.BATCH_ROWS_ENDED.add(outcome="done")
        elif outcome.cost_nano == 0 and error["code"] in (BudgetExceeded.code, Cancelled.code):
            self._stop(error)
            await self._queue.let_go(self._batch, [row.row_key])
        elif outcome.cost_nano == 0 and error["retryable"] and row.tries < MAX_TRIES:
            pause_s = FIRST_PAUSE_S * 2 ** (row.tries - 1)
            again_in_s = max(pause_s, error.get("retry_after_s") or 0.0)
            await self._queue.end(self._batch, row.row_key, outcome, again_in_s=again_in_s)
            metrics.BATCH_ROWS_ENDED.add(outcome="again")
        else:
            await self._queue.end(self._batch, row.row_key, outcome)
            metrics.BATCH_ROWS_ENDED.add(outcome="failed")

    def _stop(self, error: object) -> None:
        assert isinstance(error, dict)
        if error["code"] == BudgetExceeded.code and self._stopped is None:
            self._stopped = f"{error['message']}. {error['hint'] or ''}".strip()

    def _terms(self, row: ClaimedRow) -> tuple[PaymentTerms, list[str]]:
        """The terms of a row's payment, and the name of its bucket once it is known."""
        bucket: list[str] = []

        def admit(tx: Transaction, reservation: Reservation) -> None:
            self._queue.check_held(tx, self._batch, row.row_key)
            if reservation.quote_nano == 0:
                return
            provider, model = reservation.provider, reservation.model
            bucket[:] = [f"{provider}/{self._calls.key_hash(provider)}/{model}"]
            rate = rates.rate_of(provider, self._rates)
            rates.take(tx, bucket[0], rate=rate, now_us=_now_us())

        return PaymentTerms(key=self._batch.key_of(row.row_key), admit=admit), bucket

    async def _wait_for_rate(self, bucket: list[str], wait_s: float) -> None:
        """Wait for the bucket, behind the rows of this process that wait for it already."""
        name = bucket[0]
        rate = rates.rate_of(name.partition("/")[0], self._rates)
        before = self._waiting_for.get(name, 0)
        self._waiting_for[name] = before + 1
        interval_s = 0.0 if rate is None else rate.interval_us / 1e6
        try:
            await asyncio.sleep(wait_s + before * interval_s)
        finally:
            self._waiting_for[name] -= 1

    def _pause(self, bucket: list[str], error: ProviderError, wait_s: float) -> None:
        """Empty the bucket of a provider that limits requests, for all processes."""
        if isinstance(error, ProviderRateLimited) and bucket:
            name, until_us = bucket[0], _now_us() + int(wait_s * 1e6)
            self._queue.store.submit_write(
                lambda tx: rates.empty(tx, name, until_us=until_us), shared=True
            )

    async def _report(self) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s >= REPORT_EVERY_S:
            self._reported_s = now_s
            await self._tell(self._stopped)

    async def _tell(self, stopped: str | None) -> None:
        if self._on_status is not None:
            self._on_status(await self._runner.status(self._batch, stopped=stopped))

    async def _wind_down(self) -> None:
        """Put back what was not started, and wait for the rest; a cancellation stops that too."""
        self._stopped = self._stopped or ""
        try:
            left = [row.row_key for row in self._claimed]
            await self._when_reachable(partial(self._queue.let_go, self._batch, left))
            if self._running:
                await self._when_reachable(partial(self._tell, self._stopped or WINDS_DOWN))
            while self._running:
                await asyncio.wait(self._running)
        except asyncio.CancelledError:
            for task in [*self._running]:
                task.cancel()
            while self._running:
                await asyncio.wait(self._running)
            raise
        finally:
            self._stopped = self._stopped or None

    def _forget(self, task: asyncio.Task[None]) -> None:
        row_key = self._running.pop(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.error("The row %r could not be recorded: %s", row_key, error)
        is_ours = isinstance(error, LimnerError)
        what = error.message if is_ours else f"Unexpected {type(error).__name__}: {error}"
        self._stopped = self._stopped or what


def _may_be_finished(outcome: RowOutcome) -> bool:
    """Whether a row that was sent may still get its result.

    It is not known what came of it, or its bytes could not be stored or recorded.
    """
    if not outcome.cost_nano:
        return False
    return outcome.cost_source == "unknown" or _is_unreachable(outcome)


def _is_unreachable(outcome: RowOutcome) -> bool:
    """Whether the row failed because the database or the bucket could not be reached."""
    error = outcome.error
    return error is not None and error["retryable"] and error["code"] in _UNREACHABLE


def _now_us() -> int:
    return time.time_ns() // 1000
