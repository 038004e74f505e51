"""Pixels -> how much each differs from the next one: drawings differ less than photographs."""

from __future__ import annotations

from collections.abc import Iterator

from PIL import Image, ImageChops


def bands(image: Image.Image, *, rows: int) -> Iterator[Image.Image]:
    """Up to ``rows`` rows at the top, in the middle and at the bottom, as a sample of a picture."""
    width, height = image.size
    rows = min(height, rows)
    for start in {0, (height - rows) // 2, height - rows}:
        yield image.crop((0, start, width, start + rows))


def steps(band: Image.Image) -> list[int]:
    """How many pixels differ from the next one by 0, by 1 and so on to 255.

    The channel that differs most counts.
    """
    width, height = band.size
    here, following = band.crop((0, 0, width - 1, height)), band.crop((1, 0, width, height))
    largest, *others = ImageChops.difference(here, following).split()
    for channel in others:
        largest = ImageChops.lighter(largest, channel)
    return largest.histogram()
