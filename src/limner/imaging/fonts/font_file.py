"""A font file -> its tables, and the glyph and the width of each character."""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Self

import msgspec


class FontFile(msgspec.Struct, frozen=True, kw_only=True):
    """A TrueType or OpenType font, or the first font of a collection.

    ``tables`` are the offset and the length of each table in ``data``.
    """

    data: mmap.mmap
    tables: Mapping[str, tuple[int, int]]
    units_per_em: int
    widths: tuple[int, ...]

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path) -> Generator[Self]:
        """Map a file into memory. A collection for CJK has 19 MB, of which little is read."""
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = struct.unpack_from(">I", data, 12)[0] if data[:4] == b"ttcf" else 0
            count = struct.unpack_from(">H", data, start + 4)[0]
            rows = (struct.unpack_from(">4s3I", data, start + 12 + 16 * at) for at in range(count))
            tables = {tag.decode("ascii"): (offset, length) for tag, _, offset, length in rows}
            metrics_count = struct.unpack_from(">H", data, tables["hhea"][0] + 34)[0]
            yield cls(
                data=data,
                tables=tables,
                units_per_em=struct.unpack_from(">H", data, tables["head"][0] + 18)[0],
                widths=struct.unpack_from(f">{metrics_count * 2}H", data, tables["hmtx"][0])[::2],
            )

    def advance(self, glyph: int) -> float:
        """The width of a glyph, in parts of the font size."""
        return self.widths[min(glyph, len(self.widths) - 1)] / self.units_per_em

    def characters(self) -> Iterator[tuple[int, int]]:
        """Each character and its glyph, from the table of all planes or that of the basic plane."""
        cmap = self.tables["cmap"][0]
        count = struct.unpack_from(">H", self.data, cmap + 2)[0]
        starts = (
            cmap + struct.unpack_from(">I", self.data, cmap + 8 + 8 * place)[0]
            for place in range(count)
        )
        known = {struct.unpack_from(">H", self.data, start)[0]: start for start in starts}
        pairs = self._groups(known[12]) if 12 in known else self._segments(known[4])
        return ((code, glyph) for code, glyph in pairs if glyph)

    def _groups(self, start: int) -> Iterator[tuple[int, int]]:
        count = struct.unpack_from(">I", self.data, start + 12)[0]
        for first, last, glyph in struct.iter_unpack(
            ">3I", self.data[start + 16 : start + 16 + 12 * count]
        ):
            yield from zip(
                range(first, last + 1), range(glyph, glyph + last - first + 1), strict=True
            )

    def _segments(self, start: int) -> Iterator[tuple[int, int]]:
        data = self.data
        doubled = struct.unpack_from(">H", data, start + 6)[0]
        count = doubled // 2
        ends = struct.unpack_from(f">{count}H", data, start + 14)
        starts = struct.unpack_from(f">{count}H", data, start + 16 + doubled)
        deltas = struct.unpack_from(f">{count}h", data, start + 16 + 2 * doubled)
        offsets_at = start + 16 + 3 * doubled
        offsets = struct.unpack_from(f">{count}H", data, offsets_at)
        for place in range(count):
            for code in range(starts[place], min(ends[place], 0xFFFE) + 1):
                glyph = code
                if offsets[place]:
                    at = offsets_at + 2 * place + offsets[place] + 2 * (code - starts[place])
                    glyph = struct.unpack_from(">H", data, at)[0]
                    if not glyph:
                        continue
                yield code, (glyph + deltas[place]) & 0xFFFF


@cache
def known_characters(path: Path) -> frozenset[int]:
    """The characters that a font file can draw."""
    with FontFile.open(path) as font:
        return frozenset(code for code, _ in font.characters())
