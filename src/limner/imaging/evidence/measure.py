"""Untrusted bytes -> measurements, or pixels to read text from. Runs inside a worker only."""

from __future__ import annotations

import math

from PIL import Image

from limner.imaging.decoding import in_srgb, on_white, turned
from limner.imaging.evidence import camera, palette
from limner.imaging.evidence.codes import codes
from limner.imaging.evidence.record import Legible, Measurements
from limner.imaging.limits import WorkerLimits
from limner.imaging.opening import open_picture

# A whole 4K screen is read as it is; what is larger is scaled down to as many pixels.
MAX_LEGIBLE_PIXELS = 9_000_000
# Lonely small print, such as the numbers along an axis, is found more surely a little enlarged.
ENLARGED_PIXELS = 2_000_000
MAX_ENLARGEMENT = 1.5


def measure(data: bytes, *, limits: WorkerLimits) -> Measurements:
    """Decode the first frame or page and measure it.

    Raises:
        ImageError: as `open_picture`, and where the picture is damaged.
    """
    form, opened = open_picture(data, limits=limits)
    opened.image.load()
    origin = camera.origin(opened.image)
    picture = in_srgb(turned(opened.image, opened.turn))
    sample = palette.sampled(picture)
    return Measurements(
        mime=form.mime,
        size_bytes=len(data),
        width=picture.width,
        height=picture.height,
        turned=opened.turn != 1,
        animated=opened.animated,
        transparent_percent=palette.transparent_percent(sample),
        brightness_percent=palette.brightness_percent(sample),
        colours=palette.colours(sample),
        background=palette.background(sample),
        texture=palette.texture(picture, sample),
        origin=origin,
        codes=codes(picture),
    )


def legible(data: bytes, *, limits: WorkerLimits) -> Legible:
    """The upright picture on white, large enough for small print and no larger than is sensible.

    Raises:
        ImageError: as `measure`.
    """
    _, opened = open_picture(data, limits=limits)
    picture = in_srgb(turned(opened.image, opened.turn))
    width, height = picture.size
    wanted = legible_size(width, height)
    if wanted != picture.size:
        picture = picture.resize(wanted, Image.Resampling.LANCZOS, reducing_gap=2.0)
    page = on_white(picture)
    return Legible(
        width=page.width,
        height=page.height,
        original_width=width,
        original_height=height,
        rgb=page.tobytes(),
    )


def legible_size(width: int, height: int) -> tuple[int, int]:
    """The size at which a picture is read."""
    pixels = width * height
    scale = 1.0
    if pixels > MAX_LEGIBLE_PIXELS:
        scale = math.sqrt(MAX_LEGIBLE_PIXELS / pixels)
    elif pixels < ENLARGED_PIXELS:
        scale = min(MAX_ENLARGEMENT, math.sqrt(ENLARGED_PIXELS / pixels))
    return max(1, int(width * scale)), max(1, int(height * scale))
