"""A mask as somebody drew it -> the mask as a service wants it. Runs inside a worker only."""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageChops

from limner.imaging.decoding import turned
from limner.imaging.facts import MaskWay
from limner.imaging.fit.request import Region
from limner.imaging.limits import WorkerLimits
from limner.imaging.opening import open_picture

_BELOW_HALF = [255] * 128 + [0] * 128
_HALF_AND_MORE = [0] * 128 + [255] * 128


def mask(data: bytes, *, limits: WorkerLimits, size: tuple[int, int], way: MaskWay) -> bytes:
    """A PNG of that size that marks what may change: by transparency, or in white.

    In what was drawn it is marked either way: by transparency where there is any, else in white.
    """
    _, opened = open_picture(data, limits=limits)
    drawn = turned(opened.image, opened.turn)
    if drawn.has_transparency_data:
        marked = drawn.convert("RGBA").getchannel("A").point(_BELOW_HALF)
    else:
        marked = drawn.convert("L").point(_HALF_AND_MORE)
    return _png(marked.resize(size, Image.Resampling.NEAREST), way)


def mask_of_region(
    region: Region, *, of: tuple[int, int], size: tuple[int, int], way: MaskWay
) -> bytes:
    """A PNG of that size that marks a region of a picture with the size ``of``."""
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
    return _png(marked, way)


def _png(marked: Image.Image, way: MaskWay) -> bytes:
    out = BytesIO()
    if way == "white":
        marked.save(out, "PNG")
    else:
        opaque = Image.new("RGBA", marked.size, "black")
        opaque.putalpha(ImageChops.invert(marked))
        opaque.save(out, "PNG")
    return out.getvalue()
