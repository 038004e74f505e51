"""Pixels -> the bytes of one format. Runs inside a worker only."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import msgspec
from PIL import Image

from limner.imaging.fit.request import JPEG, PNG, WEBP
from limner.imaging.gradients import bands, steps
from limner.imaging.orientation import flatten_on_white

# A picture is flat from this share of pixels that equal their neighbour; photographs have few.
FLAT_SHARE = 0.45
_BAND_ROWS = 48


# Slower levels save almost nothing. For a photograph a PNG is never the smallest, and level 1 finds
# that out three times as fast.
_PNG_LEVEL_FLAT, _PNG_LEVEL_PHOTO = 4, 1
# Less than half the time of the default method 4, for a few percent more bytes.
_WEBP_METHOD = 2


class Candidate(msgspec.Struct, frozen=True):
    """One encoding of a picture at one size."""

    mime: str
    data: bytes
    size: tuple[int, int]


def jpeg(image: Image.Image, quality: int, *, full_colour: bool = False) -> Candidate:
    """Encode as JPEG; transparency becomes white. ``full_colour`` keeps coloured edges sharp."""
    picture = flatten_on_white(image)
    out = BytesIO()
    picture.save(out, "JPEG", quality=quality, subsampling=0 if full_colour else 2)
    return Candidate(JPEG, out.getvalue(), image.size)


def webp(image: Image.Image, quality: int) -> Candidate:
    """Encode as lossy WebP."""
    out = BytesIO()
    image.save(out, "WEBP", quality=quality, method=_WEBP_METHOD)
    return Candidate(WEBP, out.getvalue(), image.size)


def lossless_webp(image: Image.Image, *, thorough: bool = False) -> Candidate:
    """Encode as lossless WebP.

    With a picture on a screen, ``thorough`` takes six times as long, for a tenth to a quarter fewer
    bytes.
    """
    out = BytesIO()
    image.save(out, "WEBP", lossless=True, quality=20, method=1 if thorough else 0)
    return Candidate(WEBP, out.getvalue(), image.size)


def png(image: Image.Image, max_bytes: Callable[[], int]) -> Candidate | None:
    """Encode as PNG; None as soon as it has more bytes than ``max_bytes`` returns then."""
    out = _BoundedFile(max_bytes)
    level = _PNG_LEVEL_FLAT if is_flat(image) else _PNG_LEVEL_PHOTO
    try:
        image.save(out, "PNG", compress_level=level)
    except _TooLargeError:
        return None
    return Candidate(PNG, out.getvalue(), image.size)


def unbounded_png(image: Image.Image) -> Candidate:
    """Encode as PNG of any length."""
    made = png(image, lambda: 2**63)
    assert made is not None
    return made


def palette_png(image: Image.Image, colours: int, *, quick: bool = False) -> Candidate:
    """Encode as PNG with at most 256 colours, which is nearly lossless for flat pictures.

    ``quick`` chooses the colours from one pixel in nine, in a sixth of the time.
    """
    out = BytesIO()
    reduced = _reduce_quickly(image, colours) if quick else _reduce(image, colours)
    reduced.save(out, "PNG", compress_level=_PNG_LEVEL_FLAT)
    return Candidate(PNG, out.getvalue(), image.size)


def _reduce(image: Image.Image, colours: int) -> Image.Image:
    # The better method cannot keep transparency.
    method = Image.Quantize.MEDIANCUT if image.mode == "RGB" else Image.Quantize.FASTOCTREE
    return image.quantize(colours, method, dither=Image.Dither.NONE)


def _reduce_quickly(image: Image.Image, colours: int) -> Image.Image:
    if image.mode != "RGB":
        return _reduce(image, colours)
    size = max(1, image.width // 3), max(1, image.height // 3)
    palette = _reduce(image.resize(size, Image.Resampling.NEAREST), colours)
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def is_flat(image: Image.Image, share: float = FLAT_SHARE) -> bool:
    """Whether at least that share of a picture has one colour."""
    if image.width < 2:
        return True
    counts = [steps(band) for band in bands(image, rows=_BAND_ROWS)]
    return sum(count[0] for count in counts) >= share * sum(map(sum, counts))


class _TooLargeError(Exception):
    """The file is larger than another candidate, so it cannot be chosen."""


class _BoundedFile(BytesIO):
    """A file with a size limit that may become lower while the file is written."""

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        count = super().write(data)
        if self.tell() > self._max_bytes():
            raise _TooLargeError
        return count
