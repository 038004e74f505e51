"""A path as people, shells and screenshots write it -> the file that is meant, within reach.

macOS names its screenshots with a narrow space before AM and PM, stores accents apart from their
letters, and likes curly quotes; a terminal puts backslashes before spaces. None of these survive
being copied by a model.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from limner.errors import ReachDenied
from limner.tools.base import ToolContext

NARROW_SPACE = "\u202f"
CURLY_QUOTE = "\u2019"
_ESCAPED = r"\\([ \t'\"()\[\]{}&;$!*?<>|`#~\\])"
_BEFORE_AM_PM = r"(?i) (?=(?:AM|PM)\.)"


def find_file(text: str, context: ToolContext) -> Path:
    """The file that a path names, as it is written or nearly so.

    Where no variant of it is there, the path as it is written is the answer.

    Raises:
        ReachDenied: the path as it is written is out of reach.
    """
    literal = context.reach.resolve_read(text, cwd=context.cwd)
    if os.path.lexists(literal):
        return literal
    for variant in variants(text):
        with suppress(ReachDenied):
            path = context.reach.resolve_read(variant, cwd=context.cwd)
            if os.path.lexists(path):
                return path
    return literal


def variants(text: str) -> Iterator[str]:
    """The other ways to write a path, most likely first, each once."""
    seen = {text}
    unescaped = re.sub(_ESCAPED, r"\1", text)
    for base in (text, unescaped):
        decomposed = unicodedata.normalize("NFD", base)
        for variant in (
            base,
            re.sub(_BEFORE_AM_PM, NARROW_SPACE, base),
            decomposed,
            base.replace("'", CURLY_QUOTE),
            decomposed.replace("'", CURLY_QUOTE),
        ):
            if variant not in seen:
                seen.add(variant)
                yield variant
