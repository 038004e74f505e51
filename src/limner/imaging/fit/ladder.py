"""A picture -> the specified ladder: the smallest of three encodings, then lower quality and size.

An encoding is made only if a few rows of the picture show that it may be chosen, and no rung is
tried twice. The estimate is wrong for about one picture in a thousand: the chosen encoding is then
not the smallest, by a tenth of its bytes in those that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from PIL import Image

from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate, Encode, estimate_bytes
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, scale_by_percent
from limner.imaging.fit.source import DecodedSource

QUALITIES = (70, 60, 50, 40)
# The ladder of the specification begins with 100 %, which has just failed.
PERCENTS = (75, 50, 35, 25)
MIN_EDGE = 100
# Of candidates with the same size, the earlier one is chosen.
PREFERENCE = (PNG, JPEG, WEBP)
# An encoding is not made if an estimate of its bytes is so many times those of another one. The
# estimates are right for photographs and noise. For screens they are up to 1.6 times too high, but
# there a WebP has half the bytes of a JPEG, and a third of those of a PNG.
_LOSSY_MARGIN, _PNG_MARGIN, _TRANSPARENT_MARGIN = 1.2, 2, 2
# PNG is slow, so fewer rows of it are encoded.
_PNG_ROWS = 4


def descend(source: DecodedSource, request: FitRequest, thread: ThreadPoolExecutor) -> Candidate:
    """The first rung under the byte limit, or the smallest candidate if there is none.

    ``thread`` encodes the WebP, while this thread estimates the bytes of the others.
    """
    full = source.at_size(request.size_for(source.part))
    smallest = _encode_first(full, request, thread)
    if len(smallest.data) <= request.max_bytes:
        return smallest
    for image, quality in _rungs(source, full):
        candidate = _encode_lossy(image, quality, request)
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
    jpeg = partial(encoders.jpeg, quality=request.quality)
    webp = partial(encoders.webp, quality=request.quality)
    started = None
    if WEBP in request.formats and not (
        JPEG in request.formats and _is_hopeless(webp, jpeg, image)
    ):
        started = thread.submit(webp, image)
    jpeg_bytes = estimate_bytes(image, jpeg)
    png_bytes = estimate_bytes(image, encoders.png, rows=_PNG_ROWS)
    candidates = [] if started is None else [started.result()]
    if JPEG in request.formats and _may_win(jpeg_bytes / _LOSSY_MARGIN, candidates):
        candidates.append(jpeg(image))
    if PNG in request.formats and _may_win(png_bytes / _PNG_MARGIN, candidates):
        candidates.append(encoders.png(image))
    return _smallest(candidates)


def _is_hopeless(webp: Encode, jpeg: Encode, image: Image.Image) -> bool:
    """Whether a WebP with transparency, which can take four times as long, is much too large."""
    if image.mode != "RGBA":
        return False
    jpeg_bytes = estimate_bytes(image, jpeg)
    webp_bytes = estimate_bytes(image, webp)
    return 0 < _TRANSPARENT_MARGIN * jpeg_bytes < webp_bytes


def _may_win(least_bytes: float, candidates: Sequence[Candidate]) -> bool:
    return all(least_bytes <= len(candidate.data) for candidate in candidates)


def _encode_lossy(image: Image.Image, quality: int, request: FitRequest) -> Candidate:
    webp = partial(encoders.webp, quality=quality)
    candidates = [encoders.jpeg(image, quality)] if JPEG in request.formats else []
    if WEBP in request.formats:
        webp_bytes = estimate_bytes(image, webp) if candidates else 0
        if _may_win(webp_bytes / _LOSSY_MARGIN, candidates):
            candidates.append(webp(image))
    return _smallest(candidates or [encoders.png(image)])


def _smallest(candidates: list[Candidate]) -> Candidate:
    return min(candidates, key=lambda one: (len(one.data), PREFERENCE.index(one.mime)))
