"""A size and the box a model looks through -> the parts that show all of it at full detail."""

from __future__ import annotations

from math import ceil

from limner.catalogue.sizes import Size
from limner.imaging.fit import Region

# Neighbours share this much of the box, so that what lies on a border is whole in one of them.
OVERLAP_SHARE = 16
# A picture that is shrunk less than this stays readable in one piece.
READABLE_SHRINK = 2
MAX_TILES = 16


def tiles(part: Region, *, box: Size) -> tuple[Region, ...]:
    """The parts in reading order; none where the picture stays readable in one piece.

    Each part fits the box as it is. Where that would take more than ``MAX_TILES`` the parts are
    larger, all by the same factor, and are shrunk to the box.
    """
    if part.width <= box.width * READABLE_SHRINK and part.height <= box.height * READABLE_SHRINK:
        return ()
    width, height = box
    while _count(part.width, width) * _count(part.height, height) > MAX_TILES:
        width, height = ceil(width * 1.1), ceil(height * 1.1)
    return tuple(
        Region(x=part.x + x, y=part.y + y, width=across, height=down)
        for y, down in _spans(part.height, height)
        for x, across in _spans(part.width, width)
    )


def _count(length: int, most: int) -> int:
    if length <= most:
        return 1
    overlap = most // OVERLAP_SHARE
    return ceil((length - overlap) / (most - overlap))


def _spans(length: int, most: int) -> list[tuple[int, int]]:
    """Starts and lengths along one edge: all of one length, no longer than it takes."""
    count = _count(length, most)
    if count == 1:
        return [(0, length)]
    span = ceil((length + (count - 1) * (most // OVERLAP_SHARE)) / count)
    return [((length - span) * number // (count - 1), span) for number in range(count)]
