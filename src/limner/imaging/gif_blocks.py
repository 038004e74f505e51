"""GIF bytes -> the canvas and the rectangles of its frames, from its blocks, without decoding."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from limner.errors import CorruptImage

Rectangle = tuple[int, int, int, int]

_HEADER_BYTES = 13
# An extension, a frame, or the end. Other bytes between blocks are skipped, as decoders do.
_BLOCK = re.compile(rb"[!,;]")


def canvas(data: bytes) -> tuple[int, int]:
    """Width and height that the header claims; a frame may still be larger.

    Raises:
        CorruptImage: the file ends within its header.
    """
    if len(data) < _HEADER_BYTES:
        raise _truncated(data)
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def frames(data: bytes) -> Iterator[Rectangle]:
    """Left, top, right and bottom of each frame in turn; a missing end marker is accepted.

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
        raise _truncated(data) from None


def _colour_table_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _truncated(data: bytes) -> CorruptImage:
    return CorruptImage(f"the GIF file is cut short after {len(data)} bytes")
