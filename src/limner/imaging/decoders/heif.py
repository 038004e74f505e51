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

# An embedded thumbnail need not show what the picture does, so it is never used in its place. The
# decoder begins a thread for each tile even so.
pillow_heif.register_heif_opener(  # pyright: ignore[reportUnknownMemberType] - takes any keyword
    thumbnails=False, depth_images=False, aux_images=False, decode_threads=0
)

# The property that says how large a stored picture is before it is cropped for showing.
_STORED_SIZE = re.compile(rb"\0\0\0\x14ispe\0\0\0\0(.{8})", re.DOTALL)


def heic(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - the shape of every reader
    """Open the primary picture, which its decoder turns upright itself.

    It is decoded at once: what it really measures is known only then.
    """
    for stored in _STORED_SIZE.finditer(data):
        check_pixels(struct.unpack(">II", stored[1]), max_pixels=limits.max_pixels)
    image = Image.open(BytesIO(data), formats=["HEIF"])
    check_pixels(image.size, max_pixels=limits.max_pixels)
    image.load()
    check_pixels(image.size, max_pixels=limits.max_pixels)
    return OpenedPicture(image=image, may_move=True)
