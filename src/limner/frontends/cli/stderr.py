"""Text -> standard error, for everything that is not a result, with control characters escaped."""

from __future__ import annotations

import contextlib
import os
import re
import sys

from limner.display_text import clean_text

# The columns of a line, if two blanks or more separate them.
_COLUMNS = r"\s*(?:\S+(?: \S+)*\s{2,})*"
CLEAR_LINE = "\r\x1b[2K"


def say(text: str) -> None:
    """Print a line that is not the result, wrapped at the width of the terminal."""
    write(f"{wrapped(clean_text(text), size().columns) if is_live() else clean_text(text)}\n")


def wrapped(text: str, columns: int) -> str:
    """A text whose lines fit the terminal: broken between words, indented as they begin.

    The rest of a line of a table stays below its last column.
    """
    if all(len(line) < columns // 2 for line in text.splitlines()):
        return text  # even if each character takes two cells
    import wcwidth  # noqa: PLC0415 - most lines are short, and loading it takes a while

    lines: list[str] = []
    for line in text.split("\n"):
        if wcwidth.width(line) < columns:
            lines.append(line)
            continue
        columns_before = re.match(_COLUMNS, line)
        indent = wcwidth.width(columns_before[0]) if columns_before else 0
        lines += wcwidth.wrap(
            line,
            max(columns - 1, 1),
            subsequent_indent=" " * indent if indent < columns // 2 else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def write(text: str) -> None:
    """Write to standard error; if that fails, nothing happens."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def is_live() -> bool:
    """Whether standard error is a terminal that can redraw a line and knows our characters."""
    has_cursor = sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
    return has_cursor and (sys.stderr.encoding or "").lower().startswith("utf")


def size() -> os.terminal_size:
    """Columns and lines of the terminal at standard error, or a usual size if it reports none."""
    columns, lines = 0, 0
    with contextlib.suppress(OSError):
        columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))
