"""A file, healthy or not -> where its parts begin and end and which of its bytes are numbers."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Order = Literal["big", "little", "text"]

# A damaged file may claim any number of parts; so many are enough to choose from.
_MOST_PARTS = 2_000


@dataclass(frozen=True, slots=True)
class Number:
    """Bytes that a decoder reads as a number: a length, an offset, an edge, a type."""

    start: int
    size: int
    order: Order


@dataclass(frozen=True, slots=True)
class Anatomy:
    """What a mutator needs to know about a file.

    The bytes that a type is known by are mostly left out: without them no decoder is reached.
    """

    parts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    numbers: list[Number] = field(default_factory=list[Number])

    def part(self, start: int, end: int) -> None:
        """Note a part."""
        if len(self.parts) < _MOST_PARTS and end > start:
            self.parts.append((start, end))

    def row(self, start: int, order: Order, *sizes: int) -> None:
        """Note numbers of these sizes, one after the other."""
        for size in sizes:
            self.numbers.append(Number(start, size, order))
            start += size


def anatomy(kind: str, data: bytes) -> Anatomy:
    """The parts and numbers of a file of that type, as far as they can be followed."""
    found = Anatomy()
    _WALKS[kind](data, found)
    fits = [number for number in found.numbers if number.start + number.size <= len(data)]
    parts = [(start, min(end, len(data))) for start, end in found.parts if start < len(data)]
    return Anatomy(parts or [(0, len(data))], fits)


def mend(kind: str, data: bytes) -> bytes:
    """The file with its checksums and outer length made right, so that a decoder reads on."""
    mender = _MENDERS.get(kind)
    return data if mender is None else mender(data)


def png_chunks(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Start, kind and end of every whole chunk."""
    start = 8
    while start + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            return
        yield start, kind, end
        start = end


def _png(data: bytes, found: Anatomy) -> None:
    for start, kind, end in png_chunks(data):
        found.part(start, end)
        found.row(start, "big", 4)
        if kind == b"IHDR":
            # Often, since everything after it depends on it.
            for _ in range(3):
                found.row(start + 8, "big", 4, 4, 1, 1, 1, 1, 1)
        if kind == b"fcTL":
            found.row(start + 8, "big", 4, 4, 4, 4, 4, 2, 2, 1, 1)
        if kind == b"acTL":
            found.row(start + 8, "big", 4, 4)


def _mend_png(data: bytes) -> bytes:
    out = bytearray(data)
    for start, _, end in png_chunks(data):
        out[end - 4 : end] = struct.pack(">I", zlib.crc32(data[start + 4 : end - 4]))
    return bytes(out)


def _jpeg(data: bytes, found: Anatomy) -> None:
    start = 2
    while data[start : start + 1] == b"\xff" and start + 4 <= len(data):
        marker, length = struct.unpack_from(">xBH", data, start)
        if marker in {0x01, 0xD8, 0xD9, 0xFF}:
            start += 2
            continue
        end = start + 2 + length
        found.part(start, end)
        found.row(start + 2, "big", 2)
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            found.row(start + 1, "big", 1)
            for _ in range(3):
                found.row(start + 4, "big", 1, 2, 2, 1, *[1] * 9)
        if marker == 0xDA:
            found.row(start + 4, "big", *[1] * 6)
            scan = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]").search(data, end)
            found.part(end, scan.start() if scan else len(data))
            end = scan.start() if scan else len(data)
        start = end


def _gif(data: bytes, found: Anatomy) -> None:
    found.row(6, "little", 2, 2, 1, 1, 1)
    start = 13 + _gif_palette(data[10:11])
    found.part(6, start)
    while start < len(data) and data[start] in {0x21, 0x2C}:
        begin = start
        if data[start] == 0x2C:
            for _ in range(3):
                found.row(start + 1, "little", 2, 2, 2, 2, 1)
            start += 10 + _gif_palette(data[start + 9 : start + 10])
            found.row(start, "little", 1)
            start += 1
        else:
            found.row(start + 1, "little", 1)
            start += 2
        while start < len(data) and data[start]:
            found.row(start, "little", 1)
            start += 1 + data[start]
        start += 1
        found.part(begin, start)


def _gif_palette(flags: bytes) -> int:
    return 3 * 2 ** ((flags[0] & 7) + 1) if flags and flags[0] & 0x80 else 0


# What follows the length of a chunk.
_WEBP_ROWS: dict[bytes, tuple[int, ...]] = {
    b"VP8X": (1, 3, 3, 3),
    b"ANIM": (4, 2),
    b"ANMF": (3, 3, 3, 3, 3, 1),
    b"VP8L": (1, 4),
    b"VP8 ": (3, 3, 2, 2),
}


def _webp(data: bytes, found: Anatomy, start: int = 12, end: int | None = None) -> None:
    if start == 12:
        found.row(4, "little", 4)
    end = len(data) if end is None else min(end, len(data))
    while start + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, start)
        after = start + 8 + length + length % 2
        found.part(start, after)
        found.row(start + 4, "little", 4)
        found.row(start + 8, "little", *_WEBP_ROWS.get(kind, ()))
        if kind == b"ANMF":
            _webp(data, found, start + 24, after)
        start = after


def _mend_webp(data: bytes) -> bytes:
    return data[:4] + struct.pack("<I", max(0, len(data) - 8)) + data[8:] if data[8:] else data


# Boxes that hold boxes, and how far in the first one begins.
_BOXES_WITHIN = {
    **dict.fromkeys((b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf", b"iprp", b"ipco"), 8),
    **dict.fromkeys((b"meta", b"iref"), 12),
    b"iinf": 14,
    b"stsd": 16,
}


def _boxes(data: bytes, found: Anatomy, start: int = 0, end: int | None = None) -> None:
    end = len(data) if end is None else min(end, len(data))
    while start + 8 <= end:
        length, kind = struct.unpack_from(">I4s", data, start)
        after = start + length if length >= 8 else end
        found.part(start, after)
        found.row(start, "big", 4)
        if inset := _BOXES_WITHIN.get(kind):
            _boxes(data, found, start + inset, after)
        elif kind == b"ispe":
            for _ in range(3):
                found.row(start + 12, "big", 4, 4)
        elif kind == b"mdat":
            # Its bytes reach the decoder of pixels, and nothing refers to their number.
            for _ in range(6):
                found.part(start + 8, after)
        elif length <= 200:
            found.row(start + 8, "big", *[2] * ((length - 8) // 2), *[4] * ((length - 8) // 8))
        start = after


def _tiff(data: bytes, found: Anatomy) -> None:
    order: Literal["big", "little"] = "big" if data[:1] == b"M" else "little"
    big = int.from_bytes(data[2:4], order) == 43
    # The widths of: how many entries, one entry's count, and an offset.
    counter, wide = (8, 8) if big else (2, 4)
    found.row(2, order, 2)
    at = 8 if big else 4
    found.row(at, order, wide)
    seen: set[int] = set()
    start = int.from_bytes(data[at : at + wide], order)
    while start not in seen and 0 < start < len(data) and len(seen) < 16:
        seen.add(start)
        found.row(start, order, counter)
        entries = int.from_bytes(data[start : start + counter], order)
        entry, size = start + counter, 4 + 2 * wide
        for _ in range(min(entries, 64)):
            found.part(entry, entry + size)
            found.row(entry, order, 2, 2, wide, wide)
            entry += size
        found.row(entry, order, wide)
        start = int.from_bytes(data[entry : entry + wide], order)


def _bmp(data: bytes, found: Anatomy) -> None:
    header = int.from_bytes(data[14:18], "little")
    pixels = int.from_bytes(data[10:14], "little")
    for start, end in ((10, 14), (14, 14 + header), (14 + header, pixels), (pixels, len(data))):
        found.part(start, end)
    found.row(2, "little", 4)
    found.row(10, "little", 4, 4)
    if header == 12:
        found.row(18, "little", 2, 2, 2, 2)
    else:
        found.row(18, "little", 4, 4, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4)


def _ico(data: bytes, found: Anatomy) -> None:
    found.row(2, "little", 2, 2)
    for entry in range(6, 6 + 16 * min(int.from_bytes(data[4:6], "little"), 64), 16):
        found.part(entry, entry + 16)
        found.row(entry, "little", 1, 1, 1, 1, 2, 2, 4, 4)
        size, start = struct.unpack_from("<II", data.ljust(entry + 16), entry + 8)
        found.part(start, start + size)
        # The header of a bitmap, or the first chunk of a PNG.
        found.row(start, "little", 4, 4, 4, 2, 2, 4, 4)


def _pdf(data: bytes, found: Anatomy) -> None:
    whole = rb"\d+ \d+ obj.*?endobj\s|xref\s.*?(?=trailer)|trailer.*?>>|startxref.*?%%EOF|stream"
    _text(data, found, part=whole, number=rb"-?\d+(?:\.\d+)?|/\w+")


def _svg(data: bytes, found: Anatomy) -> None:
    # Elements without children and values of attributes: swapped, the document stays well formed.
    _text(data, found, part=rb"<[^<>]*/>", number=rb"(?<![/\w])-?\d+(?:\.\d+)?")
    _text(data, found, part=rb"(?<==)\"[^\"]*\"", number=rb"(?<=#)\w+")


def _text(data: bytes, found: Anatomy, *, part: bytes, number: bytes) -> None:
    for match in re.finditer(part, data, re.DOTALL):
        found.part(*match.span())
    for match in re.finditer(number, data):
        found.row(match.start(), "text", len(match[0]))


_WALKS: dict[str, Callable[[bytes, Anatomy], None]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
    "avif": _boxes,
    "heic": _boxes,
    "tiff": _tiff,
    "bmp": _bmp,
    "ico": _ico,
    "pdf": _pdf,
    "svg": _svg,
}
_MENDERS: dict[str, Callable[[bytes], bytes]] = {"png": _mend_png, "webp": _mend_webp}
