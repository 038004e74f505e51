"""Words of a command line -> the values that several commands take."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

from limner.imaging.fit import Region

_REGION = re.compile(r"(\d{1,6}),(\d{1,6}),([1-9]\d{0,5}),([1-9]\d{0,5})")


def region(text: str) -> Region:
    """Four numbers as a part of a picture."""
    match = _REGION.fullmatch(text)
    if match is None:
        raise ArgumentTypeError("give X,Y,WIDTH,HEIGHT in pixels, as in 2400,100,800,600")
    x, y, width, height = map(int, match.groups())
    return Region(x=x, y=y, width=width, height=height)
