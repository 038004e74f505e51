"""Untrusted bytes -> upright sRGB pixels at exactly the size asked for.

A JPEG is decoded at a reduced scale where that is enough. Pixels are scaled before they are
turned and before their colours are converted, since there are fewer of them then.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from PIL import Image

from limner.errors import CorruptImage
from limner.imaging.decode import open_picture
from limner.imaging.decoders import OpenedPicture
from limner.imaging.fit.request import Region, Size
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import in_srgb, turned, upright_size

# The extra has no types of its own.
_simd: Any = None
with suppress(ImportError):
    _simd = import_module("cykooz_resizer")

Box = tuple[float, float, float, float]

# Pillow first averages whole pixels down to this many times the size asked for.
_REDUCING_GAP = 3.0


def lanczos(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """The part of an image inside ``box`` (left, top, right, bottom), at that size."""
    return with_pillow(image, size, box) if _simd is None else with_simd(image, size, box)


def with_pillow(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """`lanczos` with what every installation has."""
    scaled = cast("Any", image).resize(size, Image.Resampling.LANCZOS, box, _REDUCING_GAP)
    return cast("Image.Image", scaled)


def with_simd(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """`lanczos` with the extra."""
    left, top, right, bottom = box
    scaled = Image.new(image.mode, size)
    options = _simd.ResizeOptions(
        resize_alg=_simd.ResizeAlg.convolution(_simd.FilterType.lanczos3),
        crop_box=_simd.CropBox(left, top, right - left, bottom - top),
    )
    _simd.Resizer().resize_pil(image, scaled, options)
    scaled.info = dict(image.info)
    return scaled


# What can be scaled as it is; everything else is converted first.
_SCALABLE = frozenset({"L", "RGB", "RGBA", "CMYK"})


class DecodedSource:
    """A picture whose header has been read; its pixels are decoded when they are first needed.

    ``size`` is that of the upright picture, and ``part`` the part of it that is to be sent. A page
    that was ``opened`` before is not opened again, nor decoded where it was.

    Raises:
        ImageError: as `open_picture`.
        CorruptImage: the region does not touch the picture.
    """

    def __init__(
        self,
        data: bytes,
        *,
        region: Region | None,
        limits: WorkerLimits,
        page: int = 1,
        opened: tuple[Format, OpenedPicture] | None = None,
    ) -> None:
        form, first = opened or open_picture(data, limits=limits, page=page)
        self.mime, self.pages, self.animated = form.mime, first.pages, first.animated
        self._open = lambda: open_picture(data, limits=limits, page=page)[1].image
        self._image: Image.Image | None = first.image
        self._turn = first.turn
        self.size: Size = upright_size(first.image.size, self._turn)
        self.part = _within(region, self.size)

    @property
    def is_upright(self) -> bool:
        """Whether the file shows the picture the right way up to those who ignore EXIF."""
        return self._turn == 1

    @property
    def is_whole(self) -> bool:
        """Whether all of the picture is to be sent."""
        return (self.part.width, self.part.height) == self.size

    def at(self, size: Size) -> Image.Image:
        """The part at that size, as grey, RGB or RGBA.

        The original is decoded for each size and not kept: its pixels are by far the most memory
        of a fit, and a second size is seldom asked for.
        """
        image, turn = self._decoded(size)
        wanted = (size[1], size[0]) if turn >= 5 else size
        box = self._box(image.size)
        if image.size != wanted or box != (0, 0, *image.size):
            image = lanczos(image, wanted, box)
        return _coloured(turned(image, turn))

    def _decoded(self, size: Size) -> tuple[Image.Image, int]:
        """The pixels, no more of them than that size needs, and how they are yet to be turned."""
        image, self._image = self._image or self._open(), None
        turn = self._turn
        across, down = size[0] / self.part.width, size[1] / self.part.height
        if turn >= 5:
            across, down = down, across
        width, height = image.size
        # Only JPEG heeds this: it then decodes at a half, a quarter or an eighth.
        image.draft(None, (max(1, int(width * across)), max(1, int(height * down))))
        image.load()
        if not self.is_whole:
            # A part is named in upright pixels.
            image, turn = turned(image, turn), 1
        if image.mode not in _SCALABLE or (image.mode != "RGBA" and image.has_transparency_data):
            image = in_srgb(image)
        return image, turn

    def _box(self, decoded: Size) -> tuple[float, float, float, float]:
        """The part, in the pixels that were decoded."""
        if self.is_whole:
            return 0, 0, *decoded
        across, down = decoded[0] / self.size[0], decoded[1] / self.size[1]
        part = self.part
        return (
            part.x * across,
            part.y * down,
            (part.x + part.width) * across,
            (part.y + part.height) * down,
        )


def _within(region: Region | None, size: Size) -> Region:
    """The region as far as it lies inside the picture; all of it where none is named."""
    width, height = size
    if region is None:
        return Region(x=0, y=0, width=width, height=height)
    left, top = max(0, region.x), max(0, region.y)
    right, bottom = min(width, region.x + region.width), min(height, region.y + region.height)
    if left >= right or top >= bottom:
        raise CorruptImage(
            f"the region lies outside the picture, which is {width}x{height}",
            hint="Give x, y, width and height in pixels of the original.",
        )
    return Region(x=left, y=top, width=right - left, height=bottom - top)


def _coloured(image: Image.Image) -> Image.Image:
    """The picture in sRGB, without channels that say nothing: every encoder gains by that."""
    if image.mode == "L" and not image.info.get("icc_profile"):
        return image
    image = in_srgb(image)
    # As in most screenshots.
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")
    return image
