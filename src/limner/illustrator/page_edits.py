"""The source of a rendered page and words about a change -> the changed source.

A chart, a card or a diagram is changed in its source: its title, its texts, its numbers and its
colours. Everything else is refused, because the author can change the source better.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from limner.errors import InputInvalid
from limner.illustrator.grammar import COLOURS
from limner.json_shapes import as_list, as_object

_SPLIT = re.compile(
    r"(?:\s*,\s*|\s+)(?:and\s+)?(?:then\s+)?(?=(?:change|set|make|replace|rename|update|turn)\b)",
    re.I,
)
_CHANGE = re.compile(
    r"(?:please\s+)?(?:change|set|make|replace|rename|update|turn|let)\s+(?:the\s+|its\s+)?"
    r"(?P<old>.+?)\s+(?:(?:to|into|with|by|be|as)\s+)?(?P<new>\"[^\"]+\"|'[^']+'|[\d.,]+%?)$",
    re.IGNORECASE,
)
_RENAME = re.compile(
    r"(?:please\s+)?(?:change|set|replace|rename|update|turn)\s+(?:the\s+|its\s+)?"
    r"(?P<old>.+?)\s+(?:to|into|with|by)\s+(?P<new>.+)$",
    re.IGNORECASE,
)
_TINT = re.compile(
    r"(?:please\s+)?(?:make|paint|colou?r|turn)\s+.{1,40}?\s*\b(?P<new>[a-z]+)$", re.I
)
_TITLES = frozenset({"title", "heading", "headline", "caption"})
_QUOTES = "\"'“”«» .!"
HOW_TO_CHANGE = (
    "`limner show FILE --json` prints the source as lineage.scene.source: change it there, and "
    "draw it with `limner render`."
)


def edit_source(source: str, words: str) -> tuple[str, tuple[str, ...]]:
    """The changed source of a page, and each change in a few words.

    Raises:
        InputInvalid: a part of the words is no such change, or names what is not in the source.
    """
    changes: list[str] = []
    for clause in _SPLIT.split(words.strip()):
        source, change = _edit(source, clause.strip())
        changes.append(change)
    return source, tuple(changes)


def _edit(source: str, clause: str) -> tuple[str, str]:
    found = _CHANGE.match(clause) or _RENAME.match(clause)
    page = _as_object(source)
    if found is not None:
        old, new = found["old"].strip(_QUOTES), found["new"].strip(_QUOTES)
        if page is not None:
            if _set(page, old, new):
                return msgspec.json.encode(page).decode(), f"{old}: {new}"
        elif old in source:
            return source.replace(old, new), f"{old}: {new}"
    tint = _TINT.match(clause)
    if tint and page is not None and tint["new"].lower() in COLOURS and "labels" in page:
        page["colors"] = [COLOURS[tint["new"].lower()]]
        return msgspec.json.encode(page).decode(), f"colour: {tint['new'].lower()}"
    raise InputInvalid(
        f"This page cannot be changed by these words: {clause[:80]!r}. Nothing was changed.",
        field="prompt",
        hint=f'What works: change "a text" to "another", change the title to "…", change Q2 to 25, '
        f"make it blue (a chart). {HOW_TO_CHANGE}",
    )


def _as_object(source: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(source, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None


def _set(page: dict[str, Any], old: str, new: str) -> bool:
    """Set the title, the value of a label, or a text; whether there was one."""
    if old.lower() in _TITLES:
        page["title"] = new
        return True
    number = _number(new)
    if number is not None and _set_value(page, old, number):
        return True
    count = 0

    def rewrite(text: str) -> str:
        nonlocal count
        changed, times = re.subn(re.escape(old), lambda _: new, text, flags=re.IGNORECASE)
        count += times
        return changed

    for name in [*page]:
        if name not in ("type", "theme", "font"):
            page[name] = _rewritten(page[name], rewrite)
    return count > 0


def _set_value(page: dict[str, Any], label: str, value: float) -> bool:
    labels = [str(one).lower() for one in cast("list[object]", page.get("labels") or [])]
    if label.lower() not in labels:
        return False
    at = labels.index(label.lower())
    series = [as_object(one) for one in as_list(page.get("series"))]
    rows = [page.get("values"), *(one.get("values") for one in series)]
    filled = [cast("list[Any]", row) for row in rows if len(as_list(row)) > at]
    if len(filled) != 1:
        return False
    filled[0][at] = value
    return True


def _rewritten(value: Any, rewrite: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, list):
        return [_rewritten(one, rewrite) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            name: one if name == "type" else _rewritten(one, rewrite)
            for name, one in cast("dict[str, Any]", value).items()
        }
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text.rstrip("%").replace(",", ""))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
