"""Amounts in nano-dollars -> dollars for the reader; each one from its own field."""

from __future__ import annotations

from limner.money.records import LedgerRow, Spend, SpendLine, SpendSums

ROW = LedgerRow(
    id=7,
    created_ms=1,
    session_id="s",
    tool="t",
    provider="p",
    model="m",
    state="unknown",
    quoted_nano=2_500_000_000,
    cost_nano=1_250_000_000,
    cost_source="unknown",
    error_code=None,
    picture=None,
    path=None,
)
LINE = SpendLine(name="p/m", nano=3_500_000_000, calls=2)
SPEND = Spend(
    settled_nano=1_500_000_000,
    unknown_nano=250_000_000,
    in_flight_nano=4_125_000_000,
    by_day=(LINE,),
    by_model=(),
    by_session=(),
    recent=(ROW,),
    next_session=9,
    own=SpendSums(settled_nano=500_000_000, unknown_nano=125_000_000, in_flight_nano=2_250_000_000),
)


def test_a_row_and_a_line_are_in_dollars() -> None:
    assert (ROW.cost_usd, LINE.cost_usd) == (1.25, 3.5)
    assert LINE.as_json() == {"name": "p/m", "cost_usd": 3.5, "calls": 2}
    row = ROW.as_json()
    assert (row["quoted_usd"], row["cost_usd"]) == (2.5, 1.25)


def test_the_sums_are_in_dollars() -> None:
    assert (SPEND.total_usd, SPEND.unknown_usd, SPEND.in_flight_usd) == (1.75, 0.25, 4.125)
    own = SPEND.own_usd, SPEND.own_unknown_usd, SPEND.own_in_flight_usd
    assert own == (0.625, 0.125, 2.25)
    assert SPEND.as_json() == {
        "total_usd": 1.75,
        "settled_usd": 1.5,
        "unknown_usd": 0.25,
        "in_flight_usd": 4.125,
        "by_day": [LINE.as_json()],
        "by_model": [],
        "by_session": [],
        "next": 9,
        "recent": [ROW.as_json()],
    }
