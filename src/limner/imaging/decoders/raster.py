"""PNG, JPEG, GIF and WebP bytes -> an opened picture, with Pillow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import islice

import msgspec
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    IcoImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    WebPImagePlugin,
)

from limner.errors import CorruptImage
from limner.imaging import gif_blocks
from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import webp_canvas
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels, orientation

# Loaded up front, so that the worker needs no further file once its limits are set.


_PLUGINS = (GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin)


def read(
    data: bytes,
    *,
    page: int,  # noqa: ARG001 - the shape of every reader
    limits: WorkerLimits,
    decoder: str,
    may_move: bool = True,
) -> OpenedPicture:
    """Read the header with one decoder of Pillow and no other."""
    image = Image.open(BytesIO(data), formats=[decoder])
    check_pixels(image.size, max_pixels=limits.max_pixels)
    return OpenedPicture(image=image, turn=orientation(image, data), may_move=may_move)


def webp(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open a WebP file, whose decoder takes memory for the whole canvas as soon as it opens it."""
    if canvas := webp_canvas(data):
        check_pixels(canvas, max_pixels=limits.max_pixels)
    return read(data, page=page, limits=limits, decoder="WEBP")


def gif(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open a GIF file, whose decoder may take memory for the first frame as soon as it opens it.

    Raises:
        ImageTooLarge: the canvas, widened to hold that frame, has too many pixels.
        CorruptImage: the file ends before that frame begins.
    """
    width, height = gif_blocks.canvas(data)
    for _, _, right, bottom in islice(gif_blocks.frames(data), 1):
        check_pixels((max(width, right), max(height, bottom)), max_pixels=limits.max_pixels)
    return read(data, page=page, limits=limits, decoder="GIF")


png = partial(read, decoder="PNG")
# The further pictures in a JPEG are depth and gain maps, not an animation.
jpeg = partial(read, decoder="JPEG", may_move=False)


# A worker may begin no thread once it is locked down.
AvifImagePlugin.DEFAULT_MAX_THREADS = 1

avif = partial(read, decoder="AVIF")


# Pillow finds the decoders by name among the loaded ones.


_BITMAP_PLUGINS = (BmpImagePlugin, IcoImagePlugin)
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_HEAD = struct.Struct("<HHH")
_ENTRY = struct.Struct("<BBBBHHII")
_DIB_BYTES = 40

bmp = partial(read, decoder="BMP", may_move=False)


class _Icon(msgspec.Struct, frozen=True, kw_only=True):
    """One image of an icon file; its size is its own header's, since the file's list may lie."""

    width: int
    height: int
    bits: int
    data: bytes


def ico(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - the shape of every reader
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
        return OpenedPicture(image=Image.open(BytesIO(icon.data), formats=["PNG"]))
    return OpenedPicture(image=Image.open(BytesIO(_alone(icon)), formats=["ICO"]))


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
