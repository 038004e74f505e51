"""A tool call and its answer -> the few lines of a terminal that a person reads first.

Widths are terminal cells: a Chinese character or an emoji takes two, a combining accent none.
"""

from __future__ import annotations

import wcwidth

from limner.display_text import clean_text

QUESTION_PREVIEW_WIDTH = 100
OUTPUT_COLLAPSED_LINES = 4
OUTPUT_EXPANDED_LINES = 16
OUTPUT_LINE_WIDTH = 120
_ELLIPSIS = "…"
_TAB_CELLS = 4


def question_preview(question: str) -> str:
    """A question on one line."""
    return clipped(" ".join(question.split()), QUESTION_PREVIEW_WIDTH)


def output_view(text: str, *, footer: str, expanded: bool) -> list[str]:
    """The first lines of an answer, the number of further lines, and the footer."""
    lines = text.splitlines()
    shown = OUTPUT_EXPANDED_LINES if expanded else OUTPUT_COLLAPSED_LINES
    view = [clipped(line, OUTPUT_LINE_WIDTH) for line in lines[:shown]]
    if len(lines) > shown:
        more = len(lines) - shown
        how = "pipe it, or use --json" if expanded else "--expanded shows more"
        view.append(f"{_ELLIPSIS} {more} more {'line' if more == 1 else 'lines'} ({how})")
    return [*view, footer]


def clipped(line: str, cells: int) -> str:
    """A line of at most ``cells`` cells, with an ellipsis if it was cut."""
    clean = clean_text(line.replace("\t", " " * _TAB_CELLS)).replace("\n", "\\n")
    if wcwidth.width(clean) <= cells:
        return clean
    # A spacing mark at the end of the cut text may join the ellipsis and widen it by a cell.
    cuts = (wcwidth.clip(clean, 0, end).rstrip() + _ELLIPSIS for end in range(cells - 1, 0, -1))
    return next((cut for cut in cuts if wcwidth.width(cut) <= cells), _ELLIPSIS)
