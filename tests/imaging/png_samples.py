"""PNG files of every kind, built chunk by chunk, and damaged streams of pixels."""

from __future__ import annotations

import random
import struct
import zlib

from imaging_samples import chunk

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colour type and bit depth of every kind of PNG.
KINDS = [
    *((0, depth) for depth in (1, 2, 4, 8, 16)),
    *((3, depth) for depth in (1, 2, 4, 8)),
    *((colour, depth) for colour in (2, 4, 6) for depth in (8, 16)),
]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
NOISE = random.Random(7).randbytes(1 << 18)
WIDTH, HEIGHT = 211, 157
PALETTE = chunk(b"PLTE", NOISE[:768])
# Where each of the seven passes of an interlaced picture begins, and its steps.
PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


def rows(width: int, height: int, bits: int) -> bytes:
    """Rows of noise and of nothing, each with one of the five filters."""
    length = (width * bits + 7) // 8
    lines = (NOISE[y : y + length] if y % 3 else bytes(length) for y in range(height))
    return b"".join(bytes([y % 5]) + line for y, line in enumerate(lines))


def pixel_data(colour: int, depth: int, *, interlaced: bool = False) -> bytes:
    bits = CHANNELS[colour] * depth
    if not interlaced:
        return rows(WIDTH, HEIGHT, bits)
    passes = (
        rows(-(-(WIDTH - x) // across), -(-(HEIGHT - y) // down), bits)
        for x, y, across, down in PASSES
    )
    return b"".join(passes)


def png(
    stream: bytes,
    colour: int = 2,
    depth: int = 8,
    *,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    interlaced: bool = False,
    step: int = 8192,
) -> bytes:
    """A PNG with that zlib stream, in chunks of ``step`` bytes."""
    header = struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, interlaced)
    parts = (stream[start : start + step] for start in range(0, len(stream), step))
    return b"".join(
        (
            SIGNATURE,
            chunk(b"IHDR", header),
            PALETTE if colour == 3 else b"",
            *(chunk(b"IDAT", part) for part in parts),
            chunk(b"tEXt", b"after\0the pixels"),
            chunk(b"IEND", b""),
        )
    )


STREAM = zlib.compress(pixel_data(2, 8), 6)
WHOLE = png(STREAM)
DAMAGED_STREAMS = [
    b"",
    STREAM[:1],
    STREAM[:2],
    STREAM[:-1],
    STREAM[:-4],
    STREAM[:-4] + bytes(4),
    STREAM[:-4] + bytes(400),
    STREAM + bytes(9),
    # Its end comes when a block of the decoder is full.
    zlib.compress(pixel_data(2, 8)[:65_535], 6) + bytes(9),
    b"\x78\xbb" + STREAM[2:],  # it names a dictionary
    b"\x08\x1d" + STREAM[2:],  # it claims a small window and does not keep to it
    zlib.compress(pixel_data(2, 8)[:-1]),
    zlib.compress(pixel_data(2, 8)[: 100 * (3 * WIDTH + 1)]),
    zlib.compress(pixel_data(2, 8) + b"more"),
    zlib.compress(pixel_data(2, 8) + bytes(1 << 20)),
    zlib.compress(b"\xff" + pixel_data(2, 8)[1:]),  # no such filter
]
