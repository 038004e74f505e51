"""A picture -> the specified ladder: the smallest of three encodings, then lower quality and size.

The result is the same as if every rung were tried in turn, with less work. The encoders of a rung
run in parallel, a PNG that is already too large is stopped, and no rung is tried twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from PIL import Image

from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, scale_by_percent
from limner.imaging.fit.source import DecodedSource

QUALITIES = (70, 60, 50, 40)
# The ladder of the specification begins with 100 %, which has just failed.
PERCENTS = (75, 50, 35, 25)
MIN_EDGE = 100
# Of candidates with the same size, the earlier one is chosen.
PREFERENCE = (PNG, JPEG, WEBP)


def descend(source: DecodedSource, request: FitRequest, thread: ThreadPoolExecutor) -> Candidate:
    """The first rung under the byte limit, or the smallest candidate if there is none.

    ``thread`` runs one encoder while this thread runs another.
    """
    full = source.at_size(request.size_for(source.part))
    smallest = _encode_first(full, request, thread)
    if len(smallest.data) <= request.max_bytes:
        return smallest
    for image, quality in _rungs(source, full):
        candidate = _encode_lossy(image, quality, request, thread)
        smallest = min(smallest, candidate, key=lambda one: len(one.data))
        if len(candidate.data) <= request.max_bytes:
            return candidate
    return smallest


def _rungs(source: DecodedSource, full: Image.Image) -> Iterator[tuple[Image.Image, int]]:
    yield from ((full, quality) for quality in QUALITIES)
    for percent in PERCENTS:
        size = scale_by_percent(full.size, percent)
        if min(size) < MIN_EDGE:
            return
        image = source.at_size(size)
        yield from ((image, quality) for quality in QUALITIES)


def _encode_first(image: Image.Image, request: FitRequest, thread: ThreadPoolExecutor) -> Candidate:
    candidates: list[Candidate] = []
    webp = _start_webp(image, request.quality, request, thread)
    if JPEG in request.formats:
        candidates.append(encoders.jpeg(image, request.quality))

    def max_bytes() -> int:
        """The most bytes with which a PNG would be chosen."""
        sizes = [len(candidate.data) for candidate in candidates]
        if webp is not None and webp.done():
            sizes.append(len(webp.result().data))
        return min(sizes) if sizes else 2**63

    if PNG in request.formats and (png := encoders.png(image, max_bytes)) is not None:
        candidates.append(png)
    if webp is not None:
        candidates.append(webp.result())
    return _smallest(candidates)


def _encode_lossy(
    image: Image.Image, quality: int, request: FitRequest, thread: ThreadPoolExecutor
) -> Candidate:
    webp = _start_webp(image, quality, request, thread)
    candidates = [encoders.jpeg(image, quality)] if JPEG in request.formats else []
    if webp is not None:
        candidates.append(webp.result())
    return _smallest(candidates or [encoders.unbounded_png(image)])


def _start_webp(
    image: Image.Image, quality: int, request: FitRequest, thread: ThreadPoolExecutor
) -> Future[Candidate] | None:
    if WEBP not in request.formats:
        return None
    # A copy, since Pillow stores the options of a save in the image.
    return thread.submit(encoders.webp, image.copy(), quality)


def _smallest(candidates: list[Candidate]) -> Candidate:
    return min(candidates, key=lambda one: (len(one.data), PREFERENCE.index(one.mime)))
