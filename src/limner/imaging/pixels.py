"""Untrusted bytes -> facts, PNG or a thumbnail, with Pillow. Runs inside a worker only."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

from PIL import Image, ImageOps

from limner.errors import CorruptImage
from limner.imaging.decoding import check_pixels, in_srgb, open_header, orientation, turned
from limner.imaging.facts import Facts, Preview

# Above level 4 a photograph takes three times as long and gets no smaller.
_PNG_COMPRESS_LEVEL = 4


def verify(data: bytes, *, max_pixels: int) -> Facts:
    """Decode the first frame in full and say what the picture is.

    Raises:
        UnrecognizedImage: the first bytes show no accepted format.
        ImageTooLarge: the header claims more pixels than ``max_pixels``; none were touched.
        CorruptImage: the picture is damaged or cut short.
    """
    mime, image = open_header(data, max_pixels=max_pixels)
    frames = _checked_png_frames(data) if mime == "image/png" else _frames(mime, image)
    width, height = image.size
    image.load()
    return Facts(mime=mime, width=width, height=height, frames=frames)


def to_png(data: bytes, *, max_pixels: int, cover: tuple[int, int] | None) -> bytes:
    """The first frame as an upright 8-bit sRGB PNG, without the metadata of the original.

    With ``cover`` it is scaled to cover that size and cropped from the centre to exactly it.

    Raises:
        ImageTooLarge: as `verify`, and for a ``cover`` over the pixel cap.
    """
    _, image = open_header(data, max_pixels=max_pixels)
    picture = in_srgb(turned(image, orientation(image, data)))
    if cover is not None and cover != picture.size:
        check_pixels(cover, max_pixels=max_pixels)
        picture = ImageOps.fit(picture, cover, Image.Resampling.LANCZOS)
    out = BytesIO()
    picture.save(out, "PNG", compress_level=_PNG_COMPRESS_LEVEL, icc_profile=None)
    return out.getvalue()


def preview(data: bytes, *, max_pixels: int, columns: int, rows: int) -> Preview:
    """A thumbnail within columns x rows pixels, never enlarged, transparency shown on white."""
    _, image = open_header(data, max_pixels=max_pixels)
    # A JPEG decodes straight to about the size needed; the longer edge fits either orientation.
    edge = 2 * max(columns, rows)
    image.draft("RGB", (edge, edge))
    picture = in_srgb(turned(image, orientation(image, data)))
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


def _frames(mime: str, image: Image.Image) -> int:
    # The further pictures in a JPEG are depth and gain maps, not an animation.
    return 1 if mime == "image/jpeg" else getattr(image, "n_frames", 1)
