"""The text of a Mermaid diagram -> its header and its lines, without comments."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NoReturn

from limner.errors import InputInvalid

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_ENTITY = re.compile(r"#(\w{1,10});")


class MermaidSource:
    """The lines of a diagram after its header, one at a time, and what was left out."""

    def __init__(self, source: str) -> None:
        self.number = 0
        self.line = ""
        self.indent = 0
        self.title = ""
        self.ignored: dict[str, None] = {}
        # The fills and dashes of classes and nodes, and the classes of nodes.
        self.styles: dict[str, tuple[str | None, bool]] = {}
        self.classes: dict[str, str] = {}
        self.remarks: dict[str, None] = {}
        self._rest = iter(enumerate(source.split("\n"), 1))
        self.header = next(iter(self), "")
        if self.header == "---":
            for line in self:
                if line == "---":
                    break
                if line.startswith("title:"):
                    self.title = plain_text(line[6:])
                elif not self.indent:
                    self.ignored[line.partition(":")[0]] = None
            self.header = next(iter(self), "")

    def __iter__(self) -> Iterator[str]:
        for number, line in self._rest:
            text = line.strip()
            if text.startswith("%%{"):
                self.ignored["init"] = None
            if text and not text.startswith("%%"):
                self.number, self.line = number, text
                self.indent = len(line) - len(line.lstrip())
                yield text

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Refuse the line that was read last."""
        raise InputInvalid(
            f"line {self.number}: {what}: {self.line[:120]!r}", field="source", hint=hint
        )

    def remark(self, text: str) -> None:
        """Note something once."""
        self.remarks[text] = None

    def notes(self) -> list[str]:
        """What the author should know."""
        ignored = [f"Ignored: {', '.join(self.ignored)}."] if self.ignored else []
        return [*self.remarks, *ignored]


def plain_text(text: str) -> str:
    """A label without quotes, tags and entities; a break becomes a new line."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in '"`':
        text = text[1:-1].strip("`")
    text = _TAG.sub("", _BREAK.sub("\n", text).replace("\\n", "\n"))
    return html.unescape(_ENTITY.sub(_entity, text)).strip()


def _entity(found: re.Match[str]) -> str:
    name = found[1]
    return f"&#{name};" if name.isdigit() else f"&{name};"
