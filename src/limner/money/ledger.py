"""Quotes, prices and results of calls -> rows of the ledger; no other module writes them.

Each method is one transaction. A reservation is checked and written in the same transaction, so
that any number of calls, in any number of processes, stay below every cap together.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from limner import metrics
from limner.errors import (
    BudgetExceeded,
    CostSource,
    JobTaken,
    LimnerError,
    StorageError,
    UserError,
)
from limner.money.caps import Caps, CapTotals, Used, amount_under, check_caps
from limner.money.records import (
    Delivery,
    JobRow,
    KeyedPayment,
    LedgerRow,
    PaymentTerms,
    Purchase,
    Reservation,
    Spend,
    SpendLine,
    SpendSums,
    UsageRow,
)
from limner.storage.owners import delete_ended, has_live_owner
from limner.storage.store import Row, Store, Transaction

__all__ = ["Caps", "JobRow", "Money", "Reservation", "Spend"]

OWNER_DIED = "OWNER_DIED"
NOT_RECORDED = "NOT_RECORDED"
ALREADY_PAID = "ALREADY_PAID"
CLOSED_BY_USER = "CLOSED_BY_USER"

# How often a long-lived process looks for owners that have ended.
CONCLUDE_EVERY_S = 60.0
# How often a waiting call looks at what other processes have freed.
POLL_S = 0.5

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def new_job_id() -> str:
    """An id for a request, before it is sent."""
    return f"job_{os.urandom(8).hex()}"


class Money:
    """The ledger of one limner home, and the caps on it.

    A use concludes the calls of owners that have ended, if that was not done for a minute:
    `conclude_dead_calls`.

    Args:
        store: the database.
        caps: the most that may be spent.
        clock: the time.
        program: the id of the program that spends.
        scope: the name of the part of the program that spends.
        wait_s: how long a paid call waits for calls in flight, if it fits after them.
        freed: the calls that wait for others; shared by all ledgers of one program.
        in_flight: the rows of the calls that this program runs, shared in the same way; False for
            a call that has ended and was not sent, which could not be recorded.
    """

    def __init__(
        self,
        store: Store,
        *,
        caps: Caps,
        clock: Callable[[], datetime],
        program: str | None = None,
        scope: str | None = None,
        wait_s: float = 0.0,
        freed: set[Future[None]] | None = None,
        in_flight: dict[int, bool] | None = None,
    ) -> None:
        self._store, self._caps, self._clock = store, caps, clock
        self._program, self._scope, self.wait_s = program, scope, wait_s
        self._freed: set[Future[None]] = set() if freed is None else freed
        self._in_flight: dict[int, bool] = {} if in_flight is None else in_flight
        self._concluded_at_s: float | None = None

    def scoped(self, scope: str, *, cap_nano: int | None) -> Money:
        """The same ledger, whose calls count against one more cap."""
        return Money(
            self._store,
            caps=replace(self._caps, scope_nano=cap_nano),
            clock=self._clock,
            program=self._program,
            scope=scope,
            wait_s=self.wait_s,
            freed=self._freed,
            in_flight=self._in_flight,
        )

    def change_caps(self, caps: Caps) -> None:
        """Check later calls against other caps."""
        self._caps = caps

    @property
    def has_session_cap(self) -> bool:
        """Whether a cap holds for every session."""
        caps = self._caps
        return (caps.session_nano, caps.program_nano, caps.scope_nano) != (None, None, None)

    async def reserve(
        self,
        quote_nano: int,
        *,
        session_id: str,
        tool: str,
        provider: str,
        model: str,
        enough_nano: int | None = None,
        least_nano: int | None = None,
        session_cap_nano: int | None = None,
        over_caps: bool = False,
        wait_s: float = 0.0,
        terms: PaymentTerms | None = None,
    ) -> Reservation:
        """Reserve the quote if no cap refuses it.

        Args:
            quote_nano: the most the call can cost.
            session_id: the session whose budget it counts against.
            tool: the tool that is called.
            provider: the provider that will be paid.
            model: the model that draws or answers.
            enough_nano: the most that an answer of the usual length can cost.
            least_nano: the most that the shortest useful answer can cost. If it is given, less
                than the quote may be reserved: see `caps.amount_under`.
            session_cap_nano: a cap on that session, in addition to the others.
            over_caps: the user has agreed to exceed the caps: none is checked.
            wait_s: how long to wait if the call fits as soon as calls in flight have ended.
            terms: what is paid for, if it must not be paid twice.

        Raises:
            BudgetExceeded: a cap leaves less; nothing was written.
            UserError: it is paid for already (ALREADY_PAID).
        """

        def work(tx: Transaction, made: set[int]) -> list[Reservation]:
            reserved = self._reserve(
                tx,
                quote_nano,
                made=made,
                call=call,
                caps=caps,
                enough_nano=enough_nano,
                least_nano=least_nano,
                terms=terms,
            )
            return [reserved]

        call = {"session_id": session_id, "tool": tool, "provider": provider, "model": model}
        caps = Caps() if over_caps else self._caps.with_session(session_cap_nano)
        return await self._reserve_when_free(work, wait_s=wait_s)

    async def reserve_many(
        self, purchases: Sequence[Purchase], *, session_id: str, session_cap_nano: int
    ) -> tuple[list[Reservation], BudgetExceeded | None]:
        """Reserve calls in one transaction, in this order, until a cap refuses one.

        Returns the reservations, and the refusal if there was one.

        Raises:
            UserError: one is paid for already (ALREADY_PAID); then none is reserved.
        """
        caps = self._caps.with_session(session_cap_nano)
        refusals: list[BudgetExceeded] = []

        def work(tx: Transaction, made: set[int]) -> list[Reservation]:
            refusals.clear()
            reserved: list[Reservation] = []
            for one in purchases:
                call = {"tool": one.tool, "provider": one.provider, "model": one.model}
                call["session_id"] = session_id
                try:
                    done = self._reserve(
                        tx, one.quote_nano, made=made, call=call, caps=caps, terms=one.terms
                    )
                except BudgetExceeded as refusal:
                    refusals.append(refusal)
                    break
                reserved.append(done)
            return reserved

        await self.conclude_dead_if_due()
        reserved = await self._write_reservations(work, synced=True)
        return reserved, refusals[0] if refusals else None

    def write_sent(self, tx: Transaction, reservation: Reservation) -> None:
        """Count a request as sent, in a transaction of the caller, who journals it there."""
        _move(tx, reservation.ledger_id, to="sent", now_ms=self._now_ms())

    async def _reserve_when_free(
        self, work: Callable[[Transaction, set[int]], list[Reservation]], *, wait_s: float
    ) -> Reservation:
        """Reserve, and wait for calls in flight if only they are in the way."""
        deadline_s = time.monotonic() + wait_s
        has_concluded = False
        while True:
            await self.conclude_dead_if_due()
            freed: Future[None] = Future()
            self._freed.add(freed)
            try:
                # `mark_sent` is synced before anything leaves, and this row with it.
                (reserved,) = await self._write_reservations(work, synced=False)
                return reserved
            except BudgetExceeded as refusal:
                left_s = deadline_s - time.monotonic()
                if not refusal.retryable or (has_concluded and left_s <= 0):
                    raise
                if not has_concluded:
                    await self.conclude_dead_calls()
                    has_concluded = True
                    continue
                # Calls of this process tell when they end; those of others do not.
                await asyncio.wait({asyncio.wrap_future(freed)}, timeout=min(POLL_S, left_s))
            finally:
                self._freed.discard(freed)

    async def _write_reservations(
        self, work: Callable[[Transaction, set[int]], list[Reservation]], *, synced: bool
    ) -> list[Reservation]:
        writing = asyncio.ensure_future(self._write_calls(work, synced=synced))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The rows may be written already, and the caller would never get the reservations.
            await asyncio.shield(asyncio.ensure_future(self._release_written(writing)))
            raise

    async def _write_calls(
        self, work: Callable[[Transaction, set[int]], T], *, synced: bool = True
    ) -> T:
        """Write reservations; ``work`` gets the set for the ids of their rows."""
        made: set[int] = set()
        try:
            return await self._store.write(lambda tx: work(tx, made), shared=True, synced=synced)
        except LimnerError:
            # Nothing was written. If the database has a row after all, no call will use it.
            for ledger_id in made:
                self._in_flight.pop(ledger_id, None)
            raise

    async def record_cost(
        self, cost_nano: int, source: CostSource, *, session_id: str, tool: str
    ) -> None:
        """Record what a tool of another package has spent; no cap is checked, since it is paid."""
        call = {"session_id": session_id, "tool": tool, "provider": tool, "model": tool}

        def work(tx: Transaction, made: set[int]) -> int:
            ledger_id = self._reserve(tx, cost_nano, made=made, call=call, caps=Caps()).ledger_id
            now_ms = self._now_ms()
            _move(tx, ledger_id, to="sent", now_ms=now_ms)
            _move(
                tx,
                ledger_id,
                to="settled",
                now_ms=now_ms,
                cost_nano=cost_nano,
                cost_source=source,
                picture=None,
                error_code=None,
            )
            return ledger_id

        await self.conclude_dead_if_due()
        self._in_flight.pop(await self._write_calls(work), None)

    async def mark_sent(
        self, reservation: Reservation, *, request_json: str | None, job_id: str | None = None
    ) -> str | None:
        """Note that the request is sent next, and return our id for the job.

        Without ``request_json`` there is no job: the result of such a request cannot be fetched
        again. ``job_id`` is its id if it has one already: see `new_job_id`.
        """
        job_id = None if request_json is None else job_id or new_job_id()

        def work(tx: Transaction) -> str | None:
            now_ms = self._now_ms()
            _move(tx, reservation.ledger_id, to="sent", now_ms=now_ms)
            if job_id is None:
                return None
            tx.run(
                "job_add",
                id=job_id,
                ledger_id=reservation.ledger_id,
                provider=reservation.provider,
                request=request_json,
                now_ms=now_ms,
            )
            return job_id

        return await self._store.write(work, shared=True)

    async def note_job(self, job_id: str, *, remote_id: str, remote_url: str) -> None:
        """Journal how the provider finds the job again.

        Raises:
            JobTaken: another request has that job.
        """

        def work(tx: Transaction) -> None:
            tx.lock(f"remote {remote_id}")
            noted = tx.run(
                "job_note",
                id=job_id,
                remote_id=remote_id,
                remote_url=remote_url,
                now_ms=self._now_ms(),
            )
            if noted != 1 and tx.one("job_by_id", id=job_id) is not None:
                raise JobTaken(f"The job {remote_id} belongs to another request.")
            if noted != 1:
                raise StorageError(f"There is no job {job_id!r}.")

        await self._store.write(work, shared=True)

    async def note_delivery(self, job_id: str, delivery: Delivery) -> None:
        """Note that all bytes of a job are on disk."""
        await self._store.write(lambda tx: self.write_delivery(tx, job_id, delivery), shared=True)

    def write_delivery(self, tx: Transaction, job_id: str, delivery: Delivery) -> None:
        """As `note_delivery`, in a transaction of the caller."""
        facts = asdict(delivery)
        tx.run("job_deliver", id=job_id, now_ms=self._now_ms(), **facts)

    async def settle(
        self,
        reservation: Reservation,
        *,
        cost_nano: int,
        cost_source: CostSource,
        picture: str | None,
        error_code: str | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Record the price, even if it is higher than the quote.

        ``picture`` is the handle of the picture that was bought. Without one, ``error_code`` says
        why. ``also`` runs in the same transaction.
        """
        await self._advance(
            reservation,
            to="settled",
            also=also,
            cost_nano=cost_nano,
            cost_source=cost_source,
            picture=picture,
            error_code=error_code,
        )

    async def release(self, reservation: Reservation, *, error_code: str | None = None) -> None:
        """Release the reservation: nothing was sent, or the provider does not charge for it."""
        await self._advance(reservation, to="released", error_code=error_code)

    async def mark_unknown(self, reservation: Reservation, *, error_code: str | None) -> None:
        """Keep counting the quote: it cannot be determined whether the provider charged."""
        await self._advance(reservation, to="unknown", error_code=error_code)

    async def record_path(self, reservation: Reservation, path: str) -> None:
        """Record where the picture was written."""
        await self._advance(reservation, to="placed", path=path)

    def give_up(self, reservation: Reservation, *, is_sent: bool) -> None:
        """The call has ended, and its end could not be recorded: see `conclude_dead_calls`."""
        self._in_flight.pop(reservation.ledger_id, None)
        if not is_sent:
            self._in_flight[reservation.ledger_id] = False

    async def conclude_dead_calls(self) -> int:
        """Conclude the calls of processes that died, and return how many there were.

        This also concludes the calls of this process whose end could not be recorded. A call that
        was not sent, or was free, is released. A call that was sent may have been charged: it stays
        counted.
        """

        def work(tx: Transaction) -> list[int]:
            dead = [row for row in tx.all("ledger_unfinished") if not self._is_running(row)]
            for row in dead:
                is_unsent = self._in_flight.get(row["id"]) is False
                lost = row["state"] == "sent" and row["quoted_nano"] > 0 and not is_unsent
                to = "unknown" if lost else "released"
                code = NOT_RECORDED if has_live_owner(row) else OWNER_DIED
                _move(tx, row["id"], to=to, now_ms=self._now_ms(), error_code=code)
            delete_ended(tx)
            return [row["id"] for row in dead]

        concluded = await self._store.write(work)
        self._concluded_at_s = time.monotonic()
        for ledger_id in concluded:
            self._in_flight.pop(ledger_id, None)
        return len(concluded)

    async def unfinished_jobs(self) -> list[JobRow]:
        """The jobs whose result is unknown or whose picture has no file, oldest first."""
        await self.conclude_dead_if_due()
        rows = await self._store.read(lambda tx: tx.all("jobs_unfinished"))
        return [_job(row) for row in rows]

    async def job(self, job_id: str) -> JobRow | None:
        """The job of that id, in whatever state; None if there is none."""
        await self.conclude_dead_if_due()
        row = await self._store.read(lambda tx: tx.one("job_by_id", id=job_id))
        return None if row is None else _job(row)

    async def close_job(self, job: JobRow, *, cost_nano: int | None) -> None:
        """Close a job whose result will not be fetched, at its price; None if it is unknown.

        The delivered bytes of the job no longer count as owed. With an unknown price, the quote
        stays counted.

        Raises:
            StorageError: the job was concluded in the meantime.
        """

        def work(tx: Transaction) -> None:
            now_ms = self._now_ms()
            tx.run("job_forget_delivery", id=job.id, now_ms=now_ms)
            if job.state == "unknown":
                _move(
                    tx,
                    job.ledger_id,
                    to="settled",
                    now_ms=now_ms,
                    cost_nano=job.quoted_nano if cost_nano is None else cost_nano,
                    cost_source="unknown" if cost_nano is None else "provider",
                    picture=None,
                    error_code=CLOSED_BY_USER,
                )

        await self._store.write(work)
        self._wake_waiting()

    async def payment(self, key: str) -> KeyedPayment | None:
        """The row that counts for an idempotency key; None if nothing was or may be paid for it."""
        row = await self._store.read(lambda tx: tx.one("ledger_of_key", key=key))
        return None if row is None else KeyedPayment(**row)

    async def usage(
        self, providers: Collection[str], *, first_day: str, last_day: str
    ) -> list[UsageRow]:
        """The ended calls of these providers on these days, to compare with a usage export."""
        await self.conclude_dead_if_due()
        rows = await self._store.read(
            lambda tx: tx.all("ledger_usage", first_day=first_day, last_day=last_day)
        )
        return [UsageRow(**row) for row in rows if row["provider"] in providers]

    async def spent(self, *, session_id: str | None = None, day: date | None = None) -> int:
        """What was or may have been paid, in a session, on a UTC day, or in total; nano-dollars."""
        if session_id is not None:
            return await self._spent("session", session_id)
        return await self._spent(*("all", "") if day is None else ("day", day.isoformat()))

    async def _spent(self, kind: str, name: str) -> int:
        sums = await self._sums(kind, name)
        return sums.settled_nano + sums.unknown_nano

    async def sums_here(self) -> SpendSums:
        """The sums of this program, or of the scope."""
        if self._scope is not None:
            return await self._sums("scope", self._scope)
        return await self._sums("program", self._program or "")

    async def sums_of_session(self, session_id: str) -> SpendSums:
        """The sums of a session."""
        return await self._sums("session", session_id)

    async def _sums(self, kind: str, name: str) -> SpendSums:
        await self.conclude_dead_if_due()
        row = await self._store.read(lambda tx: tx.one("spending_of", kind=kind, name=name))
        return SpendSums() if row is None else SpendSums(**row)

    async def purchases(self, picture: str, *, limit: int = 20) -> tuple[LedgerRow, ...]:
        """The calls that bought the picture of a handle, newest first."""
        rows = await self._store.read(
            lambda tx: tx.all("ledger_of_picture", picture=picture, count=limit)
        )
        return tuple(LedgerRow(**row) for row in rows)

    async def spend(self, *, recent: int = 20, lines: int = 50, after: int | None = None) -> Spend:
        """The totals of the whole ledger, its newest days and sessions, and its newest rows.

        Args:
            recent: how many rows at most.
            lines: how many days and how many sessions at most.
            after: the ``next_session`` of the page before.
        """

        def work(tx: Transaction) -> Spend:
            def page(query: str, **params: Any) -> list[Row]:
                return tx.all(query, limit=lines + 1, **params)

            totals = tx.one("spending_of", kind="all", name="")
            sessions = page("spending_by_session", after=after)
            shown = sessions[:lines]
            return Spend(
                settled_nano=0 if totals is None else totals["settled_nano"],
                unknown_nano=0 if totals is None else totals["unknown_nano"],
                in_flight_nano=0 if totals is None else totals["in_flight_nano"],
                by_day=tuple(map(_line, page("spending_by_day")[:lines])),
                by_model=tuple(map(_line, tx.all("spending_by_model"))),
                by_session=tuple(map(_line, shown)),
                next_session=shown[-1]["last_id"] if len(sessions) > len(shown) > 0 else None,
                recent=tuple(LedgerRow(**row) for row in tx.all("ledger_recent", count=recent)),
            )

        await self.conclude_dead_if_due()
        return await self._store.read(work)

    async def wrong_counters(self) -> list[str]:
        """The sums that are kept beside the ledger and differ from its rows; reads every row."""
        rows = await self._store.read(lambda tx: tx.all("spending_wrong"))
        return [f"{row['kind']} {row['name']}".strip() for row in rows]

    def _reserve(
        self,
        tx: Transaction,
        quote_nano: int,
        *,
        made: set[int],
        call: dict[str, str],
        caps: Caps,
        enough_nano: int | None = None,
        least_nano: int | None = None,
        terms: PaymentTerms | None = None,
    ) -> Reservation:
        tx.lock(*self._lock_names(call["session_id"], caps, terms))
        if terms is not None and tx.one("ledger_of_key", key=terms.key) is not None:
            raise UserError("This was paid for before; nothing was sent.", code=ALREADY_PAID)
        now = self._clock().astimezone(UTC)
        today = now.date().isoformat()
        newest = tx.one("spending_newest_day")
        # A clock that goes back must not begin a day, and its budget, a second time.
        day = today if newest is None else max(today, newest["day"] or today)
        if caps != Caps():
            totals = self._totals(tx, call["session_id"], day)
            quote_nano = amount_under(
                quote_nano,
                enough_nano=enough_nano,
                least_nano=least_nano,
                caps=caps,
                totals=totals,
            )
            note = "" if day == today else f" The day of the ledger is {day}: the clock went back."
            check_caps(quote_nano, caps=caps, totals=totals, scope=self._scope or "", day_note=note)
        owner = self._store.owner.claim(tx)
        added = tx.one(
            "ledger_reserve",
            **call,
            quoted_nano=quote_nano,
            day=day,
            now_ms=_to_ms(now),
            owner=self._store.owner.id,
            owner_pid=owner.pid,
            owner_start=owner.start,
            owner_boot=owner.boot,
            program=self._program,
            scope=self._scope,
            idempotency_key=None if terms is None else terms.key,
        )
        assert added is not None
        # Before the commit, so that the row is never seen without its call.
        made.add(added["id"])
        self._in_flight[added["id"]] = True
        reservation = Reservation(ledger_id=added["id"], quote_nano=quote_nano, **call)
        if terms is not None:
            terms.admit(tx, reservation)
        return reservation

    def _lock_names(self, session_id: str, caps: Caps, terms: PaymentTerms | None) -> Iterator[str]:
        """What a reservation checks: the sums that have a cap, and the key of the payment."""
        if caps.session_nano is not None:
            yield f"session {session_id}"
        if caps.program_nano is not None:
            yield f"program {self._program}"
        if caps.scope_nano is not None:
            yield f"scope {self._scope}"
        if caps.day_nano is not None:
            yield "day"
        if terms is not None:
            yield f"key {terms.key}"

    def _totals(self, tx: Transaction, session_id: str, day: str) -> CapTotals:
        names = {"session_id": session_id, "day": day}
        rows = tx.all("spending_used", program=self._program, scope=self._scope, **names)
        used = {row["kind"]: Used(nano=row["nano"], held_nano=row["held_nano"]) for row in rows}
        return CapTotals(**used)

    async def _advance(
        self,
        reservation: Reservation,
        *,
        to: str,
        also: Callable[[Transaction], None] | None = None,
        **facts: Any,
    ) -> None:
        def work(tx: Transaction) -> None:
            if also is not None:
                also(tx)
            _move(tx, reservation.ledger_id, to=to, now_ms=self._now_ms(), **facts)

        await self._store.write(work, shared=True)
        self._in_flight.pop(reservation.ledger_id, None)
        if to in ("settled", "released", "unknown"):
            amount_nano = facts.get("cost_nano", reservation.quote_nano)
            paid = {"provider": reservation.provider, "model": reservation.model}
            metrics.LEDGER_USD.add(amount_nano, **paid, state=to)
        self._wake_waiting()

    def _is_running(self, row: Row) -> bool:
        is_mine = row["owner"] == self._store.owner.id
        return has_live_owner(row) and (not is_mine or self._in_flight.get(row["id"], False))

    def _wake_waiting(self) -> None:
        for waiting in tuple(self._freed):
            with suppress(InvalidStateError):  # another call has told it
                waiting.set_result(None)

    async def _release_written(self, writing: asyncio.Future[list[Reservation]]) -> None:
        """Release the reservations of a cancelled call, if they were written."""
        try:
            reserved = await writing
        except LimnerError:
            return
        for reservation in reserved:
            try:
                await self.release(reservation)
            except StorageError:
                self.give_up(reservation, is_sent=False)

    async def conclude_dead_if_due(self) -> None:
        """Conclude the calls of dead processes, if that was not done for a while."""
        at_s = self._concluded_at_s
        is_due = at_s is None or time.monotonic() - at_s > CONCLUDE_EVERY_S
        # A home that cannot be written can still be read.
        if is_due and await self._store.open():
            await self.conclude_dead_calls()

    def _now_ms(self) -> int:
        return _to_ms(self._clock())


def _move(tx: Transaction, ledger_id: int, *, to: str, **facts: Any) -> None:
    """Change the state of a row.

    Raises:
        StorageError: the row is missing, or cannot go from its state to this one.
    """
    if tx.run(f"ledger_{to}", id=ledger_id, **facts) == 1:
        return
    row = tx.one("ledger_state", id=ledger_id)
    state = "missing" if row is None else row["state"]
    if row is not None and (state, to, row["error_code"]) == ("released", "sent", OWNER_DIED):
        raise StorageError(
            "This process was suspended for so long that another one released its reservation. "
            "Nothing was sent.",
            hint="Call again.",
            retryable=True,
        )
    raise StorageError(f"Ledger row {ledger_id} is {state}: it cannot become {to}.")


def _job(row: Row) -> JobRow:
    # The calls of dead processes were concluded before this: none of them is `sent`. A call that
    # was settled with an error has ended, and left its bytes.
    is_writing = row["state"] == "settled" and row["error_code"] is None and has_live_owner(row)
    facts = {name: row[name] for name in JobRow.__struct_fields__ if name != "in_flight"}
    in_flight = row["state"] == "sent" or is_writing
    return JobRow(**facts, in_flight=in_flight)


def _line(row: Row) -> SpendLine:
    return SpendLine(name=row["name"], nano=row["nano"], calls=row["calls"])


def _to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
