"""A font file and characters -> a small WOFF font with these characters, for an SVG file.

Glyphs keep their numbers, so the tables for kerning and ligatures stay as they are. The outlines
of all other glyphs are left out. Only for fonts with TrueType outlines.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from limner.imaging.fonts.font_file import FontFile

# A glyph that consists of others lists them with these flags.
_WORDS, _SCALE, _MORE, _TWO_SCALES, _MATRIX = 0x0001, 0x0008, 0x0020, 0x0040, 0x0080
# Signatures and hints for the whole font have no meaning for a part of it.
_LEFT_OUT = frozenset(("DSIG", "hdmx", "VDMX", "LTSH", "meta"))


def subset_font(path: Path, characters: str) -> bytes:
    """The part of a font that draws some characters, with its kerning and its ligatures."""
    with FontFile.open(path) as font:
        wanted = set(map(ord, characters))
        cmap = {code: glyph for code, glyph in font.characters() if code in wanted}
        kept = _Glyphs(font).complete({0, *cmap.values()})
        tables = {
            tag: font.data[start : start + length]
            for tag, (start, length) in font.tables.items()
            if tag not in _LEFT_OUT
        }
    tables |= _outlines(tables, kept)
    tables["hmtx"] = _widths(tables["hmtx"], kept, len(font.widths))
    tables["cmap"] = _character_map(cmap)
    # Version 3: no glyph has a name.
    tables["post"] = struct.pack(">I", 0x00030000) + tables["post"][4:32]
    return _write_woff(tables)


class _Glyphs:
    """Finds the glyphs that others need: their parts, and what they are replaced by."""

    def __init__(self, font: FontFile) -> None:
        self._parts = _read_outlines({tag: _table(font, tag) for tag in ("head", "loca", "glyf")})
        self._replaced = [*_substitutions(_table(font, "GSUB"))] if "GSUB" in font.tables else []
        self._layers = _colour_layers(_table(font, "COLR")) if "COLR" in font.tables else {}

    def complete(self, glyphs: set[int]) -> set[int]:
        known = set[int]()
        while glyphs != known:
            known = set(glyphs)
            for glyph in known:
                glyphs |= {*_components(self._parts[glyph]), *self._layers.get(glyph, ())}
            for inputs, outputs in self._replaced:
                if inputs <= known:
                    glyphs |= outputs
        return known


def _table(font: FontFile, tag: str) -> bytes:
    start, length = font.tables[tag]
    return font.data[start : start + length]


def _read_outlines(tables: dict[str, bytes]) -> list[bytes]:
    """The outline of each glyph."""
    is_long = struct.unpack_from(">h", tables["head"], 50)[0]
    loca = tables["loca"]
    size = 4 if is_long else 2
    places = struct.unpack(f">{len(loca) // size}{'I' if is_long else 'H'}", loca)
    scale = 1 if is_long else 2
    return [tables["glyf"][start * scale : end * scale] for start, end in pairwise(places)]


def _components(outline: bytes) -> Iterator[int]:
    """The glyphs that a glyph consists of."""
    if len(outline) < 10 or struct.unpack_from(">h", outline)[0] >= 0:
        return
    at, flags = 10, _MORE
    while flags & _MORE:
        flags, glyph = struct.unpack_from(">2H", outline, at)
        yield glyph
        at += 8 if flags & _WORDS else 6
        at += 2 if flags & _SCALE else 4 if flags & _TWO_SCALES else 8 if flags & _MATRIX else 0


def _colour_layers(colr: bytes) -> dict[int, list[int]]:
    """The glyphs that lie on each other in a coloured one."""
    _, count, bases_at, layers_at, layer_count = struct.unpack_from(">2H2IH", colr)
    bases = struct.iter_unpack(">3H", colr[bases_at : bases_at + 6 * count])
    rows = struct.iter_unpack(">2H", colr[layers_at : layers_at + 4 * layer_count])
    layers = [glyph for glyph, _ in rows]
    return {glyph: layers[first : first + number] for glyph, first, number in bases}


def _substitutions(gsub: bytes) -> Iterator[tuple[set[int], set[int]]]:
    """Glyphs, and the glyphs that a font may put in their place, in any language and context."""
    for lookup in _offsets(gsub, struct.unpack_from(">H", gsub, 8)[0]):
        kind = struct.unpack_from(">H", gsub, lookup)[0]
        for table in _offsets(gsub, lookup, skip=4):
            # Other kinds only say where these apply.
            if kind == 1:
                yield from _singles(gsub, table)
            elif kind in {2, 3}:
                covered = _coverage(gsub, table)
                for glyph, choices in zip(covered, _offsets(gsub, table, skip=4), strict=False):
                    yield {glyph}, set(_numbers(gsub, choices))
            elif kind == 4:
                yield from _ligatures(gsub, table)


def _singles(gsub: bytes, table: int) -> Iterator[tuple[set[int], set[int]]]:
    form, _, value = struct.unpack_from(">HHh", gsub, table)
    covered = _coverage(gsub, table)
    if form == 1:
        yield from (({glyph}, {(glyph + value) & 0xFFFF}) for glyph in covered)
    else:
        others = _numbers(gsub, table + 4)
        yield from (({one}, {other}) for one, other in zip(covered, others, strict=False))


def _ligatures(gsub: bytes, table: int) -> Iterator[tuple[set[int], set[int]]]:
    for first, rows in zip(_coverage(gsub, table), _offsets(gsub, table, skip=4), strict=False):
        for row in _offsets(gsub, rows):
            made, count = struct.unpack_from(">2H", gsub, row)
            rest = struct.unpack_from(f">{count - 1}H", gsub, row + 4)
            yield {first, *rest}, {made}


def _coverage(gsub: bytes, table: int) -> list[int]:
    start = table + struct.unpack_from(">H", gsub, table + 2)[0]
    form, count = struct.unpack_from(">2H", gsub, start)
    if form == 1:
        return [*struct.unpack_from(f">{count}H", gsub, start + 4)]
    rows = struct.iter_unpack(">3H", gsub[start + 4 : start + 4 + 6 * count])
    return [glyph for first, last, _ in rows for glyph in range(first, last + 1)]


def _numbers(data: bytes, start: int) -> tuple[int, ...]:
    """A list of numbers that starts with its length."""
    count = struct.unpack_from(">H", data, start)[0]
    return struct.unpack_from(f">{count}H", data, start + 2)


def _offsets(data: bytes, start: int, *, skip: int = 0) -> list[int]:
    """A list of places, each counted from the start of its table; ``skip`` bytes come before."""
    return [start + place for place in _numbers(data, start + skip)]


def _outlines(tables: dict[str, bytes], kept: set[int]) -> dict[str, bytes]:
    places, glyf = [0], bytearray()
    for glyph, outline in enumerate(_read_outlines(tables)):
        if glyph in kept:
            glyf += outline + bytes(-len(outline) % 4)
        places.append(len(glyf))
    # The sum over the whole file is 0: it held for the whole font. Places have 32 bits.
    old = tables["head"]
    head = old[:8] + bytes(4) + old[12:50] + struct.pack(">h", 1) + old[52:]
    return {"glyf": bytes(glyf), "loca": struct.pack(f">{len(places)}I", *places), "head": head}


def _widths(hmtx: bytes, kept: set[int], count: int) -> bytes:
    """The widths of the glyphs that are kept; those of the others are 0, which takes no room."""
    made = bytearray(hmtx)
    # The last width is also that of all glyphs after it.
    for glyph in range(count - 1):
        if glyph not in kept:
            made[glyph * 4 : glyph * 4 + 4] = bytes(4)
    return bytes(made)


def _character_map(cmap: dict[int, int]) -> bytes:
    groups = b"".join(struct.pack(">3I", code, code, cmap[code]) for code in sorted(cmap))
    header = struct.pack(">4HI", 0, 1, 3, 10, 12)
    return header + struct.pack(">2H3I", 12, 0, 16 + len(groups), 0, len(cmap)) + groups


def _write_woff(tables: dict[str, bytes]) -> bytes:
    rows, body = b"", bytearray()
    start = 44 + 20 * len(tables)
    for tag in sorted(tables):
        data = tables[tag]
        padded = data + bytes(-len(data) % 4)
        checksum = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        # Data of the same length count as not compressed.
        packed = min(data, zlib.compress(data, 9), key=len)
        place = start + len(body)
        rows += struct.pack(">4s4I", tag.encode(), place, len(packed), len(data), checksum)
        body += packed + bytes(-len(packed) % 4)
    whole = 12 + sum(16 + len(data) + -len(data) % 4 for data in tables.values())
    size = start + len(body)
    header = struct.pack(
        ">4s2I2HI2H5I", b"wOFF", 0x00010000, size, len(tables), 0, whole, 1, 0, 0, 0, 0, 0, 0
    )
    return header + rows + bytes(body)
