"""How pictures go into conversations: as one JPEG, if that fits and keeps transparency."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image, ImageFilter

from limner.imaging.fit import FitRequest
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.request import GIF, PNG, WEBP
from limner.imaging.limits import DEFAULT_LIMITS

QUICK = FitRequest(mode="quick")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with ThreadPoolExecutor(1) as thread:
        yield Engine(thread=thread, limits=DEFAULT_LIMITS)


def noise(width: int, height: int) -> Image.Image:
    dice = random.Random(f"{width}x{height}")
    return Image.frombytes("RGB", (width, height), dice.randbytes(3 * width * height))


def photo(width: int, height: int) -> Image.Image:
    """Soft shapes with a little grain, which only lossy formats make small."""
    soft = noise(width // 16, height // 16).resize((width, height), Image.Resampling.BICUBIC)
    grain = noise(width, height).filter(ImageFilter.GaussianBlur(1))
    return Image.blend(soft, grain, 0.1)


def test_a_screenshot_becomes_one_jpeg_of_its_own_size_in_full_colour(engine: Engine) -> None:
    data = encoded(photo(800, 600), "PNG")
    fitted, sent = engine.fit(data, QUICK)
    assert (fitted.mime, fitted.width, fitted.height, fitted.untouched) == (
        "image/jpeg",
        800,
        600,
        False,
    )
    assert len(sent) < len(data)
    image: Any = Image.open(BytesIO(sent))
    # The three channels have as many samples: none is at half the detail.
    assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3


@pytest.mark.slow
def test_a_large_picture_is_scaled_into_the_box(engine: Engine) -> None:
    fitted, _ = engine.fit(encoded(photo(2000, 1000), "PNG"), QUICK)
    assert (fitted.mime, fitted.width, fitted.height) == ("image/jpeg", 1568, 784)


def test_an_original_that_is_no_larger_than_its_jpeg_is_sent_unchanged(engine: Engine) -> None:
    data = encoded(noise(300, 300), "WEBP", quality=30)
    request = FitRequest(mode="quick", max_bytes=2 * len(data))
    fitted, sent = engine.fit(data, request)
    assert (fitted.mime, fitted.untouched) == ("image/webp", True)
    assert sent == data


def test_a_transparent_picture_stays_transparent(engine: Engine) -> None:
    glass = photo(800, 600)
    glass.putalpha(Image.linear_gradient("L").resize(glass.size))
    fitted, sent = engine.fit(encoded(glass, "PNG"), QUICK)
    assert fitted.mime != "image/jpeg"
    assert Image.open(BytesIO(sent)).has_transparency_data


def test_a_model_that_does_not_accept_jpeg_gets_none(engine: Engine) -> None:
    request = FitRequest(mode="quick", formats=(PNG, WEBP, GIF))
    fitted, _ = engine.fit(encoded(photo(800, 600), "PNG"), request)
    assert fitted.mime in request.formats


@settings(max_examples=25)
@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    max_bytes=st.integers(4_000, 40_000),
    edge=st.integers(100, 300),
)
def test_property_the_limits_hold_for_any_picture(
    engine: Engine, width: int, height: int, max_bytes: int, edge: int
) -> None:
    request = FitRequest(mode="quick", max_width=edge, max_height=edge, max_bytes=max_bytes)
    fitted, sent = engine.fit(encoded(noise(width, height), "PNG"), request)
    specified, _ = engine.fit(
        encoded(noise(width, height), "PNG"),
        FitRequest(max_width=edge, max_height=edge, max_bytes=max_bytes),
    )
    assert fitted.width <= edge
    assert fitted.height <= edge
    # If even the specified ladder stays above the limit, so may this one.
    assert len(sent) <= max_bytes or (fitted.width, fitted.height) == (
        specified.width,
        specified.height,
    )
