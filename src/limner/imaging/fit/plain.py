"""The bytes of a small picture -> that it goes out as it is, which then needs no worker.

Nothing is decoded: lengths and markers are read, and that is all. Only the plainest files are
known here, those with one upright picture; every other one is for a worker to judge.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from limner.imaging.fit.dimensions import Size
from limner.imaging.fit.request import GIF, JPEG, PNG, WEBP, FitRequest, Fitted, Region
from limner.imaging.formats import sniff, webp_canvas

# Enough to tell the four formats, without a search for the first tag of a drawing.
_MAGIC_BYTES = 16

# What may stand before the pixels of a JPEG beside its size: tables, restarts, comments, and all
# application data but APP1, where EXIF and XMP can turn the picture.
_HARMLESS_MARKERS = frozenset({0xC4, 0xDB, 0xDD, 0xFE, *range(0xE0, 0xF0)} - {0xE1})


def as_it_is(data: bytes, request: FitRequest, *, max_pixels: int) -> Fitted | None:
    """What is to be said of a file that may be sent unchanged; None where a worker must look."""
    form = sniff(data[:_MAGIC_BYTES])
    if form is None or form.mime not in _SIZES or not request.passes(form.mime, len(data)):
        return None
    if request.region is not None or request.page != 1:
        return None
    try:
        size = _SIZES[form.mime](data)
    except (struct.error, IndexError):
        return None
    if size is None or not 0 < size[0] * size[1] <= max_pixels or not request.holds(size):
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
    length, kind, width, height = struct.unpack_from(">I4sII", data, 8)
    if (length, kind) != (13, b"IHDR") or b"eXIf" in data:
        return None
    start = 8
    while kind != b"IDAT":
        end = start + 8 + length
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(data[start + 4 : end]) != checksum:
            return None
        start = end + 4
        length, kind = struct.unpack_from(">I4s", data, start)
        # A capital letter marks what a decoder must understand; only the palette is plain.
        if kind == b"acTL" or (kind[:1].isupper() and kind not in {b"PLTE", b"IDAT"}):
            return None
    return width, height


def _jpeg_size(data: bytes) -> Size | None:
    size = None
    start = 2
    while data[start] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, start + 1)
        if marker == 0xDA:  # pixels follow
            return size
        if marker in {0xC0, 0xC1, 0xC2} and size is None:
            height, width = struct.unpack_from(">HH", data, start + 5)
            size = width, height
        elif marker not in _HARMLESS_MARKERS or length < 2:
            return None
        start += 2 + length
    return None


def _gif_size(data: bytes) -> Size | None:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    start = 13 + _colour_table_bytes(flags)
    pictures = 0
    while data[start] != 0x3B:  # the end
        if data[start] == 0x21:
            start += 2
        elif data[start] == 0x2C and not pictures:
            pictures = 1
            left, top, across, down, flags = struct.unpack_from("<HHHHB", data, start + 1)
            if left + across > width or top + down > height:
                return None
            start += 11 + _colour_table_bytes(flags)
        else:
            return None
        while data[start]:
            start += 1 + data[start]
        start += 1
    return (width, height) if pictures else None


def _colour_table_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _webp_size(data: bytes) -> Size | None:
    (length,) = struct.unpack_from("<I", data, 4)
    # The extended kind, VP8X, may hold EXIF or an animation.
    if length + 8 > len(data) or data[12:16] not in {b"VP8 ", b"VP8L"}:
        return None
    return webp_canvas(data)


_SIZES: dict[str, Callable[[bytes], Size | None]] = {
    PNG: _png_size,
    JPEG: _jpeg_size,
    GIF: _gif_size,
    WEBP: _webp_size,
}
