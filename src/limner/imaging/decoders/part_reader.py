"""A picture with too many pixels for memory -> a part of it, reduced while it is decoded.

Most formats are decoded block by block. Each block is averaged down by whole factors and put into
its place, so memory holds one block and the reduced part, never the whole picture.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from io import BytesIO
from typing import cast

from PIL import Image, ImageChops, JpegImagePlugin

from limner.errors import ImageTooLarge
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels, convert_to_scalable

Box = tuple[int, int, int, int]
FloatBox = tuple[float, float, float, float]
Size = tuple[int, int]

# The most pixels of one block. Blocks that are smaller are decoded in groups of about GROUP_PIXELS,
# so that few of them meet within one pixel of the reduced part.
MAX_BLOCK_PIXELS = 32_000_000
GROUP_PIXELS = 4_000_000
# A part is reduced to at least this many times the wanted size; Lanczos does the rest.
_REDUCING_GAP = 2.0
# A picture is verified at about this size, which the fit that often follows can use.
_VERIFIED_EDGE = 2048
_JPEG_FACTORS = (8, 4, 2, 1)
_RAISE_LIMIT = "scale the picture down first, or set images.max_megapixels"


def is_large(size: Size, limits: WorkerLimits) -> bool:
    """Whether a picture has to be read in parts.

    Raises:
        ImageTooLarge: it has more pixels than can be read in parts.
    """
    if size[0] * size[1] <= limits.max_pixels:
        return False
    most = max(limits.max_pixels, limits.max_large_pixels)
    check_pixels(size, max_pixels=most, hint=_RAISE_LIMIT)
    return True


class PartReader(ABC):
    """Reads parts of one large picture; ``size`` is that of the stored picture, not upright.

    ``data`` is its file. The owner may take it away while no part is read.
    """

    def __init__(self, data: bytes, size: Size, *, max_pixels: int) -> None:
        self.data, self.size = data, size
        self._max_pixels = max_pixels
        self._kept: tuple[Box, Size, Image.Image] | None = None

    def verify(self) -> None:
        """Decode the whole picture; what is left of it serves a later `read`."""
        width, height = self.size
        # Before Lanczos, a part has up to four times the wanted pixels across and down.
        affordable = math.sqrt(self._max_pixels / (width * height)) / 4
        scale = min(affordable, _VERIFIED_EDGE / max(self.size))
        self.read((0, 0, width, height), (width * scale, height * scale))

    def read(self, box: Box, size: tuple[float, float]) -> tuple[Image.Image, FloatBox]:
        """The pixels inside a box, no fewer than that size needs, and the box in the result.

        Raises:
            ImageTooLarge: they do not fit into memory.
            CorruptImage: the picture is damaged.
        """
        factors = self._factors(box, size)
        kept = self._kept
        if kept is not None and kept[0] == box and _is_enough(kept[1], factors):
            factors, image = kept[1:]
        else:
            self._kept = None
            image = self._read(box, factors)
            self._kept = box, factors, image
        return image, self._box_in(image, box, factors)

    @abstractmethod
    def _factors(self, box: Box, size: tuple[float, float]) -> Size:
        """By how much the part is reduced across and down."""

    @abstractmethod
    def _read(self, box: Box, factors: Size) -> Image.Image:
        """The reduced pixels of a box, or of more than it."""

    @abstractmethod
    def _box_in(self, image: Image.Image, box: Box, factors: Size) -> FloatBox:
        """Where the box is in what was read."""


def _is_enough(kept: Size, wanted: Size) -> bool:
    return kept[0] <= wanted[0] and kept[1] <= wanted[1]


class JpegReader(PartReader):
    """A JPEG is decoded as a whole at a half, a quarter or an eighth; libjpeg reads it by rows.

    Raises:
        ImageTooLarge: the decoder would have to hold the coefficients of the whole picture.
    """

    def __init__(self, data: bytes, image: Image.Image, limits: WorkerLimits) -> None:
        super().__init__(data, image.size, max_pixels=limits.max_pixels)
        self._image = cast("JpegImagePlugin.JpegImageFile", image)
        self._check_coefficients(limits)

    def _check_coefficients(self, limits: WorkerLimits) -> None:
        """A progressive JPEG says every part of the picture several times, a bit better each."""
        if not self._image.info.get("progressive"):
            return
        layers = self._image.layer
        most = max(across * down for _, across, down, _ in layers)
        samples = sum(across * down / most for _, across, down, _ in layers)
        need = int(2 * samples * self.size[0] * self.size[1])
        if need > limits.memory_bytes // 2:
            raise ImageTooLarge(
                f"a progressive JPEG of {self.size[0]}x{self.size[1]} needs {need >> 20} MiB",
                hint="convert it to a JPEG that is not progressive, or to a tiled TIFF",
            )

    def _factors(self, box: Box, size: tuple[float, float]) -> Size:
        across, down = (box[2] - box[0]) / size[0], (box[3] - box[1]) / size[1]
        factor = next(one for one in _JPEG_FACTORS if one <= max(1.0, min(across, down)))
        width, height = self.size
        least = next(one for one in (1, 2, 4, 8) if width * height <= self._max_pixels * one**2)
        if factor < least:
            raise ImageTooLarge(
                f"a JPEG of {width}x{height} can be read at 1/{least} of its size at most",
                hint=f"ask for a region of {math.ceil(size[0] * least)}x"
                f"{math.ceil(size[1] * least)} or more, or convert the picture to a tiled TIFF",
            )
        return factor, factor

    def _read(self, box: Box, factors: Size) -> Image.Image:
        # Pillow decodes an image once, so each size needs one of its own.
        image = Image.open(BytesIO(self.data), formats=["JPEG"])
        image.draft(None, (self.size[0] // factors[0], self.size[1] // factors[1]))
        image.load()
        return convert_to_scalable(image)

    def _box_in(self, image: Image.Image, box: Box, factors: Size) -> FloatBox:
        across, down = image.width / self.size[0], image.height / self.size[1]
        left, top, right, bottom = box
        end = min(right * across, image.width), min(bottom * down, image.height)
        return left * across, top * down, *end


class BlockReader(PartReader):
    """Decodes a picture block by block, and averages each block down."""

    @abstractmethod
    def _blocks(self, box: Box) -> Iterator[tuple[Image.Image, Size]]:
        """The blocks that touch a box, each with its place in the picture."""

    def _factors(self, box: Box, size: tuple[float, float]) -> Size:
        width, height = box[2] - box[0], box[3] - box[1]
        factors = (
            int(width / size[0] / _REDUCING_GAP) or 1,
            int(height / size[1] / _REDUCING_GAP) or 1,
        )
        reduced = math.ceil(width / factors[0]), math.ceil(height / factors[1])
        check_pixels(
            reduced, max_pixels=self._max_pixels, hint="ask for a smaller region or fewer pixels"
        )
        return factors

    def _read(self, box: Box, factors: Size) -> Image.Image:
        part = _ReducedPart(box, factors)
        for block, corner in self._blocks(box):
            part.add(convert_to_scalable(block), corner)
        return part.finish()

    def _box_in(self, image: Image.Image, box: Box, factors: Size) -> FloatBox:
        return 0, 0, (box[2] - box[0]) / factors[0], (box[3] - box[1]) / factors[1]


class _ReducedPart:
    """The reduced pixels of a box. A block that ends within one of them adds its share to it."""

    def __init__(self, box: Box, factors: Size) -> None:
        self._box, self._factors = box, factors
        self._image: Image.Image | None = None

    def add(self, block: Image.Image, corner: Size) -> None:
        """Put a block, whose first pixel is at ``corner`` of the picture, into its place."""
        left, top, right, bottom = self._box
        x, y = corner
        inside = (
            max(left, x),
            max(top, y),
            min(right, x + block.width),
            min(bottom, y + block.height),
        )
        if inside[0] >= inside[2] or inside[1] >= inside[3]:
            return
        cut = inside[0] - x, inside[1] - y, inside[2] - x, inside[3] - y
        if cut != (0, 0, *block.size):
            info, block = block.info, block.crop(cut)
            block.info = info
        place = inside[0] - left, inside[1] - top, inside[2] - left, inside[3] - top
        if self._factors == (1, 1):
            self._canvas(block).paste(block, place)
        else:
            self._add_reduced(block, place)

    def _add_reduced(self, block: Image.Image, place: Box) -> None:
        across, down = self._factors
        info = block.info
        # The average of colours counts each as often as it is opaque.
        block = block.convert("RGBa") if block.mode == "RGBA" else block
        block.info = info
        canvas = self._canvas(block)
        x0, y0, x1, y1 = place
        cells = x0 // across, y0 // down, math.ceil(x1 / across), math.ceil(y1 / down)
        width, height = self._box[2] - self._box[0], self._box[3] - self._box[1]
        whole = (
            cells[0] * across,
            cells[1] * down,
            min(cells[2] * across, width),
            min(cells[3] * down, height),
        )
        if whole == place:
            canvas.paste(block.reduce(self._factors), cells)
            return
        padded = Image.new(block.mode, (whole[2] - whole[0], whole[3] - whole[1]))
        padded.paste(block, (x0 - whole[0], y0 - whole[1]))
        share = padded.reduce(self._factors)
        canvas.paste(ImageChops.add(canvas.crop(cells), share), cells)

    def _canvas(self, block: Image.Image) -> Image.Image:
        if self._image is None:
            across, down = self._factors
            width, height = self._box[2] - self._box[0], self._box[3] - self._box[1]
            size = math.ceil(width / across), math.ceil(height / down)
            self._image = Image.new(block.mode, size)
            self._image.info = dict(block.info)
        return self._image

    def finish(self) -> Image.Image:
        """The part, with straight alpha."""
        assert self._image is not None
        if self._image.mode != "RGBa":
            return self._image
        info, image = self._image.info, self._image.convert("RGBA")
        image.info = info
        return image
