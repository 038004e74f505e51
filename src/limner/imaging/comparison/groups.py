"""A mask -> boxes around the parts of it that belong together. Runs inside a worker only."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

from PIL import Image

# Left, top, right and bottom, as Pillow has it.
Edges = tuple[int, int, int, int]
# Start, end and the number of the group.
Run = tuple[int, int, int]

_RUN = re.compile(rb"[^\0]+")
# Letters of one line belong together, and lines above each other do not.
_ACROSS, _DOWN = 9, 4
# A larger mask is grouped at a reduced size: runs are looked at one by one.
_MAX_PIXELS = 4_000_000


def group(mask: Image.Image) -> list[Edges]:
    """The boxes of the white parts of a mask; parts that are near each other share one."""
    around = mask.getbbox()
    if around is None:
        return []
    left, top, right, bottom = around
    scale = 1
    while (right - left) * (bottom - top) > _MAX_PIXELS * scale * scale:
        scale += 1
    # `reduce` means the pixels, so that one of 64 still counts.
    small = mask.crop(around).reduce(scale) if scale > 1 else mask.crop(around)
    return sorted(
        (
            left + x0 * scale,
            top + y0 * scale,
            min(left + x1 * scale, right),
            min(top + y1 * scale, bottom),
        )
        for x0, y0, x1, y1 in _boxes(small, max(1, _ACROSS // scale), max(1, _DOWN // scale))
    )


def _boxes(mask: Image.Image, across: int, down: int) -> list[Edges]:
    wide, data = mask.width, mask.tobytes()
    boxes: list[Edges] = []
    # Recent rows as runs with the number of their group; groups that touch share a root.
    recent: list[list[Run]] = []
    roots: list[int] = []

    def root(number: int) -> int:
        while roots[number] != number:
            roots[number] = number = roots[roots[number]]
        return number

    for row in range(mask.height):
        runs: list[Run] = []
        for start, end in _joined(data[row * wide : (row + 1) * wide], across):
            near = {
                root(number)
                for above in recent
                for number in _touching(above, start - across, end + across)
            }
            number = min(near, default=len(roots))
            if number == len(roots):
                roots.append(number)
                boxes.append((start, row, end, row + 1))
            for other in near:
                roots[other] = number
                boxes[number] = enclose((boxes[number], boxes[other]))
            boxes[number] = enclose((boxes[number], (start, row, end, row + 1)))
            runs.append((start, end, number))
        recent = [*recent[-(down - 1) :], runs] if down > 1 else [runs]
    return [box for number, box in enumerate(boxes) if roots[number] == number]


def _touching(row: Sequence[Run], start: int, end: int) -> Iterator[int]:
    """The groups of the runs of a row that reach into a range."""
    for x0, _, number in islice(row, bisect_left(row, start, key=itemgetter(1)), None):
        if x0 > end:
            return
        yield number


def _joined(row: bytes, across: int) -> Iterable[tuple[int, int]]:
    """The white runs of a row; those with a small gap between them are one."""
    found: list[tuple[int, int]] = []
    for run in _RUN.finditer(row):
        start, end = run.span()
        if found and start - found[-1][1] <= across:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def enclose(boxes: Sequence[Edges]) -> Edges:
    """The box around boxes."""
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def grow(box: Edges, by: int, size: tuple[int, int]) -> Edges:
    """A box with a margin, within the picture."""
    left, top, right, bottom = box
    return max(left - by, 0), max(top - by, 0), min(right + by, size[0]), min(bottom + by, size[1])
