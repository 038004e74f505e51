"""PNG, JPEG, GIF and WebP bytes -> an opened picture, with Pillow."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from itertools import islice

# Loaded up front, so that the worker needs no further file once its limits are set.
from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from limner.imaging import gif_blocks
from limner.imaging.decoding import check_pixels, orientation
from limner.imaging.formats import webp_canvas
from limner.imaging.limits import WorkerLimits
from limner.imaging.readers import Opened

_PLUGINS = (GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin)


def read(
    data: bytes,
    *,
    page: int,  # noqa: ARG001 - the shape of every reader
    limits: WorkerLimits,
    decoder: str,
    may_move: bool = True,
) -> Opened:
    """Read the header with one decoder of Pillow and no other."""
    image = Image.open(BytesIO(data), formats=[decoder])
    check_pixels(image.size, max_pixels=limits.max_pixels)
    return Opened(image=image, turn=orientation(image, data), may_move=may_move)


def webp(data: bytes, *, page: int, limits: WorkerLimits) -> Opened:
    """Open a WebP file, whose decoder takes memory for the whole canvas as soon as it opens it."""
    if canvas := webp_canvas(data):
        check_pixels(canvas, max_pixels=limits.max_pixels)
    return read(data, page=page, limits=limits, decoder="WEBP")


def gif(data: bytes, *, page: int, limits: WorkerLimits) -> Opened:
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
