"""A picture and a request -> what is sent: the original where it fits, else an encoding of it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import msgspec
from PIL import Image

from limner.imaging.decoders import OpenedPicture
from limner.imaging.fit import encoders
from limner.imaging.fit.encoders import Candidate, is_flat
from limner.imaging.fit.ladder import descend
from limner.imaging.fit.request import JPEG, PNG, WEBP, FitRequest, Fitted, inside
from limner.imaging.fit.source import DecodedSource, lanczos
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits

BEST_QUALITY = 88
LEAST_QUALITY = 40
_MAX_TRIES = 12


def encode_once(source: DecodedSource, request: FitRequest) -> Candidate:
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


def encode_quickly(
    source: DecodedSource, request: FitRequest, aside: ThreadPoolExecutor
) -> Candidate:
    """One encoding; the specified way where that is over the limit or would lose transparency."""
    if JPEG in request.formats:
        part = source.part
        image = source.at(inside((part.width, part.height), request.max_width, request.max_height))
        if image.mode != "RGBA":
            made = encoders.jpeg(image, request.quality, full_colour=True)
            if len(made.data) <= request.max_bytes:
                return made
    return descend(source, request, aside)


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """Fits pictures inside one worker; ``aside`` is its second thread."""

    aside: ThreadPoolExecutor
    limits: WorkerLimits

    def fit(
        self,
        data: bytes,
        request: FitRequest,
        *,
        opened: tuple[Format, OpenedPicture] | None = None,
    ) -> tuple[Fitted, bytes]:
        """What is to be sent; ``opened`` is the first page of it, where that was opened before.

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
        may_stay = _needs_no_change(source, request)
        if may_stay and request.passes(source.mime, len(data)):
            return _described(source, original, untouched=True)
        match request.mode:
            case "seed":
                chosen = descend(source, request, self.aside)
            case "fast":
                chosen = encode_once(source, request)
            case "quick":
                chosen = encode_quickly(source, request, self.aside)
                if may_stay and len(data) <= min(len(chosen.data), request.max_bytes):
                    return _described(source, original, untouched=True)
        return _described(source, chosen, untouched=False)


def _needs_no_change(source: DecodedSource, request: FitRequest) -> bool:
    """Whether the picture is whole, upright, within the box and of a type that may be sent."""
    return (
        source.is_whole
        and source.is_upright
        and request.holds(source.size)
        and source.mime in request.formats
    )


def _described(
    source: DecodedSource, chosen: Candidate, *, untouched: bool
) -> tuple[Fitted, bytes]:
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
