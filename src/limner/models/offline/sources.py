"""A message with a document in it -> the document, and the message with a mark in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for the document in the rest of the message."""

_FENCE = "```"
_DOT = re.compile(
    r"\b(?:strict\s{1,9})?(?:di)?graph\b[ \t]{0,9}[\w\"]{0,60}\s{0,9}\{", re.IGNORECASE
)
# A word of Mermaid alone may be a word of a sentence: "timeline of the moon landing".
_MERMAID = re.compile(
    r"^[ \t]{0,9}(?:(?:graph|flowchart)[ \t]+(?:TD|TB|BT|LR|RL)\b"
    r"|(?:sequenceDiagram|classDiagram|stateDiagram|erDiagram|mindmap)\b"
    r"|(?:pie|timeline)\b[^\n]{0,99}\n)",
    re.MULTILINE,
)
# What shows that a JSON object is a document: of limner, or of Vega-Lite.
_DOCUMENT_MEMBERS = frozenset({"type", "$schema", "mark", "children"})


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a message; ``language`` is what its fence says."""

    text: str
    language: str = ""


def take_document(text: str) -> tuple[str, Document | None]:
    """The message with the mark in place of its first document, and the document."""
    for start, end, document in _found(text):
        if document.text.strip():
            return f"{text[:start]} {MARK} {text[end:]}", document
    return text, None


def _found(text: str) -> Iterator[tuple[int, int, Document]]:
    """The documents of each kind, with their start and end; each takes one pass over the text."""
    if (start := text.find(_FENCE)) >= 0:
        closing = text.find(_FENCE, start + 3)
        end = len(text) if closing < 0 else closing
        language, _, body = text[start + 3 : end].partition("\n")
        yield start, end + 3, Document(text=body, language=language.strip().lower())
    if (start := text.find("<svg")) >= 0:
        end = text.rfind("</svg>") + 6
        yield start, (end if end > start else len(text)), Document(text=text[start:][: end - start])
    if (dot := _DOT.search(text)) is not None and (end := text.rfind("}") + 1) > dot.end():
        yield dot.start(), end, Document(text=text[dot.start() : end])
    if (mermaid := _MERMAID.search(text)) is not None:
        yield mermaid.start(), len(text), Document(text=text[mermaid.start() :])
    if (start := text.find("{")) >= 0:
        end = _end_of_json(text, start)
        yield start, end, Document(text=text[start:end])


def _end_of_json(text: str, start: int) -> int:
    """Where a JSON document ends; ``start`` if there is none."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        # A broken document is one too: the renderer says what is wrong with it.
        is_meant = re.match(r'\{\s{0,40}"type"', text[start : start + 99])
        return max(text.rfind("}") + 1, start) or len(text) if is_meant else start
    return end if _DOCUMENT_MEMBERS & value.keys() else start
