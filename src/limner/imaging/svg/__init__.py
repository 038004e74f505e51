"""An SVG document and named assets -> a PNG: what the host may know of it without parsing any.

The road of a document, all inside a worker: ``read`` parses it and keeps only what ``rules``
allow, ``assets`` replaces ``<asset>`` elements, ``expansion`` bounds what ``use`` may multiply,
and ``render`` draws it.
"""

from __future__ import annotations

import re

import msgspec

_MENTION = r"<(?:[\w.-]+:)?asset\s[^<>]*?\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')"


class Asset(msgspec.Struct, frozen=True):
    """A drawing of our own that a document may place by name: SVG elements and their view box."""

    view_box: str
    body: str


def mentioned_assets(document: str) -> frozenset[str]:
    """The names that ``<asset name="…">`` elements of a document seem to ask for.

    A look at the text, not a parse: it only decides which assets travel to the worker.
    """
    return frozenset(double or single for double, single in re.findall(_MENTION, document))
