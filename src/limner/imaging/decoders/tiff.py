"""TIFF bytes -> an opened page, with Pillow; grey of any depth becomes grey of eight bits.

This module walks the list of pages, since Pillow would parse every page before the wanted one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import cast

from PIL import Image, TiffImagePlugin

from limner.errors import ImageTooLarge
from limner.imaging.decoders import OpenedPicture, check_page
from limner.imaging.decoders.part_reader import is_large
from limner.imaging.decoders.tiff_blocks import TiffLayout, TiffReader
from limner.imaging.limits import WorkerLimits

MAX_PAGES = 65_536

_WHITE_IS_ZERO = 0
_BYTE_MODES = frozenset({"L", "RGB", "RGBA"})
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
    if is_large(image.size, limits):
        reader = _reader(data, starts[page - 1], image, limits)
        orientation = reader.orientation
        return OpenedPicture(image=image, pages=len(starts), orientation=orientation, reader=reader)
    if image.mode in _DEEP_GREY:
        image = _to_eight_bits(image)
    return OpenedPicture(image=image, pages=len(starts))


def _reader(data: bytes, start: int, image: Image.Image, limits: WorkerLimits) -> TiffReader:
    def finish(block: Image.Image) -> Image.Image:
        return _to_eight_bits(block) if block.mode in _DEEP_GREY else block

    if image.mode in _DEEP_GREY and not image.mode.startswith("I;16"):
        # Which value is white is known only when all of them have been seen.
        raise ImageTooLarge(
            "grey of 32 bits cannot be read in parts", hint="save it with 8 or 16 bits"
        )
    return TiffReader(
        data,
        start,
        info=image.info,
        finish=finish,
        plain_mode=_plain_mode(image),
        limits=limits,
    )


def _plain_mode(image: Image.Image) -> str | None:
    """The mode of an image if Pillow would take its decompressed bytes as they are."""
    assert isinstance(image, TiffImagePlugin.TiffImageFile)
    raw_modes = {cast("tuple[object, ...]", tile.args)[0] for tile in image.tile}
    return image.mode if image.mode in _BYTE_MODES and raw_modes == {image.mode} else None


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
    layout = TiffLayout(data)
    start = layout.number(layout.first_at, layout.offset)
    while start:
        count = layout.number(start, layout.count)
        if count is None:
            return
        entries = start + struct.calcsize(layout.count)
        yield start, not (count and layout.is_reduced(entries))
        start = layout.number(entries + count * layout.entry_bytes, layout.offset)


def _with_first_page(data: bytes, start: int) -> bytes:
    """The file with another page as its first."""
    layout = TiffLayout(data)
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
