"""Text -> standard error, where everything goes that is not a result, harmless to a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys

CLEAR_LINE = "\r\x1b[2K"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def say(text: str) -> None:
    """Tell the person something that is not the result."""
    write(f"{harmless(text)}\n")


def harmless(text: str) -> str:
    """Text for a terminal: what a server or a file name holds must not move the cursor."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write(text: str) -> None:
    """Put text on standard error; nobody reading it is no reason to fail."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def is_live() -> bool:
    """Whether standard error is a terminal that can redraw a line and knows our characters."""
    has_cursor = sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
    return has_cursor and (sys.stderr.encoding or "").lower().startswith("utf")


def size() -> os.terminal_size:
    """Columns and lines of the terminal at standard error; some do not tell theirs."""
    columns, lines = 0, 0
    with contextlib.suppress(OSError):
        columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))
