"""Untrusted bytes -> facts, another format, a thumbnail or a mask. Runs inside a worker only."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from io import BytesIO
from typing import Any, cast

from PIL import Image, ImageChops, ImageOps, PngImagePlugin

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging import gif_blocks
from limner.imaging.decode import open_picture
from limner.imaging.decoders import OpenedPicture, png_check, quick_png
from limner.imaging.decoders.part_reader import PartReader
from limner.imaging.deflate import crc32
from limner.imaging.facts import Facts, MaskWay, Preview
from limner.imaging.fit.encoders import MAX_EDGE, jpeg, webp
from limner.imaging.fit.request import Region
from limner.imaging.formats import Format, OutputFormat
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import (
    check_pixels,
    convert_to_srgb,
    flatten_on_white,
    turn_upright,
    upright_size,
)

_SQUARE_COLOURS = 48
# Of larger pictures the inflated data is not kept: it would take more than 64 MB.
_KEPT_PIXELS = 16_000_000
_BELOW_HALF = [255] * 128 + [0] * 128
_HALF_AND_MORE = [0] * 128 + [255] * 128


# Above level 4 a photograph takes three times as long and gets no smaller.
_PNG_COMPRESS_LEVEL = 4
# From about here on the loss is hard to see.
_LOSSY_QUALITY = 90


def verify(
    data: bytes,
    *,
    limits: WorkerLimits,
    keep: Callable[[bytes, Format, OpenedPicture], None] | None = None,
) -> Facts:
    """Make sure that the whole first frame or page decodes, and return its facts.

    A PNG is inflated and a JPEG decoded at an eighth of its size: that reads all of their data, and
    nothing after it can fail. ``keep`` is called with the opened picture, so that the caller can
    reuse it.

    Raises:
        ImageError: as `open_picture`.
        CorruptImage: the picture is damaged or truncated.
    """
    form, opened = open_picture(data, limits=limits, large=True)
    frames = _frames(form, opened, data)
    width, height = upright_size(opened.size, opened.orientation)
    if opened.reader is not None:
        opened.reader.verify()
    elif form.name != "png" or not _can_decode_png(data, opened):
        opened.image.draft(None, (1, 1))  # only a JPEG has smaller scales
        opened.image.load()
    if keep is not None:
        keep(data, form, opened)
    return Facts(mime=form.mime, width=width, height=height, frames=frames, pages=opened.pages)


def _can_decode_png(data: bytes, opened: OpenedPicture) -> bool:
    """Whether a PNG decodes; if it is not too large, its pixels need no second inflation."""
    width, height = opened.size
    blocks: deque[bytes] = deque()
    is_small = width * height <= _KEPT_PIXELS
    if not png_check.can_decode(
        data,
        opened.size,
        keep=blocks.append if is_small else None,
        max_text_bytes=PngImagePlugin.MAX_TEXT_MEMORY - cast("Any", opened.image).png.text_memory,
    ):
        return False
    if is_small:
        quick_png.reuse(opened.image, blocks)
    return True


def _frames(form: Format, opened: OpenedPicture, data: bytes) -> int:
    """The number of frames; raises CorruptImage if a PNG or GIF is truncated."""
    match form.name:
        case "png":
            return _checked_png_frames(data)
        case "gif":
            return max(1, sum(1 for _ in gif_blocks.frames(data)))
        case _:
            return opened.frames


def _checked_png_frames(data: bytes) -> int:
    """Check every chunk up to the end marker, and count the frames.

    Pillow skips the checksums of pixel data and trusts the frame count in the header.
    """
    view = memoryview(data)
    start, frames = 8, 0
    while start + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            break
        if crc32(view[start + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            raise CorruptImage(f"the checksum of PNG chunk {kind!r} at byte {start} is wrong")
        if kind == b"IEND":
            return max(frames, 1)
        frames += kind == b"fcTL"
        start = end
    raise CorruptImage(f"the PNG file is cut short after {len(data)} bytes")


def convert(
    data: bytes, *, limits: WorkerLimits, to: OutputFormat, cover: tuple[int, int] | None
) -> bytes:
    """Encode the first frame or page: upright, in 8-bit sRGB, without the original's metadata.

    With ``cover`` it is scaled to cover that size and cropped from the centre to exactly that size.

    Raises:
        ImageTooLarge: as `verify`, if ``cover`` is over the pixel cap, and if an edge is too long
            for the format.
    """
    _, opened = open_picture(data, limits=limits)
    picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
    if cover is not None and cover != picture.size:
        check_pixels(cover, max_pixels=limits.max_pixels)
        picture = ImageOps.fit(picture, cover, Image.Resampling.LANCZOS)
    return encode(picture, to)


def encode(picture: Image.Image, to: OutputFormat) -> bytes:
    """Encode a picture in a format, without metadata.

    Raises:
        ImageTooLarge: an edge is too long for the format.
    """
    # Pillow would write the original's comments, and its profile, which is no longer right.
    picture.info.clear()
    if to == "png":
        out = BytesIO()
        picture.save(out, "PNG", compress_level=_PNG_COMPRESS_LEVEL)
        return out.getvalue()
    max_edge = MAX_EDGE[f"image/{to}"]
    if max(picture.size) > max_edge:
        raise ImageTooLarge(f"a {to} file is at most {max_edge:,} pixels wide and high")
    if to == "jpeg":
        return jpeg(picture, _LOSSY_QUALITY, full_colour=True).data
    return webp(picture, _LOSSY_QUALITY).data


def preview(data: bytes, *, limits: WorkerLimits, columns: int, rows: int) -> Preview:
    """A thumbnail within columns x rows pixels, never enlarged; transparency becomes white."""
    _, opened = open_picture(data, limits=limits, large=True)
    if opened.reader is not None:
        return _large_preview(opened.reader, opened.orientation, columns=columns, rows=rows)
    # A JPEG decodes directly to about this size; the longer edge suits both orientations.
    edge = 2 * max(columns, rows)
    opened.image.draft("RGB", (edge, edge))
    picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
    return _thumbnail(picture, columns=columns, rows=rows)


def _large_preview(reader: PartReader, orientation: int, *, columns: int, rows: int) -> Preview:
    edge = max(columns, rows)
    scale = min(1.0, edge / max(reader.size))
    wanted = reader.size[0] * scale, reader.size[1] * scale
    image, _ = reader.read((0, 0, *reader.size), wanted)
    picture = convert_to_srgb(turn_upright(image, orientation))
    return _thumbnail(picture, columns=columns, rows=rows)


def _thumbnail(picture: Image.Image, *, columns: int, rows: int) -> Preview:
    picture.thumbnail((columns, rows), Image.Resampling.LANCZOS, reducing_gap=2.0)
    picture = flatten_on_white(picture)
    return Preview(width=picture.width, height=picture.height, rgb=picture.tobytes())


def mask(data: bytes, *, limits: WorkerLimits, size: tuple[int, int], way: MaskWay) -> bytes:
    """A PNG of that size that marks what may change: by transparency, or in white.

    The drawn mask may use either: transparency if it has any, else white.
    """
    _, opened = open_picture(data, limits=limits)
    drawn = turn_upright(opened.image, opened.orientation)
    alpha = drawn.convert("RGBA").getchannel("A") if drawn.has_transparency_data else None
    # A browser and many editors write an alpha channel also if everything is opaque.
    if alpha is not None and alpha.getextrema() != (255, 255):
        marked = alpha.point(_BELOW_HALF)
    else:
        marked = drawn.convert("L").point(_HALF_AND_MORE)
    return _encode_mask(marked.resize(size, Image.Resampling.NEAREST), way)


def mask_of_region(
    region: Region, *, of: tuple[int, int], size: tuple[int, int], way: MaskWay
) -> bytes:
    """A mask PNG of that size for a region of a picture whose size is ``of``."""
    across, down = size[0] / of[0], size[1] / of[1]
    marked = Image.new("L", size, 0)
    marked.paste(
        255,
        (
            round(region.x * across),
            round(region.y * down),
            round((region.x + region.width) * across),
            round((region.y + region.height) * down),
        ),
    )
    return _encode_mask(marked, way)


def _encode_mask(marked: Image.Image, way: MaskWay) -> bytes:
    out = BytesIO()
    if way == "white":
        marked.save(out, "PNG")
    else:
        opaque = Image.new("RGBA", marked.size, "black")
        opaque.putalpha(ImageChops.invert(marked))
        opaque.save(out, "PNG")
    return out.getvalue()


def enlarge_squares(png: bytes, size: tuple[int, int]) -> bytes:
    """A small drawing of our own with few colours, each pixel enlarged to a square."""
    with Image.open(BytesIO(png), formats=["PNG"]) as drawn:
        few = drawn.convert("RGB").quantize(_SQUARE_COLOURS, dither=Image.Dither.NONE)
        large = few.convert("RGB").resize(size, Image.Resampling.NEAREST)
    out = BytesIO()
    large.save(out, "PNG")
    return out.getvalue()
