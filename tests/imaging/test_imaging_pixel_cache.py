"""A verified picture is fitted without decoding it again, and the result is the same."""

from __future__ import annotations

import pytest
from imaging_samples import encoded
from PIL import Image

from limner.imaging import pixels
from limner.imaging.decode import open_picture
from limner.imaging.fit import FitRequest
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.pixel_cache import PixelCache
from limner.imaging.pool import Imaging

pytestmark = pytest.mark.slow

SCENES = [
    Image.effect_mandelbrot((640, 480), (-2.0, -1.5, 1.0, 1.5), quality).convert("RGB")
    for quality in (20, 50)
]
SCENE = SCENES[0]
GLASS = SCENE.copy()
GLASS.putalpha(128)
FILES = {
    "png": encoded(SCENE, "PNG"),
    "transparent png": encoded(GLASS, "PNG"),
    "png of few colours": encoded(SCENE.quantize(16), "PNG"),
    "moving png": encoded(SCENE, "PNG", save_all=True, append_images=SCENES[1:]),
    "webp": encoded(SCENE, "WEBP"),
    "moving webp": encoded(SCENE, "WEBP", save_all=True, append_images=SCENES[1:]),
    "gif": encoded(SCENE, "GIF"),
    "jpeg": encoded(SCENE, "JPEG"),
}
# Neither request lets one of these files pass through.
REQUESTS = {
    "smaller": FitRequest(max_width=200, max_height=200, max_bytes=8_000),
    "as large": FitRequest(mode="fast", max_bytes=16_000),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("name", FILES)
async def test_a_picture_is_fitted_to_the_same_bytes_whether_it_was_just_verified_or_not(
    name: str, request_name: str
) -> None:
    data, request = FILES[name], REQUESTS[request_name]
    async with Imaging(workers=1) as imaging:
        alone = await imaging.fit(lambda: data, request)
        await imaging.verify(data)
        fresh = await imaging.fit(lambda: data, request)
        again = await imaging.fit(lambda: data, request)
    assert fresh == alone
    assert again == alone


@pytest.mark.parametrize(("name", "is_kept"), [("png", True), ("webp", True), ("jpeg", False)])
def test_pixels_are_kept_once_for_the_same_bytes(name: str, is_kept: bool) -> None:
    fresh, data = PixelCache(), FILES[name]
    pixels.verify(data, limits=DEFAULT_LIMITS, keep=fresh.keep)
    assert (fresh.take(bytes(bytearray(data))) is not None) is is_kept
    assert fresh.take(data) is None


def test_other_bytes_get_no_pixels_and_clear_the_cache() -> None:
    fresh, data = PixelCache(), FILES["png"]
    fresh.keep(data, *open_picture(data, limits=DEFAULT_LIMITS))
    assert fresh.take(data + b"\0") is None
    assert fresh.take(data) is None


def test_the_cache_can_be_cleared() -> None:
    fresh, data = PixelCache(), FILES["png"]
    fresh.keep(data, *open_picture(data, limits=DEFAULT_LIMITS))
    fresh.clear()
    assert fresh.take(data) is None
