"""Quotes, prices and results of calls -> rows of the ledger; no other module writes them.

Each method is one transaction. A reservation is checked and written in the same transaction, so
that any number of calls, in any number of processes, stay below every cap together.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from limner.errors import BudgetExceeded, CostSource, StorageError
from limner.money.caps import Caps, CapTotals, check_caps, remaining_under
from limner.money.records import Delivery, JobRow, LedgerRow, Reservation, Spend, SpendLine
from limner.storage.owners import Owner, is_alive, this_process
from limner.storage.store import Row, Store, Transaction

__all__ = ["Caps", "JobRow", "Money", "Reservation", "Spend"]

OWNER_DIED = "OWNER_DIED"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def new_job_id() -> str:
    """An id for a request, before it is sent."""
    return f"job_{secrets.token_hex(8)}"


class Money:
    """The ledger of one limner home, and the caps on it.

    The first use in a process concludes the calls of processes that died: `conclude_dead_calls`.
    """

    def __init__(self, store: Store, *, caps: Caps, clock: Callable[[], datetime]) -> None:
        self._store, self._caps, self._clock = store, caps, clock
        self._has_concluded_dead = False

    @property
    def has_session_cap(self) -> bool:
        """Whether the settings give every session a budget."""
        return self._caps.session_nano is not None

    async def remaining(
        self, session_id: str, *, session_cap_nano: int | None = None
    ) -> int | None:
        """The most that the next call of a session may cost; None if no cap is set.

        Other calls may spend it in the meantime: only `reserve` holds it.

        Args:
            session_id: the session of the call.
            session_cap_nano: a cap on that session, in addition to the others.
        """
        caps = self._caps.with_session(session_cap_nano)
        if caps == Caps():
            return None
        await self._conclude_dead_once()
        day = self._clock().astimezone(UTC).date().isoformat()
        totals = await self._store.read(lambda tx: _totals(tx, session_id, day))
        return remaining_under(caps, totals=totals)

    async def reserve(
        self,
        quote_nano: int,
        *,
        session_id: str,
        tool: str,
        provider: str,
        model: str,
        session_cap_nano: int | None = None,
        over_caps: bool = False,
    ) -> Reservation:
        """Reserve the quote if no cap refuses it.

        Args:
            quote_nano: the most the call can cost.
            session_id: the session whose budget it counts against.
            tool: the tool that is called.
            provider: the provider that will be paid.
            model: the model that draws or answers.
            session_cap_nano: a cap on that session, in addition to the others.
            over_caps: the user has agreed to exceed the caps: none is checked.

        Raises:
            BudgetExceeded: a cap leaves less; nothing was written.
        """

        def work(tx: Transaction) -> Reservation:
            return self._reserve(tx, quote_nano, call=call, caps=caps)

        call = {"session_id": session_id, "tool": tool, "provider": provider, "model": model}
        caps = Caps() if over_caps else self._caps.with_session(session_cap_nano)
        await self._conclude_dead_once()
        writing = asyncio.ensure_future(self._store.write(work))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The row may be written already, and the caller would never get the reservation.
            await asyncio.shield(asyncio.ensure_future(self._release_written(writing)))
            raise

    async def record_cost(
        self, cost_nano: int, source: CostSource, *, session_id: str, tool: str
    ) -> None:
        """Record what a tool of another package has spent; no cap is checked, since it is paid."""
        call = {"session_id": session_id, "tool": tool, "provider": tool, "model": tool}

        def work(tx: Transaction) -> None:
            ledger_id = self._reserve(tx, cost_nano, call=call, caps=Caps()).ledger_id
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

        await self._conclude_dead_once()
        await self._store.write(work)

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
            tx.insert(
                "job_add",
                id=job_id,
                ledger_id=reservation.ledger_id,
                provider=reservation.provider,
                request=request_json,
                now_ms=now_ms,
            )
            return job_id

        return await self._store.write(work)

    async def note_job(self, job_id: str, *, remote_id: str, remote_url: str) -> None:
        """Journal how the provider finds the job again."""

        def work(tx: Transaction) -> None:
            noted = tx.run(
                "job_note",
                id=job_id,
                remote_id=remote_id,
                remote_url=remote_url,
                now_ms=self._now_ms(),
            )
            if noted != 1:
                raise StorageError(f"There is no job {job_id!r}.")

        await self._store.write(work)

    async def note_delivery(self, job_id: str, delivery: Delivery) -> None:
        """Note that all bytes of a job are on disk."""
        await self._store.write(lambda tx: self.write_delivery(tx, job_id, delivery))

    def write_delivery(self, tx: Transaction, job_id: str, delivery: Delivery) -> None:
        """As `note_delivery`, in a transaction of the caller."""
        facts = msgspec.structs.asdict(delivery)
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

        def work(tx: Transaction) -> None:
            if also is not None:
                also(tx)
            _move(
                tx,
                reservation.ledger_id,
                to="settled",
                now_ms=self._now_ms(),
                cost_nano=cost_nano,
                cost_source=cost_source,
                picture=picture,
                error_code=error_code,
            )

        await self._store.write(work)

    async def release(self, reservation: Reservation, *, error_code: str | None = None) -> None:
        """Release the reservation: nothing was sent, or the provider does not charge for it."""
        await self._advance(reservation, to="released", error_code=error_code)

    async def mark_unknown(self, reservation: Reservation, *, error_code: str | None) -> None:
        """Keep counting the quote: it cannot be determined whether the provider charged."""
        await self._advance(reservation, to="unknown", error_code=error_code)

    async def record_path(self, reservation: Reservation, path: str) -> None:
        """Record where the picture was written."""
        await self._advance(reservation, to="placed", path=path)

    async def conclude_dead_calls(self) -> int:
        """Conclude the calls of processes that died, and return how many there were.

        A call that was not sent, or was free, is released. A call that was sent may have been
        charged: it stays counted.
        """

        def work(tx: Transaction) -> int:
            dead = [row for row in tx.all("ledger_unfinished") if not is_alive(_owner(row))]
            for row in dead:
                lost = row["state"] == "sent" and row["quoted_nano"] > 0
                to = "unknown" if lost else "released"
                _move(tx, row["id"], to=to, now_ms=self._now_ms(), error_code=OWNER_DIED)
            return len(dead)

        concluded = await self._store.write(work)
        self._has_concluded_dead = True
        return concluded

    async def unfinished_jobs(self) -> list[JobRow]:
        """The jobs whose result is unknown or whose picture has no file, oldest first."""
        await self._conclude_dead_once()
        rows = await self._store.read(lambda tx: tx.all("jobs_unfinished"))
        return [_job(row) for row in rows]

    async def job(self, job_id: str) -> JobRow | None:
        """The job of that id, in whatever state; None if there is none."""
        await self._conclude_dead_once()
        row = await self._store.read(lambda tx: tx.one("job_by_id", id=job_id))
        return None if row is None else _job(row)

    async def spent(self, *, session_id: str | None = None, day: date | None = None) -> int:
        """What was or may have been paid, in a session, on a UTC day, or in total; nano-dollars."""
        await self._conclude_dead_once()
        day_text = None if day is None else day.isoformat()

        def work(tx: Transaction) -> Row | None:
            if session_id is None:
                return tx.one("ledger_spent", day=day_text)
            return tx.one("ledger_spent_in_session", session_id=session_id, day=day_text)

        row = await self._store.read(work)
        assert row is not None, "a sum always has a row"
        return row["nano"]

    async def purchases(self, picture: str, *, limit: int = 20) -> tuple[LedgerRow, ...]:
        """The calls that bought the picture of a handle, newest first."""
        rows = await self._store.read(
            lambda tx: tx.all("ledger_of_picture", picture=picture, count=limit)
        )
        return tuple(LedgerRow(**row) for row in rows)

    async def spend(self, *, recent: int = 20) -> Spend:
        """The totals of the whole ledger, and its newest rows."""

        def work(tx: Transaction) -> Spend:
            def lines(query: str) -> tuple[SpendLine, ...]:
                return tuple(SpendLine(**row) for row in tx.all(query))

            by_state = tx.one("ledger_by_state")
            assert by_state is not None, "a sum always has a row"
            return Spend(
                **by_state,
                by_day=lines("ledger_by_day"),
                by_model=lines("ledger_by_model"),
                by_session=lines("ledger_by_session"),
                recent=tuple(LedgerRow(**row) for row in tx.all("ledger_recent", count=recent)),
            )

        await self._conclude_dead_once()
        return await self._store.read(work)

    def _reserve(
        self, tx: Transaction, quote_nano: int, *, call: dict[str, str], caps: Caps
    ) -> Reservation:
        now = self._clock().astimezone(UTC)
        day = now.date().isoformat()
        if caps != Caps():
            check_caps(quote_nano, caps=caps, totals=_totals(tx, call["session_id"], day))
        owner = this_process()
        ledger_id = tx.insert(
            "ledger_reserve",
            **call,
            quoted_nano=quote_nano,
            day=day,
            now_ms=_to_ms(now),
            owner_pid=owner.pid,
            owner_start=owner.start,
            owner_boot=owner.boot,
        )
        return Reservation(ledger_id=ledger_id, quote_nano=quote_nano, **call)

    async def _advance(self, reservation: Reservation, *, to: str, **facts: Any) -> None:
        def work(tx: Transaction) -> None:
            _move(tx, reservation.ledger_id, to=to, now_ms=self._now_ms(), **facts)

        await self._store.write(work)

    async def _release_written(self, writing: asyncio.Future[Reservation]) -> None:
        """Release the reservation of a cancelled `reserve`, if it was written."""
        try:
            reservation = await writing
        except (BudgetExceeded, StorageError):
            return
        await self.release(reservation)

    async def _conclude_dead_once(self) -> None:
        if not self._has_concluded_dead:
            await self.conclude_dead_calls()

    def _now_ms(self) -> int:
        return _to_ms(self._clock())


def _totals(tx: Transaction, session_id: str, day: str) -> CapTotals:
    row = tx.one("ledger_counted", session_id=session_id, day=day)
    assert row is not None, "a sum always has a row"
    return CapTotals(**row)


def _move(tx: Transaction, ledger_id: int, *, to: str, **facts: Any) -> None:
    """Change the state of a row.

    Raises:
        StorageError: the row is missing, or cannot go from its state to this one.
    """
    if tx.run(f"ledger_{to}", id=ledger_id, **facts) == 1:
        return
    row = tx.one("ledger_state", id=ledger_id)
    state = "missing" if row is None else row["state"]
    raise StorageError(f"Ledger row {ledger_id} is {state}: it cannot become {to}.")


def _job(row: Row) -> JobRow:
    facts = dict(row)
    owner = Owner(**{name: facts.pop(name) for name in ("pid", "start", "boot")})
    # The calls of dead processes were concluded before this: none of them is `sent`. A call that
    # was settled with an error has ended, and left its bytes.
    is_writing = facts["state"] == "settled" and facts["error_code"] is None and is_alive(owner)
    in_flight = facts["state"] == "sent" or is_writing
    return JobRow(**facts, in_flight=in_flight)


def _owner(row: Row) -> Owner:
    return Owner(pid=row["pid"], start=row["start"], boot=row["boot"])


def _to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
