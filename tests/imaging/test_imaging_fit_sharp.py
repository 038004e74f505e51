"""How pictures go into conversations: unchanged, else sharp and no larger than they were."""

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
from msgspec.structs import replace
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageStat

from limner.imaging.fit import FitRequest
from limner.imaging.fit.encoders import lossless_webp
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.request import GIF, JPEG, PNG, WEBP
from limner.imaging.fit.source import resize
from limner.imaging.limits import DEFAULT_LIMITS

SHARP = FitRequest(mode="sharp", max_width=600, max_height=600, max_bytes=10_000_000)


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


def screen(width: int, height: int) -> Image.Image:
    """Dark words on white, as in a window."""
    made = Image.new("RGB", (width, height), "white")
    draw, dice = ImageDraw.Draw(made), random.Random("words")
    for y in range(4, height - 16, 16):
        draw.text((4, y), f"{dice.randrange(16**9):09x} " * (width // 70), fill="black")
    return made


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_within_the_limits_is_sent_unchanged(engine: Engine, kind: str) -> None:
    data = encoded(photo(600, 400), kind)
    fitted, sent = engine.fit(data, replace(SHARP, max_bytes=len(data)))
    assert (fitted.mime, fitted.untouched) == (f"image/{kind.lower()}", True)
    assert sent == data


def test_text_is_scaled_into_the_box_without_any_other_loss(engine: Engine) -> None:
    image = screen(1200, 900)
    fitted, sent = engine.fit(encoded(image, "PNG"), SHARP)
    assert (fitted.mime, fitted.width, fitted.height) == (WEBP, 600, 450)
    expected = resize(image, (600, 450), (0, 0, *image.size))
    assert Image.open(BytesIO(sent)).convert("RGB").tobytes() == expected.tobytes()


@pytest.mark.parametrize("formats", [(PNG, JPEG, WEBP, GIF), (PNG, JPEG)])
def test_scaled_text_becomes_a_jpeg_that_looks_the_same_if_it_has_fewer_bytes(
    engine: Engine, formats: tuple[str, ...]
) -> None:
    image = screen(1200, 1000)
    ImageDraw.Draw(image).rectangle((0, 0, 300, 1000), fill="navy")
    image.paste(photo(800, 320), (320, 100))
    fitted, sent = engine.fit(encoded(image, "PNG"), replace(SHARP, formats=formats))
    assert (fitted.mime, fitted.width, fitted.height) == (JPEG, 600, 500)
    expected = resize(image, (600, 500), (0, 0, *image.size))
    opened: Any = Image.open(BytesIO(sent))
    assert [layer[1:3] for layer in opened.layer] == [(1, 1)] * 3
    loss = ImageStat.Stat(ImageChops.difference(opened.convert("RGB"), expected))
    assert max(loss.rms) < 3
    assert len(sent) < len(lossless_webp(expected).data)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
@pytest.mark.parametrize("size", [(100, 16_384), (17_000, 90)])
def test_a_picture_that_is_too_long_for_webp_is_sent_in_another_format(
    engine: Engine, size: tuple[int, int], mode: str
) -> None:
    image = screen(*size).convert(mode)
    if mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize(size))
    data = encoded(image, "PNG", compress_level=1)
    limits = replace(SHARP, max_width=max(size), max_height=max(size), max_bytes=len(data) - 1)
    fitted, sent = engine.fit(data, limits)
    assert (fitted.width, fitted.height, fitted.untouched) == (*size, False)
    assert fitted.mime != WEBP
    assert Image.open(BytesIO(sent)).size == size


def test_a_comment_of_the_original_is_not_sent(engine: Engine) -> None:
    comment = b"who took it, and where" * 50
    data = encoded(photo(900, 700), "JPEG", comment=comment)
    assert comment in data
    _, sent = engine.fit(data, SHARP)
    assert b"who took it" not in sent


def test_text_that_was_small_stays_small_in_fewer_colours(engine: Engine) -> None:
    data = encoded(screen(1200, 900).quantize(2), "PNG")
    fitted, sent = engine.fit(data, replace(SHARP, formats=(PNG, JPEG)))
    assert (fitted.mime, fitted.width) == (PNG, 600)
    assert len(Image.open(BytesIO(sent)).convert("RGB").getcolors(256) or ()) in range(3, 257)


def test_a_picture_that_would_grow_is_sent_unchanged_if_the_service_shrinks_it(
    engine: Engine,
) -> None:
    data = encoded(screen(900, 900), "WEBP", lossless=True)
    for edge, width in ((900, 900), (899, 600)):
        fitted, sent = engine.fit(data, replace(SHARP, max_edge_unchanged=edge))
        assert (fitted.width, fitted.untouched) == (width, edge == 900)
        assert (sent == data) == (edge == 900)


def test_a_photo_becomes_a_jpeg_in_full_colour_and_no_larger(engine: Engine) -> None:
    data = encoded(photo(800, 600), "JPEG", quality=50)
    fitted, sent = engine.fit(data, SHARP)
    assert (fitted.mime, fitted.width, fitted.height) == (JPEG, 600, 450)
    assert len(sent) <= len(data)
    image: Any = Image.open(BytesIO(sent))
    # The three channels have as many samples: none is at half the detail.
    assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3


@pytest.mark.parametrize("formats", [(PNG, JPEG, WEBP, GIF), (PNG, JPEG), (JPEG,)])
def test_a_transparent_picture_stays_transparent(engine: Engine, formats: tuple[str, ...]) -> None:
    glass = photo(800, 600)
    glass.putalpha(Image.linear_gradient("L").resize(glass.size))
    fitted, sent = engine.fit(encoded(glass, "PNG"), replace(SHARP, formats=formats))
    assert fitted.mime != JPEG
    assert Image.open(BytesIO(sent)).has_transparency_data


def test_a_tiny_picture_of_another_type_keeps_its_size(engine: Engine) -> None:
    data = encoded(noise(16, 16).quantize(2), "GIF")
    fitted, _ = engine.fit(data, replace(SHARP, formats=(PNG, JPEG)))
    assert (fitted.width, fitted.height) == (16, 16)


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
    request = FitRequest(mode="sharp", max_width=edge, max_height=edge, max_bytes=max_bytes)
    fitted, sent = engine.fit(encoded(noise(width, height), "PNG"), request)
    assert fitted.width <= edge
    assert fitted.height <= edge
    assert len(sent) <= max_bytes
