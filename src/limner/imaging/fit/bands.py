"""A picture -> a smaller one, band by band, with the SIMD library of an extra.

The library first scales the height, then the width, and between the two it holds the old width at
the new height. So a large picture is scaled in bands of rows. If it is not decoded yet, each band
is scaled while the rows below it are decoded, and its rows are freed.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections import deque
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Any, cast

from PIL import Image, ImageFile

from limner.imaging.fit.request import Size

# The library of the extra has no types.
_simd: Any = None
with suppress(ImportError):
    _simd = import_module("cykooz_resizer")

Box = tuple[float, float, float, float]
# The first row of a band, and the first row behind it.
Band = tuple[int, int]

# The most pixels of the old width and the new height that the library holds. Each band computes the
# weights of Lanczos again, so small ones are only for pictures whose rows are freed meanwhile.
_BAND_PIXELS = 1_250_000
_FREED_BAND_PIXELS = 400_000
# The decoder waits if the other thread is so many bands behind it.
_BANDS_BEHIND = 2
# A pixel is made of those up to three pixels of the new size away.
_LANCZOS_REACH = 3
# These decoders of Pillow write whole rows, one after the other.
_ROW_DECODERS = frozenset({"jpeg", "zip"})
_PIXEL_BYTES = 4
# Less takes memory that the last picture has left, in less time.
_LEAST_BYTES = 16 << 20
_HUGE_PAGE_BYTES = 2 << 20


def is_installed() -> bool:
    """Whether the library can be used."""
    return _simd is not None


def resize(
    image: Image.Image, size: Size, box: Box, thread: ThreadPoolExecutor | None = None
) -> Image.Image:
    """Resize the part of a decoded image inside ``box`` (left, top, right, bottom).

    ``thread`` scales every second band.
    """
    bands = _Bands(image, size, box, max_pixels=_BAND_PIXELS)
    if thread is None or len(bands.edges) == 1:
        bands.scale(*bands.edges)
    else:
        other = thread.submit(bands.scale, *bands.edges[1::2])
        try:
            bands.scale(*bands.edges[::2])
        finally:
            other.result()
    bands.scaled.info = dict(image.info)
    return bands.scaled


def can_decode(image: Image.Image, size: Size) -> bool:
    """Whether `decode_and_resize` takes the image: a large one whose rows come in order."""
    return (
        sys.platform == "linux"
        and is_installed()
        and isinstance(image, ImageFile.ImageFile)
        and [tile.codec_name in _ROW_DECODERS for tile in image.tile] == [True]
        and image.mode == "RGB"
        and not image.info.get("interlace")
        and not image.has_transparency_data
        and image.size != size
        and image.width * image.height * _PIXEL_BYTES >= _LEAST_BYTES
    )


def decode_and_resize(image: Image.Image, size: Size, thread: ThreadPoolExecutor) -> Image.Image:
    """Decode an image, and resize its rows on another thread as soon as they are decoded."""
    file = cast("Any", image)
    load_read = file.load_read
    rows = _Rows(image.size)
    bands = _Bands(rows.image, size, (0, 0, *image.size), max_pixels=_FREED_BAND_PIXELS)
    waiting = deque(bands.edges)
    started: list[Future[None]] = []

    def scale(band: Band) -> None:
        bands.scale(band)
        rows.free(bands.first_row_after(band))

    def read(count: int) -> bytes:
        while waiting and bands.end_of_rows(waiting[0]) <= rows.count_decoded():
            started.append(thread.submit(scale, waiting.popleft()))
            if len(started) > _BANDS_BEHIND:  # else a slow thread would need all rows in memory
                started[-1 - _BANDS_BEHIND].result()
        return load_read(count)

    # Pillow calls this each time its decoder has used what it was given before.
    file.im, file.load_read = rows.image.im, read
    try:
        image.load()
    except BaseException:
        for job in started:
            job.cancel()
        futures.wait(started)  # the rows are theirs too
        raise
    finally:
        vars(image).pop("load_read", None)
    for job in started:
        job.result()
    if image.im is not rows.image.im:
        # The decoder gave up, and another one has decoded the whole file into its own memory.
        return resize(image, size, (0, 0, *image.size))
    bands.scale(*waiting)
    bands.scaled.info = dict(image.info)
    return bands.scaled


class _Bands:
    """The bands of a smaller picture, which are made one by one."""

    def __init__(self, image: Image.Image, size: Size, box: Box, *, max_pixels: int) -> None:
        self._image, self._box = image, box
        self._lanczos = _simd.ResizeAlg.convolution(_simd.FilterType.lanczos3)
        self.scaled = Image.new(image.mode, size)
        height = size[1]
        count = min(height, math.ceil((box[2] - box[0]) * height / max_pixels))
        self.edges: list[Band] = list(
            pairwise([height * number // count for number in range(count)] + [height])
        )

    def scale(self, *bands: Band) -> None:
        """Make bands, each from its rows and those around them."""
        resizer = _simd.Resizer()  # two threads cannot use the same one
        for band in bands:
            self._scale_one(band, resizer)

    def _scale_one(self, band: Band, resizer: Any) -> None:
        left, _, right, _ = self._box
        start, end = band
        first, last = self._old_row(start), min(self._old_row(end), self._image.height)
        crop = _simd.CropBox(left, first, right - left, last - first)
        options = _simd.ResizeOptions(resize_alg=self._lanczos, crop_box=crop)
        if len(self.edges) == 1:
            resizer.resize_pil(self._image, self.scaled, options)
            return
        made = Image.new(self.scaled.mode, (self.scaled.width, end - start))
        resizer.resize_pil(self._image, made, options)
        self.scaled.paste(made, (0, start))

    def end_of_rows(self, band: Band) -> int:
        """How many rows of the old picture have to be there."""
        return min(self._image.height, math.ceil(self._old_row(band[1] + _LANCZOS_REACH)) + 1)

    def first_row_after(self, band: Band) -> int:
        """The first row that the bands behind this one need."""
        return max(0, math.floor(self._old_row(band[1] - _LANCZOS_REACH)) - 1)

    def _old_row(self, row: int) -> float:
        _, top, _, bottom = self._box
        return top + (bottom - top) * row / self.scaled.height


class _Rows:
    """Memory for the rows of an RGB picture that is being decoded.

    The decoder sets the unused byte of each pixel, and memory from the system is zero. So this byte
    tells which rows are there. Huge pages take a tenth of the time of many small ones.
    """

    def __init__(self, size: Size) -> None:
        width, height = size
        self._row_bytes = width * _PIXEL_BYTES
        self._height, self._decoded, self._freed = height, 0, 0
        try:
            self._memory = mmap.mmap(
                -1, self._row_bytes * height, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            )
        except OSError as error:
            raise MemoryError from error
        with suppress(OSError):  # not every kernel has them
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        pillow = cast("Any", Image)
        mapped = pillow.core.map_buffer(self._memory, size, "raw", 0, ("RGB", 0, 1))
        self.image: Image.Image = pillow.new("RGB", (0, 0))._new(mapped)

    def count_decoded(self) -> int:
        """How many rows are there."""
        last_byte = _PIXEL_BYTES - 1
        while (
            self._decoded < self._height
            and self._memory[self._decoded * self._row_bytes + last_byte]
        ):
            self._decoded += 1
        return self._decoded

    def free(self, first: int) -> None:
        """Return the memory of all rows before that one to the system."""
        end = first * self._row_bytes // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES
        if end > self._freed:
            self._memory.madvise(mmap.MADV_DONTNEED, self._freed, end - self._freed)
            self._freed = end
