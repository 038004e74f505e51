"""Pixels -> how far each differs from the one beside it, which tells drawings from photographs."""

from __future__ import annotations

from collections.abc import Iterator

from PIL import Image, ImageChops


def bands(image: Image.Image, *, rows: int) -> Iterator[Image.Image]:
    """So many rows at the top, in the middle and at the bottom: enough to judge a picture by."""
    width, height = image.size
    rows = min(height, rows)
    for start in {0, (height - rows) // 2, height - rows}:
        yield image.crop((0, start, width, start + rows))


def steps(band: Image.Image) -> list[int]:
    """How many pixels differ from the one beside them by 0, by 1 and so on to 255.

    It is the channel that differs most that counts.
    """
    width, height = band.size
    here, beside = band.crop((0, 0, width - 1, height)), band.crop((1, 0, width, height))
    largest, *others = ImageChops.difference(here, beside).split()
    for channel in others:
        largest = ImageChops.lighter(largest, channel)
    return largest.histogram()
