"""The result of a command -> standard output, standard error and an exit status.

Standard output is written here and nowhere else, so that it carries the result and nothing more.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from limner.display_text import clean_text
from limner.dollars import format_usd
from limner.errors import (
    Cancelled,
    LimnerError,
    UnexpectedError,
    cancellation_cost,
    shortage_error,
)
from limner.frontends.cli.stderr import say, size, wrapped
from limner.net.redaction import redact
from limner.shortage import shortage_behind
from limner.storage.home import Home


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command, for a program and for a person.

    ``value`` is the one JSON object of ``--json``. ``text`` says the same to a person on standard
    output. ``notes`` are further lines on standard error.
    """

    value: Mapping[str, Any]
    text: str = ""
    notes: tuple[str, ...] = ()
    status: int = 0


def answer(command: Callable[[], CommandResult], *, as_json: bool) -> int:
    """Run a command, print its result or its error, and return the exit status."""
    try:
        found = command()
    except LimnerError as error:
        if isinstance(error, UnexpectedError) and shortage_behind(error) is None:
            say(redact(traceback.format_exc()).rstrip())
        found = failure(error)
    except KeyboardInterrupt as interrupt:
        found = failure(cancellation_cost(interrupt) or Cancelled("Interrupted."))
    except Exception as bug:
        # The outermost frame: a program that asked for JSON gets JSON here too.
        found = failure(_unexpected(bug))
    return deliver(found, as_json=as_json)


def deliver(found: CommandResult, *, as_json: bool) -> int:
    """Print a result and return the exit status."""
    text = _printable(_as_json(found.value)) if as_json else _readable(found.text)
    try:
        if text:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
    except BrokenPipeError:
        pass  # the reader closed the pipe, as `| head` does: that is not a failure
    except OSError as error:
        say(f"limner: standard output cannot be written: {error.strerror}. The result is:\n{text}")
        return LimnerError.exit_status
    if not as_json:
        for note in found.notes:
            say(note)
    return found.status


def is_note_due(home: Home, today: date) -> bool:
    """Whether the note about keys is to be shown: once a day. Records that it is shown now."""
    day = today.isoformat()
    with suppress(OSError, UnicodeDecodeError):
        if home.note_day.read_text(encoding="utf-8") == day:
            return False
    with suppress(OSError):
        home.note_day.write_text(day, encoding="utf-8")
    return True


def emit(value: Mapping[str, Any]) -> None:
    """Print one line of JSON now, before the result.

    Raises:
        Cancelled: the reader is gone, or it cannot be written.
    """
    speak(f"{_as_json(value)}\n")


def speak(text: str) -> None:
    """Print part of a result now, for a reader that follows it.

    Raises:
        Cancelled: the reader is gone, or it cannot be written.
    """
    try:
        sys.stdout.write(_printable(text))
        sys.stdout.flush()
    except OSError as error:
        raise Cancelled(f"Standard output cannot be written: {error.strerror}.") from error


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 picture, 2,000 pictures."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def minute(moment_ms: int) -> str:
    """A moment in UTC, to the minute."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def failure(error: LimnerError) -> CommandResult:
    """An error as the result of a command."""
    # A line end in the message, as from a file name, cannot begin a line that looks like ours.
    notes = ["limner: " + error.message.replace("\n", "\n  ")]
    if "cause" in error.extras:
        notes.append(f"  {str(error.extras['cause']).rstrip('.')}.")
    if error.billed:
        certainty = "may have cost" if error.cost_source == "unknown" else "cost"
        notes.append(f"  It {certainty} {format_usd(error.cost_nano)}.")
    if "job_id" in error.extras:
        notes.append(f"  Job: {error.extras['job_id']} (limner jobs list)")
    if "kept_at" in error.extras:
        notes.append(f"  The picture is kept at {error.extras['kept_at']}")
    if error.hint is not None:
        notes.append(f"  {error.hint}")
    return CommandResult(
        value={"error": error.as_json()}, notes=tuple(notes), status=error.exit_status
    )


def _readable(text: str) -> str:
    """The text, wrapped at the width of the terminal; a program gets it as it is."""
    return wrapped(clean_text(text), size().columns) if sys.stdout.isatty() else text


def _printable(text: str) -> str:
    """The text, clean for a terminal. A program at the end of a pipe gets it as it is."""
    return clean_text(text) if sys.stdout.isatty() else text


def _unexpected(bug: Exception) -> LimnerError:
    if (shortage := shortage_behind(bug)) is not None:
        return shortage_error(shortage)
    say(redact(traceback.format_exc()).rstrip())
    return LimnerError(
        redact(f"Unexpected {type(bug).__name__}: {bug}"),
        hint="This is a bug: please report it with the traceback above.",
    )


def _as_json(value: Mapping[str, Any]) -> str:
    import json  # noqa: PLC0415 - a server that speaks JSON-RPC does without it

    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate, as in a file name that is not UTF-8, becomes a JSON escape.
    return text.encode("utf-8", "backslashreplace").decode()
