"""Bytes -> one JPEG that fits, by the least work there is: a bound, not a way to send pictures."""

from __future__ import annotations

import io

from cykooz_resizer import FilterType, ResizeAlg, ResizeOptions, Resizer
from PIL import Image, ImageOps

from benchmarks.fit_pillow import QUALITY, Fitted, eight_bit, encode, target


class Floor:
    """Scaled decode, SIMD Lanczos, one JPEG; transparency is not looked at."""

    def __init__(self) -> None:
        self._resizer = Resizer()
        lanczos = ResizeAlg.convolution(FilterType.lanczos3)
        self._options = ResizeOptions(resize_alg=lanczos, use_alpha=False)

    def fit(self, data: bytes) -> Fitted:
        """Fit one picture."""
        picture = Image.open(io.BytesIO(data))
        size = target(picture.size)
        picture.draft("RGB", size)
        if picture.mode not in ("L", "RGB"):
            picture = eight_bit(picture).convert("RGB")
        if picture.size != size:
            small = Image.new(picture.mode, size)
            self._resizer.resize_pil(picture, small, self._options)
            small.info = picture.info  # where EXIF is
            picture = small
        picture = ImageOps.exif_transpose(picture)
        return encode(picture, "JPEG", QUALITY), "image/jpeg", *picture.size
