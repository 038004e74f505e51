"""Pixels -> whether they are a drawing or a photograph: encoders are chosen by it."""

from __future__ import annotations

from PIL import Image, ImageChops

# The share of pixels that equal their neighbour: photographs have next to none.
FLAT_SHARE = 0.45
_BAND_ROWS = 48


def is_flat(image: Image.Image) -> bool:
    """Whether large parts of a picture are of one colour, judged by three bands of rows."""
    width, height = image.size
    if width < 2:
        return True
    rows = min(height, _BAND_ROWS)
    equal = total = 0
    for start in {0, (height - rows) // 2, height - rows}:
        here = image.crop((0, start, width - 1, start + rows))
        beside = image.crop((1, start, width, start + rows))
        equal += _zeros(ImageChops.difference(here, beside))
        total += (width - 1) * rows
    return equal >= FLAT_SHARE * total


def _zeros(difference: Image.Image) -> int:
    """How many pixels are zero in every channel."""
    channels = difference.split()
    brightest = channels[0]
    for channel in channels[1:]:
        brightest = ImageChops.lighter(brightest, channel)
    return brightest.histogram()[0]
