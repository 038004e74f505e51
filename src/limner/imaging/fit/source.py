"""Untrusted bytes -> upright sRGB pixels at exactly the given size.

A JPEG is decoded at a reduced scale if that is enough. Pixels are scaled before they are rotated
and before their colours are converted, since there are fewer of them then.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from PIL import Image

from limner.errors import InputInvalid
from limner.imaging.decode import open_picture
from limner.imaging.decoders import OpenedPicture, quick_png
from limner.imaging.decoders.part_reader import PartReader
from limner.imaging.fit import bands
from limner.imaging.fit.bands import Box
from limner.imaging.fit.request import Region, Size
from limner.imaging.formats import Format
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import (
    convert_to_scalable,
    convert_to_srgb,
    stored_box,
    turn_upright,
    upright_size,
)

# Pillow first averages whole pixels down to this many times the target size.
_REDUCING_GAP = 3.0


class DecodedSource:
    """A picture with its header parsed; its pixels are decoded when they are first needed.

    ``size`` is that of the upright picture, and ``part`` the part of it to send. ``opened`` is a
    page that the caller has opened before; its pixels are decoded at most once. ``thread`` shares
    the work of decoding and scaling.

    Raises:
        ImageError: as `open_picture`.
        InputInvalid: the region does not touch the picture.
    """

    def __init__(
        self,
        data: bytes,
        *,
        region: Region | None,
        limits: WorkerLimits,
        thread: ThreadPoolExecutor,
        page: int = 1,
        opened: tuple[Format, OpenedPicture] | None = None,
    ) -> None:
        form, first = opened or open_picture(data, limits=limits, page=page, large=True)
        self.mime, self.pages, self.animated = form.mime, first.pages, first.animated
        self._thread = thread
        self._open = lambda: open_picture(data, limits=limits, page=page)[1].image
        self._image: Image.Image | None = first.image
        self._reader = first.reader
        self._orientation = first.orientation
        self.size: Size = upright_size(first.size, self._orientation)
        self.part = _clip_region(region, self.size)

    @property
    def is_upright(self) -> bool:
        """Whether the picture is upright for a viewer that ignores EXIF."""
        return self._orientation == 1

    @property
    def is_whole(self) -> bool:
        """Whether the whole picture is to be sent."""
        return (self.part.width, self.part.height) == self.size

    def at_size(self, size: Size) -> Image.Image:
        """The part at that size, as grey, RGB or RGBA.

        The original is decoded again for each size: its pixels take by far the most memory of a
        fit, and a second size is rarely needed.
        """
        if self._reader is not None:
            return _drop_unused_channels(self._read_part(self._reader, size))
        image = self._opened_for(size)
        wanted = upright_size(size, self._orientation)
        is_shared = quick_png.share(image, self._thread)
        if not is_shared and self.is_whole and bands.can_decode(image, wanted):
            decoded, image = image, bands.decode_and_resize(image, wanted, self._thread)
            decoded.close()
            return _drop_unused_channels(turn_upright(image, self._orientation))
        image, orientation = self._decode(image)
        wanted = upright_size(size, orientation)
        box = self._box(image.size)
        if image.size != wanted or box != (0, 0, *image.size):
            decoded, image = image, resize(image, wanted, box, self._thread)
            # The caller may still hold the picture; the encoders need the memory of its pixels.
            decoded.close()
        return _drop_unused_channels(turn_upright(image, orientation))

    def _opened_for(self, size: Size) -> Image.Image:
        """The image, which will be decoded to no more pixels than that size needs."""
        image, self._image = self._image or self._open(), None
        across, down = size[0] / self.part.width, size[1] / self.part.height
        if self._orientation >= 5:
            across, down = down, across
        width, height = image.size
        # Only JPEG supports this: it then decodes at a half, a quarter or an eighth.
        image.draft(None, (max(1, int(width * across)), max(1, int(height * down))))
        return image

    def _decode(self, image: Image.Image) -> tuple[Image.Image, int]:
        """The pixels as they can be scaled, and their remaining orientation."""
        orientation = self._orientation
        image.load()
        if not self.is_whole:
            # The part is given in upright pixels.
            image, orientation = turn_upright(image, orientation), 1
        return convert_to_scalable(image), orientation

    def _read_part(self, reader: PartReader, size: Size) -> Image.Image:
        """The part at that size, of a picture with too many pixels for memory."""
        part = self.part
        upright = part.x, part.y, part.x + part.width, part.y + part.height
        wanted = upright_size(size, self._orientation)
        image, box = reader.read(stored_box(upright, self.size, self._orientation), wanted)
        if image.size != wanted or box != (0, 0, *image.size):
            image = resize(image, wanted, box)
        return turn_upright(image, self._orientation)

    def _box(self, decoded: Size) -> tuple[float, float, float, float]:
        """The part, in pixels of the decoded image."""
        if self.is_whole:
            return 0, 0, *decoded
        across, down = decoded[0] / self.size[0], decoded[1] / self.size[1]
        part = self.part
        return (
            part.x * across,
            part.y * down,
            # The product may be larger than the image in its last digit.
            min((part.x + part.width) * across, decoded[0]),
            min((part.y + part.height) * down, decoded[1]),
        )


def _clip_region(region: Region | None, size: Size) -> Region:
    """The region as far as it lies inside the picture; the whole picture if there is none."""
    width, height = size
    if region is None:
        return Region(x=0, y=0, width=width, height=height)
    left, top = max(0, region.x), max(0, region.y)
    right, bottom = min(width, region.x + region.width), min(height, region.y + region.height)
    if left >= right or top >= bottom:
        raise InputInvalid(
            f"the region lies outside the picture, which is {width}x{height}",
            hint="Give x, y, width and height in pixels of the original.",
        )
    return Region(x=left, y=top, width=right - left, height=bottom - top)


def _drop_unused_channels(image: Image.Image) -> Image.Image:
    """Convert to sRGB, without colour or alpha channels that are not used: files get smaller."""
    if image.mode == "L" and not image.info.get("icc_profile"):
        return image
    image = convert_to_srgb(image)
    # Most screenshots have an alpha channel that is opaque everywhere.
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")
    return image


def resize(
    image: Image.Image, size: tuple[int, int], box: Box, thread: ThreadPoolExecutor | None = None
) -> Image.Image:
    """Resize the part of an image inside ``box`` (left, top, right, bottom) with Lanczos."""
    if bands.is_installed():
        return bands.resize(image, size, box, thread)
    scaled = cast("Any", image).resize(size, Image.Resampling.LANCZOS, box, _REDUCING_GAP)
    return cast("Image.Image", scaled)
