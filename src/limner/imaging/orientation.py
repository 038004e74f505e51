"""A decoded picture -> one that is upright, in sRGB, on white. Runs inside a worker only."""

from __future__ import annotations

import struct
from io import BytesIO

from PIL import ExifTags, Image, ImageCms

from limner.errors import ImageTooLarge

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


def check_pixels(size: tuple[int, int], *, max_pixels: int) -> None:
    """Refuse a size before a pixel of it is touched.

    Raises:
        ImageTooLarge: it has more pixels than ``max_pixels``.
    """
    width, height = size
    if width * height > max_pixels:
        message = (
            f"{width}x{height} is {width * height / 1e6:.0f} megapixels; "
            f"at most {max_pixels / 1e6:.0f} are accepted"
        )
        raise ImageTooLarge(message, hint="scale the picture down first")


def orientation(image: Image.Image, data: bytes) -> int:
    """How the picture has to be turned, as EXIF counts it; 1 where it is upright.

    ``data`` is the file the image was opened from: asking Pillow for the EXIF of a PNG that has
    none would decode all of it.
    """
    if image.format == "PNG" and b"eXIf" not in data:
        return 1
    try:
        found = image.getexif().get(ExifTags.Base.Orientation, 1)
    except BAD_EXIF:
        return 1
    return found if found in _TURNS else 1


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """The picture the right way up."""
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def upright_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """The size a picture has once it is turned."""
    width, height = size
    return (height, width) if orientation >= 5 else (width, height)


def in_srgb(image: Image.Image) -> Image.Image:
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


def on_white(image: Image.Image) -> Image.Image:
    """The picture without transparency, as it looks on white paper."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image)
    return white


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
