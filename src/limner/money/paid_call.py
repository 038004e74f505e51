"""A quote -> asked, reserved, sent, received, settled: the one way to pay for a call.

`paid_call` is the whole sequence; the body of its ``async with`` block does what differs. Leaving
the block decides: whatever happened inside, the ledger row ends as settled, released or unknown,
and an error on its way out carries its cost. A cancellation carries a `Cancelled` error with the
cost as its first argument: `errors.cancellation_cost` finds it.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from limner import metrics
from limner.catalogue.prices import Quote
from limner.dollars import format_usd
from limner.errors import (
    BadProviderImage,
    BudgetExceeded,
    Cancelled,
    CostSource,
    ImageError,
    LimnerError,
    ProviderError,
    StorageError,
    UnexpectedError,
    UserError,
    attach_cost,
)
from limner.log_fields import log_fields
from limner.money.ledger import Money
from limner.money.records import Delivery, JobRow, PaymentTerms, Reservation, State
from limner.net.paid_request import announced
from limner.net.redaction import redact
from limner.storage.incoming_files import IncomingFile
from limner.storage.store import Transaction

T = TypeVar("T")

ALREADY_RECEIVED = "JOB_ALREADY_RECEIVED"
CANCELLED = "The call was cancelled."
NEEDED_MEMORY_BYTES = 64 << 20

logger = logging.getLogger("limner.money")


async def _accept(_: int) -> None:
    pass


async def _refuse(*_: Any) -> bool:
    return False


class Payer(msgspec.Struct, frozen=True, kw_only=True):
    """The session that pays for a call, who approves the price, and who follows the call.

    Attributes:
        session_id: the session whose budget pays.
        budget_nano: a cap on that session, beside those of the settings.
        approve: returns if the quote may be spent, and raises otherwise.
        approve_over_cap: decides whether the call may exceed the cap that refused it.
        on_reserved: gets the id of the ledger row before anything is sent. If it raises, the
            money is released and nothing is sent.
        on_sending: is called before the request is sent; from then on it may be charged.
        terms: what is paid for, if it must not be paid twice.
    """

    session_id: str
    budget_nano: int | None = None
    approve: Callable[[int], Awaitable[None]] = _accept
    approve_over_cap: Callable[[BudgetExceeded, int], Awaitable[bool]] = _refuse
    on_reserved: Callable[[int], Awaitable[None]] = _accept
    on_sending: Callable[[], None] = lambda: None
    terms: PaymentTerms | None = None


@asynccontextmanager
async def paid_call(
    money: Money,
    quote: Quote,
    *,
    payer: Payer,
    tool: str,
    provider: str,
    model: str,
    delivery: IncomingFile | None = None,
    cancel_message: str = CANCELLED,
) -> AsyncGenerator[PaidCall]:
    """Ask, reserve the quote, run the body, and decide the ledger row.

    If the call fits as soon as calls in flight have ended, it waits for them.

    Args:
        money: the ledger.
        quote: the most that the call can cost; less may be reserved if it says so.
        payer: who pays, and who is asked.
        tool: what is called.
        provider: who will be paid.
        model: the model that draws or answers.
        delivery: the file for the bytes of a picture; None if words are bought.
        cancel_message: what the `Cancelled` error of a cancelled call says.

    Raises:
        ApprovalDenied: the user must approve the price, and did not.
        BudgetExceeded: a cap leaves less than the quote.
        LimnerError: this process has too little memory (``NO_MEMORY``).
    """

    reserve = partial(
        money.reserve,
        quote.nano,
        session_id=payer.session_id,
        tool=tool,
        provider=provider,
        model=model,
        enough_nano=quote.enough_nano,
        least_nano=quote.least_nano,
        terms=payer.terms,
    )
    await payer.approve(quote.nano)
    _check_memory()
    try:
        reservation = await reserve(session_cap_nano=payer.budget_nano, wait_s=money.wait_s)
    except BudgetExceeded as refusal:
        if not await payer.approve_over_cap(refusal, quote.nano):
            raise
        reservation = await reserve(over_caps=True)
    async with PaidCall(
        money,
        reservation,
        quote_source=quote.source,
        delivery=delivery,
        on_sending=payer.on_sending,
        cancel_message=cancel_message,
    ) as call:
        await payer.on_reserved(reservation.ledger_id)
        yield call


def resumed_call(
    money: Money, job: JobRow, *, quote_source: CostSource, delivery: IncomingFile | None = None
) -> PaidCall:
    """The call of a job that an earlier process sent; nothing is asked, reserved or sent again."""
    return PaidCall(money, job.reservation, quote_source=quote_source, delivery=delivery, job=job)


class PaidCall:
    """One reservation while its call runs.

    ``job_id`` names the request in the journal once it was sent, unless it has no journal. If a
    ``job`` is given, the call finishes that earlier request.
    """

    def __init__(
        self,
        money: Money,
        reservation: Reservation,
        *,
        quote_source: CostSource,
        delivery: IncomingFile | None = None,
        job: JobRow | None = None,
        on_sending: Callable[[], None] = lambda: None,
        cancel_message: str = CANCELLED,
    ) -> None:
        self._money, self._reservation, self._delivery = money, reservation, delivery
        self.cost_nano = reservation.quote_nano
        self.cost_source: CostSource = quote_source
        self.job_id = None if job is None else job.id
        self._on_sending, self._cancel_message = on_sending, cancel_message
        self._recovering = self._sent = job is not None
        self._request_json: str | None = None
        self._started_s = time.monotonic()
        self._resumable = False
        self._withdrawn = False
        self._received = False
        self._picture: str | None = None
        self._also: Callable[[Transaction], None] | None = None
        self._write_delivery: Callable[[Transaction], None] | None = None
        self._stored_at: str | None = None
        self._path: Path | None = None
        self._concluded = False
        self._unrecorded: str | None = None
        self._noting: asyncio.Future[None] | None = None
        if job is not None and job.state == "settled":
            # The price is final; only the picture of the kept bytes is missing.
            self.cost_nano, self.cost_source, self._concluded = job.cost_nano, job.cost_source, True

    @contextmanager
    def announced(self, request_json: str | None) -> Generator[None]:
        """Count the call as sent as soon as a paid request of the block leaves.

        Until then the request is built and the connection is made: a failure costs nothing.
        """
        self._request_json = request_json
        with announced(self._send_noted):
            yield

    async def send(self, request_json: str | None) -> None:
        """Count the request as sent, and journal it if its result can be fetched later."""
        self._request_json = request_json
        await self._send_noted()

    async def note_job(self, remote_id: str, remote_url: str) -> None:
        """Journal how the provider finds the request again."""
        await self._send_noted()
        assert self.job_id is not None, "a job has a journal"
        await self._money.note_job(self.job_id, remote_id=remote_id, remote_url=remote_url)
        self._resumable = True

    def withdraw(self) -> None:
        """The provider confirmed that it will not charge."""
        self._withdrawn = True

    def received(self, cost_nano: int | None, source: CostSource) -> None:
        """The response is here and not yet verified. It costs this much; None keeps the quote."""
        self._received = True
        if cost_nano is not None:
            self.cost_nano, self.cost_source = cost_nano, source

    async def deliver(self, cost_nano: int | None, source: CostSource) -> None:
        """All bytes of the picture are here: sync them, and note them in the job's row meanwhile.

        Raises:
            StorageError: they cannot be synced.
        """
        self.received(cost_nano, source)
        await self._send_noted()
        file, job_id = self._delivery, self.job_id
        assert file is not None
        assert job_id is not None
        await asyncio.to_thread(file.sync)
        delivery = Delivery(
            path=str(file.path),
            sha256=file.handle,
            size_bytes=file.size_bytes,
            cost_nano=self.cost_nano,
            cost_source=self.cost_source,
        )
        # If the call is settled without a picture, its row must say that the bytes are here.
        self._write_delivery = lambda tx: self._money.write_delivery(tx, job_id, delivery)
        self._also = self._write_delivery
        self._noting = asyncio.ensure_future(self._note(job_id, delivery))

    async def settle(
        self,
        picture: str | None,
        *,
        stored_at: str | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> None:
        """What was bought is stored, a picture or an answer in words: the price is final.

        Args:
            picture: the handle of the picture.
            stored_at: where its blob is.
            also: runs in the transaction of the settlement. If it fails, the price is settled
                without it when the call ends.

        Raises:
            UserError: another process fetched the same picture first (JOB_ALREADY_RECEIVED). That
                process has settled the price, and nothing is left to do.
        """
        await self._send_noted()
        self._picture, self._stored_at, self._also = picture, stored_at, also
        try:
            await self._settle(error_code=None)
        except StorageError as error:
            row = await self._row()
            if row is None or row.state != "settled" or row.picture is None:
                raise
            self._concluded = True
            if error.retryable and row.picture == picture:
                # The settlement is stored, and only the answer of the database was lost.
                self._money.give_up(self._reservation, is_sent=True)
                return
            self.cost_nano = 0
            raise UserError(
                f"Another process has already fetched the picture of {self.job_id}.",
                code=ALREADY_RECEIVED,
            ) from error

    async def record_path(self, path: Path) -> None:
        """Record where the picture was written."""
        self._path = path
        # The picture is there and paid for. If the ledger cannot store its path right now, the
        # call is still no failure: a failure would make the user pay for another picture.
        with suppress(StorageError):
            await self._money.record_path(self._reservation, str(path))

    async def __aenter__(self) -> Self:
        self._count_in_flight(+1)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        leaving = error
        try:
            await finish_despite_cancellation(self._conclude(error))
        except BaseException as last:
            leaving = last
        if self._delivery is not None:
            # If the outcome is unknown, the connection may have failed after the last byte.
            may_be_whole = self._received or self.cost_source == "unknown"
            has_bytes = self._delivery.size_bytes > 0
            self._delivery.keep = self._is_owed and has_bytes and may_be_whole
        self._count_in_flight(-1)
        self._log(_code_of(leaving))
        if leaving is None:
            return
        raised = self._with_cost(leaving)
        if raised is not leaving:
            raise raised from leaving
        if leaving is not error:
            raise leaving

    async def _note(self, job_id: str, delivery: Delivery) -> None:
        # Without the note, a recovery finds the file by its name, and the quote is the price.
        with suppress(Exception):
            await self._money.note_delivery(job_id, delivery)

    async def _send_noted(self) -> None:
        if self._sent:
            return
        self._on_sending()
        self.job_id = await self._money.mark_sent(
            self._reservation,
            request_json=self._request_json,
            job_id=None if self._delivery is None else self._delivery.job_id,
        )
        self._sent = True

    async def _conclude(self, error: BaseException | None) -> None:
        if self._noting is not None:
            await self._noting
        if self._concluded:
            return
        if isinstance(error, LimnerError) and error.billed and not self._received:
            # Some providers charge for a refusal, and the error knows the price.
            self.received(error.cost_nano, error.cost_source)
        code = _code_of(error)
        try:
            if self._received or (isinstance(error, ProviderError) and error.may_be_billed):
                await self._send_noted()
            if self._is_free_of_charge(error):
                self.cost_nano = 0
                await self._money.release(self._reservation, error_code=code)
            elif self._is_final(error):
                await self._settle_or_keep(error)
            else:
                self.cost_nano, self.cost_source = self._reservation.quote_nano, "unknown"
                await self._money.mark_unknown(self._reservation, error_code=code)
        except Exception as failure:
            # Unless another process has concluded the row, it stays counted until a look through
            # the ledger finds that no call uses it.
            self._money.give_up(self._reservation, is_sent=self._sent and not self._withdrawn)
            # The caller must get the first error.
            if error is None:
                raise
            if await self._state() not in ("settled", "released"):
                self._unrecorded = redact(str(failure))

    async def _settle_or_keep(self, error: BaseException | None) -> None:
        """Settle with what was bought; if that fails again, without it.

        The bytes of a picture are kept then.
        """
        try:
            await self._settle(error_code=_code_of(error))
        except Exception:
            if self._picture is None and self._also is self._write_delivery:
                raise
            self._picture, self._stored_at, self._also = None, None, self._write_delivery
            await self._conclude(error)

    def _is_free_of_charge(self, error: BaseException | None) -> bool:
        if not self._sent or self._withdrawn or self._reservation.quote_nano == 0:
            return True
        return isinstance(error, ProviderError) and not (error.may_be_billed or self._received)

    def _is_final(self, error: BaseException | None) -> bool:
        """Whether the price is final, since the provider did its part and charges for it."""
        if self._picture is not None:
            return True
        # A result that was lost on the way, on a full disk for example, can be fetched again if it
        # has an id: then its row must stay open. A picture that is broken twice is broken.
        if isinstance(error, ImageError):
            return self._recovering or not self._resumable
        return self._received and not self._resumable

    @property
    def _is_owed(self) -> bool:
        """Whether the user pays for a picture that is not recorded."""
        is_recorded = self._concluded and self._picture is not None
        return self._sent and self.cost_nano > 0 and not is_recorded

    async def _settle(self, *, error_code: str | None) -> None:
        await self._money.settle(
            self._reservation,
            cost_nano=self.cost_nano,
            cost_source=self.cost_source,
            picture=self._picture,
            error_code=error_code,
            also=self._also,
        )
        self._concluded = True

    async def _state(self) -> State | None:
        """The state of the row; None if it was never sent or cannot be read."""
        row = await self._row()
        return None if row is None else row.state

    async def _row(self) -> JobRow | None:
        try:
            return None if self.job_id is None else await self._money.job(self.job_id)
        except StorageError:
            return None

    def _count_in_flight(self, change: int) -> None:
        metrics.CALLS_IN_FLIGHT.add(change)
        if not self._recovering:  # an earlier process reserved the price of a recovered job
            metrics.RESERVED_USD.add(change * self._reservation.quote_nano)

    def _log(self, error_code: str | None) -> None:
        """Log and count how the call ended, once for each picture, answer and recovered job."""
        paid, verb = self._reservation, "recovered" if self._recovering else "made"
        took_s = time.monotonic() - self._started_s
        metrics.CALLS.add(provider=paid.provider, model=paid.model, outcome=error_code or "ok")
        metrics.CALL_SECONDS.observe(took_s, provider=paid.provider)
        if self._picture is not None and self._concluded:
            metrics.PICTURES.add(made="drawn")
        outcome = "answered" if self._picture is None else f"{verb} {self._picture}"
        with log_fields(session=paid.session_id, job=self.job_id):
            logger.info(
                "%s: %s/%s %s in %.2f s for %s (%s)",
                paid.tool,
                paid.provider,
                paid.model,
                outcome if error_code is None else f"failed with {error_code}",
                took_s,
                format_usd(self.cost_nano),
                self.cost_source,
            )

    def _with_cost(self, error: BaseException) -> BaseException:
        """The error that leaves the call: it has what was spent, and where the picture is."""
        told: BaseException = error
        if not isinstance(error, Exception):
            # A cancellation, an interrupt or an exit must stay one; the cost travels inside.
            told = Cancelled(self._cancel_message)
        elif not isinstance(error, LimnerError) and self.cost_nano:
            text = f"{type(error).__name__}: {error}"
            error = told = UnexpectedError(f"The call stopped unexpectedly: {redact(text)}")
        if isinstance(told, LimnerError):
            told.charge(self.cost_nano, self.cost_source)
            self._add_places(told)
        if isinstance(told, Cancelled) and told is not error:
            attach_cost(error, told)
        return error

    def _add_places(self, error: LimnerError) -> None:
        """Add the job, the place of the bytes, and the command that helps."""
        if self.cost_nano and self.job_id is not None:
            error.extras.setdefault("job_id", self.job_id)
            recover = f"`limner jobs recover {self.job_id}`"
            if self._delivery is not None and self._delivery.keep and self._received:
                error.extras["kept_at"] = str(self._delivery.path)
                error.hint = f"The bytes are kept: {recover} goes on without a new payment."
                if isinstance(error, BadProviderImage):
                    error.hint = f"The bytes are kept until `limner jobs forget {self.job_id}`."
            elif self._stored_at is not None and self._path is None:
                error.hint = f"The picture is kept: {recover} writes the file."
            elif self._resumable and error.hint is None:
                error.hint = f"{recover} fetches it without paying again."
        if isinstance(error, Cancelled) and self.cost_source == "unknown" and error.hint is None:
            service = self._reservation.provider
            error.hint = f"Look at your account at {service} before you ask again."
        if self._stored_at is not None and self._path is None:
            error.extras.setdefault("kept_at", self._stored_at)
        if self._path is not None:
            error.extras.setdefault("path", str(self._path))
        if self._unrecorded is not None:
            error.extras.setdefault("unrecorded", self._unrecorded)


async def finish_despite_cancellation(work: Coroutine[Any, Any, T]) -> T:
    """Finish work that money depends on, however often the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as stop:
            cancellation = stop
    if cancellation is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # retrieved here, so that asyncio does not log it as never retrieved
    raise cancellation


def _check_memory() -> None:
    """See that the limits of this process leave memory for what follows a payment.

    Raises:
        LimnerError: they leave too little.
    """
    try:
        mmap.mmap(-1, NEEDED_MEMORY_BYTES).close()
    except (OSError, MemoryError) as error:
        raise LimnerError(
            f"limner needs {NEEDED_MEMORY_BYTES >> 20} MB of memory for a paid call, and the "
            "system gives it less. Nothing was sent.",
            code="NO_MEMORY",
            hint="Raise the limits of this process (ulimit -v), or free some memory.",
        ) from error


def _code_of(error: BaseException | None) -> str | None:
    if isinstance(error, asyncio.CancelledError):
        return Cancelled.code
    if isinstance(error, LimnerError):
        return error.code
    return None if error is None else type(error).__name__
