"""The beginning of an XML or HTML file -> its root element, found without parsing what follows."""

from __future__ import annotations

import codecs
import re

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# One piece of what may stand before the root element; a document type may hold declarations.
_PROLOG_PIECE = re.compile(
    r"\s+|<\?.*?\?>|<!--.*?-->|<!doctype(?!\s+html)[^<>\[]*(?:\[.*?\]\s*)?>",
    re.DOTALL | re.IGNORECASE,
)
_ROOT = re.compile(r"<(?:!doctype\s+)?(?:[\w.-]+:)?([a-z][\w.-]*)(?=[\s/>])", re.IGNORECASE)


def root_tag(head: bytes) -> str | None:
    """The name of the root element in lower case and without prefix; None where there is none.

    A page that declares itself ``<!doctype html>`` counts as ``html`` whatever follows.
    """
    text = _characters(head)
    root = _ROOT.match(text, root_start(text))
    return None if root is None else root[1].lower()


def root_start(text: str) -> int:
    """Where the root element begins: after declarations, comments, instructions and white space."""
    start = 0
    while piece := _PROLOG_PIECE.match(text, start):
        start = piece.end()
    return start


def _characters(head: bytes) -> str:
    """The head as text, for a look at its mark-up only: that is ASCII in every other encoding."""
    if head.startswith(_UTF16):
        return head.decode("utf-16", errors="replace")
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return head.decode("latin-1") if head.startswith(b"<") else ""
