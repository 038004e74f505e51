from __future__ import annotations

import random
from io import BytesIO
from typing import Any

import pytest
import zxingcpp
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import ExifTags, Image, ImageColor, ImageDraw

from limner.errors import CorruptImage, UnrecognizedImage
from limner.imaging.evidence import (
    Box,
    Code,
    Colour,
    GpsPosition,
    Measurements,
    Origin,
    Texture,
)
from limner.imaging.evidence.colour_names import (
    BASIC,
    basic_word,
    colour_name,
    matches_word,
    oklab,
)
from limner.imaging.pool import Imaging

WORDS = {
    "black": "black",
    "silver": "grey",
    "gray": "grey",
    "white": "white",
    "maroon": "red",
    "red": "red",
    "purple": "purple",
    "fuchsia": "pink",
    "green": "green",
    "lime": "green",
    "olive": "green",
    "yellow": "yellow",
    "navy": "blue",
    "blue": "blue",
    "teal": "cyan",
    "aqua": "cyan",
    "orange": "orange",
    "brown": "brown",
    "pink": "pink",
    "tan": "brown",
    "gold": "yellow",
    "indigo": "purple",
    "skyblue": "blue",
    "turquoise": "cyan",
    "crimson": "red",
    "forestgreen": "green",
    "chocolate": "brown",
    "lightgrey": "grey",
    "ivory": "white",
}

bytes_of_colour = st.integers(0, 255)
shades = st.tuples(bytes_of_colour, bytes_of_colour, bytes_of_colour)


@pytest.mark.parametrize(("css", "word"), WORDS.items())
def test_a_colour_of_css_has_the_word_people_use(css: str, word: str) -> None:
    red, green, blue, *_ = ImageColor.getrgb(css)
    assert basic_word(colour_name((red, green, blue))) == word


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("075e54", "teal"),
        ("f3e3cd", "beige"),
        ("a96b7a", "mauve"),
        ("e6e6fa", "lavender"),
        ("000080", "navy"),
        ("808000", "olive"),
        ("1f2a44", "navy"),
        ("e5ddd5", "beige"),
    ],
)
def test_a_shade_has_the_name_of_the_nearest_example(code: str, name: str) -> None:
    red, green, blue = bytes.fromhex(code)
    assert colour_name((red, green, blue)) == name
    assert matches_word(name, basic_word(name))


@given(shades)
def test_every_shade_has_one_basic_word(shade: tuple[int, int, int]) -> None:
    assert basic_word(colour_name(shade)) in BASIC


@given(st.integers(0, 255))
def test_shades_without_a_hue_are_black_grey_or_white(level: int) -> None:
    assert basic_word(colour_name((level, level, level))) in {"black", "grey", "white"}


@given(shades)
def test_oklab_runs_from_black_to_white(shade: tuple[int, int, int]) -> None:
    lightness, a, b = oklab(shade)
    assert -1e-6 <= lightness <= 1 + 1e-6
    assert abs(a) < 0.4
    assert abs(b) < 0.4


async def test_a_drawn_picture_is_measured_in_full(imaging: Imaging) -> None:
    image = Image.new("RGB", (200, 100), "white")
    ImageDraw.Draw(image).rectangle((50, 25, 149, 74), fill="blue")
    data = encoded(image, "PNG")
    assert await imaging.measure(data) == Measurements(
        mime="image/png",
        size_bytes=len(data),
        width=200,
        height=100,
        turned=False,
        animated=False,
        transparent_percent=0,
        brightness_percent=78,
        colours=(
            Colour(name="white", hex="#ffffff", percent=75),
            Colour(name="blue", hex="#0000ff", percent=25),
        ),
        background=Colour(name="white", hex="#ffffff", percent=100),
        texture=Texture(equal=99, sharp=1, two_colours=100, grey=75, focus=100),
        origin=None,
        codes=(),
    )


async def test_transparent_pixels_have_no_colour(imaging: Imaging) -> None:
    image = Image.new("RGBA", (100, 100), (0, 0, 0, 0))
    image.paste((255, 0, 0, 255), (0, 0, 100, 40))
    measured = await imaging.measure(encoded(image, "PNG"))
    assert measured.transparent_percent == 60
    assert measured.colours == (Colour(name="red", hex="#ff0000", percent=100),)


async def test_a_transparent_picture_has_no_colours_and_no_background(imaging: Imaging) -> None:
    measured = await imaging.measure(encoded(Image.new("RGBA", (9, 9), (1, 2, 3, 0)), "PNG"))
    assert (measured.colours, measured.background) == ((), None)
    assert measured.transparent_percent == 100


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (3000, 2)])
async def test_the_smallest_pictures_can_be_measured(
    imaging: Imaging, size: tuple[int, int]
) -> None:
    measured = await imaging.measure(encoded(Image.new("RGB", size, "green"), "PNG"))
    assert (measured.width, measured.height) == size
    assert measured.colours == (Colour(name="green", hex="#008000", percent=100),)


async def test_a_border_of_many_colours_is_not_a_background(imaging: Imaging) -> None:
    image = Image.new("RGB", (90, 90), "red")
    image.paste("blue", (30, 0, 60, 90))
    image.paste("yellow", (60, 0, 90, 90))
    assert (await imaging.measure(encoded(image, "PNG"))).background is None


async def test_noise_has_the_texture_of_a_photo(imaging: Imaging) -> None:
    noise = Image.frombytes("RGB", (64, 64), random.Random(1).randbytes(64 * 64 * 3))
    measured = await imaging.measure(encoded(noise, "PNG"))
    assert measured.texture.equal == 0
    assert measured.texture.two_colours == 0


async def test_an_animation_is_measured_by_its_first_frame(imaging: Imaging) -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "lime")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    measured = await imaging.measure(data)
    assert measured.animated
    assert [colour.name for colour in measured.colours] == ["red"]


def _camera_exif() -> Image.Exif:
    exif = Image.Exif()
    exif[ExifTags.Base.Make] = "Canon"
    exif[ExifTags.Base.Model] = "Canon EOS R5\x00\x1b[31m"
    exif[ExifTags.Base.Software] = "x" * 5000
    exif[ExifTags.Base.Orientation] = 6
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2024:05:01 12:34:56"
    gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
    gps[ExifTags.GPS.GPSLatitudeRef], gps[ExifTags.GPS.GPSLatitude] = "N", (51.0, 30.0, 26.0)
    gps[ExifTags.GPS.GPSLongitudeRef], gps[ExifTags.GPS.GPSLongitude] = "W", (0.0, 7.0, 39.0)
    return exif


async def test_camera_data_is_cleaned_and_the_picture_is_turned_upright(imaging: Imaging) -> None:
    photo = Image.effect_noise((60, 40), 60).convert("RGB")
    measured = await imaging.measure(encoded(photo, "JPEG", exif=_camera_exif()))
    assert (measured.width, measured.height, measured.turned) == (40, 60, True)
    assert measured.origin == Origin(
        camera="Canon EOS R5 [31m",
        taken="2024-05-01 12:34:56",
        software="x" * 100,
        place=GpsPosition(latitude=51.507222, longitude=-0.1275),
    )


@given(st.binary(max_size=300))
def test_no_exif_is_too_damaged_for_a_picture(body: bytes) -> None:
    from limner.imaging.evidence.measure import camera_origin as origin

    data = encoded(Image.new("RGB", (4, 4)), "JPEG", exif=b"Exif\x00\x00" + body)
    found = origin(Image.open(BytesIO(data)))
    assert found is None or isinstance(found, Origin)


@pytest.mark.parametrize(
    ("kind", "text", "label"),
    [
        ("QRCode", "https://example.org/?q=1", "QR Code"),
        ("DataMatrix", "PART-0042", "Data Matrix"),
        ("EAN13", "4006381333931", "EAN-13"),
        ("Code128", "LIMNER-7", "Code 128"),
    ],
)
async def test_a_code_is_found_with_its_position(
    imaging: Imaging, kind: str, text: str, label: str
) -> None:
    code = zxingcpp.create_barcode(text, getattr(zxingcpp.BarcodeFormat, kind))
    drawn: Any = zxingcpp.write_barcode_to_image(code, scale=4)
    height, width = drawn.shape
    page = Image.new("RGB", (width + 300, height + 200), "white")
    page.paste(Image.frombytes("L", (width, height), bytes(drawn)), (200, 100))
    measured = await imaging.measure(encoded(page, "PNG"))
    assert measured.codes is not None
    (found,) = measured.codes
    assert (found.kind, found.text) == (label, text)
    assert isinstance(found, Code)
    box: Box = found.box
    assert 200 <= box.x < box.x + box.width <= 200 + width
    assert 100 <= box.y < box.y + box.height <= 100 + height


async def test_bytes_that_are_not_a_picture_cannot_be_measured(imaging: Imaging) -> None:
    with pytest.raises(UnrecognizedImage):
        await imaging.measure(b"hello")
    with pytest.raises(CorruptImage):
        await imaging.measure(encoded(Image.effect_noise((90, 90), 50), "PNG")[:-2000])
