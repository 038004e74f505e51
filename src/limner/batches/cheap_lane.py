"""A batch in the store -> batches at the vendors -> its rows, at the price of the vendors' batches.

The steps of one remote batch, each recorded before the next one starts:

1. Reserve the price of each row, in one transaction. A crash releases it: nothing was sent.
2. Upload the requests. This is free.
3. Count every row as sent, in one transaction, and create the remote batch with our tag. From here
   on the payments belong to the vendor, and no process releases them because another one died.
4. Note the vendor's id. If it was lost, the batch is found by its tag, and never created again.
5. Collect: each result is stored and settled as it arrives. A request without a result is released.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from limner.batches.queue import BatchQueue, remote_batch
from limner.batches.records import Batch, BatchStatus, ClaimedRow, RemoteBatch, RowOutcome
from limner.batches.remote_api import (
    BatchApi,
    LineRequest,
    LineResult,
    NotDecided,
    RemoteStatus,
    RemoteSubmission,
    batch_api,
)
from limner.content import Discreet
from limner.errors import (
    LimnerError,
    ProviderBadRequest,
    ProviderError,
    ProviderRateLimited,
    ProviderUnavailable,
)
from limner.money.ledger import Money, new_job_id
from limner.money.records import KeyedPayment, PaymentTerms, Purchase, Reservation
from limner.net.clock import Clock
from limner.net.service import Service
from limner.storage.owners import has_live_owner
from limner.storage.store import Row, Transaction
from limner.wires.base import ModelRequest

NO_CHEAP_LANE = "NO_CHEAP_LANE"
# Results of pictures are files of some hundred megabytes at most.
MAX_PICTURES = 200
MAX_ANSWERS = 5_000
MAX_INPUT_BYTES = 32 << 20
CLAIMED_AT_ONCE = 200
# How long after its creation a remote batch that the vendor does not list cannot appear any more.
APPEARS_WITHIN_S = 120.0
REPORT_EVERY_S = 1.0
FIRST_POLL_S = 2.0
MAX_POLL_S = 60.0

logger = logging.getLogger("limner.batches")


class RemoteCall(Discreet, frozen=True, kw_only=True):
    """The call of a row as a request to a vendor's batch API.

    Attributes:
        api: the batch API.
        service: the vendor's HTTP API.
        provider: who is paid.
        model: the model that draws or answers.
        draws: whether the result is a picture.
        quote_nano: the most that it costs in a batch.
        now_nano: the most that it costs without a batch.
        entry: what the journal keeps.
        build: makes the request.
    """

    unshown = ("service", "entry")

    api: str
    service: Service
    provider: str
    model: str
    draws: bool
    quote_nano: int
    now_nano: int
    entry: str
    build: Callable[[], ModelRequest]


class LaneCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What knows the tools of the rows.

    Attributes:
        prepare: the call of a row, or its outcome if it is free; raises if the row would fail
            before it pays.
        connect: the HTTP API of a remote batch.
        accept: stores the response to a job and settles its price.
        recover: the result of a row whose payment has ended.
    """

    prepare: Callable[[Batch, ClaimedRow, PaymentTerms], Awaitable[RemoteCall | RowOutcome]]
    connect: Callable[[RemoteBatch], Service]
    accept: Callable[[RemoteBatch, str, LineResult], Awaitable[RowOutcome]]
    recover: Callable[[Batch, ClaimedRow, KeyedPayment, PaymentTerms], Awaitable[RowOutcome]]


class CheapLane(msgspec.Struct, frozen=True, kw_only=True):
    """Runs batches at the vendors' batch price, within a day.

    ``clock`` waits between two questions to a vendor.
    """

    queue: BatchQueue
    money: Money
    calls: LaneCalls
    status: Callable[..., Awaitable[BatchStatus]]
    clock: Clock = msgspec.field(default_factory=Clock)
    appears_within_s: float = APPEARS_WITHIN_S

    async def run(
        self, batch: Batch, *, resume: bool, on_status: Callable[[BatchStatus], None] | None
    ) -> BatchStatus:
        """Send every row, and wait until each has its result.

        If the caller is cancelled, the vendors go on, and a later run collects the results.
        """
        await self.money.conclude_dead_calls()
        if resume:
            await self.queue.retry(batch)
        run = _LaneRun(self, batch, on_status=on_status)
        return await run.to_end(uncertain=resume)

    async def cancel(
        self, batch: Batch, *, on_status: Callable[[BatchStatus], None] | None
    ) -> BatchStatus:
        """Ask the vendors to stop, and collect what was answered and charged."""
        run = _LaneRun(self, batch, on_status=on_status)
        await run.cancel()
        return await run.to_end(uncertain=False)


class _Group(msgspec.Struct):
    """Rows that become one remote batch."""

    call: RemoteCall
    path: str
    rows: list[ClaimedRow] = []
    requests: list[LineRequest] = []
    quotes: list[RemoteCall] = []
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        most = MAX_PICTURES if self.call.draws else MAX_ANSWERS
        return len(self.rows) >= most or self.size_bytes >= MAX_INPUT_BYTES

    def add(self, row: ClaimedRow, call: RemoteCall, request: ModelRequest) -> None:
        self.rows.append(row)
        self.quotes.append(call)
        line = LineRequest(key=new_job_id(), body=request.body)
        self.requests.append(line)
        self.size_bytes += len(line.body)


class _LaneRun:
    """One process at work on the remote batches of one batch.

    ``_claimed`` has the keys of the rows that it has claimed and not sent. They are put back if
    the run ends early.
    """

    def __init__(
        self, lane: CheapLane, batch: Batch, *, on_status: Callable[[BatchStatus], None] | None
    ) -> None:
        self._lane, self._batch, self._on_status = lane, batch, on_status
        self._queue, self._money, self._calls = lane.queue, lane.money, lane.calls
        self._store = lane.queue.store
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._claimed: set[str] = set()
        self._stopped: str | None = None
        self._reported_s = 0.0

    async def to_end(self, *, uncertain: bool) -> BatchStatus:
        pause_s = FIRST_POLL_S
        try:
            while True:
                await self._take_interrupted(uncertain=uncertain)
                uncertain = False
                if self._stopped is None:
                    await self._send_waiting()
                mine = await self._take_remote()
                ended = [remote for remote in mine if await self._advance(remote)]
                await self._report()
                if not await self._is_busy():
                    break
                pause_s = FIRST_POLL_S if ended else min(pause_s * 1.5, MAX_POLL_S)
                if not ended:
                    await self._lane.clock.sleep(pause_s)
        finally:
            await asyncio.shield(self._let_go())
        return await self._lane.status(self._batch, stopped=self._stopped)

    async def cancel(self) -> None:
        for remote in await self._queue.remote_batches(self._batch):
            if remote.remote_id is not None:
                await self._api(remote).cancel(remote.remote_id)

    # --- rows -> remote batches ---

    async def _take_interrupted(self, *, uncertain: bool) -> None:
        """Find out what became of rows whose process ended before they were sent."""
        claimed = await self._queue.claim_interrupted(self._batch, uncertain=uncertain)
        rows = await self._store.read(lambda tx: tx.all("remote_row_keys", batch_id=self._batch.id))
        at_vendors = {row["row_key"] for row in rows}
        unsent = [row for row in claimed if row.row_key not in at_vendors]
        self._claimed.update(row.row_key for row in unsent)
        for row in unsent:
            if not await self._recover(row):
                await self._put_back([row.row_key])

    async def _recover(self, row: ClaimedRow) -> bool:
        """End a row whose payment is in the ledger; False if nothing was paid for it."""
        terms = self._terms(row)
        payment = await self._money.payment(terms.key)
        if payment is None:
            return False
        outcome = await self._calls.recover(self._batch, row, payment, terms)
        await self._end_row(row.row_key, outcome)
        return True

    async def _send_waiting(self) -> None:
        """Send every waiting row, in as few remote batches as the limits allow."""
        while self._stopped is None:
            rows = await self._queue.claim(self._batch, count=CLAIMED_AT_ONCE)
            if not rows:
                break
            self._claimed.update(row.row_key for row in rows)
            for row in rows:
                if self._stopped is not None:
                    await self._put_back([row.row_key])
                elif not await self._recover(row):
                    await self._prepare(row)
        groups, self._groups = self._groups, {}
        for group in groups.values():
            await self._send(group)

    async def _prepare(self, row: ClaimedRow) -> None:
        try:
            call = await self._calls.prepare(self._batch, row, self._terms(row))
        except LimnerError as error:
            call = RowOutcome(error=error.as_json())
        if isinstance(call, RowOutcome):
            await self._end_row(row.row_key, call)
            return
        request = call.build()
        name = (call.api, call.provider, call.model, request.path, row.tool)
        group = self._groups.setdefault(name, _Group(call=call, path=request.path))
        group.add(row, call, request)
        if group.is_full:
            del self._groups[name]
            await self._send(group)

    async def _send(self, group: _Group) -> None:
        """Reserve, upload, count as sent, create."""
        reserved = await self._reserve(group)
        if not reserved:
            return
        tag = f"lim_{secrets.token_hex(8)}"
        submission = RemoteSubmission(
            tag=tag,
            path=group.path,
            model=group.call.model,
            requests=group.requests[: len(reserved)],
        )
        api = batch_api(group.call.api, group.call.service)
        try:
            input_file = await api.upload(submission)
            await self._store.write(
                lambda tx: self._write_sent(tx, submission, group, reserved, input_file)
            )
        except BaseException as error:
            await asyncio.shield(self._give_up(group, reserved, error, tag=tag))
            if isinstance(error, ProviderBadRequest):
                return
            raise
        self._claimed.difference_update(row.row_key for row in group.rows)
        try:
            status = await api.create(submission, input_file)
        except ProviderError as error:
            if error.may_be_billed:
                # The vendor may have it: `_find` looks there.
                logger.warning("The answer to the creation of %s was lost: %s", tag, error.message)
                return
            await self._give_up(group, reserved, error, tag=tag)
            if isinstance(error, ProviderBadRequest):
                return
            raise
        await self._note(tag, status)

    async def _reserve(self, group: _Group) -> list[Reservation]:
        """Reserve rows as far as the budget lasts; the others wait."""
        purchases = [
            Purchase(
                quote_nano=call.quote_nano,
                tool=row.tool,
                provider=call.provider,
                model=call.model,
                terms=self._terms(row),
            )
            for row, call in zip(group.rows, group.quotes, strict=True)
        ]
        reserved, refusal = await self._money.reserve_many(
            purchases, session_id=self._batch.id, session_cap_nano=self._batch.budget_nano
        )
        if refusal is not None:
            self._stopped = f"{refusal.message}. {refusal.hint or ''}".strip()
        await self._put_back([row.row_key for row in group.rows[len(reserved) :]])
        return reserved

    def _write_sent(
        self,
        tx: Transaction,
        submission: RemoteSubmission,
        group: _Group,
        reserved: Sequence[Reservation],
        input_file: str,
    ) -> None:
        now_ms = self._now_ms()
        for reservation, request, row, call in zip(
            reserved, group.requests, group.rows, group.quotes, strict=False
        ):
            self._money.write_sent(tx, reservation)
            tx.run(
                "remote_job_add",
                id=request.key,
                ledger_id=reservation.ledger_id,
                provider=call.provider,
                request=call.entry,
                remote_batch=submission.tag,
                row_key=row.row_key,
                now_ms=now_ms,
            )
        tx.run(
            "remote_batch_add",
            id=submission.tag,
            batch_id=self._batch.id,
            api=group.call.api,
            tool=group.rows[0].tool,
            provider=group.call.provider,
            model=group.call.model,
            input_file=input_file,
            requests=len(reserved),
            owner=self._store.owner.id,
            now_ms=now_ms,
        )

    async def _give_up(
        self,
        group: _Group,
        reserved: Sequence[Reservation],
        error: BaseException,
        *,
        tag: str,
    ) -> None:
        """Nothing was bought: release everything; the rows wait, or fail with the reason."""
        code = error.code if isinstance(error, LimnerError) else type(error).__name__
        for reservation, row in zip(reserved, group.rows, strict=False):
            await self._money.release(reservation, error_code=code)
            if isinstance(error, ProviderBadRequest):
                await self._end_row(row.row_key, RowOutcome(error=error.as_json()))
            else:
                await self._put_back([row.row_key])
        await self._end(tag)

    # --- remote batches -> rows ---

    async def _take_remote(self) -> list[RemoteBatch]:
        """The remote batches that no other live process asks about; this one does now."""

        def work(tx: Transaction) -> list[RemoteBatch]:
            taken: list[RemoteBatch] = []
            me, now_ms = self._store.owner.id, self._now_ms()
            for row in tx.all("remote_batches_of", batch_id=self._batch.id):
                if row["owner"] != me and has_live_owner(row):
                    continue
                if row["owner"] != me:
                    tx.run(
                        "remote_batch_take",
                        id=row["id"],
                        ended=row["owner"],
                        owner=me,
                        now_ms=now_ms,
                    )
                    self._store.owner.claim(tx)
                rows = {"id": row["id"], "batch_id": self._batch.id, "owner": me}
                tx.run("remote_rows_take", now_ms=now_ms, **rows)
                taken.append(remote_batch(row))
            return taken

        return await self._store.write(work)

    async def _advance(self, remote: RemoteBatch) -> bool:
        """Ask the vendor once, and collect what has ended; whether there is news."""
        try:
            status = await self._ask(remote)
        except (ProviderUnavailable, ProviderRateLimited) as error:
            logger.info("%s cannot be asked about %s now: %s", remote.api, remote.id, error.message)
            return False
        if status is None:
            return False
        await self._note(remote.id, status)
        if not status.ended:
            return False
        await self._collect(remote, status)
        return True

    async def _ask(self, remote: RemoteBatch) -> RemoteStatus | None:
        api = self._api(remote)
        if remote.remote_id is not None:
            return await api.status(remote.remote_id)
        keys = [row["job_id"] for row in await self._rows(remote)]
        try:
            found = await api.find(remote.id, keys, since_s=remote.created_ms / 1000)
        except NotDecided:
            return None
        age_s = (self._now_ms() - remote.created_ms) / 1000
        if found is None and age_s > self._lane.appears_within_s:
            await self._forget(remote)
        return found

    async def _forget(self, remote: RemoteBatch) -> None:
        """The vendor never got the batch: nothing was bought, and its rows wait again."""
        for row in await self._rows(remote):
            job = await self._money.job(row["job_id"])
            if job is not None and job.state == "sent":
                await self._money.release(job.reservation, error_code="NOT_CREATED")
            await self._put_back([row["row_key"]])
        await self._end(remote.id)

    async def _collect(self, remote: RemoteBatch, status: RemoteStatus) -> None:
        """Settle every row of a remote batch that has ended."""
        waiting: dict[str, ClaimedRow] = {}
        for row in await self._rows(remote):
            claimed = _claimed(row)
            if row["state"] == "sent" and row["delivered_path"] is None:
                waiting[row["job_id"]] = claimed
            elif not await self._recover(claimed):
                await self._fail(remote, row["job_id"], claimed, status)
        is_uncertain = status.is_uncertain
        try:
            async with aclosing(self._api(remote).results(status)) as results:
                async for result in results:
                    if isinstance(result, LimnerError):
                        # The row of this line was answered, and it is not known which row it is.
                        is_uncertain = True
                    elif (row := waiting.pop(result.key, None)) is not None:
                        await self._accept(remote, row, result)
        except ProviderBadRequest:
            is_uncertain = True  # the results are gone
        for job_id, row in waiting.items():
            await self._fail(remote, job_id, row, status, is_uncertain=is_uncertain)
        await self._end(remote.id)

    async def _accept(self, remote: RemoteBatch, row: ClaimedRow, result: LineResult) -> None:
        outcome = await self._calls.accept(remote, result.key, result)
        await self._end_row(row.row_key, outcome)
        await self._report()

    async def _fail(
        self,
        remote: RemoteBatch,
        job_id: str,
        row: ClaimedRow,
        status: RemoteStatus,
        *,
        is_uncertain: bool = False,
    ) -> None:
        """End a row without a result: nothing was charged, unless that is uncertain."""
        title = self._api(remote).service.vendor.title
        why = status.failure or f"the batch {status.remote_id} is {status.word}"
        job = await self._money.job(job_id)
        cost: dict[str, Any] = {}
        charged = "nothing was charged"
        if is_uncertain:
            charged = "it may have been charged"
        error = ProviderUnavailable(
            f"{title} has no answer to this request: {why}; {charged}",
            may_be_billed=is_uncertain,
            retryable=not is_uncertain,
        )
        if job is not None and is_uncertain:
            await self._money.mark_unknown(job.reservation, error_code=error.code)
            cost = {"cost_nano": job.quoted_nano, "cost_source": "unknown"}
        elif job is not None and job.state == "sent":
            await self._money.release(job.reservation, error_code=error.code)
        await self._end_row(row.row_key, RowOutcome(error=error.as_json(), **cost))

    # --- the store ---

    async def _note(self, tag: str, status: RemoteStatus) -> None:
        await self._store.write(
            lambda tx: tx.run(
                "remote_batch_note",
                id=tag,
                remote_id=status.remote_id,
                word=status.word,
                done=status.done,
                failed=status.failed,
                now_ms=self._now_ms(),
            )
        )

    async def _end_row(self, row_key: str, outcome: RowOutcome) -> None:
        await self._queue.end(self._batch, row_key, outcome)
        self._claimed.discard(row_key)

    async def _put_back(self, row_keys: Sequence[str]) -> None:
        await self._queue.let_go(self._batch, row_keys)
        self._claimed.difference_update(row_keys)

    async def _end(self, tag: str) -> None:
        now_ms = self._now_ms()
        await self._store.write(lambda tx: tx.run("remote_batch_end", id=tag, now_ms=now_ms))

    async def _let_go(self) -> None:
        """Let another process ask about the remote batches, and put back what was not sent."""
        now_ms, owner = self._now_ms(), self._store.owner.id
        place = {"batch_id": self._batch.id, "owner": owner, "now_ms": now_ms}
        await self._store.write(lambda tx: tx.run("remote_batches_let_go", **place))
        await self._put_back(sorted(self._claimed))

    async def _rows(self, remote: RemoteBatch) -> list[Row]:
        place = {"id": remote.id, "batch_id": self._batch.id}
        return await self._store.read(lambda tx: tx.all("remote_rows", **place))

    async def _is_busy(self) -> bool:
        if await self._queue.remote_batches(self._batch):
            return True
        counts = await self._queue.counts(self._batch)
        batch = await self._queue.get(self._batch.id)
        is_open = self._stopped is None and batch.state == "open"
        # Another process may be sending rows; if it ends before that, this one sends them.
        return is_open and counts.waiting + counts.running > 0

    async def _report(self) -> None:
        if self._on_status is None or time.monotonic() - self._reported_s < REPORT_EVERY_S:
            return
        self._reported_s = time.monotonic()
        self._on_status(await self._lane.status(self._batch, stopped=self._stopped))

    def _terms(self, row: ClaimedRow) -> PaymentTerms:
        def admit(tx: Transaction, _: Reservation) -> None:
            self._queue.check_held(tx, self._batch, row.row_key)

        return PaymentTerms(key=self._batch.key_of(row.row_key), admit=admit)

    def _api(self, remote: RemoteBatch) -> BatchApi:
        return batch_api(remote.api, self._calls.connect(remote))

    def _now_ms(self) -> int:
        return int(self._queue.clock().timestamp() * 1000)


def _claimed(row: Row) -> ClaimedRow:
    names = ("row_key", "number", "tool", "arguments", "tries")
    return ClaimedRow(**{name: row[name] for name in names}, interrupted=True)
