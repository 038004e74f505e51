"""The ledger as one call sees it: each reservation is noted as the call's before it is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from limner.money.ledger import Money, Reservation
from limner.money.paid_call import to_the_end


class CallLedger(Money):
    """The books of a program, in the hands of one call.

    Args:
        money: the program's own; store, caps and clock stay the same.
        note: writes down that a ledger row is the call's.
        about_to_send: is told before anything leaves: from then on it may be paid for.
    """

    def __init__(
        self,
        money: Money,
        *,
        note: Callable[[int], Awaitable[None]],
        about_to_send: Callable[[], None],
    ) -> None:
        vars(self).update(vars(money))
        self._note, self._about_to_send = note, about_to_send

    async def reserve(self, quote_nano: int, **call: Any) -> Reservation:
        """As `Money.reserve`; raises as that does, and when it cannot be noted."""
        reservation = await super().reserve(quote_nano, **call)
        try:
            await self._note(reservation.ledger_id)
        except BaseException:
            # A request whose call cannot be found again must not be sent.
            await to_the_end(self.release(reservation))
            raise
        return reservation

    async def sent(self, reservation: Reservation, *, request_json: str | None) -> str | None:
        """As `Money.sent`."""
        self._about_to_send()
        return await super().sent(reservation, request_json=request_json)
