"""Keys -> the lines they make, without a terminal."""

from __future__ import annotations

import re

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|O[ -~])")
_LONGEST_SEQUENCE = 32
_ENTER = ("\r", "\n")
_DELETE = ("\x7f", "\x08")
_DELETE_WORD, _DELETE_LINE = "\x17", "\x15"


class LineEditor:
    """The line that a user is typing. Pasted text stays in one line."""

    def __init__(self) -> None:
        self.text = ""
        self._unread = ""
        self._is_pasting = False

    def feed(self, keys: str) -> list[str]:
        """Add the next keys; returns the lines that they end."""
        self._unread += keys
        lines: list[str] = []
        while key := self._next_key():
            if key in _ENTER and not self._is_pasting:
                lines.append(self.take())
            else:
                self._press(key)
        return lines

    def take(self) -> str:
        """Return what was typed so far, and clear it."""
        text, self.text = self.text, ""
        return text

    def _next_key(self) -> str:
        """The next complete key, or nothing."""
        if not self._unread.startswith("\x1b"):
            return self._cut(1)
        if (sequence := _SEQUENCE.match(self._unread)) is not None:
            return self._cut(sequence.end())
        is_partial = self._unread[1:2] in ("", "[", "O") and len(self._unread) < _LONGEST_SEQUENCE
        return "" if is_partial else self._cut(1)

    def _cut(self, count: int) -> str:
        key, self._unread = self._unread[:count], self._unread[count:]
        return key

    def _press(self, key: str) -> None:
        if key in (PASTE_BEGINS, PASTE_ENDS):
            self._is_pasting = key == PASTE_BEGINS
        elif key in _ENTER:
            self.text += "\n"
        elif key in _DELETE:
            self.text = self.text[:-1]
        elif key == _DELETE_WORD:
            self.text = re.sub(r"\S*\s*\Z", "", self.text)
        elif key == _DELETE_LINE:
            self.text = ""
        elif key == "\t" or key.isprintable():
            self.text += key
