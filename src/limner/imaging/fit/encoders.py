"""Pixels -> the bytes of one format. Runs inside a worker only."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import msgspec
from PIL import Image

from limner.imaging.fit.request import JPEG, PNG, WEBP
from limner.imaging.gradients import bands, steps
from limner.imaging.orientation import on_white

# The share of pixels that equal their neighbour: photographs have next to none.
FLAT_SHARE = 0.45
_BAND_ROWS = 48


def is_flat(image: Image.Image) -> bool:
    """Whether large parts of a picture are of one colour."""
    if image.width < 2:
        return True
    counts = [steps(band) for band in bands(image, rows=_BAND_ROWS)]
    return sum(count[0] for count in counts) >= FLAT_SHARE * sum(map(sum, counts))


# Slower levels hardly save anything. On a photograph a PNG cannot win, and level 1 shows that three
# times as fast.
_PNG_LEVEL_FLAT, _PNG_LEVEL_PHOTO = 4, 1
# Less than half the time of the usual method 4, for a few percent more bytes.
_WEBP_METHOD = 2
_PALETTE_COLOURS = 256


class Candidate(msgspec.Struct, frozen=True):
    """One encoding of a picture at one size."""

    mime: str
    data: bytes
    size: tuple[int, int]


def jpeg(image: Image.Image, quality: int, *, full_colour: bool = False) -> Candidate:
    """As JPEG; transparency is shown on white. ``full_colour`` keeps coloured edges sharp."""
    picture = on_white(image)
    out = BytesIO()
    picture.save(out, "JPEG", quality=quality, subsampling=0 if full_colour else 2)
    return Candidate(JPEG, out.getvalue(), image.size)


def webp(image: Image.Image, quality: int) -> Candidate:
    """As lossy WebP."""
    out = BytesIO()
    image.save(out, "WEBP", quality=quality, method=_WEBP_METHOD)
    return Candidate(WEBP, out.getvalue(), image.size)


def lossless_webp(image: Image.Image) -> Candidate:
    """As lossless WebP, by the quickest method."""
    out = BytesIO()
    image.save(out, "WEBP", lossless=True, quality=0, method=0)
    return Candidate(WEBP, out.getvalue(), image.size)


def png(image: Image.Image, most: Callable[[], int]) -> Candidate | None:
    """As PNG, or None as soon as it has more bytes than ``most`` says at that moment."""
    out = _Bounded(most)
    level = _PNG_LEVEL_FLAT if is_flat(image) else _PNG_LEVEL_PHOTO
    try:
        image.save(out, "PNG", compress_level=level)
    except _OutgrownError:
        return None
    return Candidate(PNG, out.getvalue(), image.size)


def whole_png(image: Image.Image) -> Candidate:
    """As PNG, however large."""
    whole = png(image, lambda: 2**63)
    assert whole is not None
    return whole


def palette_png(image: Image.Image) -> Candidate:
    """As PNG of 256 colours, which flat pictures hardly miss."""
    colours = image.quantize(_PALETTE_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    out = BytesIO()
    colours.save(out, "PNG", compress_level=_PNG_LEVEL_FLAT)
    return Candidate(PNG, out.getvalue(), image.size)


class _OutgrownError(Exception):
    """A file has grown past the point at which it could still be chosen."""


class _Bounded(BytesIO):
    """A file that refuses to grow past a limit, which may come down while it is written."""

    def __init__(self, most: Callable[[], int]) -> None:
        super().__init__()
        self._most = most

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        written = super().write(data)
        if self.tell() > self._most():
            raise _OutgrownError
        return written
