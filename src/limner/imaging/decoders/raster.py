"""PNG, JPEG, GIF, WebP, BMP and ICO bytes -> an opened picture, with Pillow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import islice

import msgspec
from PIL import (
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
from limner.imaging.decoders import OpenedPicture, quick_png
from limner.imaging.decoders.part_reader import JpegReader, is_large
from limner.imaging.decoders.png_rows import PngReader
from limner.imaging.formats import PNG_SIGNATURE, webp_canvas
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels, exif_orientation
from limner.imaging.png_chunks import without_texts

# Pillow finds a loaded plug-in by name. They are loaded here, so that a sandboxed worker needs no
# further file.
_PLUGINS = (
    BmpImagePlugin,
    GifImagePlugin,
    IcoImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    WebPImagePlugin,
)

# Pillow keeps the texts of a PNG in one dictionary with what other chunks say, under these names.
_FACTS_OF_PILLOW = frozenset(
    {
        *(b"interlace", b"transparency", b"gamma", b"icc_profile", b"srgb", b"chromaticity"),
        *(b"dpi", b"aspect", b"xmp", b"exif", b"loop", b"bbox", b"duration", b"disposal"),
        *(b"blend", b"default_image"),
    }
)

# The header of an ICO file, an entry of its list, and the header of a bitmap in it.
_HEAD = struct.Struct("<HHH")
_ENTRY = struct.Struct("<BBBBHHII")
_DIB_BYTES = 40


def open_with_pillow(
    data: bytes,
    *,
    page: int,  # noqa: ARG001 - every decoder has this signature
    limits: WorkerLimits,
    plugin: str,
    part_reader: type[PngReader | JpegReader] | None = None,
    may_be_animated: bool = True,
) -> OpenedPicture:
    """Parse the header with one plug-in of Pillow and no other."""
    image = Image.open(BytesIO(data), formats=[plugin])
    reader = None
    if part_reader is not None and is_large(image.size, limits):
        reader = part_reader(data, image, limits)
    else:
        check_pixels(image.size, max_pixels=limits.max_pixels)
    return OpenedPicture(
        image=image,
        orientation=exif_orientation(image, data),
        may_be_animated=may_be_animated,
        reader=reader,
    )


# The further pictures in a JPEG are depth and gain maps, not an animation.
jpeg = partial(open_with_pillow, plugin="JPEG", part_reader=JpegReader, may_be_animated=False)
bmp = partial(open_with_pillow, plugin="BMP", may_be_animated=False)


def png(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open a PNG file without the texts that Pillow would take for facts about its pixels."""
    return open_with_pillow(
        without_texts(data, _FACTS_OF_PILLOW),
        page=page,
        limits=limits,
        plugin=quick_png.NAME,
        part_reader=PngReader,
    )


def webp(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open a WebP file; its decoder allocates the whole canvas when it opens the file."""
    if canvas := webp_canvas(data):
        check_pixels(canvas, max_pixels=limits.max_pixels)
    return open_with_pillow(data, page=page, limits=limits, plugin="WEBP")


def gif(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Open a GIF file; its decoder may allocate the first frame when it opens the file.

    Raises:
        ImageTooLarge: the canvas, enlarged to hold that frame, has too many pixels.
        CorruptImage: the file ends before that frame begins.
    """
    width, height = gif_blocks.canvas(data)
    for _, _, right, bottom in islice(gif_blocks.frames(data), 1):
        check_pixels((max(width, right), max(height, bottom)), max_pixels=limits.max_pixels)
    return open_with_pillow(data, page=page, limits=limits, plugin="GIF")


def ico(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - every decoder has this signature
    """Open the largest image, and of several that size the one with the most colours.

    Pillow decodes an icon when it opens it, and prefers fewer colours. It therefore gets a file
    with only this image, after its size has been checked.

    Raises:
        CorruptImage: the file contains no complete image.
    """
    icon = max(_icons(data), key=lambda icon: (icon.width * icon.height, icon.bits), default=None)
    if icon is None:
        raise CorruptImage("there is no whole image in the ICO file")
    check_pixels((icon.width, icon.height), max_pixels=limits.max_pixels)
    if icon.data.startswith(PNG_SIGNATURE):
        return OpenedPicture(image=Image.open(BytesIO(icon.data), formats=["PNG"]))
    return OpenedPicture(image=Image.open(BytesIO(_single_icon_file(icon)), formats=["ICO"]))


class _Icon(msgspec.Struct, frozen=True, kw_only=True):
    """One image of an icon file; the size is from its own header, since the list may be wrong."""

    width: int
    height: int
    bits: int
    data: bytes


def _icons(data: bytes) -> Iterator[_Icon]:
    _, _, count = _HEAD.unpack_from(data.ljust(_HEAD.size, b"\0"))
    for index in range(count):
        start = _HEAD.size + index * _ENTRY.size
        if start + _ENTRY.size > len(data):
            return
        *_, size, offset = _ENTRY.unpack_from(data, start)
        body = data[offset : offset + size]
        if len(body) == size >= _DIB_BYTES:
            yield _parse_icon(body)


def _parse_icon(body: bytes) -> _Icon:
    if body.startswith(PNG_SIGNATURE):
        width, height = struct.unpack_from(">II", body, 16)
        return _Icon(width=width, height=height, bits=32, data=body)
    width, height, _, bits = struct.unpack_from("<iiHH", body, 4)
    # The height counts the colours and a mask of the same height.
    return _Icon(width=abs(width), height=abs(height) // 2, bits=bits, data=body)


def _single_icon_file(icon: _Icon) -> bytes:
    """An icon file with one image; in its list, 0 means an edge of 256 and more."""
    edges = (edge if edge < 256 else 0 for edge in (icon.width, icon.height))
    start = _HEAD.size + _ENTRY.size
    entry = _ENTRY.pack(*edges, 0, 0, 1, icon.bits, len(icon.data), start)
    return _HEAD.pack(0, 1, 1) + entry + icon.data
