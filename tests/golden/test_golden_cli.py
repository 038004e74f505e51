"""The command line: flags, exit statuses, and the JSON that programs read."""

from __future__ import annotations

import pytest
from tests.golden.record import check


def test_commands_flags_choices_and_defaults_are_as_recorded() -> None:
    check("cli_flags")


@pytest.mark.slow
def test_exit_statuses_and_error_codes_are_as_recorded() -> None:
    check("cli_exit_codes")


@pytest.mark.slow
def test_the_fields_of_json_answers_are_as_recorded() -> None:
    check("cli_json")


@pytest.mark.slow
def test_the_events_of_a_streamed_turn_are_as_recorded() -> None:
    check("chat_stream")
