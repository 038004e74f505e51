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


# Slower levels save almost nothing. For a photograph a PNG is never the smallest.
_PNG_LEVEL_FLAT, _PNG_LEVEL_PHOTO = 4, 1
# The bytes of an encoding are estimated from rows at this many places, spread over the picture.
_SAMPLE_PLACES = 8
# The rows of a block of JPEG and WebP.
_BLOCK_ROWS = 16
# The most that a format takes for its header and tables: those of a JPEG.
_HEADER_BYTES = 640
# The longest edge that a format can have; PNG has none.
MAX_EDGE = {JPEG: 65_500, WEBP: 16_383}
# Less than half the time of the default method 4, for a few percent more bytes.
_WEBP_METHOD = 2


class Candidate(msgspec.Struct, frozen=True):
    """One encoding of a picture at one size."""

    mime: str
    data: bytes
    size: tuple[int, int]


Encode = Callable[[Image.Image], Candidate]


def jpeg(image: Image.Image, quality: int, *, full_colour: bool = False) -> Candidate:
    """Encode as JPEG; transparency becomes white. ``full_colour`` keeps coloured edges sharp."""
    picture = flatten_on_white(image)
    out = BytesIO()
    # Pillow would write the comment of the original.
    picture.save(out, "JPEG", quality=quality, subsampling=0 if full_colour else 2, comment=b"")
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


def png(image: Image.Image) -> Candidate:
    """Encode as PNG, without loss."""
    level = _PNG_LEVEL_FLAT if is_flat(image) else _PNG_LEVEL_PHOTO
    out = BytesIO()
    image.save(out, "PNG", compress_level=level)
    return Candidate(PNG, out.getvalue(), image.size)


def estimate_bytes(image: Image.Image, encode: Encode, *, rows: int = _BLOCK_ROWS) -> float:
    """About how many bytes an encoding has, from ``rows`` rows of the picture at eight places.

    0 if it is as well encoded in full: it has few rows, or little in them.
    """
    width, height = image.size
    if height < 2 * _SAMPLE_PLACES * rows:
        return 0
    sample = Image.new(image.mode, (width, _SAMPLE_PLACES * rows))
    for place in range(_SAMPLE_PLACES):
        top = (2 * place + 1) * height // (2 * _SAMPLE_PLACES) - rows // 2
        sample.paste(image.crop((0, top, width, top + rows)), (0, place * rows))
    return max(0, len(encode(sample).data) - _HEADER_BYTES) * height / sample.height


def palette_png(image: Image.Image, colours: int, *, quick: bool = False) -> Candidate:
    """Encode as PNG with at most 256 colours, which is nearly lossless for flat pictures.

    ``quick`` chooses the colours from one pixel in 25, in a tenth of the time.
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
    size = max(1, image.width // 5), max(1, image.height // 5)
    palette = _reduce(image.resize(size, Image.Resampling.NEAREST), colours)
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def is_flat(image: Image.Image, share: float = FLAT_SHARE) -> bool:
    """Whether at least that share of a picture has one colour."""
    if image.width < 2:
        return True
    counts = [steps(band) for band in bands(image, rows=_BAND_ROWS)]
    return sum(count[0] for count in counts) >= share * sum(map(sum, counts))
