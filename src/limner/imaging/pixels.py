"""Untrusted bytes -> facts, PNG or a thumbnail, with Pillow. Runs inside a worker only.

What Pillow raises on damaged data is left to the worker's loop, which answers ``CorruptImage``.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

# Loaded up front, so that the worker needs no further file once its limits are set.
from PIL import (
    ExifTags,
    GifImagePlugin,
    Image,
    ImageCms,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from limner.errors import CorruptImage, ImageTooLarge, UnrecognizedImage
from limner.imaging.facts import Facts, Preview
from limner.imaging.formats import DECODERS, HEAD_BYTES, NAMES, sniff, webp_canvas

_PLUGINS = (GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin)

# The one pixel cap is ours: Pillow's own warns at one size and raises at twice that.
Image.MAX_IMAGE_PIXELS = None

# Above level 4 a photograph takes three times as long and gets no smaller.
_PNG_COMPRESS_LEVEL = 4

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# What Pillow raises on a damaged EXIF block, which is no reason to refuse the picture.
_BAD_EXIF = (IndexError, KeyError, OSError, SyntaxError, TypeError, ValueError, struct.error)


def verify(data: bytes, *, max_pixels: int) -> Facts:
    """Decode the first frame in full and say what the picture is.

    Raises:
        UnrecognizedImage: the first bytes show no accepted format.
        ImageTooLarge: the header claims more pixels than ``max_pixels``; none were touched.
        CorruptImage: the picture is damaged or cut short.
    """
    mime, image = _open(data, max_pixels=max_pixels)
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
    _, image = _open(data, max_pixels=max_pixels)
    picture = _in_srgb(_upright(image))
    if cover is not None and cover != picture.size:
        _check_pixels(cover, max_pixels=max_pixels)
        picture = ImageOps.fit(picture, cover, Image.Resampling.LANCZOS)
    out = BytesIO()
    picture.save(out, "PNG", compress_level=_PNG_COMPRESS_LEVEL, icc_profile=None)
    return out.getvalue()


def preview(data: bytes, *, max_pixels: int, columns: int, rows: int) -> Preview:
    """A thumbnail within columns x rows pixels, never enlarged, transparency shown on white."""
    _, image = _open(data, max_pixels=max_pixels)
    # A JPEG decodes straight to about the size needed; the longer edge fits either orientation.
    edge = 2 * max(columns, rows)
    image.draft("RGB", (edge, edge))
    picture = _in_srgb(_upright(image))
    picture.thumbnail((columns, rows), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if picture.mode == "RGBA":
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture).convert("RGB")
    return Preview(width=picture.width, height=picture.height, rgb=picture.tobytes())


def _open(data: bytes, *, max_pixels: int) -> tuple[str, Image.Image]:
    """Read the header only, with the decoder that the magic bytes name."""
    mime = sniff(data[:HEAD_BYTES])
    if mime is None or mime not in DECODERS:
        raise _unrecognized(data, mime)
    if mime == "image/webp" and (canvas := webp_canvas(data)):
        _check_pixels(canvas, max_pixels=max_pixels)
    try:
        image = Image.open(BytesIO(data), formats=[DECODERS[mime]])
    except UnidentifiedImageError:
        message = f"this begins like {NAMES[mime]}, but its header is damaged"
        raise CorruptImage(message) from None
    _check_pixels(image.size, max_pixels=max_pixels)
    return mime, image


def _unrecognized(data: bytes, mime: str | None) -> UnrecognizedImage:
    hint = "use a PNG, JPEG, GIF or WebP file"
    if not data:
        return UnrecognizedImage("the file is empty", hint=hint)
    if mime is None:
        return UnrecognizedImage("the first bytes match no known image format", hint=hint)
    return UnrecognizedImage(f"this is {NAMES[mime]}, which is not accepted here", hint=hint)


def _check_pixels(size: tuple[int, int], *, max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        message = (
            f"{width}x{height} is {width * height / 1e6:.0f} megapixels; "
            f"at most {max_pixels / 1e6:.0f} are accepted"
        )
        raise ImageTooLarge(message, hint="scale the picture down first")


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


def _upright(image: Image.Image) -> Image.Image:
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except _BAD_EXIF:
        return image
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def _in_srgb(image: Image.Image) -> Image.Image:
    """The picture as RGB, or RGBA where any of it may be transparent, in sRGB."""
    mode = "RGBA" if image.has_transparency_data else "RGB"
    if image.mode == "I;16":
        # Pillow clips 16-bit grey on conversion instead of scaling it; the high bytes do that.
        return Image.frombytes("L", image.size, image.tobytes()[1::2]).convert("RGB")
    if profile := image.info.get("icc_profile"):
        try:
            return _through_profile(image, profile, mode=mode)
        except (ImageCms.PyCMSError, OSError):
            # A damaged profile, or one for other channels: the plain conversion is still right.
            pass
    return image.convert(mode)


def _through_profile(image: Image.Image, profile: bytes, *, mode: str) -> Image.Image:
    source = ImageCms.ImageCmsProfile(BytesIO(profile))
    managed = mode == "RGB" and image.mode in {"L", "CMYK"}
    pixels = image if managed else image.convert(mode)
    if ImageCms.getProfileDescription(source).startswith("sRGB"):
        return pixels.convert(mode)
    # Pillow leaves the type of a created profile open.
    target = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    converted = ImageCms.profileToProfile(pixels, source, target, outputMode=mode)
    assert converted is not None
    return converted
