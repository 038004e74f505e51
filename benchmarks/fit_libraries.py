"""Bytes -> one JPEG or WebP that fits, as people write it with pyvips and with OpenCV.

Both are in an environment of their own, so this module imports nothing of limner's.
"""

from __future__ import annotations

from typing import Any

EDGE = 1568
QUALITY = 75
ENDINGS = {"jpeg": ".jpg", "webp": ".webp"}

Fitted = tuple[bytes, str, int, int]


class Pyvips:
    """One pipeline: a JPEG or a WebP is decoded at a smaller scale, and no picture is held."""

    def __init__(self) -> None:
        import pyvips  # pyright: ignore[reportMissingImports]

        pyvips.cache_set_max(0)  # no picture comes twice
        self._vips: Any = pyvips

    def fit(self, data: bytes, kind: str) -> Fitted:
        small = self._vips.Image.thumbnail_buffer(data, EDGE, height=EDGE, size="down")
        options: dict[str, Any] = {"Q": QUALITY, "keep": "none"}
        if kind == "jpeg":
            options["background"] = [255, 255, 255]
        encoded = small.write_to_buffer(ENDINGS[kind], **options)
        return encoded, f"image/{kind}", small.width, small.height


class OpenCV:
    """The whole picture is decoded, without its transparency, and scaled by areas."""

    def __init__(self) -> None:
        import cv2
        import numpy as np

        self._cv2: Any = cv2
        self._numpy: Any = np
        self._qualities = {
            "jpeg": cv2.IMWRITE_JPEG_QUALITY,
            "webp": cv2.IMWRITE_WEBP_QUALITY,
        }

    def fit(self, data: bytes, kind: str) -> Fitted:
        cv2 = self._cv2
        picture = cv2.imdecode(self._numpy.frombuffer(data, dtype="uint8"), cv2.IMREAD_COLOR)
        if picture is None:
            raise ValueError("OpenCV cannot decode it")
        height, width = picture.shape[:2]
        scale = EDGE / max(width, height)
        if scale < 1:
            width, height = max(1, round(width * scale)), max(1, round(height * scale))
            picture = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        _, encoded = cv2.imencode(ENDINGS[kind], picture, [self._qualities[kind], QUALITY])
        return encoded.tobytes(), f"image/{kind}", width, height
