"""The quick way: look at the picture, then encode it once, as faithfully as the limit allows.

A photograph becomes JPEG. What is flat, such as a screenshot or line art, becomes lossless WebP,
or a PNG of 256 colours: for such pictures that is smaller, and text stays sharp.
"""

from __future__ import annotations

import math

from PIL import Image

from limner.imaging.fit import encoders
from limner.imaging.fit.dimensions import inside
from limner.imaging.fit.encoders import Candidate
from limner.imaging.fit.flatness import is_flat
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest
from limner.imaging.fit.source import Source
from limner.imaging.resizing import lanczos

BEST_QUALITY = 88
LEAST_QUALITY = 40
_MAX_TRIES = 12


def encode_once(source: Source, request: FitRequest) -> Candidate:
    """One encoding under the byte limit; more than one only where the first is over it."""
    size = inside((source.part.width, source.part.height), request.max_width, request.max_height)
    image = source.at(size)
    if is_flat(image) and (flat := _flat(image, request)) is not None:
        return flat
    return _photo(image, request)


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


def _photo(full: Image.Image, request: FitRequest) -> Candidate:
    """The picture as JPEG (or what there is) at the best quality that fits, then smaller."""
    image, quality = full, BEST_QUALITY
    if not {JPEG, WEBP} & set(request.formats):
        quality = LEAST_QUALITY  # there is none to lower: only its size makes a PNG smaller
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
        image = lanczos(full, (width, height), (0, 0, *full.size))
    return min(tried, key=lambda candidate: len(candidate.data))


def _lossy(image: Image.Image, quality: int, request: FitRequest) -> Candidate:
    if JPEG in request.formats:
        return encoders.jpeg(image, quality)
    if WEBP in request.formats:
        return encoders.webp(image, quality)
    return encoders.whole_png(image)


def _quality_for(quality: int, excess: float) -> int:
    """The quality at which a JPEG is about so many times smaller."""
    # Between 40 and 90 the bytes go roughly with 1 / (101 - quality) to the power 0.8.
    return int(101 - (101 - quality) * excess**1.25)
