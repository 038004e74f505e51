"""Untrusted bytes -> upright sRGB pixels at exactly the size asked for, decoded once.

A JPEG is decoded at a reduced scale where that is enough. Pixels are scaled before they are
turned and before their colours are converted, since there are fewer of them then.
"""

from __future__ import annotations

from PIL import Image

from limner.errors import CorruptImage
from limner.imaging.decoding import in_srgb, open_header, orientation, turned, upright_size
from limner.imaging.fit.dimensions import Size
from limner.imaging.fit.request import Region
from limner.imaging.resizing import lanczos

# What can be scaled as it is; everything else is converted first.
_SCALABLE = frozenset({"L", "RGB", "RGBA", "CMYK"})


class Source:
    """A picture whose header has been read; its pixels are decoded when they are first needed.

    ``size`` is that of the upright picture, and ``part`` the part of it that is to be sent.

    Raises:
        ImageError: as `decoding.open_header`.
        CorruptImage: the region does not touch the picture.
    """

    def __init__(self, data: bytes, *, region: Region | None, max_pixels: int) -> None:
        self.mime, self._image = open_header(data, max_pixels=max_pixels)
        self._turn = orientation(self._image, data)
        self._stored_size = self._image.size
        self.size: Size = upright_size(self._stored_size, self._turn)
        self.part = _within(region, self.size)
        self._whole = (self.part.width, self.part.height) == self.size
        # The further pictures in a JPEG are depth and gain maps, not an animation.
        self.animated = self.mime != "image/jpeg" and getattr(self._image, "is_animated", False)
        self._decoded = False

    @property
    def is_upright(self) -> bool:
        """Whether the file shows the picture the right way up to those who ignore EXIF."""
        return self._turn == 1

    @property
    def is_whole(self) -> bool:
        """Whether all of the picture is to be sent."""
        return self._whole

    def at(self, size: Size) -> Image.Image:
        """The part at that size, as grey, RGB or RGBA. The first call names the largest size."""
        self._decode(size)
        image, sideways = self._image, self._turn >= 5
        wanted = (size[1], size[0]) if sideways else size
        box = self._box()
        if image.size != wanted or box != (0, 0, *image.size):
            image = lanczos(image, wanted, box)
        return _coloured(turned(image, self._turn))

    def _decode(self, size: Size) -> None:
        if self._decoded:
            return
        self._decoded = True
        across, down = size[0] / self.part.width, size[1] / self.part.height
        if self._turn >= 5:
            across, down = down, across
        width, height = self._stored_size
        # Only JPEG heeds this: it then decodes at a half, a quarter or an eighth.
        self._image.draft(None, (max(1, int(width * across)), max(1, int(height * down))))
        self._image.load()
        if not self._whole:
            # A part is named in upright pixels.
            self._image, self._turn = turned(self._image, self._turn), 1
        image = self._image
        if image.mode not in _SCALABLE or (image.mode != "RGBA" and image.has_transparency_data):
            self._image = in_srgb(image)

    def _box(self) -> tuple[float, float, float, float]:
        width, height = self._image.size
        if self._whole:
            return 0, 0, width, height
        across, down = width / self.size[0], height / self.size[1]
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
    """The picture in sRGB; plain grey stays grey, which every encoder makes smaller."""
    if image.mode == "L" and not image.info.get("icc_profile"):
        return image
    return in_srgb(image)
