"""The command line: flags, exit statuses, and the JSON that programs read."""

from __future__ import annotations

from tests.golden.record import difference


def test_commands_flags_choices_and_defaults_are_as_recorded() -> None:
    assert difference("cli_flags") == ""


def test_exit_statuses_and_error_codes_are_as_recorded() -> None:
    assert difference("cli_exit_codes") == ""


def test_the_fields_of_json_answers_are_as_recorded() -> None:
    assert difference("cli_json") == ""


def test_the_events_of_a_streamed_turn_are_as_recorded() -> None:
    assert difference("chat_stream") == ""
