"""JSON with comments and trailing commas <-> the same text with one member added or removed.

A new member has the layout of its neighbours: its own line with the same indentation, or the same
line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from limner.settings.config_syntax import BLANKS, Data, Keys, Malformed, nested, newline_of

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENT = r"//[^\r\n]*|/\*.*?\*/"
_STRINGS_AND_COMMENTS = re.compile(f"{_STRING}|{_COMMENT}", re.DOTALL)
# A comma directly after a bracket is an error: it stays, so that the parser reports it.
_TRAILING_COMMAS = re.compile(rf"{_STRING}|[{{\[][ \t\r\n]*,|,(?=[ \t\r\n]*[}}\]])", re.DOTALL)
_COMMENTS_ON_LINE = re.compile(rf"(?:[ \t]*(?:{_COMMENT}))*", re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")
_SPACES = re.compile(r"[ \t]*")
_INDENTATION = re.compile(r"^([ \t]+)[^ \t\r\n]", re.MULTILINE)
_DEFAULT_INDENTATION = "  "


def parse(text: str) -> Data:
    """Parse a text.

    Raises:
        Malformed: it is not JSON, or not an object.
    """
    try:
        data: object = json.loads(
            _without_commas(_without_comments(text)), parse_float=str, parse_constant=_refuse
        )
    except json.JSONDecodeError as error:
        raise Malformed(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from None
    if not isinstance(data, dict):
        raise Malformed("line 1: the file must contain one JSON object")
    return cast("Data", data)


def document(keys: Keys, value: Any, *, newline: str) -> str:
    """Return a text that contains only this value."""
    text = _pretty(nested(keys, value), _DEFAULT_INDENTATION)
    return f"{text}\n".replace("\n", newline)


def put(text: str, keys: Keys, value: Any) -> str:
    """Return the text with a member added, or with its value replaced."""
    source = _Source(text)
    owner = source.root
    for depth, key in enumerate(keys):
        member = source.members(owner).get(key)
        if member is None:
            return source.insert(owner, key, nested(keys[depth + 1 :], value))
        owner = member
    return source.replace(owner, value)


def remove(text: str, keys: Keys) -> str:
    """Return the text without the member."""
    source = _Source(text)
    owner = source.root
    for key in keys[:-1]:
        owner = source.members(owner)[key]
    return source.remove(owner, keys[-1])


@dataclass(frozen=True, slots=True)
class _Member:
    """The position of a member: from ``start`` to ``end``, its value from ``value``."""

    start: int
    value: int
    end: int


class _Source:
    """A valid text, and copies of the same length that an ordinary JSON parser accepts.

    ``bare`` has blanks instead of comments, ``plain`` also instead of trailing commas. A position
    is the same in all three.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = _without_comments(text)
        self.plain = _without_commas(self.bare)
        start = _after(_BLANK, self.plain, 0)
        self.root = _Member(start=start, value=start, end=len(text))
        self._newline = newline_of(text)
        indented = _INDENTATION.search(self.bare)
        self._unit = indented[1] if indented else _DEFAULT_INDENTATION

    def members(self, owner: _Member) -> dict[str, _Member]:
        """Return the members of an object in order; the last one of each name.

        Raises:
            Malformed: the owner is not an object.
        """
        if self.plain[owner.value] != "{":
            raise Malformed("the parent of the entry is not an object")
        decoder = json.JSONDecoder()
        found: dict[str, _Member] = {}
        at = _after(_BLANK, self.plain, owner.value + 1)
        while self.plain[at] != "}":
            key, end = decoder.raw_decode(self.plain, at)
            colon = _after(_BLANK, self.plain, end)
            value = _after(_BLANK, self.plain, colon + 1)
            _, end = decoder.raw_decode(self.plain, value)
            found.pop(key, None)
            found[key] = _Member(start=at, value=value, end=end)
            at = _after(_BLANK, self.plain, end)
            if self.plain[at] == ",":
                at = _after(_BLANK, self.plain, at + 1)
        return found

    def insert(self, owner: _Member, key: str, value: Any) -> str:
        """Add a member at the end of an object."""
        members = list(self.members(owner).values())
        if not members:
            return self._insert_only(owner, key, value)
        last = members[-1]
        comma = self._comma_after(last)
        indentation = self._own_line(last.start)
        if indentation is None:
            member = f"{_text(key)}: {_text(value)}"
            if comma is not None:
                return self._spliced((comma + 1, comma + 1, f" {member},"))
            return self._spliced((last.end, last.end, f", {member}"))
        member = self._newline + indentation + self._member(key, value, indentation)
        if comma is not None:
            at = _after(_COMMENTS_ON_LINE, self.text, comma + 1)
            return self._spliced((at, at, f"{member},"))
        at = _after(_COMMENTS_ON_LINE, self.text, last.end)
        return self._spliced((last.end, last.end, ","), (at, at, member))

    def replace(self, member: _Member, value: Any) -> str:
        """Give a member another value."""
        indentation = self._own_line(member.start)
        new = _text(value) if indentation is None else self._value(value, indentation)
        return self._spliced((member.value, member.end, new))

    def remove(self, owner: _Member, key: str) -> str:
        """Remove a member with its comma and its line."""
        members = self.members(owner)
        member = members[key]
        comma = self._comma_after(member)
        end = member.end if comma is None else comma + 1
        close = _after(_BLANK, self.bare, end)
        around = self.text[owner.value + 1 : member.start] + self.text[member.end : close]
        if len(members) == 1 and around.strip(BLANKS) in ("", ","):
            return self._spliced((owner.value + 1, close, ""))
        is_last = key == list(members)[-1]
        start = self._cut_from(member, end, is_last=is_last)
        cuts = [(start, member.end, "")]
        if comma is not None:
            past = _after(_SPACES, self.text, comma + 1) if start == member.start else comma + 1
            cuts.append((comma, past, ""))
        elif len(members) > 1:
            before = self._comma_after(list(members.values())[-2])
            assert before is not None
            cuts.insert(0, (before, before + 1, ""))
        return self._spliced(*cuts)

    def _insert_only(self, owner: _Member, key: str, value: Any) -> str:
        start = owner.value + 1
        close = _after(_BLANK, self.bare, start)
        indentation = self._own_line(owner.start)
        if indentation is None:
            return self._spliced((close, close, f"{_text(key)}: {_text(value)}"))
        at = start + len(self.text[start:close].rstrip(BLANKS))
        inner = indentation + self._unit
        member = self._newline + inner + self._member(key, value, inner)
        if "\n" not in self.text[at:close]:
            member += self._newline + indentation
        return self._spliced((at, at, member))

    def _comma_after(self, member: _Member) -> int | None:
        at = _after(_BLANK, self.bare, member.end)
        return at if self.bare[at] == "," else None

    def _own_line(self, at: int) -> str | None:
        """Return the indentation of the line; None if other text precedes the position on it."""
        head = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return None if head.strip(BLANKS) else head

    def _cut_from(self, member: _Member, end: int, *, is_last: bool) -> int:
        """Return where to cut: the start of a member with the blanks or line break before it."""
        if self._own_line(member.start) is None:
            return len(self.text[: member.start].rstrip(" \t")) if is_last else member.start
        line = self.text.rfind("\n", 0, member.start)
        if line < 0:
            return member.start
        if self.text[line - 1 : line] == "\r":
            line -= 1
        after_comment = any(
            found.end() == line and found[0].startswith("//")
            for found in _STRINGS_AND_COMMENTS.finditer(self.text, 0, member.start)
        )
        kept = self.text[member.end : end].removesuffix(",") + self.text[end:]
        rest = kept.partition("\n")[0]
        # The rest of this line must not become part of the comment on the previous line.
        return member.start if after_comment and rest.strip(BLANKS) else line

    def _member(self, key: str, value: Any, indentation: str) -> str:
        return f"{_text(key)}: {self._value(value, indentation)}"

    def _value(self, value: Any, indentation: str) -> str:
        return _pretty(value, self._unit).replace("\n", self._newline + indentation)

    def _spliced(self, *splices: tuple[int, int, str]) -> str:
        parts: list[str] = []
        at = 0
        for start, end, new in splices:
            parts += (self.text[at:start], new)
            at = end
        return "".join([*parts, self.text[at:]])


def _without_comments(text: str) -> str:
    return _STRINGS_AND_COMMENTS.sub(_blanked, text)


def _blanked(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0])


def _without_commas(text: str) -> str:
    return _TRAILING_COMMAS.sub(lambda match: " " if match[0] == "," else match[0], text)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None, "the pattern also matches the empty string"
    return match.end()


def _pretty(value: Any, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
