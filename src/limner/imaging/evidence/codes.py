"""Upright pixels -> the QR codes and barcodes in them. Runs inside a worker only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from PIL import Image

from limner.imaging.decoding import on_white
from limner.imaging.evidence.record import Box, Code

MAX_CODES = 20
MAX_CHARS = 1000
# Larger pictures are scaled down first: a code that needs more pixels than this is no use to print.
_MAX_EDGE = 4096
# Formats whose check digits rule out chance. ITF, Codabar and the like are "found" in any fence.
_KINDS = (
    *("QRCode", "MicroQRCode", "RMQRCode", "DataMatrix", "Aztec", "PDF417", "MaxiCode"),
    *("EAN13", "EAN8", "UPCA", "UPCE", "Code128", "Code93"),
)


def codes(image: Image.Image) -> tuple[Code, ...] | None:
    """Every code found, from top to bottom; None where the extra ``limner[eyes]`` is missing."""
    try:
        # Loaded when first needed: most workers never look for a code.
        zxing: Any = import_module("zxingcpp")
    except ImportError:
        return None
    # Scaled before it is converted: a copy of the largest pictures would not fit in memory.
    scale = max(1.0, max(image.size) / _MAX_EDGE)
    size = (max(1, round(image.width / scale)), max(1, round(image.height / scale)))
    small = image if size == image.size else image.resize(size, Image.Resampling.BOX)
    grey = on_white(small).convert("L")
    pixels = memoryview(grey.tobytes()).cast("B", (grey.height, grey.width))
    kinds = [getattr(zxing.BarcodeFormat, kind) for kind in _KINDS]
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
    return Code(kind=str(result.format), text=result.text[:MAX_CHARS], box=box)
