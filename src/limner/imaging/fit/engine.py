"""A picture and a request -> the bytes to send: the original if it fits, else an encoding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from msgspec.structs import replace
from PIL import Image

from limner.imaging.decoders import OpenedPicture
from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate, estimate_bytes, is_flat, lossless_webp
from limner.imaging.fit.ladder import descend
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, Fitted
from limner.imaging.fit.source import DecodedSource, resize
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits

BEST_QUALITY = 88
LEAST_QUALITY = 40
_MAX_TRIES = 12
# Dense text that was scaled has fewer equal pixels than any screen, and more than any photograph.
SHARP_FLAT_SHARE = 0.25
FAST_COLOURS = (256,)
# The most that a thorough encoding without loss saves.
THOROUGH_GAIN = 1.3
# The fast mode tries no encoding without loss that is estimated at so many times the limit.
LOSSLESS_MARGIN = 1.2
# A JPEG of this quality in full colour shows scaled text as sharp as an encoding without loss.
SHARP_QUALITY = 95
# Text of one colour on another stays sharp in so few colours.
SHARP_COLOURS = (256, 64, 16)


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """Fits pictures inside one worker; ``thread`` is its second thread."""

    thread: ThreadPoolExecutor
    limits: WorkerLimits

    def fit(
        self,
        data: bytes,
        request: FitRequest,
        *,
        opened: tuple[Format, OpenedPicture] | None = None,
    ) -> tuple[Fitted, bytes]:
        """The bytes to send; ``opened`` is the first page, if the caller has opened it before.

        Raises:
            ImageError: the bytes are not a picture that can be sent.
        """
        source = DecodedSource(
            data,
            region=request.region,
            limits=self.limits,
            thread=self.thread,
            page=request.page,
            opened=opened if request.page == 1 else None,
        )
        original = Candidate(source.mime, data, source.size)
        can_pass = _can_pass_through(source, request, len(data))
        if can_pass and request.box_contains(source.size):
            return _result(source, original, untouched=True)
        match request.mode:
            case "seed":
                chosen = descend(source, request, self.thread)
            case "fast":
                chosen = encode_fast(source, request)
            case "sharp":
                chosen = encode_sharp(source, request, original_bytes=len(data))
                is_short = max(source.size) <= request.max_edge_unchanged
                if can_pass and is_short and len(data) <= len(chosen.data):
                    return _result(source, original, untouched=True)
        return _result(source, chosen, untouched=False)


def _can_pass_through(source: DecodedSource, request: FitRequest, size_bytes: int) -> bool:
    """Whether the picture is whole, upright, and of a type and length that may be sent."""
    return (
        source.is_whole and source.is_upright and request.allows_unchanged(source.mime, size_bytes)
    )


def _result(source: DecodedSource, chosen: Candidate, *, untouched: bool) -> tuple[Fitted, bytes]:
    width, height = chosen.size
    fitted = Fitted(
        mime=chosen.mime,
        width=width,
        height=height,
        original_width=source.size[0],
        original_height=source.size[1],
        part=source.part,
        animated=source.animated,
        pages=source.pages,
        untouched=untouched,
    )
    return fitted, chosen.data


def encode_fast(source: DecodedSource, request: FitRequest) -> Candidate:
    """One encoding under the byte limit; further ones only if the first is over it."""
    image = source.at_size(request.size_for(source.part))
    request = _drop_short_formats(request, image.size)
    # A JPEG is full of small differences, which no encoding without loss makes small.
    if source.mime != JPEG and is_flat(image):
        for flat in _encode_flat(image, request, FAST_COLOURS, request.max_bytes):
            if len(flat.data) <= request.max_bytes:
                return flat
    return _encode_photo(image, request, request.max_bytes)


def encode_sharp(source: DecodedSource, request: FitRequest, *, original_bytes: int) -> Candidate:
    """A flat picture without visible loss or in few colours, any other one at the best quality.

    It has no more bytes than the original if that takes nothing but fewer colours or a lower
    quality, and no more than the limit in any case.
    """
    image = source.at_size(request.size_for(source.part))
    request = _drop_short_formats(request, image.size)
    if image.mode == "RGBA":  # a JPEG would lose the transparency
        formats = tuple(kind for kind in request.formats if kind != JPEG)
        request = replace(request, formats=formats if {PNG, WEBP} & {*formats} else (PNG,))
    wanted = min(original_bytes, request.max_bytes)
    if is_flat(image, SHARP_FLAT_SHARE):
        is_scaled = image.size != (source.part.width, source.part.height)
        if is_scaled and _is_smaller_as_jpeg(image, request):
            jpeg = encoders.jpeg(image, SHARP_QUALITY, full_colour=True)
            if len(jpeg.data) <= wanted:
                return jpeg
        tried: list[Candidate] = []
        for flat in _encode_flat(image, request, SHARP_COLOURS, wanted):
            if len(flat.data) <= wanted:
                return flat
            tried.append(flat)
        smallest = min(tried, key=lambda one: len(one.data), default=None)
        if smallest is not None and len(smallest.data) <= request.max_bytes:
            return smallest
    return _encode_photo(image, request, wanted)


def _drop_short_formats(request: FitRequest, size: tuple[int, int]) -> FitRequest:
    """The request without the formats that cannot have a picture of that size."""
    longest = max(size)
    formats = [kind for kind in request.formats if longest <= encoders.MAX_EDGE.get(kind, longest)]
    return replace(request, formats=tuple(formats or request.formats))


def _is_smaller_as_jpeg(image: Image.Image, request: FitRequest) -> bool:
    """Whether a sharp JPEG has fewer bytes than an encoding without loss, as some rows show.

    It also takes a fifth of the time.
    """
    if JPEG not in request.formats:
        return False
    sharp = partial(encoders.jpeg, quality=SHARP_QUALITY, full_colour=True)
    without_loss = lossless_webp if WEBP in request.formats else encoders.png
    return estimate_bytes(image, sharp) < estimate_bytes(image, without_loss)


def _encode_flat(
    image: Image.Image, request: FitRequest, colours: Sequence[int], wanted_bytes: int
) -> Iterator[Candidate]:
    """The picture without loss, then in fewer and fewer colours, in the formats that can."""
    quick = request.mode == "fast"
    if WEBP not in request.formats:
        if PNG in request.formats:
            yield encoders.png(image)
    elif not quick:
        first = lossless_webp(image)
        yield first
        if len(first.data) <= wanted_bytes * THOROUGH_GAIN:
            yield lossless_webp(image, thorough=True)
    elif _may_stay_lossless(image, wanted_bytes):
        yield lossless_webp(image)
    if PNG in request.formats:
        yield from (encoders.palette_png(image, count, quick=quick) for count in colours)


def _may_stay_lossless(image: Image.Image, max_bytes: int) -> bool:
    """Whether a lossless WebP may be under the limit, as far as some rows show."""
    return estimate_bytes(image, lossless_webp) <= max_bytes * LOSSLESS_MARGIN


def _encode_photo(full: Image.Image, request: FitRequest, wanted_bytes: int) -> Candidate:
    """The picture as JPEG, or another allowed format: lower quality first, then a smaller size.

    The quality is lowered until the picture has ``wanted_bytes``. The size is lowered only if the
    picture is still over the limit of the request.
    """
    image, quality = full, BEST_QUALITY
    if not {JPEG, WEBP} & set(request.formats):
        quality = LEAST_QUALITY  # a PNG has no quality: only a smaller size makes it smaller
    tried: list[Candidate] = []
    while len(tried) < _MAX_TRIES:
        candidate = _encode_lossy(image, quality, request)
        tried.append(candidate)
        excess = len(candidate.data) / wanted_bytes
        if excess <= 1:
            return candidate
        if quality > LEAST_QUALITY:
            quality = max(LEAST_QUALITY, min(quality - 4, _quality_for(quality, excess)))
            continue
        excess = len(candidate.data) / request.max_bytes
        if excess <= 1:
            return candidate
        # The bytes grow with the area; a little less, so that the next try fits.
        factor = 0.97 / math.sqrt(excess)
        width, height = (max(1, int(edge * factor)) for edge in image.size)
        if (width, height) == image.size:
            break
        image = resize(full, (width, height), (0, 0, *full.size))
    return min(tried, key=lambda candidate: len(candidate.data))


def _encode_lossy(image: Image.Image, quality: int, request: FitRequest) -> Candidate:
    if JPEG in request.formats:
        return encoders.jpeg(image, quality, full_colour=request.mode == "sharp")
    if WEBP in request.formats:
        return encoders.webp(image, quality)
    return encoders.png(image)


def _quality_for(quality: int, excess: float) -> int:
    """The quality at which a JPEG is smaller by about the factor ``excess``."""
    # Between 40 and 90 the bytes are roughly proportional to (101 - quality) ** -0.8.
    return int(101 - (101 - quality) * excess**1.25)
