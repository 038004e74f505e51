"""A size -> the nearest of the shapes that a service draws, where it takes shapes and no sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable

COMMON_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")


def nearest_aspect_ratio(width: int, height: int, ratios: Iterable[str]) -> str:
    """The ratio, such as ``16:9``, that is nearest to a size; as near when both are turned."""
    wanted = math.log(width / height)
    return min(ratios, key=lambda ratio: abs(math.log(aspect_of(ratio)) - wanted))


def aspect_of(ratio: str) -> float:
    """The width of a shape that is one high."""
    across, down = map(float, ratio.split(":"))
    return across / down
