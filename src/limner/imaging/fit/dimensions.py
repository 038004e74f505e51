"""Sizes in, sizes out: how far a picture has to shrink. Pure, and never out of proportion."""

from __future__ import annotations

Size = tuple[int, int]


def inside(size: Size, max_width: int, max_height: int) -> Size:
    """The largest size of the same proportions within the box; never larger than the original.

    The width is brought in first, then the height, each rounded half up.
    """
    width, height = size
    if width > max_width:
        width, height = max_width, _round_half_up(height * max_width, width)
    if height > max_height:
        width, height = _round_half_up(width * max_height, height), max_height
    return width, height


def scaled(size: Size, percent: int) -> Size:
    """A size at so many percent, rounded half up."""
    width, height = size
    return _round_half_up(width * percent, 100), _round_half_up(height * percent, 100)


def _round_half_up(amount: int, by: int) -> int:
    return max(1, (2 * amount + by) // (2 * by))
