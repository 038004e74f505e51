"""Rows of the ledger -> the values the rest of the program sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from limner.errors import NANO_PER_USD, CostSource

if TYPE_CHECKING:
    from limner.storage.store import Transaction

State = Literal["reserved", "sent", "settled", "unknown", "released"]


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Money that is reserved for one call, and the ledger row that holds it."""

    ledger_id: int
    quote_nano: int
    session_id: str
    tool: str
    provider: str
    model: str


class PaymentTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a payment is for, and what has to hold when it is reserved.

    Attributes:
        key: names what is paid for. The ledger has at most one row for it that counts.
        admit: runs in the transaction of the reservation. If it raises, nothing is reserved.
    """

    key: str
    admit: Callable[[Transaction, Reservation], None]


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """One of many calls that are reserved together."""

    quote_nano: int
    tool: str
    provider: str
    model: str
    terms: PaymentTerms


class KeyedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """The row of the ledger that counts for an idempotency key."""

    id: int
    state: State
    cost_nano: int
    cost_source: CostSource
    picture: str | None
    path: str | None
    error_code: str | None
    job_id: str | None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes that a provider delivered for a job: where they are, and what they cost."""

    path: str
    sha256: str
    size_bytes: int
    cost_nano: int
    cost_source: CostSource


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was sent, and the state of its payment.

    ``request`` is the JSON text that was journalled. ``remote_id`` and ``remote_url`` are set once
    the provider has sent them, and ``picture`` once it is paid for and stored. The ``delivered``
    fields are set once all bytes are on disk. A live process waits for a job that is
    ``in_flight``: no other process should fetch it.
    """

    id: str
    ledger_id: int
    session_id: str
    tool: str
    provider: str
    model: str
    request: str
    remote_id: str | None
    remote_url: str | None
    created_ms: int
    state: State
    quoted_nano: int
    cost_nano: int
    cost_source: CostSource
    picture: str | None
    in_flight: bool
    error_code: str | None = None
    delivered_path: str | None = None
    delivered_sha256: str | None = None
    delivered_nano: int | None = None
    delivered_source: CostSource | None = None

    @property
    def reservation(self) -> Reservation:
        """The reservation of the job, for the process that recovers it."""
        return Reservation(
            ledger_id=self.ledger_id,
            quote_nano=self.quoted_nano,
            session_id=self.session_id,
            tool=self.tool,
            provider=self.provider,
            model=self.model,
        )


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call as `limner spend` shows it."""

    id: int
    created_ms: int
    session_id: str
    tool: str
    provider: str
    model: str
    state: State
    quoted_nano: int
    cost_nano: int
    cost_source: CostSource
    error_code: str | None
    picture: str | None
    path: str | None

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD

    def as_json(self) -> dict[str, object]:
        """The row with its amounts in dollars."""
        return {
            "id": self.id,
            "created_ms": self.created_ms,
            "session_id": self.session_id,
            "tool": self.tool,
            "provider": self.provider,
            "model": self.model,
            "state": self.state,
            "quoted_usd": self.quoted_nano / NANO_PER_USD,
            "cost_usd": self.cost_nano / NANO_PER_USD,
            "cost_source": self.cost_source,
            "error_code": self.error_code,
            "picture": self.picture,
            "path": self.path,
        }


class SpendLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent on one day, with one model or in one session, and in how many calls."""

    name: str
    nano: int
    calls: int

    @property
    def cost_usd(self) -> float:
        """The amount in dollars."""
        return self.nano / NANO_PER_USD

    def as_json(self) -> dict[str, object]:
        """The line with its amount in dollars."""
        return {"name": self.name, "cost_usd": self.cost_usd, "calls": self.calls}


class SpendSums(msgspec.Struct, frozen=True, kw_only=True):
    """What was paid, what may have been paid, and what is reserved for calls in flight."""

    settled_nano: int = 0
    unknown_nano: int = 0
    in_flight_nano: int = 0


class Spend(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent according to the whole ledger.

    The total and each breakdown contain settled calls at their price and unknown calls at their
    quote. ``in_flight_nano`` is reserved for calls that have not ended; the total does not
    contain it. The days and the sessions are the newest ones; ``next_session`` continues the
    sessions, and is None after the last one. ``own`` has the sums of the `Limner` that was asked.
    """

    settled_nano: int
    unknown_nano: int
    in_flight_nano: int
    by_day: tuple[SpendLine, ...]
    by_model: tuple[SpendLine, ...]
    by_session: tuple[SpendLine, ...]
    recent: tuple[LedgerRow, ...]
    next_session: int | None = None
    own: SpendSums = SpendSums()

    @property
    def total_nano(self) -> int:
        """What was or may have been paid."""
        return self.settled_nano + self.unknown_nano

    @property
    def total_usd(self) -> float:
        """What was or may have been paid, in dollars."""
        return self.total_nano / NANO_PER_USD

    @property
    def unknown_usd(self) -> float:
        """The part of the total that may not have been charged, in dollars."""
        return self.unknown_nano / NANO_PER_USD

    @property
    def in_flight_usd(self) -> float:
        """What is reserved for calls that have not ended, in dollars."""
        return self.in_flight_nano / NANO_PER_USD

    @property
    def own_usd(self) -> float:
        """What the `Limner` that was asked has or may have paid, in dollars."""
        return (self.own.settled_nano + self.own.unknown_nano) / NANO_PER_USD

    @property
    def own_unknown_usd(self) -> float:
        """The part of `own_usd` that may not have been charged, in dollars."""
        return self.own.unknown_nano / NANO_PER_USD

    @property
    def own_in_flight_usd(self) -> float:
        """What is reserved for calls of that `Limner` that have not ended, in dollars."""
        return self.own.in_flight_nano / NANO_PER_USD

    def as_json(self) -> dict[str, object]:
        """The object `limner spend --json` prints; amounts are dollars."""
        return {
            "total_usd": self.total_nano / NANO_PER_USD,
            "settled_usd": self.settled_nano / NANO_PER_USD,
            "unknown_usd": self.unknown_nano / NANO_PER_USD,
            "in_flight_usd": self.in_flight_nano / NANO_PER_USD,
            "by_day": [line.as_json() for line in self.by_day],
            "by_model": [line.as_json() for line in self.by_model],
            "by_session": [line.as_json() for line in self.by_session],
            "next": self.next_session,
            "recent": [row.as_json() for row in self.recent],
        }


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger, as far as an export can contradict it."""

    id: int
    day: str
    created_ms: int
    provider: str
    state: State
    quoted_nano: int
    cost_nano: int
    job_id: str | None
    remote_id: str | None

    @property
    def counted_nano(self) -> int:
        """What the ledger counts for it."""
        if self.state == "settled":
            return self.cost_nano
        return self.quoted_nano if self.state == "unknown" else 0
