"""Checked pictures -> the layout of their sheet, with differences and verdicts marked."""

from __future__ import annotations

from collections.abc import Sequence

from limner.content import Picture
from limner.imaging.evidence import Box
from limner.imaging.fit import Region
from limner.rendering.sheet import MARKED, SheetCell, SheetLayout, SheetLine, lay_out
from limner.tools.picture_check import CriterionVerdict, PictureCheck

_EDGE = 900
_MAX_LINES = 60
_COLORS = {"pass": "#15803d", "fail": MARKED, "cannot tell": "#6b7280"}


def check_layout(
    check: PictureCheck, shown: Sequence[Picture], names: Sequence[str]
) -> SheetLayout:
    """The reference on the left if there is one, the picture beside it, the verdicts below.

    ``shown`` has the reference first, and ``names`` the same order.
    """
    changes = () if check.difference is None else check.difference.boxes
    marks = [(_region(one.box), f"{number}") for number, one in enumerate(changes, start=1)]
    footer = [
        SheetLine(text=f"{number}. {one.sentence}", color=MARKED)
        for number, one in enumerate(changes, start=1)
    ]
    if check.difference is not None and not changes:
        text = "No visible difference from the reference."
        footer.append(SheetLine(text=text, color=_COLORS["pass"]))
    only_here: list[tuple[Region, str]] = []
    for one in check.criteria:
        label = ""
        if one.verdict == "fail" and one.box is not None:
            label = f"{len(marks) + len(only_here) + 1}"
            only_here.append((_region(one.box), label))
        footer.append(_line(one, label))
    last = len(shown) - 1
    cells = [
        SheetCell(
            size=(picture.width, picture.height),
            title=name,
            lines=(
                f"{'picture' if at == last else 'reference'} · {picture.width} x {picture.height}",
            ),
            marks=tuple([*marks, *only_here] if at == last else marks),
        )
        for at, (picture, name) in enumerate(zip(shown, names, strict=True))
    ]
    return lay_out(cells, columns=2, cell_edge=_EDGE, footer=footer[:_MAX_LINES])


def _line(one: CriterionVerdict, label: str) -> SheetLine:
    text = f"{one.verdict}: {one.criterion} ({one.evidence})"
    return SheetLine(text=f"{label}. {text}" if label else text, color=_COLORS[one.verdict])


def _region(box: Box) -> Region:
    return Region(x=box.x, y=box.y, width=box.width, height=box.height)
