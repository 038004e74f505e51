"""Words in a font -> their width, and lines that fit: text is measured here and drawn by a worker.

The widths come from the font files themselves, so no image library is needed. Kerning is ignored:
it makes text a little narrower, never wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path

import msgspec

from limner.imaging.fonts import (
    ALL_FONTS,
    CJK,
    FOLDER,
    FONTS,
    INSTALL_CJK,
    JOINERS,
    FontStyle,
    cjk_font,
)
from limner.imaging.fonts.font_file import FontFile

LINE_HEIGHT = 1.25
# A character that no font has is drawn as a box of about this width.
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
        known = self.advances
        return (known[ord(char)] if ord(char) in known else _other_advance(char) for char in text)


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
    return _read_metrics(FOLDER / (files.bold if bold else files.regular))


@cache
def _cjk_metrics() -> FontMetrics:
    """The metrics of the font of ``limner[cjk]``; no characters if it is not installed."""
    path = cjk_font()
    return _read_metrics(path) if path else FontMetrics({})


@cache
def _other_metrics() -> FontMetrics:
    """The metrics of each character in the first bundled font that has it."""
    paths = [FOLDER / font.regular for font in reversed(ALL_FONTS)]
    known = (_read_metrics(path).advances for path in paths)
    advances = {code: advance for font in known for code, advance in font.items()}
    return FontMetrics(advances | dict.fromkeys(map(ord, JOINERS), 0.0))


def _other_advance(char: str) -> float:
    """The advance of a character that the font of its text does not have."""
    font = _cjk_metrics() if CJK.match(char) else _other_metrics()
    return font.advances.get(ord(char), _UNKNOWN_WIDTH)


def _read_metrics(path: Path) -> FontMetrics:
    with FontFile.open(path) as font:
        return FontMetrics({code: font.advance(glyph) for code, glyph in font.characters()})


def width(text: str, size: float, style: FontStyle = "sans", *, bold: bool = False) -> float:
    """The width of one line of text, in pixels."""
    return metrics(style, bold=bold).width(text, size)


def missing_characters(text: str) -> str:
    """The characters of a text that no font can draw, each once."""
    # Every font has ASCII, and most texts have nothing else. A lone surrogate is no character.
    visible = text.encode(errors="ignore").decode()
    others = [char for char in dict.fromkeys(visible) if not char.isascii() and not char.isspace()]
    return "".join(char for char in others if not _is_known(char))


def _is_known(char: str) -> bool:
    fonts = (_cjk_metrics(), _other_metrics()) if CJK.match(char) else (_other_metrics(),)
    return any(ord(char) in font.advances for font in fonts)


def missing_note(text: str) -> list[str]:
    """What the author of a text should know about characters that cannot be drawn, if any."""
    missing = missing_characters(text)
    if not missing:
        return []
    note = f"No bundled font has these characters: {missing[:60]}"
    if CJK.search(missing) and cjk_font() is None:
        note += f"; {INSTALL_CJK} adds Chinese, Japanese and Korean."
    return [note]


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
