"""The settings: keys, types, defaults and variables."""

from __future__ import annotations

from tests.golden.record import check


def test_keys_types_defaults_and_variables_are_as_recorded() -> None:
    check("settings")
