"""Amounts for a reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.dollars import format_usd, usd_to_nano


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "$0.00"),
        (1, "$0.000000001"),
        (3_000_000, "$0.003"),
        (13_170_000, "$0.01317"),
        (13_200_000, "$0.0132"),
        (40_000_000, "$0.04"),
        (100_000_000, "$0.10"),
        (1_000_000_000, "$1.00"),
        (12_345_600_000_000, "$12345.60"),
    ],
)
def test_an_amount_has_cents_and_only_the_finer_digits_it_needs(nano: int, text: str) -> None:
    assert format_usd(nano) == text


@given(st.integers(0, 10**15))
def test_property_a_formatted_amount_reads_back_exactly(nano: int) -> None:
    assert usd_to_nano(format_usd(nano).removeprefix("$")) == nano
