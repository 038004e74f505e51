"""The bytes of a small picture -> a `Fitted` if they can be sent unchanged, without a worker.

Nothing is decoded; only lengths and markers are parsed. This module accepts only simple files with
one upright picture. A worker judges all others.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from itertools import islice

from limner.errors import CorruptImage
from limner.imaging import gif_blocks
from limner.imaging.fit.request import GIF, JPEG, PNG, WEBP, FitRequest, Fitted, Region, Size
from limner.imaging.formats import sniff, webp_canvas

# Enough to recognize the four formats, without a search for the root tag of an SVG document.
_MAGIC_BYTES = 16

# The allowed bits per channel, by colour type: grey, RGB, palette, and two with alpha.
_PNG_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_PALETTE = 3
_PNG_PLAIN = frozenset({b"PLTE", b"IDAT"})
_PNG_FRAMES = frozenset({b"acTL", b"fcTL", b"fdAT"})

# Markers that may come before the pixels of a JPEG: codes, restarts, comments, and all application
# data except APP1, where EXIF and XMP can rotate the picture.
_HARMLESS_MARKERS = frozenset({0xC4, 0xDD, 0xFE, *range(0xE0, 0xF0)} - {0xE1})


def pass_through(data: bytes, request: FitRequest, *, max_pixels: int) -> Fitted | None:
    """The result for a file that can be sent unchanged; None if a worker must decide."""
    form = sniff(data[:_MAGIC_BYTES])
    if form is None or form.mime not in _SIZES or request.region is not None or request.page != 1:
        return None
    if not request.allows_unchanged(form.mime, len(data)):
        return None
    try:
        size = _SIZES[form.mime](data)
    except (CorruptImage, IndexError, ValueError, struct.error):
        return None
    if size is None or not 0 < size[0] * size[1] <= max_pixels or not request.box_contains(size):
        return None
    width, height = size
    return Fitted(
        mime=form.mime,
        width=width,
        height=height,
        original_width=width,
        original_height=height,
        part=Region(x=0, y=0, width=width, height=height),
        animated=False,
        untouched=True,
    )


def _png_size(data: bytes) -> Size | None:
    length, kind, width, height, depth, colour = struct.unpack_from(">I4sIIBB", data, 8)
    compression, filtering, interlace = data[26:29]
    if (length, kind, compression, filtering) != (13, b"IHDR", 0, 0) or b"eXIf" in data:
        return None
    if interlace > 1 or depth not in _PNG_DEPTHS.get(colour, ()):
        return None
    start, has_palette = 8, False
    while kind != b"IDAT":
        end = start + 8 + length
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(data[start + 4 : end]) != checksum:
            return None
        start = end + 4
        length, kind = struct.unpack_from(">I4s", data, start)
        has_palette |= kind == b"PLTE"
        # A capital letter marks a chunk that a decoder must understand.
        if kind not in _PNG_PLAIN and (kind in _PNG_FRAMES or kind[:1].isupper()):
            return None
        if not kind.isalpha():
            return None
    return (width, height) if has_palette or colour != _PNG_PALETTE else None


def _jpeg_size(data: bytes) -> Size | None:
    size = None
    start = 2
    while data[start] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, start + 1)
        end = start + 2 + length
        if marker == 0xDA:  # pixels follow
            return size if end <= len(data) else None
        if marker in {0xC0, 0xC1, 0xC2} and size is None:
            depth, height, width, channels = struct.unpack_from(">BHHB", data, start + 4)
            if depth != 8 or channels not in {1, 3, 4} or length != 8 + 3 * channels:
                return None
            size = width, height
        elif length < 2 or not _is_harmless(marker, data[start + 4 : end]):
            return None
        start = end
    return None


def _is_harmless(marker: int, body: bytes) -> bool:
    """Whether a segment neither rotates the picture nor has a length that decoders reject."""
    if marker != 0xDB:
        return marker in _HARMLESS_MARKERS
    # Quantization tables, of one or two bytes a number, one after the other.
    start = 0
    while start < len(body):
        start += 129 if body[start] >> 4 else 65
    return start == len(body)


def _gif_size(data: bytes) -> Size | None:
    width, height = gif_blocks.canvas(data)
    frames = list(islice(gif_blocks.frames(data), 2))
    if len(frames) != 1:
        return None
    _, _, right, bottom = frames[0]
    return (width, height) if right <= width and bottom <= height else None


def _webp_size(data: bytes) -> Size | None:
    whole, _, kind, length = struct.unpack_from("<I4s4sI", data, 4)
    # Exactly one chunk: the extended kind, VP8X, may contain EXIF or an animation.
    if whole != 12 + length + length % 2 or whole + 8 > len(data):
        return None
    tag = int.from_bytes(data[20:23], "little")
    is_key, version, is_shown, part_bytes = not tag & 1, tag >> 1 & 7, tag >> 4 & 1, tag >> 5
    if kind == b"VP8 " and is_key and version <= 3 and is_shown and part_bytes < length:
        return webp_canvas(data)
    # In the other kind the version, which must be 0, comes after the size.
    return webp_canvas(data) if kind == b"VP8L" and data[24] >> 5 == 0 else None


_SIZES: dict[str, Callable[[bytes], Size | None]] = {
    PNG: _png_size,
    JPEG: _jpeg_size,
    GIF: _gif_size,
    WEBP: _webp_size,
}
