"""The bytes of a large PNG -> its rows, a few at a time.

A group of rows becomes a small PNG: the row before the group, unfiltered, and then the rows as they
are in the file. Pillow undoes their filters, since a filter looks at the row above and no further.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO

from PIL import Image

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging import png_chunks
from limner.imaging.decoders.part_reader import GROUP_PIXELS, BlockReader, Box, Size
from limner.imaging.decoders.png_check import SAMPLES
from limner.imaging.formats import PNG_SIGNATURE
from limner.imaging.limits import WorkerLimits

# The colour type without a palette, by samples of a pixel.
_PLAIN_COLOUR = {1: 0, 2: 4, 3: 2, 4: 6}
_PALETTE = 3
_INPUT_BYTES = 1 << 16
_MAX_ROW_BYTES = 16 << 20


class PngReader(BlockReader):
    """Inflates the pixels as they are needed, and stops behind the last row of a part.

    Raises:
        ImageTooLarge: the rows cannot be read one after the other.
    """

    def __init__(self, data: bytes, image: Image.Image, limits: WorkerLimits) -> None:
        super().__init__(data, image.size, max_pixels=limits.max_pixels)
        self._image = image
        self._depth, self._colour, _, _, interlaced = data[24:29]
        if interlaced:
            raise ImageTooLarge(
                "an interlaced PNG of more than 100 megapixels cannot be read by rows",
                hint="save it without interlacing",
            )
        self._samples = SAMPLES[self._colour]
        self._row_bytes = (self.size[0] * self._samples * self._depth + 7) // 8
        if self._row_bytes > _MAX_ROW_BYTES:
            raise ImageTooLarge(f"a row of the PNG has {self._row_bytes >> 20} MiB")

    def _blocks(self, box: Box) -> Iterator[tuple[Image.Image, Size]]:
        width, height = self.size
        count = max(1, GROUP_PIXELS // width)
        source = _Inflater(self.data)
        above = b""
        for top in range(0, min(height, box[3]), count):
            rows = min(count, height - top)
            filtered = source.read(rows * (self._row_bytes + 1))
            if len(filtered) < rows * (self._row_bytes + 1):
                raise CorruptImage(f"the pixels of the PNG end after row {top}")
            plain = self._undo_filters(above, filtered, rows)
            above = plain.crop((0, rows - 1, plain.width, rows)).tobytes()
            if top + rows > box[1]:
                yield self._to_pixels(plain), (0, top)

    def _undo_filters(self, above: bytes, filtered: bytes, rows: int) -> Image.Image:
        """The rows as an image of their bytes; of 16 bits only the upper eight count."""
        if self._depth == 16:
            length = self._row_bytes + 1
            starts = range(0, len(filtered), length)
            # A filter never mixes the upper bytes of samples with the lower ones.
            filtered = b"".join(
                filtered[at : at + 1] + filtered[at + 1 : at + length : 2] for at in starts
            )
        # Samples of less than a byte are filtered as bytes.
        across = self.size[0] if self._depth >= 8 else self._row_bytes
        colour = _PLAIN_COLOUR[self._samples]
        body = b"\0" + above + filtered if above else filtered
        header = struct.pack(">IIBBBBB", across, rows + bool(above), 8, colour, 0, 0, 0)
        small = b"".join(
            (
                PNG_SIGNATURE,
                _chunk(b"IHDR", header),
                _chunk(b"IDAT", zlib.compress(body, 0)),
                _chunk(b"IEND", b""),
            )
        )
        image = Image.open(BytesIO(small), formats=["PNG"])
        return image.crop((0, bool(above), across, rows + bool(above)))

    def _to_pixels(self, plain: Image.Image) -> Image.Image:
        if self._colour == _PALETTE or self._depth < 8:
            mode = self._image.mode
            raw = "P" if mode == "P" else "L"
            raw = f"{raw};{self._depth}" if self._depth < 8 else raw
            raw = "1" if mode == "1" else raw
            size = self.size[0], plain.height
            plain = Image.frombytes(mode, size, plain.tobytes(), "raw", raw)
            if self._image.palette is not None:
                plain.putpalette(self._image.palette)
        plain.info = dict(self._image.info)
        if self._depth == 16 and self._samples == 1:
            # It names a grey of 16 bits. Pillow leaves it out too.
            plain.info.pop("transparency", None)
        return plain


class _Inflater:
    """The pixel data of a PNG, inflated as it is read."""

    def __init__(self, data: bytes) -> None:
        self._parts = _pixel_data(data)
        self._inflate = zlib.decompressobj()
        self._input = b""

    def read(self, count: int) -> bytes:
        """The next bytes; fewer if the data ends."""
        found = bytearray()
        while len(found) < count and not self._inflate.eof:
            self._input = self._input or next(self._parts, b"")
            if not self._input:
                break
            try:
                found += self._inflate.decompress(self._input, count - len(found))
            except zlib.error as error:
                raise CorruptImage(f"the pixels of the PNG are damaged: {error}") from None
            self._input = self._inflate.unconsumed_tail
        return bytes(found)


def _pixel_data(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for chunk in png_chunks.walk(BytesIO(data)):
        if chunk.kind == b"IDAT":
            end = min(chunk.start + chunk.length, len(data))
            for start in range(chunk.start, end, _INPUT_BYTES):
                yield bytes(view[start : min(start + _INPUT_BYTES, end)])


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(body, zlib.crc32(kind))
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
