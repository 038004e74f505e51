"""Which pictures leave a request, and that they leave rarely."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from limner.agent.prompt_builder import (
    MAX_BYTES,
    MAX_PICTURES,
    Load,
    PictureBudget,
    budget_for,
    count_leaving,
)
from limner.catalogue.vision import Limits, vision_model, vision_models

loads = st.builds(Load, st.just(1), st.integers(0, 40), st.integers(0, 40))
conversations = st.lists(st.lists(loads, max_size=6), max_size=40)
budgets = st.builds(
    PictureBudget,
    pictures=st.integers(0, 8),
    size_bytes=st.integers(0, 120),
    tokens=st.none() | st.integers(0, 120),
)
ONE = Load(1, 100, 10)


def total(pictures: list[Load]) -> Load:
    return [*accumulate(pictures, Load.__add__, initial=Load())][-1]


def flat(items: list[list[Load]]) -> list[Load]:
    return [picture for item in items for picture in item]


def test_twenty_pictures_stay_and_the_next_one_sends_half_of_them_away() -> None:
    budget = PictureBudget()
    gone = [count_leaving([[ONE]] * count, budget) for count in range(42)]
    assert gone == [0] * 21 + [11] * 11 + [22] * 10


def test_of_the_pictures_that_arrive_together_only_those_leave_that_have_to() -> None:
    assert count_leaving([[ONE] * 3, [ONE] * 25], PictureBudget()) == 3 + 5


def test_a_picture_that_is_too_heavy_by_itself_leaves_and_takes_the_older_ones_along() -> None:
    heavy = Load(1, MAX_BYTES + 1)
    assert count_leaving([[ONE], [heavy]], PictureBudget()) == 2
    assert count_leaving([[ONE], [heavy], [ONE]], PictureBudget()) == 2


@given(conversations, budgets)
def test_what_stays_is_within_every_limit(items: list[list[Load]], budget: PictureBudget) -> None:
    assert budget.holds(total(flat(items)[count_leaving(items, budget) :]))


@given(conversations, budgets)
def test_nothing_leaves_while_there_is_room(items: list[list[Load]], budget: PictureBudget) -> None:
    if budget.holds(total(flat(items))):
        assert count_leaving(items, budget) == 0


@given(conversations, budgets)
def test_a_picture_that_left_never_comes_back_as_the_conversation_goes_on(
    items: list[list[Load]], budget: PictureBudget
) -> None:
    gone = [count_leaving(items[:count], budget) for count in range(len(items) + 1)]
    assert gone == sorted(gone)


@given(conversations, budgets)
def test_when_pictures_leave_half_of_the_room_is_free_or_only_the_newest_item_is_left(
    items: list[list[Load]], budget: PictureBudget
) -> None:
    for count in range(1, len(items) + 1):
        before, now = (count_leaving(items[:shorter], budget) for shorter in (count - 1, count))
        if now > before:
            stays = flat(items[:count])[now:]
            assert budget.half.holds(total(stays)) or len(stays) <= len(items[count - 1])


@given(st.integers(1, 20), st.integers(1, 60))
def test_pictures_of_one_weight_leave_at_most_once_in_half_a_budget(cap: int, count: int) -> None:
    budget = PictureBudget(pictures=cap)
    gone = [count_leaving([[ONE]] * n, budget) for n in range(count)]
    assert len(set(gone)) - 1 <= 2 * count / (cap + 1)


def test_no_model_is_sent_more_than_the_defaults_or_than_it_takes() -> None:
    for model in vision_models():
        budget = budget_for(model)
        assert budget.pictures <= min(MAX_PICTURES, model.limits.max_images or MAX_PICTURES)
        assert budget.size_bytes <= MAX_BYTES
        if model.limits.max_request_bytes is not None:
            # As base64, with room for words.
            assert budget.size_bytes * 4 / 3 < model.limits.max_request_bytes


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        (Limits(), PictureBudget(pictures=20, size_bytes=16_000_000)),
        (Limits(max_images=5), PictureBudget(pictures=5, size_bytes=16_000_000)),
        (Limits(max_images=600), PictureBudget(pictures=20, size_bytes=16_000_000)),
        (Limits(max_request_bytes=8_000_000), PictureBudget(pictures=20, size_bytes=4_000_000)),
    ],
)
def test_the_limits_of_a_model_lower_the_budget(limits: Limits, budget: PictureBudget) -> None:
    model = replace(vision_model("openai/gpt-5.5"), limits=limits, context_tokens=None)
    assert budget_for(model) == budget
    assert budget_for(replace(model, context_tokens=1000)) == replace(budget, tokens=500)
