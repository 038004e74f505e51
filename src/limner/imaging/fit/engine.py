"""A picture and a request -> the bytes to send: the original if it fits, else an encoding."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import msgspec
from PIL import Image

from limner.imaging.decoders import OpenedPicture
from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate, is_flat
from limner.imaging.fit.ladder import descend
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, Fitted
from limner.imaging.fit.source import DecodedSource, resize
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits

BEST_QUALITY = 88
LEAST_QUALITY = 40
_MAX_TRIES = 12


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
            page=request.page,
            opened=opened if request.page == 1 else None,
        )
        original = Candidate(source.mime, data, source.size)
        can_pass = _can_pass_through(source, request)
        if can_pass and request.allows_unchanged(source.mime, len(data)):
            return _result(source, original, untouched=True)
        match request.mode:
            case "seed":
                chosen = descend(source, request, self.thread)
            case "fast":
                chosen = encode_fast(source, request)
            case "quick":
                chosen = encode_quick(source, request, self.thread)
                if can_pass and len(data) <= min(len(chosen.data), request.max_bytes):
                    return _result(source, original, untouched=True)
        return _result(source, chosen, untouched=False)


def _can_pass_through(source: DecodedSource, request: FitRequest) -> bool:
    """Whether the picture is whole, upright, within the box and of a type that may be sent."""
    return (
        source.is_whole
        and source.is_upright
        and request.box_contains(source.size)
        and source.mime in request.formats
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
    if is_flat(image) and (flat := _encode_flat(image, request)) is not None:
        return flat
    return _encode_photo(image, request)


def _encode_flat(image: Image.Image, request: FitRequest) -> Candidate | None:
    """The picture without loss, or nearly so; None if that is over the limit."""
    max_bytes = request.max_bytes
    exact = few_colours = None
    if WEBP in request.formats:
        exact = encoders.lossless_webp(image)
    elif PNG in request.formats:
        exact = encoders.png(image, lambda: max_bytes)
    if exact is not None and len(exact.data) <= max_bytes:
        return exact
    if PNG in request.formats:
        few_colours = encoders.palette_png(image)
    return few_colours if few_colours is not None and len(few_colours.data) <= max_bytes else None


def _encode_photo(full: Image.Image, request: FitRequest) -> Candidate:
    """The picture as JPEG, or another allowed format: lower quality first, then a smaller size."""
    image, quality = full, BEST_QUALITY
    if not {JPEG, WEBP} & set(request.formats):
        quality = LEAST_QUALITY  # a PNG has no quality: only a smaller size makes it smaller
    tried: list[Candidate] = []
    while len(tried) < _MAX_TRIES:
        candidate = _encode_lossy(image, quality, request)
        tried.append(candidate)
        excess = len(candidate.data) / request.max_bytes
        if excess <= 1:
            return candidate
        if quality > LEAST_QUALITY:
            quality = max(LEAST_QUALITY, min(quality - 4, _quality_for(quality, excess)))
            continue
        # The bytes grow with the area; a little less, so that the next try fits.
        factor = 0.97 / math.sqrt(excess)
        width, height = (max(1, int(edge * factor)) for edge in image.size)
        if (width, height) == image.size:
            break
        image = resize(full, (width, height), (0, 0, *full.size))
    return min(tried, key=lambda candidate: len(candidate.data))


def _encode_lossy(image: Image.Image, quality: int, request: FitRequest) -> Candidate:
    if JPEG in request.formats:
        return encoders.jpeg(image, quality)
    if WEBP in request.formats:
        return encoders.webp(image, quality)
    return encoders.unbounded_png(image)


def _quality_for(quality: int, excess: float) -> int:
    """The quality at which a JPEG is smaller by about the factor ``excess``."""
    # Between 40 and 90 the bytes are roughly proportional to (101 - quality) ** -0.8.
    return int(101 - (101 - quality) * excess**1.25)


def encode_quick(
    source: DecodedSource, request: FitRequest, thread: ThreadPoolExecutor
) -> Candidate:
    """One JPEG; the specified ladder if that is over the limit or would lose transparency."""
    if JPEG in request.formats:
        image = source.at_size(request.size_for(source.part))
        if image.mode != "RGBA":
            made = encoders.jpeg(image, request.quality, full_colour=True)
            if len(made.data) <= request.max_bytes:
                return made
    return descend(source, request, thread)
