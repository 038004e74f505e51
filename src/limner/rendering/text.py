"""Words in a font -> their width, and lines that fit: text is measured here and drawn by a worker.

The widths come from the bundled font files themselves, so no image library is needed. Kerning is
ignored: it makes text a little narrower, never wider.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate

import msgspec

from limner.imaging.fonts import FOLDER, FONTS, FontStyle

LINE_HEIGHT = 1.25
# A character that no bundled font has is drawn as a box of about this width.
_UNKNOWN_WIDTH = 0.6
_MAX_LINE_CHARS = 500


class FontMetrics(msgspec.Struct, frozen=True):
    """The advance of each character, in parts of the font size."""

    advances: Mapping[int, float]

    def width(self, text: str, size: float) -> float:
        """The width of one line, in pixels."""
        return size * sum(self.each(text))

    def each(self, text: str) -> Iterator[float]:
        """The advance of each character of a text."""
        return (self.advances.get(ord(char), _UNKNOWN_WIDTH) for char in text)


class TextLines(msgspec.Struct, frozen=True, kw_only=True):
    """Text that was broken into lines of at most a width."""

    lines: tuple[str, ...]
    size: float
    width: float

    @property
    def line_height(self) -> float:
        """The distance from one line to the next."""
        return self.size * LINE_HEIGHT

    @property
    def height(self) -> float:
        """The height of all lines."""
        return self.line_height * len(self.lines)


@cache
def metrics(style: FontStyle = "sans", *, bold: bool = False) -> FontMetrics:
    """The metrics of a bundled font."""
    files = FONTS[style]
    data = (FOLDER / (files.bold if bold else files.regular)).read_bytes()
    tables = _tables(data)
    units = struct.unpack_from(">H", data, tables["head"] + 18)[0]
    count = struct.unpack_from(">H", data, tables["hhea"] + 34)[0]
    pairs = struct.unpack_from(f">{count * 2}H", data, tables["hmtx"])
    widths = pairs[::2]
    return FontMetrics(
        {
            code: widths[min(glyph, count - 1)] / units
            for code, glyph in _glyphs(data, tables["cmap"])
            if glyph
        }
    )


def width(text: str, size: float, style: FontStyle = "sans", *, bold: bool = False) -> float:
    """The width of one line of text, in pixels."""
    return metrics(style, bold=bold).width(text, size)


def missing_characters(text: str) -> str:
    """The characters of a text that no bundled font can draw, each once."""
    known = [metrics(style).advances for style in FONTS]
    return "".join(
        char
        for char in dict.fromkeys(text)
        if not char.isspace() and not any(ord(char) in advances for advances in known)
    )


def missing_note(text: str) -> list[str]:
    """What the author of a text should know about characters that cannot be drawn, if any."""
    missing = missing_characters(text)
    return [f"No bundled font has these characters: {missing[:60]}"] if missing else []


def wrap(
    text: str, size: float, max_width: float, style: FontStyle = "sans", *, bold: bool = False
) -> TextLines:
    """Break a text at its blanks, and a word that is too long anywhere."""
    font = metrics(style, bold=bold)
    blank = font.width(" ", size)
    lines: list[str] = []
    widest = 0.0
    for paragraph in text.split("\n"):
        line: list[str] = []
        used = 0.0
        for word, wide in _pieces(paragraph.split(), font, size, max_width):
            if line and used + blank + wide > max_width:
                lines.append(" ".join(line))
                line, used = [], 0.0
            used += blank + wide if line else wide
            widest = max(widest, used)
            line.append(word)
        lines.append(" ".join(line))
    return TextLines(lines=tuple(lines), size=size, width=widest)


def shorten(
    text: str, size: float, max_width: float, style: FontStyle = "sans", *, bold: bool = False
) -> str:
    """One line of at most a width; what does not fit is replaced by an ellipsis."""
    font = metrics(style, bold=bold)
    if font.width(text, size) <= max_width:
        return text
    room = max_width - font.width("…", size)
    return f"{text[: _fitting(text, font, size, room)].rstrip()}…"


def _pieces(
    words: list[str], font: FontMetrics, size: float, max_width: float
) -> Iterator[tuple[str, float]]:
    """Words with their widths; a word that is too long comes in pieces."""
    for word in words:
        wide = font.width(word, size)
        if wide <= max_width:
            yield word, wide
            continue
        start = 0
        while start < len(word):
            # No more characters than these can fit, however narrow they are.
            ahead = word[start : start + _MAX_LINE_CHARS]
            piece = ahead[: max(_fitting(ahead, font, size, max_width), 1)]
            yield piece, font.width(piece, size)
            start += len(piece)


def _fitting(text: str, font: FontMetrics, size: float, room: float) -> int:
    """How many of the first characters fit into a room."""
    ends = accumulate(font.each(text))
    return next((place for place, end in enumerate(ends) if end * size > room), len(text))


def _tables(data: bytes) -> dict[str, int]:
    """The offset of each table of a TrueType file, by its name."""
    count = struct.unpack_from(">H", data, 4)[0]
    entries = (struct.unpack_from(">4s3I", data, 12 + 16 * place) for place in range(count))
    return {tag.decode("ascii"): offset for tag, _, offset, _ in entries}


def _glyphs(data: bytes, cmap: int) -> Iterator[tuple[int, int]]:
    """Each character and its glyph, from the table for the basic plane that every font has."""
    count = struct.unpack_from(">H", data, cmap + 2)[0]
    for place in range(count):
        start = cmap + struct.unpack_from(">I", data, cmap + 8 + 8 * place)[0]
        if struct.unpack_from(">H", data, start)[0] == 4:
            yield from _segments(data, start)
            return


def _segments(data: bytes, start: int) -> Iterator[tuple[int, int]]:
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
