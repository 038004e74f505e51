"""Transformed pictures: each step does what it says, in the stated order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import decoded, encoded
from PIL import Image, ImageDraw

from limner.errors import ImageError, ImageTooLarge, InputInvalid
from limner.imaging.fit import Region
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.pool import Imaging
from limner.imaging.transform import Transformed, TransformRequest
from limner.imaging.transform.steps import transform

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def halves(width: int = 40, height: int = 20) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image


def made(image: Image.Image, **steps: object) -> Image.Image:
    request = TransformRequest(**steps)  # type: ignore[arg-type] - the steps of a test
    _, data = transform(encoded(image, "PNG"), request, limits=DEFAULT_LIMITS)
    return decoded(data)


def corners(image: Image.Image) -> list[object]:
    right, low = image.width - 1, image.height - 1
    return [image.getpixel(place) for place in ((0, 0), (right, 0), (0, low), (right, low))]


async def test_a_worker_transforms_a_picture(imaging: Imaging) -> None:
    request = TransformRequest(crop=Region(x=0, y=0, width=20, height=20), width=10, to="webp")
    facts, data = await imaging.transform(encoded(halves(), "PNG"), request)
    assert facts == Transformed(width=10, height=10)
    assert (decoded(data).format, decoded(data).size) == ("WEBP", (10, 10))


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        (90, [RED, RED, BLUE, BLUE]),
        (180, [BLUE, RED, BLUE, RED]),
        (-90, [BLUE, BLUE, RED, RED]),
        (360, [RED, BLUE, RED, BLUE]),
    ],
)
def test_a_picture_is_turned_clockwise(degrees: float, expected: list[object]) -> None:
    assert corners(made(halves(), rotate=degrees)) == expected


def test_a_slanted_picture_has_the_asked_colour_in_its_corners() -> None:
    assert corners(made(halves(), rotate=30, background="#00ff00")) == [GREEN] * 4
    assert corners(made(halves(), rotate=30)) == [(0, 0, 0, 0)] * 4


def test_a_picture_is_mirrored() -> None:
    assert corners(made(halves(), flip="horizontal")) == [BLUE, RED, BLUE, RED]
    tall = halves().transpose(Image.Transpose.ROTATE_90)
    assert corners(made(tall, flip="vertical")) == [RED, RED, BLUE, BLUE]


@pytest.mark.parametrize(
    ("steps", "size"),
    [
        ({"width": 20}, (20, 10)),
        ({"height": 5}, (10, 5)),
        ({"width": 7, "height": 9}, (7, 9)),
        ({"scale": 0.5}, (20, 10)),
        ({"scale": 0.001}, (1, 1)),
        ({"margin": 3}, (46, 26)),
        ({"canvas": (100, 10)}, (100, 20)),
        ({"rotate": 90.0, "width": 10}, (10, 20)),
        ({"crop": Region(x=4, y=4, width=8, height=4), "scale": 2.0, "margin": 1}, (18, 10)),
    ],
)
def test_the_size_follows_from_the_steps(steps: dict[str, object], size: tuple[int, int]) -> None:
    assert made(halves(), **steps).size == size


def test_what_is_padded_has_the_asked_colour_or_none() -> None:
    assert corners(made(halves(), margin=2, background="#00ff00")) == [GREEN] * 4
    assert corners(made(halves(), margin=2)) == [(0, 0, 0, 0)] * 4


def test_a_part_outside_the_picture_is_refused() -> None:
    outside = Region(x=30, y=0, width=11, height=5)
    for field, steps in (("crop", {"crop": outside}), ("blur", {"blur": (outside,)})):
        with pytest.raises(InputInvalid) as caught:
            made(halves(), **steps)
        assert caught.value.field == field
        assert caught.value.message == f"{field} lies outside the picture, which is 40x20"


def test_a_blurred_part_keeps_no_detail_and_the_rest_is_untouched() -> None:
    image = Image.new("RGB", (64, 64), WHITE)
    for place in range(0, 64, 2):
        image.paste((0, 0, 0), (place, 0, place + 1, 64))
    blurred = made(image, blur=(Region(x=16, y=16, width=32, height=32),))
    inner = blurred.crop((20, 20, 44, 44)).convert("L").tobytes()
    assert max(inner) - min(inner) < 40, "stripes of black and white have become grey"
    assert blurred.crop((0, 0, 64, 16)).tobytes() == image.crop((0, 0, 64, 16)).tobytes()


def on_ground(ground: Image.Image) -> Image.Image:
    ImageDraw.Draw(ground).ellipse((16, 16, 48, 48), fill=RED, outline=(90, 0, 0), width=3)
    ImageDraw.Draw(ground).rectangle((28, 28, 36, 36), fill=WHITE)
    return ground


def checkered() -> Image.Image:
    image = Image.new("RGB", (64, 64), WHITE)
    for x in range(0, 64, 8):
        for y in range(0, 64, 8):
            if (x + y) // 8 % 2:
                image.paste((204, 204, 204), (x, y, x + 8, y + 8))
    return image


@pytest.mark.parametrize("ground", [Image.new("RGB", (64, 64), WHITE), checkered()])
def test_a_flat_or_checkered_background_becomes_transparent(ground: Image.Image) -> None:
    cut = made(on_ground(ground.copy()), cut_out=True)
    assert corners(cut) == [(*pixel[:3], 0) for pixel in corners(cut)]  # type: ignore[index] - RGBA
    assert cut.getpixel((20, 32)) == (*RED, 255)
    assert cut.getpixel((32, 32)) == (*WHITE, 255), "white within the figure is no background"


def test_a_background_that_is_not_flat_is_refused_with_the_share() -> None:
    noise = Image.effect_noise((64, 64), 120).convert("RGB")
    with pytest.raises(ImageError, match=r"the background is not flat: only \d+ % of the edge"):
        made(noise, cut_out=True)


@pytest.mark.parametrize("to", ["png", "jpeg", "webp"])
def test_a_file_is_compressed_to_a_size(to: str) -> None:
    noise = Image.effect_noise((200, 150), 90).convert("RGB")
    request = TransformRequest(max_bytes=6_000, to=to)  # type: ignore[arg-type] - a format
    facts, data = transform(encoded(noise, "PNG"), request, limits=DEFAULT_LIMITS)
    assert len(data) <= 6_000
    assert decoded(data).size == (facts.width, facts.height)
    if facts.width < 200:
        assert facts.notes == (
            f"It was scaled from 200x150 to {facts.width}x{facts.height} to fit into 6,000 bytes.",
        )


def test_a_size_that_nothing_fits_into_is_refused() -> None:
    with pytest.raises(ImageTooLarge, match="does not fit into 50 bytes as png"):
        made(Image.effect_noise((99, 99), 90), max_bytes=50)


def test_an_overlay_is_drawn_over_the_picture() -> None:
    overlay = (
        '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9" fill="lime"/></svg>'
    )
    assert corners(made(halves(), overlay=overlay)) == [GREEN, BLUE, RED, BLUE]


def test_a_huge_result_is_refused_before_it_is_made() -> None:
    for steps in ({"scale": 90_000.0}, {"canvas": (16_384, 16_384)}):
        with pytest.raises(ImageTooLarge):
            made(halves(), **steps)


@given(
    width=st.integers(1, 60),
    height=st.integers(1, 60),
    rotate=st.floats(-360, 360),
    scale=st.floats(0.01, 4),
    margin=st.integers(0, 20),
    to=st.sampled_from(["png", "jpeg", "webp"]),
    seed=st.integers(0, 9),
)
def test_property_any_steps_give_a_picture_of_the_reported_size(
    width: int, height: int, rotate: float, scale: float, margin: int, to: str, seed: int
) -> None:
    request = TransformRequest(
        rotate=rotate,
        scale=scale,
        margin=margin,
        to=to,  # type: ignore[arg-type] - a format
        flip=(None, "horizontal", "vertical")[seed % 3],
    )
    image = Image.effect_noise((width, height), 50).convert(("L", "RGB", "RGBA", "P")[seed % 4])
    facts, data = transform(encoded(image, "PNG"), request, limits=DEFAULT_LIMITS)
    assert decoded(data).size == (facts.width, facts.height)
