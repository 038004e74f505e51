"""A text -> lines for the terminal: clipped, wrapped, or only the first ones.

Widths are terminal cells: a Chinese character or an emoji takes two, a combining accent none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import wcwidth

from limner.display_text import clean_text

QUESTION_PREVIEW_WIDTH = 100
OUTPUT_COLLAPSED_LINES = 4
OUTPUT_EXPANDED_LINES = 16
OUTPUT_LINE_WIDTH = 120
_ELLIPSIS = "…"
_TAB_CELLS = 4
# A word is rarely longer, so one that begins before these cells fits.
_LAST_CELLS = 24


def output_view(text: str, *, footer: str, expanded: bool) -> list[str]:
    """The first lines of an answer, the number of further lines, and the footer."""
    lines = text.splitlines()
    shown = OUTPUT_EXPANDED_LINES if expanded else OUTPUT_COLLAPSED_LINES
    view = [clipped(line, OUTPUT_LINE_WIDTH) for line in lines[:shown]]
    if len(lines) > shown:
        more = len(lines) - shown
        view.append(f"{_ELLIPSIS} {more} more {'line' if more == 1 else 'lines'}")
    return [*view, footer] if footer else view


class WordWrap:
    """Breaks a text between words as it comes, at the width of the terminal.

    Words that are longer than a line, and the blanks between words, stay as they are.
    """

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self._used = 0
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece of the text; a word that may not fit is held until its end is known."""
        pieces = re.findall(r"\n|[^\S\n]+|\S+", self._held + text)
        self._held = ""
        if pieces and not pieces[-1].isspace():
            cells = self._used + wcwidth.width(pieces[-1])
            if self._columns() - _LAST_CELLS <= cells < 2 * self._columns():
                self._held = pieces.pop()
        return "".join(map(self._place, pieces))

    def end(self) -> str:
        """The word that was held; the next text begins a line."""
        held, self._held = self._place(self._held), ""
        self._used = 0
        return held

    def _place(self, piece: str) -> str:
        if piece == "\n":
            self._used = 0
            return piece
        cells = wcwidth.width(piece)
        if self._used and self._used + cells >= self._columns():
            self._used = 0 if piece.isspace() else cells
            return "\n" if piece.isspace() else f"\n{piece}"
        self._used += cells
        return piece


def clipped(line: str, cells: int) -> str:
    """A line of at most ``cells`` cells, with an ellipsis if it was cut."""
    clean = clean_text(line.replace("\t", " " * _TAB_CELLS)).replace("\n", "\\n")
    if wcwidth.width(clean) <= cells:
        return clean
    # A spacing mark at the end of the cut text may join the ellipsis and widen it by a cell.
    cuts = (wcwidth.clip(clean, 0, end).rstrip() + _ELLIPSIS for end in range(cells - 1, 0, -1))
    return next((cut for cut in cuts if wcwidth.width(cut) <= cells), _ELLIPSIS)
