"""Untrusted bytes -> facts, PNG or a thumbnail, with Pillow. Runs inside a worker only."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

from PIL import Image, ImageOps

from limner.errors import CorruptImage
from limner.imaging.decoding import check_pixels, in_srgb, turned, upright_size
from limner.imaging.facts import Facts, Preview
from limner.imaging.limits import WorkerLimits
from limner.imaging.opening import open_picture

# Above level 4 a photograph takes three times as long and gets no smaller.
_PNG_COMPRESS_LEVEL = 4


def verify(data: bytes, *, limits: WorkerLimits) -> Facts:
    """Decode the first frame or page in full and say what the picture is.

    Raises:
        ImageError: as `open_picture`.
        CorruptImage: the picture is damaged or cut short.
    """
    form, opened = open_picture(data, limits=limits)
    frames = _checked_png_frames(data) if form.name == "png" else opened.frames
    width, height = upright_size(opened.image.size, opened.turn)
    opened.image.load()
    return Facts(mime=form.mime, width=width, height=height, frames=frames, pages=opened.pages)


def to_png(data: bytes, *, limits: WorkerLimits, cover: tuple[int, int] | None) -> bytes:
    """The first frame or page as an upright 8-bit sRGB PNG, without the original's metadata.

    With ``cover`` it is scaled to cover that size and cropped from the centre to exactly it.

    Raises:
        ImageTooLarge: as `verify`, and for a ``cover`` over the pixel cap.
    """
    _, opened = open_picture(data, limits=limits)
    picture = in_srgb(turned(opened.image, opened.turn))
    if cover is not None and cover != picture.size:
        check_pixels(cover, max_pixels=limits.max_pixels)
        picture = ImageOps.fit(picture, cover, Image.Resampling.LANCZOS)
    out = BytesIO()
    picture.save(out, "PNG", compress_level=_PNG_COMPRESS_LEVEL, icc_profile=None)
    return out.getvalue()


def preview(data: bytes, *, limits: WorkerLimits, columns: int, rows: int) -> Preview:
    """A thumbnail within columns x rows pixels, never enlarged, transparency shown on white."""
    _, opened = open_picture(data, limits=limits)
    # A JPEG decodes straight to about the size needed; the longer edge fits either orientation.
    edge = 2 * max(columns, rows)
    opened.image.draft("RGB", (edge, edge))
    picture = in_srgb(turned(opened.image, opened.turn))
    picture.thumbnail((columns, rows), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if picture.mode == "RGBA":
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture).convert("RGB")
    return Preview(width=picture.width, height=picture.height, rgb=picture.tobytes())


def _checked_png_frames(data: bytes) -> int:
    """Check every chunk up to the end marker and count the frames that are really there.

    Pillow skips the checksums of pixel data and believes the frame count in the header.
    """
    view = memoryview(data)
    start, frames = 8, 0
    while start + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            break
        if zlib.crc32(view[start + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            raise CorruptImage(f"the checksum of PNG chunk {kind!r} at byte {start} is wrong")
        if kind == b"IEND":
            return max(frames, 1)
        frames += kind == b"fcTL"
        start = end
    raise CorruptImage(f"the PNG file is cut short after {len(data)} bytes")
