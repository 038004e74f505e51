"""Untrusted bytes -> measurements, or pixels for OCR. Runs inside a worker only."""

from __future__ import annotations

import math
import re
from importlib import import_module
from typing import Any

from PIL import ExifTags, Image

from limner.imaging.decode import open_picture
from limner.imaging.evidence import palette
from limner.imaging.evidence.record import Box, Code, GpsPosition, Measurements, OcrPage, Origin
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import BAD_EXIF, convert_to_srgb, flatten_on_white, turn_upright

MAX_CODES = 20
MAX_CODE_CHARS = 1000
# Larger pictures are scaled down first: no printed code needs more pixels than this.
_MAX_CODE_EDGE = 4096
# Formats with check digits, which prevent false finds. ITF or Codabar would be "found" in a fence.
_CODE_KINDS = (
    *("QRCode", "MicroQRCode", "RMQRCode", "DataMatrix", "Aztec", "PDF417", "MaxiCode"),
    *("EAN13", "EAN8", "UPCA", "UPCE", "Code128", "Code93"),
)


_MAX_EXIF_CHARS = 100
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")


# OCR gets a whole 4K screen unchanged; larger pictures are scaled down to as many pixels.
MAX_OCR_PIXELS = 9_000_000

Tags = dict[int, Any]


def measure(data: bytes, *, limits: WorkerLimits) -> Measurements:
    """Decode the first frame or page and measure it.

    Raises:
        ImageError: as `open_picture`, and if the picture is damaged.
    """
    form, opened = open_picture(data, limits=limits)
    opened.image.load()
    origin = camera_origin(opened.image)
    picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
    sample = palette.sample_pixels(picture)
    return Measurements(
        mime=form.mime,
        size_bytes=len(data),
        width=picture.width,
        height=picture.height,
        turned=opened.orientation != 1,
        animated=opened.animated,
        transparent_percent=palette.transparent_percent(sample),
        brightness_percent=palette.brightness_percent(sample),
        colours=palette.colours(sample),
        background=palette.background(sample),
        texture=palette.texture(picture, sample),
        origin=origin,
        codes=codes(picture),
    )


def make_ocr_page(data: bytes, *, limits: WorkerLimits) -> OcrPage:
    """The upright picture on white; a very large one is scaled down for OCR.

    Raises:
        ImageError: as `measure`.
    """
    _, opened = open_picture(data, limits=limits)
    picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
    width, height = picture.size
    size = ocr_size(width, height)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    page = flatten_on_white(picture)
    return OcrPage(
        width=page.width,
        height=page.height,
        original_width=width,
        original_height=height,
        rgb=page.tobytes(),
    )


def ocr_size(width: int, height: int) -> tuple[int, int]:
    """The size at which the OCR worker gets a picture."""
    scale = min(1.0, math.sqrt(MAX_OCR_PIXELS / (width * height)))
    return max(1, int(width * scale)), max(1, int(height * scale))


def codes(image: Image.Image) -> tuple[Code, ...] | None:
    """Every code found, from top to bottom; None if the extra ``limner[eyes]`` is missing."""
    try:
        # Imported on first use: most workers never look for a code.
        zxing: Any = import_module("zxingcpp")
    except ImportError:
        return None
    # Scaled before it is converted: a full copy of a very large picture would not fit in memory.
    scale = max(1.0, max(image.size) / _MAX_CODE_EDGE)
    size = (max(1, round(image.width / scale)), max(1, round(image.height / scale)))
    small = image if size == image.size else image.resize(size, Image.Resampling.BOX)
    grey = flatten_on_white(small).convert("L")
    pixels = memoryview(grey.tobytes()).cast("B", (grey.height, grey.width))
    kinds = [getattr(zxing.BarcodeFormat, kind) for kind in _CODE_KINDS]
    found = [_code(result, scale) for result in zxing.read_barcodes(pixels, formats=kinds)]
    return tuple(sorted(found, key=lambda code: (code.box.y, code.box.x))[:MAX_CODES])


def _code(result: Any, scale: float) -> Code:
    corners = result.position
    points = (corners.top_left, corners.top_right, corners.bottom_right, corners.bottom_left)
    left, right = min(point.x for point in points), max(point.x for point in points)
    top, bottom = min(point.y for point in points), max(point.y for point in points)
    box = Box(
        x=round(left * scale),
        y=round(top * scale),
        width=round((right - left) * scale),
        height=round((bottom - top) * scale),
    )
    return Code(kind=str(result.format), text=result.text[:MAX_CODE_CHARS], box=box)


def camera_origin(image: Image.Image) -> Origin | None:
    """What EXIF says about how the picture was made; None if it says nothing."""
    try:
        exif = image.getexif()
        main: Tags = dict(exif)
        photo, gps = (_block(exif, kind) for kind in (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo))
    except BAD_EXIF:
        return None
    origin = Origin(
        camera=_camera(_text(main, ExifTags.Base.Make), _text(main, ExifTags.Base.Model)),
        taken=_date(photo, ExifTags.Base.DateTimeOriginal) or _date(main, ExifTags.Base.DateTime),
        software=_text(main, ExifTags.Base.Software),
        place=_place(gps),
    )
    nothing = Origin(camera=None, taken=None, software=None, place=None)
    return None if origin == nothing else origin


def _block(exif: Image.Exif, kind: ExifTags.IFD) -> Tags:
    try:
        return dict(exif.get_ifd(kind))
    except BAD_EXIF:
        return {}


def _text(tags: Tags, key: int) -> str | None:
    value = tags.get(key)
    if not isinstance(value, str):
        return None
    printable = "".join(char if char.isprintable() else " " for char in value[:_MAX_EXIF_CHARS])
    return " ".join(printable.split()) or None


def _camera(make: str | None, model: str | None) -> str | None:
    """Maker and model; the name of the maker appears once."""
    if make and model and not model.lower().startswith(make.lower()):
        return f"{make} {model}"
    return model or make


def _date(tags: Tags, key: int) -> str | None:
    found = _DATE.fullmatch(_text(tags, key) or "")
    return f"{found[1]}-{found[2]}-{found[3]} {found[4]}" if found else None


def _place(gps: Tags) -> GpsPosition | None:
    latitude = _degrees(gps, ExifTags.GPS.GPSLatitude, ExifTags.GPS.GPSLatitudeRef, against="S")
    longitude = _degrees(gps, ExifTags.GPS.GPSLongitude, ExifTags.GPS.GPSLongitudeRef, against="W")
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return GpsPosition(latitude=latitude, longitude=longitude)


def _degrees(gps: Tags, value: int, reference: int, *, against: str) -> float | None:
    """Degrees from degrees, minutes and seconds, negative in the south and west."""
    try:
        degrees, minutes, seconds = (float(part) for part in gps[value])
    except BAD_EXIF:
        return None
    total = degrees + minutes / 60 + seconds / 3600
    if not math.isfinite(total):
        return None
    return round(-total if gps.get(reference) == against else total, 6)
