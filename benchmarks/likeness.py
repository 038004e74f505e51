"""Two pictures -> how alike they are: SSIM of their brightness, by Pillow alone.

The means, variances and covariance are those of windows of 7 x 7 pixels side by side. Seven, since
windows of eight would fall on the blocks of a JPEG and flatter it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image, ImageMath, ImageOps

WINDOW = 7
STABLE_MEAN, STABLE_VARIANCE = (0.01 * 255) ** 2, (0.03 * 255) ** 2


class Reference:
    """A picture as its maker meant it, to measure fits of it against."""

    def __init__(self, path: Path) -> None:
        self._whole = ImageOps.exif_transpose(_on_white(Image.open(path)))
        self.size = self._whole.size
        self._sizes: dict[tuple[int, int], _Moments] = {}

    def ssim(self, data: bytes) -> float:
        """From the encoded fit; the original is scaled to its size by Lanczos first."""
        # No EXIF turn here: what a model gets, it sees as it is stored.
        fit = _Moments(_on_white(Image.open(io.BytesIO(data))))
        if fit.size not in self._sizes:
            scaled = self._whole.resize(fit.size, Image.Resampling.LANCZOS)
            self._sizes[fit.size] = _Moments(scaled)
        return _ssim(self._sizes[fit.size], fit)


class _Moments:
    """Brightness, its mean and its mean square in each window."""

    def __init__(self, picture: Image.Image) -> None:
        self.size = picture.size
        self.light = picture.convert("L").convert("F")
        self.mean = self.light.reduce(WINDOW)
        self.square = _product(self.light, self.light).reduce(WINDOW)


def _ssim(one: _Moments, other: _Moments) -> float:
    index = ImageMath.lambda_eval(
        _index,
        m=one.mean,
        n=other.mean,
        mm=one.square,
        nn=other.square,
        mn=_product(one.light, other.light).reduce(WINDOW),
    )
    # Pillow's own statistics sort floats into 256 heaps first.
    return index.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))


def _index(given: dict[str, Any]) -> Any:
    """SSIM of each window, from the means of both, of their squares and of their product."""
    m, n = given["m"], given["n"]
    spread = given["mm"] - m * m + given["nn"] - n * n
    common = given["mn"] - m * n
    light = (2 * m * n + STABLE_MEAN) / (m * m + n * n + STABLE_MEAN)
    return light * (2 * common + STABLE_VARIANCE) / (spread + STABLE_VARIANCE)


def _product(one: Image.Image, other: Image.Image) -> Image.Image:
    return ImageMath.lambda_eval(lambda given: given["a"] * given["b"], a=one, b=other)


def _on_white(picture: Image.Image) -> Image.Image:
    """The first frame in plain colour."""
    exif = picture.info.get("exif")
    if picture.mode.startswith("I"):
        plain = picture.convert("I").point(lambda value: value * (1 / 256)).convert("RGB")
    elif picture.has_transparency_data:
        layer = picture.convert("RGBA")
        plain = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    else:
        plain = picture.convert("RGB")
    if exif:
        plain.info["exif"] = exif
    return plain
