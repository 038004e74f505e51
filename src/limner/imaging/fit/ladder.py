"""The specified way down: the smallest of three encodings, then lower quality, then lower size.

The choices are those of trying every rung in turn; the work is not. The encoders of a rung run
side by side, a PNG that has already lost is given up, and a rung is never tried twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from PIL import Image

from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, inside, scaled
from limner.imaging.fit.source import DecodedSource

QUALITIES = (70, 60, 50, 40)
# The first step of the specification's ladder, 100 %, is the one that has just failed.
PERCENTS = (75, 50, 35, 25)
MIN_EDGE = 100
# The specification names the first quality for JPEG only. A WebP by the quick method has, this much
# below it, about the bytes of the usual method at the number itself, and looks hardly different.
WEBP_BELOW = 3
# A tie goes to the earlier one.
PREFERENCE = (PNG, JPEG, WEBP)


def descend(source: DecodedSource, request: FitRequest, aside: ThreadPoolExecutor) -> Candidate:
    """The first rung under the byte limit, or the smallest candidate where none is.

    ``aside`` runs one encoder while another runs here.
    """
    size = inside((source.part.width, source.part.height), request.max_width, request.max_height)
    full = source.at(size)
    smallest = _first_pass(full, request, aside)
    if len(smallest.data) <= request.max_bytes:
        return smallest
    for image, quality in _rungs(source, full):
        candidate = _lossy(image, quality, request, aside)
        smallest = min(smallest, candidate, key=_bytes)
        if len(candidate.data) <= request.max_bytes:
            return candidate
    return smallest


def _rungs(source: DecodedSource, full: Image.Image) -> Iterator[tuple[Image.Image, int]]:
    yield from ((full, quality) for quality in QUALITIES)
    for percent in PERCENTS:
        size = scaled(full.size, percent)
        if min(size) < MIN_EDGE:
            return
        image = source.at(size)
        yield from ((image, quality) for quality in QUALITIES)


def _first_pass(image: Image.Image, request: FitRequest, aside: ThreadPoolExecutor) -> Candidate:
    rivals: list[Candidate] = []
    waiting = _begin_webp(image, max(0, request.quality - WEBP_BELOW), request, aside)
    if JPEG in request.formats:
        rivals.append(encoders.jpeg(image, request.quality))

    def most() -> int:
        """What a PNG may have at most to win, which it also does with a tie."""
        sizes = [len(rival.data) for rival in rivals]
        if waiting is not None and waiting.done():
            sizes.append(len(waiting.result().data))
        return min(sizes) if sizes else 2**63

    if PNG in request.formats and (png := encoders.png(image, most)) is not None:
        rivals.append(png)
    if waiting is not None:
        rivals.append(waiting.result())
    return _smallest(rivals)


def _lossy(
    image: Image.Image, quality: int, request: FitRequest, aside: ThreadPoolExecutor
) -> Candidate:
    waiting = _begin_webp(image, quality, request, aside)
    rivals = [encoders.jpeg(image, quality)] if JPEG in request.formats else []
    if waiting is not None:
        rivals.append(waiting.result())
    return _smallest(rivals or [encoders.whole_png(image)])


def _begin_webp(
    image: Image.Image, quality: int, request: FitRequest, aside: ThreadPoolExecutor
) -> Future[Candidate] | None:
    if WEBP not in request.formats:
        return None
    # A copy, since Pillow keeps the options of a save in the image that is being saved.
    return aside.submit(encoders.webp, image.copy(), quality)


def _smallest(rivals: list[Candidate]) -> Candidate:
    return min(rivals, key=lambda rival: (len(rival.data), PREFERENCE.index(rival.mime)))


def _bytes(candidate: Candidate) -> int:
    return len(candidate.data)
