"""The bookkeeping of one call, from reservation to the last word on its price.

Leaving the ``async with`` block is what decides: whatever happened inside, the row ends as
settled, released or unknown, and an error on its way out is told what it cost. A cancellation
carries a `Cancelled` error with the cost as its first argument: `told_cost` finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from limner.errors import (
    Cancelled,
    CostSource,
    ImageError,
    LimnerError,
    ProviderError,
    StorageError,
    UserError,
)
from limner.money.ledger import Money, Reservation
from limner.money.records import State

T = TypeVar("T")

ALREADY_RECEIVED = "JOB_ALREADY_RECEIVED"


class PaidCall:
    """One reservation while its call runs.

    ``job_id`` names the request in the journal once it was sent, unless it has no journal; given
    from the start, it is the request that this is the recovery of. ``sent`` is a reservation that
    was written as sent.
    """

    def __init__(
        self,
        money: Money,
        reservation: Reservation,
        *,
        quote_source: CostSource,
        job_id: str | None = None,
        sent: bool = False,
    ) -> None:
        self._money, self._reservation = money, reservation
        self.cost_nano = reservation.quote_nano
        self.cost_source: CostSource = quote_source
        self.job_id = job_id
        self._recovering = job_id is not None
        self._sent = sent or self._recovering
        self._resumable = False
        self._withdrawn = False
        self._answered = False
        self._picture: str | None = None
        self._path: Path | None = None
        self._concluded = False
        self._unrecorded: StorageError | None = None

    async def send(self, request_json: str | None) -> None:
        """Journal the request, where its answer can be fetched later; now it counts as sent."""
        self.job_id = await self._money.sent(self._reservation, request_json=request_json)
        self._sent = True

    async def note_job(self, remote_id: str, remote_url: str) -> None:
        """Journal how the service finds the request again."""
        assert self.job_id is not None, "a job exists only after send"
        await self._money.note_job(self.job_id, remote_id=remote_id, remote_url=remote_url)
        self._resumable = True

    def withdraw(self) -> None:
        """The service confirmed that it will not charge."""
        self._withdrawn = True

    def price(self, cost_nano: int | None, source: CostSource) -> None:
        """The service has answered, and this is what it costs; None leaves the quote standing."""
        self._answered = True
        if cost_nano is not None:
            self.cost_nano, self.cost_source = cost_nano, source

    @contextmanager
    def told_price(self) -> Generator[None]:
        """Take the price from an error that knows it: some services charge for a refusal."""
        try:
            yield
        except LimnerError as error:
            if error.billed:
                self.price(error.cost_nano, error.cost_source)
            raise

    async def settle(self, picture: str | None) -> None:
        """What was bought is safe, a picture or an answer in words: the price is final.

        Raises:
            UserError: somebody else brought the same picture in first (JOB_ALREADY_RECEIVED);
                then the price is theirs, and nothing more is to be done.
        """
        self._picture = picture
        try:
            await self._settle(error_code=None)
        except StorageError as error:
            if await self._state() != "settled":
                raise
            self._concluded, self.cost_nano = True, 0
            raise UserError(
                f"The picture of {self.job_id} was already brought in.", code=ALREADY_RECEIVED
            ) from error

    async def place(self, path: Path) -> None:
        """Record where the picture was written."""
        self._path = path
        # The picture is there and paid for. A ledger that cannot take its path right now is no
        # reason to call that a failure, and to make somebody pay for another one.
        with suppress(StorageError):
            await self._money.place(self._reservation, str(path))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if not self._concluded:
                await to_the_end(self._conclude(error))
        except asyncio.CancelledError as stop:
            self._tell(stop)
            raise
        finally:
            self._tell(error)

    async def _conclude(self, error: BaseException | None) -> None:
        code = _code_of(error)
        try:
            if self._is_free_of_charge(error):
                self.cost_nano = 0
                await self._money.release(self._reservation, error_code=code)
            elif self._is_over(error):
                await self._settle(error_code=code)
            else:
                self.cost_nano, self.cost_source = self._reservation.quote_nano, "unknown"
                await self._money.unknown(self._reservation, error_code=code)
        except StorageError as failure:
            # What went wrong first is what the caller must hear of. Unless somebody else has
            # concluded the row, it stays counted until a later process finds its owner gone.
            if error is None:
                raise
            if await self._state() not in ("settled", "released"):
                self._unrecorded = failure

    def _is_free_of_charge(self, error: BaseException | None) -> bool:
        if not self._sent or self._withdrawn or self._reservation.quote_nano == 0:
            return True
        return isinstance(error, ProviderError) and not (error.may_be_billed or self._answered)

    def _is_over(self, error: BaseException | None) -> bool:
        """Whether the price is final, since the service did its part and charges for it."""
        if self._picture is not None:
            return True
        # What was lost on the way, on a full disk say, may be fetched again where it has an id:
        # then its row must stay open for that. What comes broken twice is broken.
        if isinstance(error, ImageError):
            return self._recovering or not self._resumable
        return self._answered and not self._resumable

    async def _settle(self, *, error_code: str | None) -> None:
        await self._money.settle(
            self._reservation,
            cost_nano=self.cost_nano,
            cost_source=self.cost_source,
            picture=self._picture,
            error_code=error_code,
        )
        self._concluded = True

    async def _state(self) -> State | None:
        """Where the row stands by now; None where it was never sent or cannot be read."""
        try:
            row = None if self.job_id is None else await self._money.job(self.job_id)
        except StorageError:
            return None
        return None if row is None else row.state

    def _tell(self, error: BaseException | None) -> None:
        """Let an error on its way out say what was spent, and where the picture is."""
        if isinstance(error, asyncio.CancelledError):
            # It must stay the cancellation it is; what it cost travels inside.
            stopped = Cancelled("The call was cancelled.")
            error.args = (stopped,)
            error = stopped
        if not isinstance(error, LimnerError):
            return
        error.charge(self.cost_nano, self.cost_source)
        if self.cost_source == "unknown" and self.job_id is not None:
            error.extras.setdefault("job_id", self.job_id)
            if self._resumable and error.hint is None:
                error.hint = f"`limner jobs recover {self.job_id}` fetches it without paying again."
        if self._path is not None:
            error.extras.setdefault("path", str(self._path))
        if self._unrecorded is not None:
            error.extras.setdefault("unrecorded", self._unrecorded.message)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Finish work that money depends on, however often the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    stopped: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as stop:
            stopped = stop
    if stopped is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # seen here, so that it is not reported as lost
    raise stopped


def told_cost(stop: asyncio.CancelledError) -> Cancelled | None:
    """What a cancellation that passed through a `PaidCall` says about its cost."""
    told = stop.args[0] if stop.args else None
    return told if isinstance(told, Cancelled) else None


def _code_of(error: BaseException | None) -> str | None:
    if isinstance(error, asyncio.CancelledError):
        return Cancelled.code
    if isinstance(error, LimnerError):
        return error.code
    return None if error is None else type(error).__name__
