"""BMP and ICO bytes -> an opened picture, with Pillow; of an icon, its largest image."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from io import BytesIO

import msgspec

# Pillow finds the decoders by name among the loaded ones.
from PIL import BmpImagePlugin, IcoImagePlugin, Image

from limner.errors import CorruptImage
from limner.imaging.decoding import check_pixels
from limner.imaging.limits import WorkerLimits
from limner.imaging.readers import Opened, rasters

_PLUGINS = (BmpImagePlugin, IcoImagePlugin)
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_HEAD = struct.Struct("<HHH")
_ENTRY = struct.Struct("<BBBBHHII")
_DIB_BYTES = 40

bmp = partial(rasters.read, decoder="BMP", may_move=False)


class _Icon(msgspec.Struct, frozen=True, kw_only=True):
    """One image of an icon file; its size is its own header's, since the file's list may lie."""

    width: int
    height: int
    bits: int
    data: bytes


def ico(data: bytes, *, page: int, limits: WorkerLimits) -> Opened:  # noqa: ARG001 - the shape of every reader
    """Open the largest image, and of several that size the one with the most colours.

    Pillow decodes an icon as soon as it opens it, and prefers fewer colours. It is therefore given
    an icon with one image, whose size has been checked.

    Raises:
        CorruptImage: there is no whole image in the file.
    """
    icon = max(_icons(data), key=lambda icon: (icon.width * icon.height, icon.bits), default=None)
    if icon is None:
        raise CorruptImage("there is no whole image in the ICO file")
    check_pixels((icon.width, icon.height), max_pixels=limits.max_pixels)
    if icon.data.startswith(_PNG_MAGIC):
        return Opened(image=Image.open(BytesIO(icon.data), formats=["PNG"]))
    return Opened(image=Image.open(BytesIO(_alone(icon)), formats=["ICO"]))


def _icons(data: bytes) -> Iterator[_Icon]:
    _, _, count = _HEAD.unpack_from(data.ljust(_HEAD.size, b"\0"))
    for index in range(count):
        start = _HEAD.size + index * _ENTRY.size
        if start + _ENTRY.size > len(data):
            return
        *_, size, offset = _ENTRY.unpack_from(data, start)
        body = data[offset : offset + size]
        if len(body) == size >= _DIB_BYTES:
            yield _measured(body)


def _measured(body: bytes) -> _Icon:
    if body.startswith(_PNG_MAGIC):
        width, height = struct.unpack_from(">II", body, 16)
        return _Icon(width=width, height=height, bits=32, data=body)
    width, height, _, bits = struct.unpack_from("<iiHH", body, 4)
    # Below the colours lies a mask of the same height.
    return _Icon(width=abs(width), height=abs(height) // 2, bits=bits, data=body)


def _alone(icon: _Icon) -> bytes:
    """An icon file with one image; the list knows 0 to 255, of which 0 means 256 and more."""
    edges = (edge if edge < 256 else 0 for edge in (icon.width, icon.height))
    start = _HEAD.size + _ENTRY.size
    entry = _ENTRY.pack(*edges, 0, 0, 1, icon.bits, len(icon.data), start)
    return _HEAD.pack(0, 1, 1) + entry + icon.data
