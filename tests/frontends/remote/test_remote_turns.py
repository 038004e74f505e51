"""Notifications of any shape -> events; a turn keeps a bounded number of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limner
from limner.agent.events import ItemAdded, TextDelta
from limner.agent.turn_reader import TurnReader
from limner.frontends.remote.events import RawNotification, RemoteEvent, TurnResult, read_event
from limner.frontends.remote.turns import MAX_EVENTS, RemoteTurn, finished_items
from limner.testing import FakeServices

METHODS = (
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "thread/tokenUsage/updated",
    "error",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["turn", "item", "id", "delta", "itemId", "tokenUsage", "status", "items"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PARAMS = st.dictionaries(
    st.sampled_from(["turn", "item", "itemId", "delta", "turnId", "tokenUsage"]), JSON, max_size=4
)


async def drained(turn: RemoteTurn) -> list[RemoteEvent]:
    return [event async for event in turn.events()]


def delta(text: str, *, item_id: str = "m1") -> TextDelta:
    return TextDelta(item_id=item_id, text=text, raw={})


@given(st.sampled_from(METHODS), PARAMS)
async def test_no_notification_of_any_shape_breaks_a_turn(
    method: str, params: dict[str, Any]
) -> None:
    turn = RemoteTurn(reader=TurnReader())
    event = read_event(method, params, is_own_tool=lambda _: False)
    assert getattr(event, "raw", None) is params
    turn.is_about(params)
    turn.add(event)
    turn.catch_up(finished_items(params))
    turn.complete(params)
    *_, last = await drained(turn)
    assert isinstance(last, TurnResult)
    assert last.status in {"completed", "interrupted", "failed"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=3)), max_size=30))
async def test_unfetched_pieces_of_a_message_are_joined(
    pieces: list[tuple[str, str]],
) -> None:
    turn = RemoteTurn(reader=TurnReader())
    for item_id, text in pieces:
        turn.add(delta(text, item_id=item_id))
    turn.end("completed", error=None)
    told = [event for event in await drained(turn) if isinstance(event, TextDelta)]
    for name in "ab":
        whole = "".join(text for item_id, text in pieces if item_id == name)
        assert "".join(one.text for one in told if one.item_id == name) == whole
    assert all(one.item_id != other.item_id for one, other in pairwise(told))


async def test_unfetched_events_are_bounded_and_the_turn_still_ends() -> None:
    turn = RemoteTurn(reader=TurnReader())
    for number in range(MAX_EVENTS + 50):
        turn.add(RawNotification(method="flood", raw={"number": number}))
    item = {"type": "agentMessage", "id": "m", "text": "Done.", "phase": None}
    turn.add(ItemAdded(item=item, raw={}))
    turn.end("completed", error=None)
    told = await drained(turn)
    assert len(told) == MAX_EVENTS + 1
    assert isinstance(told[-1], TurnResult)
    assert told[-1].items == (item,)


async def test_a_turn_adds_no_event_after_its_end() -> None:
    turn = RemoteTurn(reader=TurnReader())
    turn.end("interrupted", error=None)
    turn.end("completed", error=None)
    turn.add(delta("late"))
    (only,) = await drained(turn)
    assert isinstance(only, TurnResult)
    assert only.status == "interrupted"


def test_the_finished_items_of_a_running_turn_are_known() -> None:
    said = {"type": "agentMessage", "id": "1"}
    done = {"type": "dynamicToolCall", "id": "2", "status": "completed"}
    running = {"type": "dynamicToolCall", "id": "3", "status": "inProgress"}
    failed = {"type": "dynamicToolCall", "id": "4", "status": "failed"}
    saying = {"type": "agentMessage", "id": "5"}
    turn = {"items": [said, done, running, failed, saying]}
    assert finished_items(turn) == [said, done, failed]


async def test_the_cost_that_the_server_reports_is_in_the_end_of_the_turn() -> None:
    turn = RemoteTurn(reader=TurnReader(), spent_nano=5)
    turn.receive("thread/spend/updated", {"turnCostUsd": -1})
    turn.receive("thread/spend/updated", {"turnCostUsd": 0.002, "threadCostUsd": 0.01})
    turn.complete({"turn": {"id": "turn1", "status": "completed"}})
    (ended,) = await drained(turn)
    assert isinstance(ended, TurnResult)
    assert (ended.cost_nano, ended.spent_nano) == (2_000_000, 10_000_005)


@pytest.mark.slow
async def test_a_turn_at_limners_own_server_costs_what_the_service_charges(
    limner_fake: FakeServices,
) -> None:
    limner_fake.responses.reply("Hello.")
    async with limner.connect() as client:
        thread = await client.thread(model="openai/gpt-5.4")
        first = await thread.run("Hello?")
        second = await thread.run("Hello?")
    charged_nano = [charge.cost_nano for charge in limner_fake.bill().charges]
    assert [first.cost_nano, second.cost_nano] == charged_nano
    assert second.spent_nano == sum(charged_nano)
