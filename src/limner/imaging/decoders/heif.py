"""HEIC bytes -> an opened picture, with the extra ``limner[heic]``."""

from __future__ import annotations

import re
import struct
from io import BytesIO

import pillow_heif
from PIL import Image

from limner.imaging.decoders import OpenedPicture
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels

# An embedded thumbnail may show another picture, so it is never used instead. The decoder starts a
# thread for each tile in spite of decode_threads.
pillow_heif.register_heif_opener(  # pyright: ignore[reportUnknownMemberType] - takes any keyword
    thumbnails=False, depth_images=False, aux_images=False, decode_threads=0
)

# The property with the size of a stored picture, before it is cropped for display.
_STORED_SIZE = re.compile(rb"\0\0\0\x14ispe\0\0\0\0(.{8})", re.DOTALL)


def heic(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - every decoder has this signature
    """Open the primary picture, which its decoder turns upright itself.

    It is decoded at once: its real size is known only then.
    """
    for stored in _STORED_SIZE.finditer(data):
        check_pixels(struct.unpack(">II", stored[1]), max_pixels=limits.max_pixels)
    image = Image.open(BytesIO(data), formats=["HEIF"])
    check_pixels(image.size, max_pixels=limits.max_pixels)
    image.load()
    check_pixels(image.size, max_pixels=limits.max_pixels)
    return OpenedPicture(image=image, may_be_animated=True)
