"""Text from outside -> text that is safe to show: it cannot move a cursor, hide or add a line.

File names, metadata, responses and arguments of a model may contain escape sequences, line ends,
marks that reverse the direction of text, and characters that are invisible. Such a character is
shown as the escape that JSON has for it.
"""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, marks of direction, invisible tags and
# annotations, and halves of surrogate pairs. The joiners of emoji and of Persian stay.
_TAGS = "\U000e0000"
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
# `re` compiles it at the first use, because that takes as long as loading a module.
_IN_TEXT = f"[{_UNSAFE}]"


def clean_text(text: str) -> str:
    """Text of several lines for a terminal; line ends and tabs stay."""
    shown = text.replace("\n", "").replace("\t", "")
    # As most texts are. Some invisible tags count as printable.
    if shown.isprintable() and max(shown, default="") < _TAGS:
        return text
    return re.sub(_IN_TEXT, lambda match: _escape(match[0]), text)


def clean_line(text: str, *, max_chars: int | None = None) -> str:
    """Text for one line of a message or a question: every character is visible, or escaped."""
    is_cut = max_chars is not None and len(text) > max_chars
    shown = text[:max_chars] + "…" if is_cut else text
    return "".join(c if c.isprintable() else _escape(c) for c in shown)


def quote(text: str, *, max_chars: int | None = None) -> str:
    """A name as `clean_line` shows it, between quotation marks that it cannot close."""
    return '"' + clean_line(text, max_chars=max_chars).replace('"', '\\"') + '"'


def _escape(character: str) -> str:
    if character == "\n":
        return "\\n"
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
