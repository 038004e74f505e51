"""An SVG document and named assets -> a PNG: the part that the host may use without parsing.

The rest runs inside a worker: ``parser`` parses the document and keeps only what ``rules`` allow,
``assets`` replaces ``<asset>`` and ``<scene>`` elements, and ``renderer`` limits what ``use`` may
multiply and draws the document.
"""

from __future__ import annotations

import re

import msgspec

_MENTION = r"<(?:[\w.-]+:)?{tag}\s[^<>]*?\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')"


class Asset(msgspec.Struct, frozen=True):
    """A drawing of limner that a document may place by name: SVG elements and their view box."""

    view_box: str
    body: str


def mentioned_assets(document: str) -> frozenset[str]:
    """The names in the ``<asset name="…">`` elements of a document.

    A regular expression finds them, not a parser: they only decide which assets the worker gets.
    """
    return _names(document, "asset")


def mentioned_scenes(document: str) -> frozenset[str]:
    """The names in the ``<scene name="…">`` elements of a document."""
    return _names(document, "scene")


def scene_key(name: str) -> str:
    """The key of a scene among the assets that a worker gets."""
    return f"scene: {name}"


def _names(document: str, tag: str) -> frozenset[str]:
    found = re.findall(_MENTION.format(tag=tag), document)
    return frozenset(double or single for double, single in found)
