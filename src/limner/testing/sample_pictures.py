"""A size and a colour -> the bytes of a PNG, without an image library."""

from __future__ import annotations

import struct
import zlib


def make_png(width: int, height: int, *, pixel: bytes) -> bytes:
    """A PNG of one colour; ``pixel`` is red, green, blue and alpha."""
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    rows = zlib.compress((b"\x00" + pixel * width) * height, 1)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", rows), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
