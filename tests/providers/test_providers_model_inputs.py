"""The nearest shape a service draws, as near whichever way a picture is turned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.providers.model_inputs import COMMON_RATIOS, aspect_of, nearest_aspect_ratio

BOTH_WAYS = (*COMMON_RATIOS, "9:21")
edges = st.integers(1, 16_384)


@pytest.mark.parametrize(
    ("width", "height", "ratio"),
    [
        (1024, 1024, "1:1"),
        (1792, 1024, "16:9"),
        (1024, 1792, "9:16"),
        (1920, 1080, "16:9"),
        (1500, 1000, "3:2"),
        (3000, 1000, "21:9"),
        (1000, 16_000, "9:16"),
    ],
)
def test_sizes_people_ask_for_get_the_shape_they_mean(width: int, height: int, ratio: str) -> None:
    assert nearest_aspect_ratio(width, height, COMMON_RATIOS) == ratio


@given(width=edges, height=edges)
def test_property_turning_a_picture_turns_its_shape(width: int, height: int) -> None:
    upright = aspect_of(nearest_aspect_ratio(width, height, BOTH_WAYS))
    turned = aspect_of(nearest_aspect_ratio(height, width, BOTH_WAYS))
    wanted = width / height

    def distance(aspect: float, of: float) -> float:
        return max(aspect / of, of / aspect)

    assert distance(upright, wanted) == pytest.approx(distance(turned, 1 / wanted))
