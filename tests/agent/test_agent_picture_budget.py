"""Which pictures leave a request, and that they leave rarely."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from limner.agent.picture_budget import (
    MAX_BYTES,
    MAX_PICTURES,
    Load,
    PictureBudget,
    ServiceLimit,
    budget_for,
    find_leaving,
    limit_for,
)
from limner.catalogue.vision import Limits, vision_model, vision_models

Rounds = list[list[Load]]
loads = st.builds(Load, st.sampled_from("abcdef"), st.integers(0, 40), st.integers(0, 40))
conversations = st.lists(st.lists(loads, max_size=6), max_size=40)
budgets = st.builds(
    PictureBudget,
    pictures=st.integers(0, 8),
    size_bytes=st.integers(0, 120),
    tokens=st.none() | st.integers(0, 120),
)
limits = st.builds(
    ServiceLimit, pictures=st.none() | st.integers(0, 10), size_bytes=st.integers(0, 200)
)
BUDGET, LIMIT = PictureBudget(), ServiceLimit()
numbers = count()


def new(amount: int) -> list[Load]:
    """Pictures that are all different."""
    return [Load(f"picture {next(numbers)}", 100, 10) for _ in range(amount)]


def flat(rounds: Rounds) -> list[Load]:
    return [picture for one in rounds for picture in one]


def is_within(pictures: list[Load], budget: PictureBudget) -> bool:
    return (
        len({one.handle for one in pictures}) <= budget.pictures
        and sum(one.size_bytes for one in pictures) <= budget.size_bytes
        and (budget.tokens is None or sum(one.tokens for one in pictures) <= budget.tokens)
    )


def is_accepted(pictures: list[Load], limit: ServiceLimit) -> bool:
    return sum(one.size_bytes for one in pictures) <= limit.size_bytes and (
        limit.pictures is None or len(pictures) <= limit.pictures
    )


def test_twenty_pictures_stay_and_the_next_one_sends_half_of_them_away() -> None:
    rounds = [new(1) for _ in range(42)]
    gone = [len(find_leaving(rounds[:amount], BUDGET, LIMIT)) for amount in range(42)]
    assert gone == [0] * 21 + [11] * 11 + [22] * 10


def test_pictures_that_the_model_has_not_seen_stay() -> None:
    assert find_leaving([new(3), new(50)], BUDGET, LIMIT) == [True] * 3
    assert find_leaving([new(3), new(50), new(1)], BUDGET, LIMIT) == [True] * 44


def test_copies_of_one_picture_count_as_one() -> None:
    assert find_leaving([new(1) * 50, new(1) * 50], BUDGET, LIMIT) == []


def test_a_service_that_takes_less_gets_less_of_the_new_pictures() -> None:
    limit = ServiceLimit(pictures=2)
    assert find_leaving([new(1), new(3)], BUDGET, limit) == [True, False]
    assert find_leaving([new(1), new(3), new(1)], BUDGET, limit) == [True, False, True]


@given(conversations, budgets, limits)
def test_what_stays_is_new_or_within_the_budget_and_the_service_takes_it(
    rounds: Rounds, budget: PictureBudget, limit: ServiceLimit
) -> None:
    stays = flat(rounds)[len(find_leaving(rounds, budget, limit)) :]
    assert is_accepted(stays, limit)
    assert not rounds or is_within(stays, budget) or len(stays) <= len(rounds[-1])


@given(conversations, budgets, limits)
def test_nothing_leaves_while_there_is_room(
    rounds: Rounds, budget: PictureBudget, limit: ServiceLimit
) -> None:
    everything = flat(rounds)
    if is_within(everything, budget) and is_accepted(everything, limit):
        assert find_leaving(rounds, budget, limit) == []


@given(conversations, budgets, limits)
def test_a_picture_that_left_never_comes_back_and_its_reason_stays(
    rounds: Rounds, budget: PictureBudget, limit: ServiceLimit
) -> None:
    gone = find_leaving(rounds, budget, limit)
    for length in range(len(rounds)):
        shorter = find_leaving(rounds[:length], budget, limit)
        assert gone[: len(shorter)] == shorter


@given(conversations, budgets)
def test_when_pictures_leave_half_of_the_room_is_free_or_only_the_new_ones_are_left(
    rounds: Rounds, budget: PictureBudget
) -> None:
    for length in range(1, len(rounds) + 1):
        before, now = (
            len(find_leaving(rounds[:shorter], budget, LIMIT)) for shorter in (length - 1, length)
        )
        if now > before:
            stays = flat(rounds[:length])[now:]
            assert is_within(stays, budget.half) or len(stays) <= len(rounds[length - 1])


def test_no_model_is_sent_more_than_the_defaults_or_than_it_takes() -> None:
    for model in vision_models():
        budget = budget_for(model)
        assert budget.pictures <= min(MAX_PICTURES, model.limits.max_images or MAX_PICTURES)
        assert budget.size_bytes <= MAX_BYTES
        if model.limits.max_request_bytes is not None:
            # As base64, with room for words.
            assert limit_for(model).size_bytes * 4 / 3 < model.limits.max_request_bytes


@pytest.mark.parametrize(
    ("stated", "budget"),
    [
        (Limits(), PictureBudget(pictures=20, size_bytes=16_000_000)),
        (Limits(max_images=5), PictureBudget(pictures=5, size_bytes=16_000_000)),
        (Limits(max_images=600), PictureBudget(pictures=20, size_bytes=16_000_000)),
        (Limits(max_request_bytes=8_000_000), PictureBudget(pictures=20, size_bytes=4_000_000)),
    ],
)
def test_the_limits_of_a_model_lower_the_budget(stated: Limits, budget: PictureBudget) -> None:
    model = replace(vision_model("openai/gpt-5.5"), limits=stated, context_tokens=None)
    assert budget_for(model) == budget
    assert budget_for(replace(model, context_tokens=1000)) == replace(budget, tokens=500)
