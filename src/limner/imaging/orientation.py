"""A decoded picture -> one that is upright, in sRGB, on white. Runs inside a worker only."""

from __future__ import annotations

import struct
from io import BytesIO

from PIL import ExifTags, Image, ImageCms

from limner.errors import ImageTooLarge
from limner.imaging import png_chunks

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# The modes that can be scaled directly; all others are converted first.
_SCALABLE = frozenset({"L", "RGB", "RGBA", "CMYK"})

# What Pillow raises on a damaged EXIF block. Such a picture is still accepted.
BAD_EXIF = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)


def check_pixels(
    size: tuple[int, int], *, max_pixels: int, hint: str = "scale the picture down first"
) -> None:
    """Check a size before a pixel is decoded.

    Raises:
        ImageTooLarge: it has more pixels than ``max_pixels``.
    """
    width, height = size
    if width * height > max_pixels:
        message = (
            f"{width}x{height} is {width * height / 1e6:.0f} megapixels; "
            f"at most {max_pixels / 1e6:.0f} are accepted"
        )
        raise ImageTooLarge(message, hint=hint)


def exif_orientation(image: Image.Image, data: bytes) -> int:
    """The orientation of EXIF, 1 to 8; 1 means upright.

    ``data`` is the file of the image.
    """
    try:
        exif = _png_exif(image, data) if image.format == "PNG" else image.getexif()
        found = exif.get(ExifTags.Base.Orientation, 1)
    except BAD_EXIF:
        return 1
    return found if found in _TURNS else 1


def _png_exif(image: Image.Image, data: bytes) -> Image.Exif:
    """The EXIF of a PNG. Pillow would decode all pixels to look for it behind them."""
    if "exif" in image.info:
        return image.getexif()
    exif = Image.Exif()
    chunks = png_chunks.walk(BytesIO(data)) if b"eXIf" in data else ()
    found = next((chunk for chunk in chunks if chunk.kind == b"eXIf"), None)
    if found is not None:
        exif.load(data[found.start : found.start + found.length])
    return exif


def turn_upright(image: Image.Image, orientation: int) -> Image.Image:
    """Rotate or mirror a picture so that it is upright."""
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def upright_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """The size of a picture after `turn_upright`."""
    width, height = size
    return (height, width) if orientation >= 5 else (width, height)


def stored_box(
    box: tuple[int, int, int, int], size: tuple[int, int], orientation: int
) -> tuple[int, int, int, int]:
    """A box in an upright picture of that size -> the same box before `turn_upright`."""
    left, top, right, bottom = box
    width, height = size
    if orientation in {2, 3, 6, 7}:
        left, right = width - right, width - left
    if orientation in {3, 4, 7, 8}:
        top, bottom = height - bottom, height - top
    return (top, left, bottom, right) if orientation >= 5 else (left, top, right, bottom)


def convert_to_srgb(image: Image.Image) -> Image.Image:
    """Convert to sRGB, as RGB, or as RGBA if any of it may be transparent."""
    mode = "RGBA" if image.has_transparency_data else "RGB"
    if image.mode == "I;16":
        # Pillow clips 16-bit grey instead of scaling it. The high bytes are the scaled values.
        return Image.frombytes("L", image.size, image.tobytes()[1::2]).convert("RGB")
    if profile := image.info.get("icc_profile"):
        try:
            return _through_profile(image, profile, mode=mode)
        except (ImageCms.PyCMSError, OSError):
            # A damaged profile, or one for other channels: convert without it.
            pass
    if image.mode == mode:
        image.load()
        return image  # Pillow would copy it
    return image.convert(mode)


def convert_to_scalable(image: Image.Image) -> Image.Image:
    """A picture whose pixels can be averaged: the same one, or converted to sRGB."""
    if image.mode in _SCALABLE and (image.mode == "RGBA" or not image.has_transparency_data):
        return image
    return convert_to_srgb(image)


def _through_profile(image: Image.Image, profile: bytes, *, mode: str) -> Image.Image:
    source = ImageCms.ImageCmsProfile(BytesIO(profile))
    managed = mode == "RGB" and image.mode in {"L", "CMYK"}
    pixels = image if managed else image.convert(mode)
    if ImageCms.getProfileDescription(source).startswith("sRGB"):
        return pixels.convert(mode)
    # Pillow does not declare the type of a created profile.
    target = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    converted = ImageCms.profileToProfile(pixels, source, target, outputMode=mode)
    assert converted is not None
    return converted


def flatten_on_white(image: Image.Image) -> Image.Image:
    """Remove transparency: show the picture on white."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image)
    return white
