"""Dollars become nano-dollars exactly or not at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.dollars import usd_to_nano
from limner.errors import InputInvalid


@pytest.mark.parametrize(
    ("usd", "nano"),
    [
        (0, 0),
        (0.0, 0),
        (1, 1_000_000_000),
        (0.1, 100_000_000),
        (0.07, 70_000_000),
        (0.29, 290_000_000),
        (1.1, 1_100_000_000),
        ("0.04", 40_000_000),
        ("1e-9", 1),
        ("0.0400000000000", 40_000_000),
        (Decimal("0.003"), 3_000_000),
        (1_000_000, 10**15),
        (1e6, 10**15),
    ],
)
def test_an_amount_is_exact_to_the_nano_dollar(usd: Decimal | str | float, nano: int) -> None:
    assert usd_to_nano(usd) == nano


@pytest.mark.parametrize(
    "usd",
    [
        "",
        "free",
        "$1",
        "NaN",
        "sNaN",
        "inf",
        "-inf",
        "-0.01",
        "1000000.01",
        "1e999999",
        "1e-10",
        "1e-999999999",
        "1.0000000000000000000000000000000000000000000001",
        -1,
        float("nan"),
        float("inf"),
        -0.5,
        1e300,
        10**40,
        True,
        False,
        None,
        [1],
        (0, (1,), "F"),
        b"1",
    ],
)
def test_what_is_no_sane_amount_is_refused_naming_the_field(usd: Any) -> None:
    with pytest.raises(InputInvalid) as caught:
        usd_to_nano(usd, field="budget.day_usd")
    assert caught.value.field == "budget.day_usd"
    assert len(caught.value.message) < 100


@given(st.integers(0, 10**15))
def test_property_every_nano_amount_survives_a_decimal(nano: int) -> None:
    assert usd_to_nano(Decimal(nano).scaleb(-9)) == nano


@given(st.integers(0, 10**8))
def test_property_an_amount_in_cents_survives_a_float(cents: int) -> None:
    assert usd_to_nano(cents / 100) == cents * 10_000_000


@given(st.text(max_size=20) | st.floats() | st.decimals() | st.integers())
def test_property_hostile_amounts_are_whole_nano_dollars_in_range_or_an_error(usd: Any) -> None:
    try:
        nano = usd_to_nano(usd)
    except InputInvalid:
        return
    assert type(nano) is int
    assert 0 <= nano <= 10**15
