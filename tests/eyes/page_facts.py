"""The evidence of a page of a browser -> which of its known facts it has, and which it invents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from limner.eyes.evidence import Evidence
from limner.imaging.evidence.layout import to_number

PAGES = Path(__file__).parent / "pages"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAGES / "expected.json").read_text("utf-8"))
# Bars and slices are measured in pixels.
TOLERANCE = 0.03


def facts(seen: Evidence, expected: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Each known fact and whether the evidence has it; then each one that was invented."""
    yield from _cells(seen, expected["tables"])
    yield from _controls(seen, expected["controls"])
    found = {value.label: value.value for value in seen.page.values}
    for label, value in expected.get("values", {}).items():
        yield found.get(label) == value, f"{label}: {value} (found {found.get(label)!r})"
    for label, number in expected.get("measured", {}).items():
        measured = to_number(found.get(label, ""))
        near = measured is not None and abs(measured - number) <= max(2, TOLERANCE * number)
        yield near, f"{label}: {number} (found {found.get(label)!r})"
    yield from _texts(seen, expected)


def _cells(seen: Evidence, tables: list[list[list[str]]]) -> Iterator[tuple[bool, str]]:
    yield (
        len(seen.page.tables) == len(tables),
        f"{len(tables)} tables (found {[table.rows for table in seen.page.tables]})",
    )
    for table, found in zip(tables, seen.page.tables, strict=False):
        yield len(found.rows) == len(table), f"{len(table)} rows (found {len(found.rows)})"
        for row, cells in zip(table, found.rows, strict=False):
            for number, cell in enumerate(row):
                other = cells[number] if number < len(cells) else None
                yield other == cell, f"cell {cell!r} (found {other!r})"


def _controls(seen: Evidence, controls: list[list[str]]) -> Iterator[tuple[bool, str]]:
    found = [[one.kind, one.label, one.state] for one in seen.page.controls]
    for control in controls:
        yield control in found, f"control {control}"
    for control in found:
        if control not in controls:
            yield False, f"invented control {control}"


def _texts(seen: Evidence, expected: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    rows = list(seen.rows)
    for text in expected.get("text", ()):
        yield text in rows, f"line {text!r}"
    pages, at = " ".join(rows), 0
    for text in expected.get("order", ()):
        place = pages.find(text, at)
        yield place >= 0, f"in order: {text!r}"
        at = max(at, place)
