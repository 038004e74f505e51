"""GIF bytes -> where its frames lie, found by walking its blocks; nothing is decoded."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from limner.errors import CorruptImage

Rectangle = tuple[int, int, int, int]

_HEADER_BYTES = 13
# An extension, a frame, or the end. What else stands between blocks is skipped, as decoders do.
_BLOCK = re.compile(rb"[!,;]")


def canvas(data: bytes) -> tuple[int, int]:
    """Width and height that the header claims; a frame may still reach beyond.

    Raises:
        CorruptImage: the file ends within its header.
    """
    if len(data) < _HEADER_BYTES:
        raise _cut_short(data)
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def frames(data: bytes) -> Iterator[Rectangle]:
    """Left, top, right and bottom of each frame in turn; a missing end mark is no damage.

    Raises:
        CorruptImage: the file ends within a block.
    """
    try:
        start = _HEADER_BYTES + _colour_table_bytes(data[10])
        while (block := _BLOCK.search(data, start)) and block[0] != b";":
            start = block.end() + 1
            if block[0] == b",":
                left, top, width, height, flags = struct.unpack_from("<HHHHB", data, start - 1)
                yield left, top, left + width, top + height
                start += 9 + _colour_table_bytes(flags)
            while data[start]:
                start += 1 + data[start]
            start += 1
    except (IndexError, struct.error):
        raise _cut_short(data) from None


def _colour_table_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _cut_short(data: bytes) -> CorruptImage:
    return CorruptImage(f"the GIF file is cut short after {len(data)} bytes")
