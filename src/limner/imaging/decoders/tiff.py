"""TIFF bytes -> an opened page, with Pillow; grey of any depth becomes grey of eight bits.

This module walks the list of pages, since Pillow would parse every page before the wanted one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from io import BytesIO

from PIL import Image, TiffImagePlugin

from limner.errors import ImageTooLarge
from limner.imaging.decoders import OpenedPicture, check_page
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels

MAX_PAGES = 65_536

_BIG_VERSION = 43
_SUBFILE_TYPE = 254
_SHORT = 3
_REDUCED = 1
_WHITE_IS_ZERO = 0
_DEEP_GREY = frozenset({"I;16", "I;16B", "I", "F"})


def tiff(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open one page, which Pillow turns upright itself when it decodes it.

    Large scans and maps contain smaller copies of a page; they do not count as pages.

    Raises:
        CorruptImage: the file does not have that page.
        ImageTooLarge: too many pages, or too many pixels.
    """
    # A file without a directory has no page; Pillow then reports that it is damaged.
    starts = _pages(data) or [0]
    check_page(page, len(starts))
    image = Image.open(BytesIO(_with_first_page(data, starts[page - 1])), formats=["TIFF"])
    check_pixels(image.size, max_pixels=limits.max_pixels)
    if image.mode in _DEEP_GREY:
        image = _to_eight_bits(image)
    return OpenedPicture(image=image, pages=len(starts))


def _pages(data: bytes) -> list[int]:
    """The offset of each page's directory; a chain that loops ends at the loop."""
    found: dict[int, bool] = {}
    for start, is_page in _directories(data):
        if start in found:
            break
        if len(found) == MAX_PAGES:
            raise ImageTooLarge(f"the TIFF file has more than {MAX_PAGES:,} pages")
        found[start] = is_page
    return [start for start, is_page in found.items() if is_page] or list(found)


def _directories(data: bytes) -> Iterator[tuple[int, bool]]:
    """The offset of each directory in the chain, and whether it is a page, not a smaller copy."""
    layout = _Layout(data)
    start = layout.number(layout.first_at, layout.offset)
    while start:
        count = layout.number(start, layout.count)
        if count is None:
            return
        entries = start + struct.calcsize(layout.count)
        yield start, not (count and layout.is_reduced(entries))
        start = layout.number(entries + count * layout.entry_bytes, layout.offset)


class _Layout:
    """How one file stores numbers: their byte order, and 64 bits in a BigTIFF."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<" if data[:2] == b"II" else ">"
        self.is_big = self.number(2, "H") == _BIG_VERSION
        self.first_at = 8 if self.is_big else 4
        self.offset = "Q" if self.is_big else "I"
        self.count = "Q" if self.is_big else "H"
        self.entry_bytes = 20 if self.is_big else 12

    def number(self, at: int, kind: str) -> int | None:
        """The number at an offset; None behind the end of the file."""
        size = struct.calcsize(kind)
        if at + size > len(self._data):
            return None
        return int.from_bytes(self._data[at : at + size], "little" if self._order == "<" else "big")

    def packed(self, number: int) -> bytes:
        """An offset in the encoding of this file."""
        return struct.pack(self._order + self.offset, number)

    def is_reduced(self, entry: int) -> bool:
        """Whether the first entry of a directory (entries are sorted) marks a smaller copy."""
        if self.number(entry, "H") != _SUBFILE_TYPE:
            return False
        kind = "H" if self.number(entry + 2, "H") == _SHORT else "I"
        value = self.number(entry + (12 if self.is_big else 8), kind) or 0
        return bool(value & _REDUCED)


def _with_first_page(data: bytes, start: int) -> bytes:
    """The file with another page as its first."""
    layout = _Layout(data)
    if layout.number(layout.first_at, layout.offset) == start:
        return data
    pointer = layout.packed(start)
    return data[: layout.first_at] + pointer + data[layout.first_at + len(pointer) :]


def _to_eight_bits(image: Image.Image) -> Image.Image:
    """Scale grey of 16 or 32 bits or of floats to 0 to 255; Pillow would clip it."""
    assert isinstance(image, TiffImagePlugin.TiffImageFile)
    bits: tuple[int, ...] = image.tag_v2.get(TiffImagePlugin.BITSPERSAMPLE, (16,))
    inverted = image.tag_v2.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == _WHITE_IS_ZERO
    image.load()
    if image.mode.startswith("I;16"):
        black, white = 0.0, 2.0 ** bits[0] - 1
    else:
        black, white = _range(image)
    if inverted:
        black, white = white, black
    scale = 255 / (white - black)
    offset = 0.5 - black * scale
    wide = image.convert("I").convert("F") if image.mode == "I;16B" else image.convert("F")
    return wide.point(lambda value: value * scale + offset).convert("L")


def _range(image: Image.Image) -> tuple[float, float]:
    """The values of black and white: 0 and 1 for fractions, else the smallest and the largest."""
    low, high = image.convert("F").getextrema()
    assert isinstance(low, float)
    assert isinstance(high, float)
    if not (math.isfinite(low) and math.isfinite(high)) or (low >= 0 and high <= 1) or low == high:
        return 0.0, 1.0
    return low, high
