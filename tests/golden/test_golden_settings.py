"""The settings: keys, types, defaults and variables."""

from __future__ import annotations

from tests.golden.record import difference


def test_keys_types_defaults_and_variables_are_as_recorded() -> None:
    assert difference("settings") == ""
