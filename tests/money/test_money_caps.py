"""Every cap: what it refuses, what it lets pass, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from money_clock import Clock

from limner.errors import BudgetExceeded
from limner.money.ledger import Caps, Money
from limner.money.records import SpendSums
from limner.storage.store import Store

CENT = 10_000_000
CALL: dict[str, Any] = {"session_id": "s", "tool": "image_generate", "provider": "p", "model": "m"}


async def refusal(money: Money, nano: int, **more: Any) -> dict[str, Any]:
    with pytest.raises(BudgetExceeded) as caught:
        await money.reserve(nano, **(CALL | more))
    return caught.value.as_json()


async def spend(money: Money, nano: int, **more: Any) -> None:
    reservation = await money.reserve(nano, **(CALL | more))
    await money.mark_sent(reservation, request_json=None)
    await money.settle(reservation, cost_nano=nano, cost_source="table", picture=None)


async def test_a_refusal_names_the_amount_the_cap_what_is_left_and_the_setting(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    await spend(money, 8 * CENT)
    assert await refusal(money, 4 * CENT) == {
        "code": "BUDGET_EXCEEDED",
        "message": (
            "This call may cost $0.04, but only $0.02 of the session budget of $0.10 is left"
        ),
        "retryable": False,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "Ask for something cheaper, or raise budget.session_usd "
        "(on the command line: --budget).",
        "cap": "session",
        "cap_usd": 0.1,
        "left_usd": 0.02,
        "held_usd": 0.0,
        "quoted_usd": 0.04,
    }


async def test_a_refusal_says_how_much_calls_in_flight_hold(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    await money.reserve(8 * CENT, **CALL)
    assert await refusal(money, 4 * CENT) == {
        "code": "BUDGET_EXCEEDED",
        "message": (
            "This call may cost $0.04, but only $0.02 of the session budget of $0.10 is left; "
            "calls in flight hold $0.08 of it"
        ),
        "retryable": True,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "Wait for the calls in flight, or raise budget.session_usd "
        "(on the command line: --budget).",
        "cap": "session",
        "cap_usd": 0.1,
        "left_usd": 0.02,
        "held_usd": 0.08,
        "quoted_usd": 0.04,
    }


async def test_a_cap_that_refuses_for_good_is_named_before_one_that_refuses_for_now(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT, day_nano=9 * CENT), clock=clock)
    await money.reserve(8 * CENT, **CALL)
    refused = await refusal(money, 10 * CENT)
    assert (refused["cap"], refused["retryable"]) == ("day", False)


@pytest.mark.parametrize(
    ("caps", "cap", "remedy"),
    [
        (Caps(call_nano=3 * CENT), "call", "raise budget.call_usd"),
        (
            Caps(session_nano=3 * CENT),
            "session",
            "raise budget.session_usd (on the command line: --budget)",
        ),
        (
            Caps(program_nano=3 * CENT),
            "program",
            "raise budget_usd (on the command line: --budget)",
        ),
        (Caps(scope_nano=3 * CENT), "scope", "raise the budget_usd of the scope"),
        (
            Caps(day_nano=3 * CENT),
            "day",
            "raise budget.day_usd, or wait for midnight UTC",
        ),
    ],
)
async def test_each_cap_refuses_on_its_own(
    store: Store, clock: Clock, caps: Caps, cap: str, remedy: str
) -> None:
    money = Money(store, caps=caps, clock=clock, program="p", scope="alice")
    said = await refusal(money, 4 * CENT)
    assert (said["cap"], said["left_usd"], said["hint"]) == (
        cap,
        0.03,
        f"Ask for something cheaper, or {remedy}.",
    )


async def test_a_refusal_writes_nothing(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(call_nano=CENT), clock=clock)
    await refusal(money, 2 * CENT)
    assert (await money.spend()).recent == ()


async def test_a_call_may_use_a_cap_to_the_last_nano_dollar(store: Store, clock: Clock) -> None:
    caps = Caps(call_nano=CENT, session_nano=CENT, day_nano=CENT)
    money = Money(store, caps=caps, clock=clock)
    await money.reserve(CENT, **CALL)
    assert (await refusal(money, 1))["left_usd"] == 0.0


async def test_a_cap_of_zero_allows_free_calls(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(call_nano=0, session_nano=0, day_nano=0), clock=clock)
    await money.reserve(0, **CALL)
    await refusal(money, 1)


async def test_without_caps_every_amount_is_allowed(money: Money) -> None:
    reservation = await money.reserve(10**15, **CALL)
    assert reservation.quote_nano == 10**15


async def test_a_price_above_its_quote_is_recorded_and_never_leaves_less_than_zero(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    reservation = await money.reserve(9 * CENT, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    await money.settle(reservation, cost_nano=12 * CENT, cost_source="provider", picture="h")
    assert (await refusal(money, CENT))["left_usd"] == 0.0
    assert await money.spent() == 12 * CENT
    await money.reserve(0, **CALL)


async def test_sessions_have_their_own_cap_and_share_the_cap_of_the_day(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(session_nano=5 * CENT, day_nano=8 * CENT), clock=clock)
    await money.reserve(5 * CENT, **CALL)
    await money.reserve(3 * CENT, **dict(CALL, session_id="t"))
    assert (await refusal(money, CENT))["cap"] == "session"
    assert (await refusal(money, CENT, session_id="t"))["cap"] == "day"


async def test_the_day_turns_at_midnight_utc_wherever_the_clock_is(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(day_nano=4 * CENT), clock=clock)
    clock.now = datetime(2026, 11, 15, 23, 59, 59, 999_999, tzinfo=UTC)
    await money.reserve(4 * CENT, **CALL)
    tokyo = timezone(timedelta(hours=9))
    clock.now = clock.now.astimezone(tokyo)  # the sixteenth there
    await refusal(money, 4 * CENT)
    clock.now += timedelta(microseconds=1)
    await money.reserve(4 * CENT, **CALL)


async def test_settling_below_the_quote_and_releasing_free_the_difference(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    cheap, free = [await money.reserve(5 * CENT, **CALL) for _ in range(2)]
    await refusal(money, CENT)
    await money.mark_sent(cheap, request_json="{}")
    await money.settle(cheap, cost_nano=CENT, cost_source="computed", picture="h")
    await money.release(free)
    await money.reserve(9 * CENT, **CALL)
    await refusal(money, 1)


async def test_what_may_have_been_charged_stays_counted(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    reservation = await money.reserve(8 * CENT, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    await money.mark_unknown(reservation, error_code="IMAGE_GEN_PROVIDER_UNAVAILABLE")
    assert (await refusal(money, 4 * CENT))["left_usd"] == 0.02
    assert await money.spent() == 8 * CENT


@pytest.mark.parametrize(
    ("caps", "own_cap", "left"),
    [
        (Caps(), None, None),
        (Caps(call_nano=9 * CENT), None, 9 * CENT),
        (Caps(session_nano=9 * CENT), None, 5 * CENT),
        (Caps(program_nano=9 * CENT), None, 2 * CENT),
        (Caps(scope_nano=9 * CENT), None, 9 * CENT),
        (Caps(day_nano=9 * CENT), None, 2 * CENT),
        (Caps(), 9 * CENT, 5 * CENT),
        (Caps(session_nano=9 * CENT), 6 * CENT, 2 * CENT),
        (Caps(session_nano=6 * CENT), 9 * CENT, 2 * CENT),
        (Caps(call_nano=CENT, session_nano=9 * CENT, day_nano=9 * CENT), 9 * CENT, CENT),
        (Caps(call_nano=9 * CENT, session_nano=3 * CENT, day_nano=9 * CENT), None, 0),
        (Caps(), 0, 0),
    ],
)
async def test_an_answer_that_can_be_shortened_takes_the_least_that_any_cap_leaves(
    store: Store, clock: Clock, caps: Caps, own_cap: int | None, left: int | None
) -> None:
    before = Money(store, caps=Caps(), clock=clock, program="p")
    await spend(before, 4 * CENT)
    await spend(before, 3 * CENT, session_id="t")
    capped = Money(store, caps=caps, clock=clock, program="p", scope="alice")
    more: dict[str, Any] = {"session_cap_nano": own_cap}
    if left is not None:
        assert (await refusal(capped, left + 1, **more))["left_usd"] == left / 1e9
    if left == 0:
        assert (await refusal(capped, 10**12, least_nano=1, enough_nano=10**12, **more))[
            "quoted_usd"
        ] == 1e-9
        return
    reservation = await capped.reserve(10**12, least_nano=1, enough_nano=10**12, **(CALL | more))
    assert reservation.quote_nano == (10**12 if left is None else left)


@pytest.mark.parametrize(
    ("quote", "enough", "reserved"),
    [
        (3, 2, 3),  # it fits
        (30, 2, 5),  # half of what is left
        (30, 8, 8),  # an answer of the usual length
        (30, 20, 10),  # all that is left
    ],
)
async def test_a_long_answer_takes_half_of_what_is_left_or_the_usual_length(
    store: Store, clock: Clock, quote: int, enough: int, reserved: int
) -> None:
    money = Money(store, caps=Caps(session_nano=10 * CENT), clock=clock)
    reservation = await money.reserve(
        quote * CENT, least_nano=CENT, enough_nano=enough * CENT, **CALL
    )
    assert reservation.quote_nano == reserved * CENT


async def test_scopes_have_their_own_caps_and_share_that_of_the_program(
    store: Store, clock: Clock
) -> None:
    program = Money(store, caps=Caps(program_nano=8 * CENT), clock=clock, program="p")
    alice, bob = (program.scoped(name, cap_nano=5 * CENT) for name in ("alice", "bob"))
    await spend(alice, 5 * CENT, session_id="a")
    await spend(bob, 2 * CENT, session_id="b")
    by_scope = await refusal(alice, CENT, session_id="c")
    assert (by_scope["scope"], "of the 'alice' budget" in by_scope["message"]) == ("alice", True)
    refused = [
        by_scope["cap"],
        (await refusal(bob, 2 * CENT, session_id="c"))["cap"],
        (await refusal(program, 2 * CENT))["cap"],
    ]
    assert refused == ["scope", "program", "program"]
    spent = [await ledger.sums_here() for ledger in (alice, bob, program)]
    assert spent == [SpendSums(settled_nano=cents * CENT) for cents in (5, 2, 7)]


async def test_a_scope_goes_on_in_the_next_program(store: Store, clock: Clock) -> None:
    first, second = (Money(store, caps=Caps(), clock=clock, program=name) for name in "pq")
    await spend(first.scoped("alice", cap_nano=5 * CENT), 5 * CENT)
    again = second.scoped("alice", cap_nano=6 * CENT)
    assert (await refusal(again, 2 * CENT))["left_usd"] == 0.01
    assert await second.sums_here() == SpendSums()
    assert await again.sums_here() == SpendSums(settled_nano=5 * CENT)


async def test_a_day_does_not_begin_again_if_the_clock_goes_back(
    store: Store, clock: Clock
) -> None:
    money = Money(store, caps=Caps(day_nano=4 * CENT), clock=clock)
    await spend(money, 4 * CENT)
    clock.now -= timedelta(days=2)
    said = await refusal(money, CENT)
    assert said["hint"] == (
        "Ask for something cheaper, or raise budget.day_usd, or wait for midnight UTC. "
        "The day of the ledger is 2026-11-15: the clock went back."
    )
    clock.now += timedelta(days=3)
    await spend(money, 4 * CENT)
    assert [line.name for line in (await money.spend()).by_day] == ["2026-11-16", "2026-11-15"]


async def test_the_lower_of_two_session_caps_refuses(store: Store, clock: Clock) -> None:
    money = Money(store, caps=Caps(session_nano=5 * CENT), clock=clock)
    tight = await refusal(money, 4 * CENT, session_cap_nano=3 * CENT)
    wide = await refusal(money, 6 * CENT, session_cap_nano=9 * CENT)
    assert [(said["cap"], said["cap_usd"]) for said in (tight, wide)] == [
        ("session", 0.03),
        ("session", 0.05),
    ]


async def test_a_call_over_a_cap_is_counted_like_any_other(store: Store, clock: Clock) -> None:
    caps = Caps(call_nano=CENT, session_nano=CENT, day_nano=CENT)
    money = Money(store, caps=caps, clock=clock)
    await money.reserve(4 * CENT, **CALL, session_cap_nano=CENT, over_caps=True)
    assert (await money.spend()).in_flight_nano == 4 * CENT
    assert (await refusal(money, 1, session_id="t"))["left_usd"] == 0


@pytest.mark.parametrize(
    ("caps", "has_one"),
    [
        (Caps(session_nano=0), True),
        (Caps(program_nano=0), True),
        (Caps(scope_nano=0), True),
        (Caps(call_nano=0, day_nano=0), False),
    ],
)
async def test_the_ledger_says_whether_sessions_have_a_budget(
    store: Store, clock: Clock, caps: Caps, has_one: bool
) -> None:
    assert Money(store, caps=caps, clock=clock).has_session_cap is has_one
