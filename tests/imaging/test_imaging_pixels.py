"""Converted pictures and previews: what stays of a picture, and what a format cannot hold."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import chunk, decoded, encoded
from PIL import Image, ImageCms
from tests.fuzz import sample

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging.facts import Facts, Preview
from limner.imaging.formats import OutputFormat
from limner.imaging.pool import Imaging

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def near(actual: object, expected: tuple[int, ...], *, tolerance: int = 6) -> bool:
    assert isinstance(actual, tuple)
    assert len(actual) == len(expected)
    return all(abs(a - e) <= tolerance for a, e in zip(actual, expected, strict=True))


def colours(image: Image.Image) -> list[object]:
    return [image.getpixel((x, y)) for y in range(image.height) for x in range(image.width)]


def quarters(width: int, height: int, *, across: int, down: int) -> Image.Image:
    """Four colours that meet at one point."""
    image = Image.new("RGB", (width, height), WHITE)
    image.paste(RED, (0, 0, across, down))
    image.paste(GREEN, (across, 0, width, down))
    image.paste(BLUE, (0, down, across, height))
    return image


def sixteen_bit_grey(*values: int) -> bytes:
    pixels = b"\0" + struct.pack(f">{len(values)}H", *values)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", len(values), 1, 16, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + header + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_a_picture_that_exif_turns_comes_out_upright(
    imaging: Imaging, kind: str, orientation: int
) -> None:
    upright = quarters(32, 16, across=16, down=8)
    # What a camera stores so that this orientation shows the upright picture.
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright.transpose(undo[orientation]) if orientation in undo else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    result = decoded(await imaging.convert(encoded(stored, kind, exif=exif)))
    assert (result.format, result.mode, result.size) == ("PNG", "RGB", (32, 16))
    corners = [result.getpixel(place) for place in ((2, 2), (29, 2), (2, 13), (29, 13))]
    for corner, colour in zip(corners, (RED, GREEN, BLUE, WHITE), strict=True):
        assert near(corner, colour, tolerance=40)
    assert "exif" not in result.info


async def test_a_damaged_exif_block_does_not_spoil_the_picture(imaging: Imaging) -> None:
    data = encoded(quarters(32, 16, across=16, down=8), "JPEG", exif=b"Exif\0\0MM\0*garbage")
    assert decoded(await imaging.convert(data)).size == (32, 16)


async def test_palette_colours_survive_and_their_transparency_too(imaging: Imaging) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([*RED, *BLUE])
    image.putdata([0, 1])
    opaque = decoded(await imaging.convert(encoded(image, "PNG")))
    clear = decoded(await imaging.convert(encoded(image, "PNG", transparency=1)))
    gif = decoded(await imaging.convert(encoded(image, "GIF", transparency=1)))
    assert (opaque.mode, colours(opaque)) == ("RGB", [RED, BLUE])
    assert (clear.mode, colours(clear)) == ("RGBA", [(*RED, 255), (*BLUE, 0)])
    assert (gif.mode, colours(gif)) == ("RGBA", [(*RED, 255), (*BLUE, 0)])


async def test_grey_with_alpha_becomes_rgba(imaging: Imaging) -> None:
    image = Image.new("LA", (2, 1))
    image.putdata([(10, 20), (200, 255)])
    result = decoded(await imaging.convert(encoded(image, "PNG")))
    assert (result.mode, colours(result)) == (
        "RGBA",
        [(10, 10, 10, 20), (200, 200, 200, 255)],
    )


@pytest.mark.parametrize("mode", ["1", "L"])
async def test_grey_becomes_rgb(imaging: Imaging, mode: str) -> None:
    image = Image.new(mode, (2, 1))
    image.putdata([0, 255])
    result = decoded(await imaging.convert(encoded(image, "PNG")))
    assert (result.mode, colours(result)) == ("RGB", [(0, 0, 0), WHITE])


async def test_sixteen_bit_grey_is_scaled_not_clipped(imaging: Imaging) -> None:
    result = decoded(await imaging.convert(sixteen_bit_grey(0, 256, 32_768, 65_535)))
    greys = [(value,) * 3 for value in (0, 1, 128, 255)]
    assert (result.mode, colours(result)) == ("RGB", greys)


async def test_cmyk_becomes_rgb(imaging: Imaging) -> None:
    image = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    result = decoded(await imaging.convert(encoded(image, "JPEG", quality=95)))
    assert result.mode == "RGB"
    assert near(result.getpixel((8, 8)), RED)


def swapped_profile() -> bytes:
    """sRGB's own profile with red and green exchanged: wrong in a way one can see."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    swapped = profile.replace(b"rXYZ", b"tmp1").replace(b"gXYZ", b"rXYZ").replace(b"tmp1", b"gXYZ")
    return bytes(swapped.replace("sRGB".encode("utf-16-be"), "test".encode("utf-16-be")))


async def test_a_colour_profile_is_applied_and_left_out(imaging: Imaging) -> None:
    data = encoded(Image.new("RGB", (4, 4), RED), "PNG", icc_profile=swapped_profile())
    result = decoded(await imaging.convert(data))
    assert near(result.getpixel((1, 1)), GREEN, tolerance=12)
    assert "icc_profile" not in result.info


async def test_a_colour_profile_leaves_alpha_alone(imaging: Imaging) -> None:
    data = encoded(Image.new("RGBA", (4, 4), (*RED, 77)), "PNG", icc_profile=swapped_profile())
    result = decoded(await imaging.convert(data))
    assert near(result.getpixel((1, 1)), (*GREEN, 77), tolerance=12)


@pytest.mark.parametrize(
    "profile", [b"garbage", ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()]
)
async def test_a_damaged_or_plain_profile_changes_no_colour(
    imaging: Imaging, profile: bytes
) -> None:
    data = encoded(Image.new("RGB", (4, 4), (10, 20, 30)), "PNG", icc_profile=profile)
    assert decoded(await imaging.convert(data)).getpixel((1, 1)) == (10, 20, 30)


async def test_an_animation_becomes_its_first_frame(imaging: Imaging) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, BLUE)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    result = decoded(await imaging.convert(data))
    assert (result.size, result.getpixel((0, 0))) == ((4, 4), RED)
    assert getattr(result, "n_frames", 1) == 1


sides = st.integers(8, 120)


@pytest.mark.slow
@sample(60)
@given(data=st.data(), size=st.tuples(sides, sides), cover=st.tuples(sides, sides))
async def test_property_cover_scales_both_ways_alike_and_crops_from_the_centre(
    imaging: Imaging, data: st.DataObject, size: tuple[int, int], cover: tuple[int, int]
) -> None:
    (width, height), (wide, high) = size, cover
    across = data.draw(st.integers(1, width - 1), label="across")
    down = data.draw(st.integers(1, height - 1), label="down")
    source = encoded(quarters(width, height, across=across, down=down), "PNG")

    result = decoded(await imaging.convert(source, cover=cover))

    assert result.size == cover
    scale = max(wide / width, high / height)
    middle_x = (across - width / 2) * scale + wide / 2
    middle_y = (down - height / 2) * scale + high / 2
    # Lanczos blends three source pixels to each side of an edge; beyond that colours are pure.
    blur = 3 * max(scale, 1) + 1
    for x in range(wide):
        for y in range(high):
            if min(abs(x + 0.5 - middle_x), abs(y + 0.5 - middle_y)) > blur:
                left, above = x < middle_x, y < middle_y
                colour = (RED if left else GREEN) if above else (BLUE if left else WHITE)
                assert near(result.getpixel((x, y)), colour), (x, y)


async def test_cover_applies_to_the_upright_picture(imaging: Imaging) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGB", (40, 20), RED), "JPEG", exif=exif)
    assert decoded(await imaging.convert(data, cover=(20, 40))).size == (20, 40)


async def test_a_cover_over_the_pixel_cap_is_refused(imaging: Imaging) -> None:
    data = encoded(Image.new("RGB", (4, 4)), "PNG")
    with pytest.raises(ImageTooLarge, match="50000x50000"):
        await imaging.convert(data, cover=(50_000, 50_000))


async def test_a_damaged_picture_is_never_converted(imaging: Imaging) -> None:
    data = encoded(Image.effect_noise((64, 64), 50), "PNG")
    with pytest.raises(CorruptImage):
        await imaging.convert(data[:1000])
    with pytest.raises(CorruptImage):
        await imaging.preview(data[:1000], columns=8, rows=8)


async def test_a_preview_is_raw_pixels_in_proportion(imaging: Imaging) -> None:
    data = encoded(Image.new("RGB", (200, 100), RED), "PNG")
    thumbnail = await imaging.preview(data, columns=8, rows=48)
    assert thumbnail == Preview(width=8, height=4, rgb=bytes(RED) * 32)


async def test_a_preview_shows_transparency_on_white(imaging: Imaging) -> None:
    data = encoded(Image.new("RGBA", (2, 1), (*RED, 0)), "PNG")
    thumbnail = await imaging.preview(data, columns=80, rows=24)
    assert thumbnail == Preview(width=2, height=1, rgb=bytes(WHITE) * 2)


async def test_a_preview_of_a_sideways_photograph_is_upright(imaging: Imaging) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    data = encoded(Image.new("RGB", (3000, 1500), BLUE), "JPEG", exif=exif)
    thumbnail = await imaging.preview(data, columns=80, rows=40)
    assert (thumbnail.width, thumbnail.height) == (20, 40)
    assert near(tuple(thumbnail.rgb[:3]), BLUE)


@sample(40)
@given(
    size=st.tuples(st.integers(1, 600), st.integers(1, 600)),
    columns=st.integers(1, 120),
    rows=st.integers(1, 60),
)
async def test_property_a_preview_fits_and_is_never_enlarged(
    imaging: Imaging, size: tuple[int, int], columns: int, rows: int
) -> None:
    data = encoded(Image.new("RGB", size, RED), "PNG", compress_level=1)
    thumbnail = await imaging.preview(data, columns=columns, rows=rows)
    assert 1 <= thumbnail.width <= min(columns, size[0])
    assert 1 <= thumbnail.height <= min(rows, size[1])
    assert len(thumbnail.rgb) == thumbnail.width * thumbnail.height * 3


FORMATS: tuple[OutputFormat, ...] = ("png", "jpeg", "webp")
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


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
    pixel: Any = decoded(data).convert("RGB").getpixel((0, 0))
    red, green, blue = pixel
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
    assert (clear.mode, clear.getchannel("A").getpixel((4, 4))) == ("RGBA", 0)


async def test_a_picture_too_long_for_a_format_is_refused_by_name(imaging: Imaging) -> None:
    data = encoded(Image.new("L", (16_400, 1)), "PNG")
    with pytest.raises(ImageTooLarge, match="a webp file is at most 16,383 pixels wide and high"):
        await imaging.convert(data, to="webp")
    assert decoded(await imaging.convert(data, to="jpeg")).size == (16_400, 1)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
async def test_a_mask_in_black_and_white_marks_the_white_also_with_an_opaque_alpha_channel(
    imaging: Imaging, mode: str
) -> None:
    drawn = Image.new("L", (8, 8), "black")
    drawn.paste("white", (0, 0, 4, 8))
    data = encoded(drawn.convert(mode), "PNG")
    marked = decoded(await imaging.mask(data, size=(8, 8), way="white")).convert("L")
    assert (marked.getpixel((1, 1)), marked.getpixel((6, 1))) == (255, 0)
