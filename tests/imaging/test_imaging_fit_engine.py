"""The right pixels: orientation, colours, transparency, regions."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageCms

from limner.errors import ImageTooLarge, InputInvalid
from limner.imaging.decode import open_picture
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.source import resize
from limner.imaging.limits import DEFAULT_LIMITS

SIDEWAYS = 6
MODES = ["seed", "fast"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with ThreadPoolExecutor(1) as thread:
        yield Engine(thread=thread, limits=DEFAULT_LIMITS)


def encoded(image: Image.Image, kind: str, **how: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def halves(width: int, height: int, *, mode: str = "RGB") -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    return image.convert(mode)


def turned_by(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def fit(engine: Engine, data: bytes, **asked: Any) -> tuple[Fitted, Image.Image]:
    fitted, sent = engine.fit(data, FitRequest(**asked))
    with Image.open(io.BytesIO(sent)) as image:
        image.load()
        return fitted, image


def colour(image: Image.Image, x: int, y: int) -> str:
    pixel: Any = image.convert("RGBA").getpixel((x, y))
    red, green, blue, _ = pixel
    near = {
        "red": (254, 0, 0),
        "blue": (0, 0, 254),
        "white": (255, 255, 255),
        "black": (0, 0, 0),
        "grey": (128, 128, 128),
    }
    return min(
        near,
        key=lambda name: sum(
            abs(a - b) for a, b in zip(near[name], (red, green, blue), strict=True)
        ),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "pixel"), [("JPEG", "L"), ("PNG", "L"), ("PNG", "1"), ("PNG", "LA"), ("PNG", "I;16")]
)
def test_grey_and_16_bit_pictures_are_scaled_like_any_other(
    engine: Engine, mode: str, kind: str, pixel: str
) -> None:
    image = Image.linear_gradient("L").resize((3000, 2000))
    if pixel == "I;16":
        image = image.convert("I").point(lambda value: value * 257).convert("I;16")
    data = encoded(image if pixel == "I;16" else image.convert(pixel), kind)
    fitted, sent = fit(engine, data, mode=mode)
    assert (fitted.width, fitted.height) == sent.size == (1568, 1045)
    assert [colour(sent, 800, y) for y in (2, 1040)] == ["black", "white"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photo_taken_sideways_is_sent_upright(engine: Engine, mode: str, kind: str) -> None:
    data = encoded(halves(3000, 2000), kind, exif=turned_by(SIDEWAYS))
    fitted, sent = fit(engine, data, mode=mode)
    assert (fitted.original_width, fitted.original_height) == (2000, 3000)
    assert (fitted.width, fitted.height) == sent.size == (1045, 1568)
    assert [colour(sent, 500, y) for y in (10, 1560)] == ["red", "blue"]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_each_of_the_eight_orientations_is_applied(engine: Engine, orientation: int) -> None:
    upright = halves(1700, 900)
    upright.paste("white", (0, 0, 400, 200))
    undo = {6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    same = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        7: Image.Transpose.TRANSVERSE,
    }
    turn = (undo | same).get(orientation)
    stored = upright if turn is None else upright.transpose(turn)
    _, sent = fit(engine, encoded(stored, "PNG", exif=turned_by(orientation)))
    assert sent.size == (1568, 830)
    corners = [(20, 20), (1540, 20), (20, 810), (1540, 810)]
    assert [colour(sent, *corner) for corner in corners] == ["white", "blue", "red", "blue"]


@pytest.mark.parametrize("mode", MODES)
def test_a_panorama_keeps_its_proportions_and_maps_back_by_two_scales(
    engine: Engine, mode: str
) -> None:
    fitted, sent = fit(engine, encoded(halves(10_000, 220), "PNG"), mode=mode)
    assert sent.size == (1568, 34)
    assert (fitted.scale_x, fitted.scale_y) == (10_000 / 1568, 220 / 34)


@pytest.mark.parametrize("mode", MODES)
def test_transparency_becomes_white_if_no_format_supports_it(engine: Engine, mode: str) -> None:
    image = halves(1000, 1000, mode="RGBA")
    image.putalpha(Image.new("L", image.size, 0))
    fitted, sent = fit(engine, encoded(image, "PNG"), mode=mode, formats=("image/jpeg",))
    assert (fitted.mime, colour(sent, 100, 100)) == ("image/jpeg", "white")


def test_transparency_is_kept_if_a_format_supports_it(engine: Engine) -> None:
    image = halves(3000, 1000, mode="RGBA")
    image.putalpha(Image.new("L", image.size, 128))
    _, sent = fit(engine, encoded(image, "PNG"))
    assert sent.mode in {"RGBA", "P"}
    assert sent.convert("RGBA").getchannel("A").getpixel((10, 10)) == pytest.approx(128, abs=2)


@pytest.mark.parametrize("mode", MODES)
def test_an_opaque_alpha_channel_is_left_out(engine: Engine, mode: str) -> None:
    _, sent = fit(engine, encoded(halves(2000, 1000, mode="RGBA"), "PNG"), mode=mode)
    assert sent.mode == "RGB"
    assert [colour(sent, x, 100) for x in (10, 1500)] == ["red", "blue"]


def test_a_gif_is_its_canvas_and_not_the_rectangle_of_its_first_frame(engine: Engine) -> None:
    canvas = halves(2000, 300).quantize(8)
    patch = Image.new("P", (100, 80), 1)
    data = encoded(canvas, "GIF", save_all=True, append_images=[patch.resize((2000, 300))])
    fitted, sent = fit(engine, data)
    assert (fitted.animated, sent.size) == (True, (1568, 235))
    assert [colour(sent, x, 100) for x in (10, 1500)] == ["red", "blue"]


def test_an_animated_webp_is_sent_as_its_first_frame(engine: Engine) -> None:
    data = encoded(
        halves(2000, 1000), "WEBP", save_all=True, append_images=[Image.new("RGB", (2000, 1000))]
    )
    fitted, sent = fit(engine, data)
    assert (fitted.animated, sent.size, getattr(sent, "n_frames", 1)) == (True, (1568, 784), 1)
    assert [colour(sent, x, 100) for x in (10, 1500)] == ["red", "blue"]


@pytest.mark.parametrize("mode", MODES)
def test_a_cmyk_photo_keeps_its_colours(engine: Engine, mode: str) -> None:
    data = encoded(halves(2400, 1200).convert("CMYK"), "JPEG", quality=95)
    fitted, sent = fit(engine, data, mode=mode)
    assert sent.mode in {"RGB", "P"}
    assert [colour(sent, x, 100) for x in (10, fitted.width - 10)] == ["red", "blue"]


def test_a_palette_with_transparency_keeps_it(engine: Engine) -> None:
    image = halves(2000, 1000).quantize(8)
    data = encoded(image, "PNG", transparency=image.getpixel((0, 0)))
    _, sent = fit(engine, data)
    alpha = sent.convert("RGBA").getchannel("A")
    assert [alpha.getpixel((x, 100)) for x in (10, 1500)] == [0, 255]


def test_a_colour_profile_is_converted_to_srgb_and_left_out(engine: Engine) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
    data = encoded(halves(2000, 1000), "JPEG", icc_profile=profile.tobytes())
    _, sent = fit(engine, data)
    assert "icc_profile" not in sent.info


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2, 2)])
def test_the_smallest_pictures_are_accepted(
    engine: Engine, mode: str, size: tuple[int, int]
) -> None:
    fitted, sent = fit(engine, encoded(halves(*size), "PNG"), mode=mode)
    assert (fitted.width, fitted.height) == sent.size
    assert max(sent.size) <= 1568


def bomb(width: int, height: int) -> bytes:
    """A 1-bit PNG of nothing but zeros, a few kilobytes for hundreds of megapixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    squeeze = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    pixels = b"".join(squeeze.compress(row) for _ in range(height)) + squeeze.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def test_a_bomb_of_256_megapixels_is_refused_from_its_header(engine: Engine) -> None:
    data = bomb(16_000, 16_000)
    assert len(data) < 50_000
    with pytest.raises(ImageTooLarge, match="16000x16000 is 256 megapixels"):
        engine.fit(data, FitRequest())


# Parts of a picture


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_region_comes_from_the_original_at_full_detail(engine: Engine, kind: str) -> None:
    image = Image.new("RGB", (6000, 4000), "white")
    image.paste("red", (5000, 3000, 5400, 3300))
    region = Region(x=5000, y=3000, width=400, height=300)
    fitted, sent = fit(engine, encoded(image, kind), region=region)
    assert sent.size == (400, 300)
    assert (fitted.part, fitted.scale_x, fitted.scale_y) == (region, 1.0, 1.0)
    assert [colour(sent, *at) for at in ((10, 10), (390, 290))] == ["red", "red"]


def test_a_region_of_a_sideways_photo_is_named_in_upright_pixels(engine: Engine) -> None:
    upright = Image.new("RGB", (1000, 2000), "white")
    upright.paste("blue", (600, 1500, 900, 1900))
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    region = Region(x=600, y=1500, width=300, height=400)
    _, sent = fit(engine, encoded(stored, "JPEG", exif=turned_by(SIDEWAYS)), region=region)
    assert sent.size == (300, 400)
    assert colour(sent, 150, 200) == "blue"


def test_a_region_is_clipped_at_the_edges_of_the_picture(engine: Engine) -> None:
    region = Region(x=-50, y=150, width=100, height=500)
    fitted, sent = fit(engine, encoded(halves(400, 200), "PNG"), region=region)
    assert (fitted.part, sent.size) == (Region(x=0, y=150, width=50, height=50), (50, 50))


def test_a_region_outside_the_picture_is_an_error_that_names_its_size(engine: Engine) -> None:
    region = Region(x=400, y=0, width=10, height=10)
    with pytest.raises(InputInvalid, match="400x200"):
        engine.fit(encoded(halves(400, 200), "PNG"), FitRequest(region=region))


@pytest.mark.parametrize("box", [(0.0, 0.0, 2000.0, 3000.0), (3.25, 7.5, 1990.0, 2995.5)])
def test_a_large_picture_is_scaled_to_the_pixels_that_pillow_makes_at_once(
    box: tuple[float, float, float, float],
) -> None:
    dice = random.Random("spots")
    spots = Image.frombytes("RGB", (200, 300), bytes(dice.choices(range(64, 192), k=180_000)))
    image = spots.resize((2000, 3000), Image.Resampling.BICUBIC)
    scaled = resize(image, (1100, 1650), box)
    at_once = image.resize((1100, 1650), Image.Resampling.LANCZOS, box)
    # Either may scale the width first, and rounds twice.
    assert max(ImageChops.difference(scaled, at_once).tobytes()) <= 2


def test_the_pixels_of_a_picture_are_freed_before_it_is_encoded(engine: Engine) -> None:
    data = encoded(halves(2000, 1000), "PNG")
    opened = open_picture(data, limits=DEFAULT_LIMITS)
    engine.fit(data, FitRequest(), opened=opened)
    with pytest.raises(ValueError, match="closed"):
        opened[1].image.getpixel((0, 0))


@pytest.mark.parametrize("width", [1206, 1286, 1290, 2739])
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_a_region_at_the_edge_of_a_photo_of_any_width_is_sent(
    engine: Engine, width: int, scale: int
) -> None:
    data = encoded(Image.linear_gradient("L").resize((width, 900)).convert("RGB"), "JPEG")
    region = Region(x=width // 10, y=10, width=width, height=900)
    request = FitRequest(mode="fast", region=region, max_width=width // scale - 9)
    fitted, _ = engine.fit(data, request)
    assert fitted.part == Region(x=width // 10, y=10, width=width - width // 10, height=890)
