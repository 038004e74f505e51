"""Pixels -> fewer pixels, by Lanczos. Runs inside a worker only.

The extra ``limner[fast]`` does the same arithmetic with SIMD, about eight times as fast.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from PIL import Image

# The extra has no types of its own.
_simd: Any = None
with suppress(ImportError):
    _simd = import_module("cykooz_resizer")

Box = tuple[float, float, float, float]

# Pillow first averages whole pixels down to this many times the size asked for.
_REDUCING_GAP = 3.0


def lanczos(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """The part of an image inside ``box`` (left, top, right, bottom), at that size."""
    return with_pillow(image, size, box) if _simd is None else with_simd(image, size, box)


def with_pillow(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """`lanczos` with what every installation has."""
    scaled = cast("Any", image).resize(size, Image.Resampling.LANCZOS, box, _REDUCING_GAP)
    return cast("Image.Image", scaled)


def with_simd(image: Image.Image, size: tuple[int, int], box: Box) -> Image.Image:
    """`lanczos` with the extra."""
    left, top, right, bottom = box
    scaled = Image.new(image.mode, size)
    options = _simd.ResizeOptions(
        resize_alg=_simd.ResizeAlg.convolution(_simd.FilterType.lanczos3),
        crop_box=_simd.CropBox(left, top, right - left, bottom - top),
    )
    _simd.Resizer().resize_pil(image, scaled, options)
    scaled.info = dict(image.info)
    return scaled
