"""Pixels -> whether they are a drawing or a photograph: encoders are chosen by it."""

from __future__ import annotations

from PIL import Image

from limner.imaging.neighbours import bands, steps

# The share of pixels that equal their neighbour: photographs have next to none.
FLAT_SHARE = 0.45
_BAND_ROWS = 48


def is_flat(image: Image.Image) -> bool:
    """Whether large parts of a picture are of one colour."""
    if image.width < 2:
        return True
    counts = [steps(band) for band in bands(image, rows=_BAND_ROWS)]
    return sum(count[0] for count in counts) >= FLAT_SHARE * sum(map(sum, counts))
