"""Any order of events: what is counted never passes the cap, and what was spent adds up."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from limner.errors import BudgetExceeded, StorageError
from limner.money.ledger import Caps, Money, Reservation
from limner.storage.store import Store

CAP = 100
SESSIONS = ("a", "b")

reserve = st.tuples(st.just("reserve"), st.integers(0, 60), st.sampled_from(SESSIONS))
move = st.tuples(
    st.sampled_from(["sent", "settle", "release", "unknown"]),
    st.integers(0, 9),
    st.integers(0, 100),
)
events = st.lists(reserve | move, min_size=1, max_size=25)


@dataclass
class Expected:
    """What the ledger must say, kept the plain way."""

    rows: list[Reservation] = field(default_factory=list[Reservation])
    states: list[str] = field(default_factory=list[str])
    costs: list[int] = field(default_factory=list[int])

    def counted(self, session_id: str | None = None) -> int:
        return sum(
            cost
            for row, cost in zip(self.rows, self.costs, strict=True)
            if session_id in (None, row.session_id)
        )

    def total(self, *states: str) -> int:
        return sum(
            cost for state, cost in zip(self.states, self.costs, strict=True) if state in states
        )


async def reserve_one(money: Money, expected: Expected, quote: int, session_id: str) -> None:
    room = min(
        CAP - expected.counted(session_id), CAP + CAP // 2 - expected.counted()
    )  # of the session, of the day
    try:
        row = await money.reserve(quote, session_id=session_id, tool="t", provider="p", model="m")
    except BudgetExceeded:
        assert quote > room
        return
    assert quote <= room
    expected.rows.append(row)
    expected.states.append("reserved")
    expected.costs.append(quote)


async def move_one(money: Money, expected: Expected, verb: str, index: int, percent: int) -> None:
    row = expected.rows[index]
    cost = row.quote_nano * percent // 100
    moves = {
        "sent": (("reserved",), "sent", None),
        "settle": (("sent", "unknown"), "settled", cost),
        "release": (("reserved", "sent", "unknown"), "released", 0),
        "unknown": (("sent", "unknown"), "unknown", None),
    }
    allowed, state, new_cost = moves[verb]
    try:
        match verb:
            case "sent":
                await money.mark_sent(row, request_json="{}")
            case "settle":
                await money.settle(row, cost_nano=cost, cost_source="computed", picture=None)
            case "release":
                await money.release(row)
            case _:
                await money.mark_unknown(row, error_code=None)
    except StorageError:
        assert expected.states[index] not in allowed
        return
    assert expected.states[index] in allowed
    expected.states[index] = state
    if new_cost is not None:
        expected.costs[index] = new_cost


async def play(script: list[tuple[str, int, str | int]], path: Path) -> None:
    store = Store(path)
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    caps = Caps(session_nano=CAP, day_nano=CAP + CAP // 2)
    money = Money(store, caps=caps, clock=lambda: noon, program="p")
    expected = Expected()
    try:
        for verb, number, detail in script:
            if isinstance(detail, str):
                await reserve_one(money, expected, number, detail)
            elif number < len(expected.rows):
                await move_one(money, expected, verb, number, detail)
            assert all(expected.counted(session) <= CAP for session in SESSIONS)
        spend = await money.spend(recent=100)
        assert [(row.state, row.cost_nano) for row in reversed(spend.recent)] == list(
            zip(expected.states, expected.costs, strict=True)
        )
        assert spend.total_nano == expected.total("settled", "unknown")
        assert spend.in_flight_nano == expected.total("reserved", "sent")
        assert sum(line.nano for line in spend.by_session) == spend.total_nano
        assert await money.wrong_counters() == []
    finally:
        await store.aclose()


@given(events)
@settings(max_examples=settings().max_examples // 4)
def test_property_no_order_of_events_passes_a_cap_or_loses_a_cost(
    script: list[tuple[str, int, str | int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(script, Path(folder) / "limner.db"))
