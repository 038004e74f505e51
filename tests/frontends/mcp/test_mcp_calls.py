"""The record of calls: what a repetition shares with its first, and what outlives a process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.frontends.mcp.calls import SAME_CALL_S, CallStore, digest_of
from limner.money.ledger import OWNER_DIED, Caps, Money, Reservation
from limner.storage.store import Store

HERE = Path("/somewhere")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def calls(store: Store, clock: Clock) -> CallStore:
    return CallStore(store=store, clock=clock)


@pytest.fixture
def money(store: Store, clock: Clock) -> Money:
    return Money(store, caps=Caps(), clock=clock)


async def reserved(money: Money) -> Reservation:
    return await money.reserve(
        40_000_000, session_id="s", tool="image_generate", provider="openai-image", model="m"
    )


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(st.dictionaries(st.text(), JSON), st.randoms())
def test_the_order_of_arguments_makes_no_other_call(arguments: dict[str, Any], chance: Any) -> None:
    shuffled = [*arguments.items()]
    chance.shuffle(shuffled)
    assert digest_of("image_edit", dict(shuffled), cwd=HERE) == digest_of(
        "image_edit", arguments, cwd=HERE
    )


@settings(max_examples=examples(25))
@given(st.dictionaries(st.text(), JSON))
def test_another_tool_makes_another_call(arguments: dict[str, Any]) -> None:
    other = digest_of("image_edit", arguments, cwd=HERE)
    assert digest_of("image_generate", arguments, cwd=HERE) != other


@settings(max_examples=examples(25))
@given(st.dictionaries(st.text(), JSON))
def test_another_folder_makes_another_call(arguments: dict[str, Any]) -> None:
    other = digest_of("image_edit", arguments, cwd=HERE / "below")
    assert digest_of("image_edit", arguments, cwd=HERE) != other


@settings(max_examples=examples(25))
@given(st.dictionaries(st.text(), JSON), st.text())
def test_one_more_argument_makes_another_call(arguments: dict[str, Any], name: str) -> None:
    more = {**arguments, f"{name}+": len(arguments)}
    first = digest_of("image_edit", arguments, cwd=HERE)
    assert digest_of("image_edit", more, cwd=HERE) != first or more == arguments


async def test_a_call_is_found_with_what_it_paid_for(calls: CallStore, money: Money) -> None:
    reservation = await reserved(money)
    await calls.note("call_1", tool="image_generate", digest="d", ledger_id=reservation.ledger_id)
    job_id = await money.mark_sent(reservation, request_json="{}")
    (row,) = await calls.rows("call_1")
    assert (row.tool, row.state, row.provider, row.quoted_nano, row.job_id) == (
        "image_generate",
        "sent",
        "openai-image",
        40_000_000,
        job_id,
    )
    assert await calls.rows("call_2") == []


async def test_a_call_that_was_promised_before_it_paid_is_found_too(calls: CallStore) -> None:
    await calls.note("call_1", tool="image_generate", digest="d", ledger_id=None)
    (row,) = await calls.rows("call_1")
    assert (row.ledger_id, row.state, row.job_id) == (None, None, None)


async def died(money: Money, calls: CallStore) -> None:
    """A call whose process died after it had sent its request."""
    reservation = await reserved(money)
    await calls.note("call_1", tool="image_generate", digest="d", ledger_id=reservation.ledger_id)
    await money.mark_sent(reservation, request_json="{}")
    await money.mark_unknown(reservation, error_code=OWNER_DIED)


async def test_a_repetition_finds_the_call_whose_answer_nobody_got(
    calls: CallStore, money: Money
) -> None:
    await died(money, calls)
    assert await calls.undelivered("d", but="call_9") == "call_1"
    assert await calls.undelivered("d", but="call_1") is None
    assert await calls.undelivered("other", but="call_9") is None


async def test_an_answer_is_delivered_once(calls: CallStore, money: Money) -> None:
    await died(money, calls)
    await calls.delivered("call_1")
    assert await calls.undelivered("d", but="call_9") is None


async def test_an_error_is_no_answer_while_the_service_can_be_asked_for_the_picture(
    calls: CallStore, money: Money
) -> None:
    reservation = await reserved(money)
    await calls.note("call_1", tool="image_generate", digest="d", ledger_id=reservation.ledger_id)
    job_id = await money.mark_sent(reservation, request_json="{}")
    assert job_id is not None
    await money.note_job(job_id, remote_id="p1", remote_url="https://example.com/p1")
    await money.mark_unknown(reservation, error_code="IMAGE_GEN_PROVIDER_UNAVAILABLE")
    await calls.delivered("call_1")
    assert await calls.undelivered("d", but="call_9") == "call_1"
    await money.settle(reservation, cost_nano=1, cost_source="table", picture="f" * 64)
    await calls.delivered("call_1")
    assert await calls.undelivered("d", but="call_9") is None


async def test_after_a_while_the_same_words_are_a_new_wish(
    calls: CallStore, money: Money, clock: Clock
) -> None:
    await died(money, calls)
    clock.now += timedelta(seconds=SAME_CALL_S + 1)
    assert await calls.undelivered("d", but="call_9") is None


async def test_a_call_that_cost_nothing_is_no_reason_to_wait(
    calls: CallStore, money: Money
) -> None:
    reservation = await reserved(money)
    await calls.note("call_1", tool="image_generate", digest="d", ledger_id=reservation.ledger_id)
    await money.release(reservation)
    assert await calls.undelivered("d", but="call_9") is None
