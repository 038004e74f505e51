"""EXIF -> camera, date, software and place. Runs inside a worker only.

Every field is a claim by whoever wrote the file: strings are cut short, numbers are checked, and
damage only means that a field is not there.
"""

from __future__ import annotations

import math
import re
from typing import Any

from PIL import ExifTags, Image

from limner.imaging.decoding import BAD_EXIF
from limner.imaging.evidence.record import Origin, Place

_MAX_CHARS = 100
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")

Tags = dict[int, Any]


def origin(image: Image.Image) -> Origin | None:
    """What EXIF says of how the picture was made; None where it says nothing."""
    try:
        exif = image.getexif()
        main: Tags = dict(exif)
        photo, gps = (_block(exif, kind) for kind in (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo))
    except BAD_EXIF:
        return None
    found = Origin(
        camera=_camera(_text(main, ExifTags.Base.Make), _text(main, ExifTags.Base.Model)),
        taken=_date(photo, ExifTags.Base.DateTimeOriginal) or _date(main, ExifTags.Base.DateTime),
        software=_text(main, ExifTags.Base.Software),
        place=_place(gps),
    )
    nothing = Origin(camera=None, taken=None, software=None, place=None)
    return None if found == nothing else found


def _block(exif: Image.Exif, kind: ExifTags.IFD) -> Tags:
    try:
        return dict(exif.get_ifd(kind))
    except BAD_EXIF:
        return {}


def _text(tags: Tags, key: int) -> str | None:
    value = tags.get(key)
    if not isinstance(value, str):
        return None
    printable = "".join(char if char.isprintable() else " " for char in value[:_MAX_CHARS])
    return " ".join(printable.split()) or None


def _camera(make: str | None, model: str | None) -> str | None:
    """Maker and model, without the maker's name twice."""
    if make and model and not model.lower().startswith(make.lower()):
        return f"{make} {model}"
    return model or make


def _date(tags: Tags, key: int) -> str | None:
    found = _DATE.fullmatch(_text(tags, key) or "")
    return f"{found[1]}-{found[2]}-{found[3]} {found[4]}" if found else None


def _place(gps: Tags) -> Place | None:
    latitude = _degrees(gps, ExifTags.GPS.GPSLatitude, ExifTags.GPS.GPSLatitudeRef, against="S")
    longitude = _degrees(gps, ExifTags.GPS.GPSLongitude, ExifTags.GPS.GPSLongitudeRef, against="W")
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return Place(latitude=latitude, longitude=longitude)


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
