from __future__ import annotations

import struct
import zlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import SMALL_PNG, chunk, encoded, png
from PIL import Image
from tests.fuzz import sample

from limner.errors import CorruptImage, ImageError, ImageTooLarge, UnrecognizedImage
from limner.imaging.facts import Facts
from limner.imaging.limits import WorkerLimits
from limner.imaging.pool import Imaging

# Enough detail that no encoder makes it trivial, and no frame equal to the next.
SCENES = [
    Image.effect_mandelbrot((64, 48), (-2.0, -1.5, 1.0, 1.5), quality).convert("RGB")
    for quality in (20, 50, 100)
]
SCENE = SCENES[0]
ANIMATION = {"save_all": True, "append_images": SCENES[1:]}


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (encoded(SCENE, "PNG"), ("image/png", 1)),
        (encoded(SCENE, "PNG", **ANIMATION), ("image/png", 3)),
        (encoded(SCENE, "JPEG"), ("image/jpeg", 1)),
        (encoded(SCENE, "JPEG", progressive=True), ("image/jpeg", 1)),
        (encoded(SCENE, "MPO", **ANIMATION), ("image/jpeg", 1)),
        (encoded(SCENE, "GIF"), ("image/gif", 1)),
        (encoded(SCENE, "GIF", **ANIMATION), ("image/gif", 3)),
        (encoded(SCENE, "WEBP"), ("image/webp", 1)),
        (encoded(SCENE, "WEBP", lossless=True), ("image/webp", 1)),
        (encoded(SCENE, "WEBP", **ANIMATION), ("image/webp", 3)),
    ],
)
async def test_every_accepted_format_is_measured(
    imaging: Imaging, data: bytes, facts: tuple[str, int]
) -> None:
    mime, frames = facts
    assert await imaging.verify(data) == Facts(mime=mime, width=64, height=48, frames=frames)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
async def test_width_and_height_are_those_of_the_upright_picture(
    imaging: Imaging, kind: str
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    facts = await imaging.verify(encoded(SCENE, kind, exif=exif))
    assert facts == Facts(mime=f"image/{kind.lower()}", width=48, height=64, frames=1)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_a_truncated_picture_is_corrupt_not_smaller(imaging: Imaging, kind: str) -> None:
    data = encoded(SCENE, kind)
    for kept in (0.3, 0.6, 0.9):
        with pytest.raises(CorruptImage):
            await imaging.verify(data[: int(len(data) * kept)])


async def test_a_png_without_its_end_is_corrupt(imaging: Imaging) -> None:
    with pytest.raises(CorruptImage, match="the PNG file is cut short after 61 bytes"):
        await imaging.verify(SMALL_PNG[:-12])


async def test_one_flipped_bit_in_a_png_is_found_by_its_checksum(imaging: Imaging) -> None:
    data = bytearray(SMALL_PNG)
    data[45] ^= 0x10
    with pytest.raises(CorruptImage, match="checksum of PNG chunk b'IDAT' at byte 33 is wrong"):
        await imaging.verify(bytes(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"hello", "the first bytes match no known image format"),
        (b"<!doctype html><h1>502", "this is an HTML page, which is not accepted here"),
    ],
)
async def test_other_bytes_are_named_and_refused(
    imaging: Imaging, data: bytes, message: str
) -> None:
    with pytest.raises(UnrecognizedImage) as caught:
        await imaging.verify(data)
    assert (caught.value.message, caught.value.hint) == (
        message,
        "use a PNG, JPEG, GIF or WebP file",
    )


def gif_header(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def webp_header(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 0) + size


def jpeg_header(width: int, height: int) -> bytes:
    data = encoded(SCENE, "JPEG")
    start = data.index(b"\xff\xc0")
    return data[: start + 5] + struct.pack(">HH", height, width) + data[start + 9 :]


@pytest.mark.parametrize(
    "data",
    [
        png(60_000, 60_000),
        jpeg_header(60_000, 60_000),
        gif_header(60_000, 60_000)
        + b","
        + struct.pack("<HHHHB", 0, 0, 60_000, 60_000, 0)
        + b"\x02\0;",
        webp_header(60_000, 60_000),
    ],
    ids=["png", "jpeg", "gif", "webp"],
)
async def test_a_header_that_claims_too_many_pixels_is_refused_before_decoding(
    imaging: Imaging, data: bytes
) -> None:
    with pytest.raises(ImageTooLarge, match="60000x60000 is 3600 megapixels; at most 100 are"):
        await imaging.verify(data)


async def test_a_gif_frame_larger_than_its_screen_counts_as_it_is(imaging: Imaging) -> None:
    frame = b"," + struct.pack("<HHHHB", 0, 0, 50_000, 50_000, 0) + b"\x02\0;"
    with pytest.raises(ImageTooLarge, match="50000x50000"):
        await imaging.verify(gif_header(1, 1) + frame)


async def test_a_picture_without_pixels_is_corrupt(imaging: Imaging) -> None:
    frame = b"," + struct.pack("<HHHHB", 0, 0, 0, 0, 0) + b"\x02\0;"
    with pytest.raises(CorruptImage, match="begins like a GIF file, but its header is damaged"):
        await imaging.verify(gif_header(0, 0) + frame)


async def test_the_pixel_cap_is_exact() -> None:
    async with Imaging(workers=1, limits=WorkerLimits(max_pixels=6)) as pool:
        assert (await pool.verify(SMALL_PNG)).width == 3
        with pytest.raises(ImageTooLarge):
            await pool.verify(encoded(Image.new("L", (7, 1)), "PNG"))


async def test_a_full_hundred_megapixels_decode(imaging: Imaging) -> None:
    data = encoded(Image.new("1", (10_000, 10_000)), "PNG")
    facts = await imaging.verify(data)
    assert facts == Facts(mime="image/png", width=10_000, height=10_000, frames=1)


@pytest.mark.slow
async def test_hostile_pixel_data_that_inflates_without_end_is_harmless(imaging: Imaging) -> None:
    facts = await imaging.verify(png(8, 8, pixels=bytes(200_000_000)))
    assert facts == Facts(mime="image/png", width=8, height=8, frames=1)


@pytest.mark.parametrize(
    "bomb",
    [
        chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(100_000_000))),
        chunk(b"iTXt", b"Comment\0\1\0\0\0" + zlib.compress(bytes(100_000_000))),
        chunk(b"iCCP", b"profile\0\0" + zlib.compress(bytes(100_000_000))),
    ],
    ids=["zTXt", "iTXt", "iCCP"],
)
async def test_hostile_notes_that_inflate_without_end_are_refused(
    imaging: Imaging, bomb: bytes
) -> None:
    with pytest.raises(CorruptImage, match=r"^the picture does not decode$"):
        await imaging.verify(png(8, 8, bomb, pixels=bytes(72)))


async def test_a_frame_count_is_counted_not_believed(imaging: Imaging) -> None:
    claim = chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0))
    facts = await imaging.verify(png(8, 8, claim, pixels=bytes(72)))
    assert facts == Facts(mime="image/png", width=8, height=8, frames=1)


@sample(60)
@given(st.binary(max_size=300))
async def test_property_random_bytes_are_refused_as_image_errors(
    imaging: Imaging, data: bytes
) -> None:
    with pytest.raises(ImageError):
        await imaging.verify(data)


SEEDS = [encoded(SCENE, kind) for kind in ("PNG", "JPEG", "GIF", "WEBP")]


@sample(150)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 200),
)
async def test_property_mutated_pictures_are_facts_or_image_errors(
    imaging: Imaging, data: bytes, edits: list[tuple[int, int]], cut: int
) -> None:
    mutant = bytearray(data)
    for place, value in edits:
        mutant[place % len(mutant)] = value
    try:
        facts = await imaging.verify(bytes(mutant[: len(mutant) - cut]))
    except ImageError:
        return
    assert facts.mime in {"image/png", "image/jpeg", "image/gif", "image/webp"}
    assert facts.width * facts.height <= WorkerLimits().max_pixels


async def test_a_mutated_png_with_true_checksums_is_facts_or_an_image_error(
    imaging: Imaging,
) -> None:
    for value in range(0, 256, 5):
        header = bytearray(struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
        header[value % 13] = value
        data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(header))
        data += chunk(b"IDAT", zlib.compress(bytes(72))) + chunk(b"IEND", b"")
        try:
            facts = await imaging.verify(data)
        except ImageError:
            continue
        assert facts.frames == 1
        assert Image.open(BytesIO(data)).size == (facts.width, facts.height)


BASELINE = encoded(Image.effect_noise((200, 150), 60).convert("RGB"), "JPEG", quality=80)
PROGRESSIVE = encoded(Image.effect_noise((200, 150), 60), "JPEG", progressive=True)


@sample(150)
@given(
    whole=st.sampled_from([BASELINE, PROGRESSIVE]),
    at=st.floats(0, 1, exclude_max=True),
    change=st.integers(0, 255),
    kept=st.floats(0.2, 1),
)
def test_a_jpeg_at_an_eighth_of_its_size_is_refused_if_it_is_refused_in_full(
    whole: bytes, at: float, change: int, kept: float
) -> None:
    damaged = bytearray(whole)
    damaged[int(at * len(whole))] ^= change
    data = bytes(damaged[: int(kept * len(whole)) if change % 3 == 0 else len(whole)])
    assert refusal(data, in_full=False) == refusal(data, in_full=True)


def refusal(data: bytes, *, in_full: bool) -> str:
    """The error of Pillow at that scale; empty if it decodes the picture."""
    try:
        image = Image.open(BytesIO(data), formats=["JPEG"])
        if not in_full:
            image.draft(None, (1, 1))
        image.load()
    except Exception as error:
        return f"{type(error).__name__} {'' if 'identify' in str(error) else error}"
    return ""
