"""Pictures in another format: what stays of them, and what a format cannot hold."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image, ImageCms
from tests.fuzz import sample

from limner.errors import ImageTooLarge
from limner.imaging.facts import Facts
from limner.imaging.formats import OutputFormat
from limner.imaging.pool import Imaging

FORMATS: tuple[OutputFormat, ...] = ("png", "jpeg", "webp")
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def decoded(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


@sample(30)
@given(
    source=st.sampled_from(["PNG", "JPEG", "WEBP", "GIF"]),
    to=st.sampled_from(FORMATS),
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    cover=st.none() | st.tuples(st.integers(1, 50), st.integers(1, 50)),
)
async def test_property_a_picture_becomes_the_format_and_size_that_was_asked_for(
    imaging: Imaging,
    source: str,
    to: OutputFormat,
    size: tuple[int, int],
    cover: tuple[int, int] | None,
) -> None:
    data = await imaging.convert(
        encoded(Image.new("RGB", size, "orange"), source), to=to, cover=cover
    )
    width, height = cover or size
    assert await imaging.verify(data) == Facts(
        mime=f"image/{to}", width=width, height=height, frames=1
    )
    red, green, blue = decoded(data).convert("RGB").getpixel((0, 0))
    assert (abs(red - 255) < 8, abs(green - 165) < 8, blue < 12) == (True, True, True)


@pytest.mark.parametrize("to", FORMATS)
async def test_nothing_of_the_original_but_its_pixels_is_in_the_result(
    imaging: Imaging, to: OutputFormat
) -> None:
    exif = Image.Exif()
    exif[0x0131] = "a secret"
    data = encoded(
        Image.new("RGB", (8, 8)), "JPEG", exif=exif, comment=b"a secret", icc_profile=SRGB
    )
    info = decoded(await imaging.convert(data, to=to)).info
    assert {"exif", "comment", "icc_profile", "xmp"} & {*info} == set()


async def test_a_jpeg_shows_transparency_on_white_and_a_webp_keeps_it(imaging: Imaging) -> None:
    data = encoded(Image.new("RGBA", (8, 8), (0, 0, 255, 0)), "PNG")
    flat = decoded(await imaging.convert(data, to="jpeg"))
    assert (flat.mode, flat.getpixel((4, 4))) == ("RGB", (255, 255, 255))
    clear = decoded(await imaging.convert(data, to="webp"))
    assert (clear.mode, clear.getpixel((4, 4))[3]) == ("RGBA", 0)


async def test_a_picture_too_long_for_a_format_is_refused_by_name(imaging: Imaging) -> None:
    data = encoded(Image.new("L", (16_400, 1)), "PNG")
    with pytest.raises(ImageTooLarge, match="a webp file is at most 16,383 pixels wide and high"):
        await imaging.convert(data, to="webp")
    assert decoded(await imaging.convert(data, to="jpeg")).size == (16_400, 1)
