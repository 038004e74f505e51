"""The bookkeeping of one call, from reservation to the last word on its price.

Leaving the ``async with`` block is what decides: whatever happened inside, the row ends as
settled, released or unknown, and an error on its way out is told what it cost. A cancellation
carries a `Cancelled` error with the cost as its first argument: `told_cost` finds it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

from limner.errors import Cancelled, CostSource, ImageError, LimnerError, ProviderError
from limner.money.ledger import Money, Reservation


class Spending:
    """One reservation while its call runs.

    ``job_id`` names the journalled request once it was sent.
    """

    def __init__(
        self,
        money: Money,
        reservation: Reservation,
        *,
        quote_source: CostSource,
        job_id: str | None = None,
    ) -> None:
        self._money, self._reservation = money, reservation
        self.cost_nano = reservation.quote_nano
        self.cost_source: CostSource = quote_source
        self.job_id = job_id
        self._withdrawn = False
        self._answered = False
        self._settled = False

    async def send(self, request_json: str) -> None:
        """Journal the request: from here on it counts as sent."""
        self.job_id = await self._money.sent(self._reservation, request_json=request_json)

    async def note_job(self, remote_id: str, remote_url: str) -> None:
        """Journal how the service finds the request again."""
        assert self.job_id is not None, "a job exists only after send"
        await self._money.note_job(self.job_id, remote_id=remote_id, remote_url=remote_url)

    def withdraw(self) -> None:
        """The service confirmed that it will not charge."""
        self._withdrawn = True

    def price(self, cost_nano: int | None, source: CostSource) -> None:
        """The service has answered, and this is what it costs; None leaves the quote standing."""
        self._answered = True
        if cost_nano is not None:
            self.cost_nano, self.cost_source = cost_nano, source

    async def settle(self, picture: str) -> None:
        """The picture is safe: the price is final."""
        await self._settle(picture=picture, error_code=None)

    async def place(self, path: Path) -> None:
        """Record where the picture was written."""
        await self._money.place(self._reservation, str(path))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Shielded: a second cancellation must not leave the row undecided.
        if not self._settled:
            await asyncio.shield(asyncio.ensure_future(self._conclude(error)))
        if isinstance(error, asyncio.CancelledError):
            # It must stay the cancellation it is; what it cost travels inside.
            stopped = Cancelled("The call was cancelled.")
            error.args = (stopped,)
            error = stopped
        if isinstance(error, LimnerError):
            error.charge(self.cost_nano, self.cost_source)
            if self.cost_source == "unknown" and self.job_id is not None:
                error.extras.setdefault("job_id", self.job_id)

    async def _conclude(self, error: BaseException | None) -> None:
        code = error.code if isinstance(error, LimnerError) else type(error).__name__
        if self._is_free_of_charge(error):
            self.cost_nano = 0
            await self._money.release(self._reservation, error_code=code)
        elif self._answered or isinstance(error, ImageError):
            # The service did its part and charges for it; there is just no picture to show.
            await self._settle(picture=None, error_code=code)
        else:
            self.cost_source = "unknown"
            await self._money.unknown(self._reservation, error_code=code)

    def _is_free_of_charge(self, error: BaseException | None) -> bool:
        if self.job_id is None or self._withdrawn or self._reservation.quote_nano == 0:
            return True
        return isinstance(error, ProviderError) and not error.may_be_billed

    async def _settle(self, *, picture: str | None, error_code: str | None) -> None:
        await self._money.settle(
            self._reservation,
            cost_nano=self.cost_nano,
            cost_source=self.cost_source,
            picture=picture,
            error_code=error_code,
        )
        self._settled = True


def told_cost(stop: asyncio.CancelledError) -> Cancelled | None:
    """What a cancellation that passed through a `Spending` says about its cost."""
    told = stop.args[0] if stop.args else None
    return told if isinstance(told, Cancelled) else None

