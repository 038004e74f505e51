"""The name of a picture -> its anchors: the points at which relations join it to others.

``scripts/asset_anchors.py`` describes the kinds and measures them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from limner.illustrator.assets import AssetInfo

Numbers = tuple[float, ...]


def anchors_of(info: AssetInfo) -> Mapping[str, Numbers]:
    """The anchors of a picture, as fractions of its square; the turn of a grip is in degrees."""
    line = _lines().get(info.name, "")
    return {kind: _fractions(kind, cells) for kind, *cells in _cells(line)}


def coat_of(info: AssetInfo) -> str | None:
    """The colour of an arm that is drawn on the picture; None if it needs none."""
    return next((cells[-1] for kind, *cells in _cells(_lines()[info.name]) if kind == "arm"), None)


def _cells(line: str) -> list[list[str]]:
    return [cell.split() for cell in line.split("\t") if cell]


def _fractions(kind: str, cells: list[str]) -> Numbers:
    if kind == "arm":
        cells = cells[:2]
    shares = tuple(int(cell) / 100 for cell in cells)
    return (*shares[:2], shares[2] * 100) if kind == "grip" else shares


@cache
def _lines() -> Mapping[str, str]:
    text = Path(__file__).with_name("data").joinpath("anchors.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t", 1) for line in text.splitlines())
