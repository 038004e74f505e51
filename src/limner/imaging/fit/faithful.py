"""The quick way: look at the picture, then encode it once, as faithfully as the limit allows.

A photograph becomes JPEG. What is flat, such as a screenshot or line art, becomes lossless WebP,
or a PNG of 256 colours: for such pictures that is smaller, and text stays sharp.
"""

from __future__ import annotations

import math

from PIL import Image, ImageChops

from limner.imaging.fit import encoders
from limner.imaging.fit.dimensions import inside
from limner.imaging.fit.encoders import Candidate
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest
from limner.imaging.fit.source import Source

BEST_QUALITY = 88
LEAST_QUALITY = 40
# The share of pixels that equal their neighbour: photographs have next to none.
FLAT_SHARE = 0.45
_BAND_ROWS = 48
_MAX_TRIES = 12


def encode_once(source: Source, request: FitRequest) -> Candidate:
    """One encoding under the byte limit; more than one only where the first is over it."""
    size = inside((source.part.width, source.part.height), request.max_width, request.max_height)
    image = source.at(size)
    if is_flat(image) and (flat := _flat(image, request)) is not None:
        return flat
    return _photo(source, image, request)


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


def _flat(image: Image.Image, request: FitRequest) -> Candidate | None:
    """The picture without loss, or nearly so; None where that is over the limit."""
    most = request.max_bytes
    exact = few_colours = None
    if WEBP in request.formats:
        exact = encoders.lossless_webp(image)
    elif PNG in request.formats:
        exact = encoders.png(image, lambda: most)
    if exact is not None and len(exact.data) <= most:
        return exact
    if PNG in request.formats:
        few_colours = encoders.palette_png(image)
    return few_colours if few_colours is not None and len(few_colours.data) <= most else None


def _photo(source: Source, image: Image.Image, request: FitRequest) -> Candidate:
    """The picture as JPEG (or what there is) at the best quality that fits, then smaller."""
    quality = BEST_QUALITY
    tried: list[Candidate] = []
    while len(tried) < _MAX_TRIES:
        candidate = _lossy(image, quality, request)
        tried.append(candidate)
        excess = len(candidate.data) / request.max_bytes
        if excess <= 1:
            return candidate
        if quality > LEAST_QUALITY:
            quality = max(LEAST_QUALITY, min(quality - 4, _quality_for(quality, excess)))
            continue
        # Bytes follow area; a little less, so that it is not missed by a hair.
        factor = 0.97 / math.sqrt(excess)
        width, height = (max(1, int(edge * factor)) for edge in image.size)
        if (width, height) == image.size:
            break
        image = source.at((width, height))
    return min(tried, key=lambda candidate: len(candidate.data))


def _lossy(image: Image.Image, quality: int, request: FitRequest) -> Candidate:
    if JPEG in request.formats:
        return encoders.jpeg(image, quality)
    return encoders.webp(image, quality, method=2)


def _quality_for(quality: int, excess: float) -> int:
    """The quality at which a JPEG is about so many times smaller."""
    # Between 40 and 90 the bytes go roughly with 1 / (101 - quality) to the power 0.8.
    return int(101 - (101 - quality) * excess**1.25)
