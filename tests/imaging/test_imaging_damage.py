"""Damaged files: every job refuses them with a message for people."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import chunk, encoded, png
from PIL import Image
from tests.fuzz import sample

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging import gif_blocks
from limner.imaging.facts import Facts
from limner.imaging.fit import FitRequest
from limner.imaging.pool import Imaging

Job = Callable[[Imaging, bytes], Awaitable[object]]

JOBS: dict[str, Job] = {
    "verify": lambda pool, data: pool.verify(data),
    "convert": lambda pool, data: pool.convert(data),
    "preview": lambda pool, data: pool.preview(data, columns=9, rows=9),
    "fit": lambda pool, data: pool.fit(data, FitRequest()),
    "measure": lambda pool, data: pool.measure(data),
    "mask": lambda pool, data: pool.mask(data, size=(9, 9), way="alpha"),
}


def palette_png(*before_pixels: bytes) -> bytes:
    """A PNG whose pixels are all the first colour of a palette."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 3, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(72)))
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + header + b"".join(before_pixels) + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize("job", JOBS)
async def test_a_palette_picture_without_a_palette_is_corrupt_for_every_job(
    imaging: Imaging, job: str
) -> None:
    await JOBS[job](imaging, palette_png(chunk(b"PLTE", b"red")))
    with pytest.raises(CorruptImage, match=r"^the picture has no palette$"):
        await JOBS[job](imaging, palette_png())


def gif(*blocks: bytes, edge: int = 8) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", edge, edge, 0, 0, 0) + b"".join(blocks) + b";"


def gif_frame(edge: int) -> bytes:
    return b"," + struct.pack("<HHHHB", 0, 0, edge, edge, 0) + b"\2\2\x4c\1\0"


GIF_CLEARS_AFTER = b"!\xf9\4\x08\0\0\0\0"


async def test_a_gif_frame_to_be_cleared_is_refused_before_memory_is_taken_for_it(
    imaging: Imaging,
) -> None:
    with pytest.raises(ImageTooLarge, match=r"^60000x60000 is 3600 megapixels; at most 100 are"):
        await imaging.verify(gif(GIF_CLEARS_AFTER, gif_frame(60_000)))


ANIMATION = encoded(
    Image.linear_gradient("L"),
    "GIF",
    save_all=True,
    append_images=[Image.radial_gradient("L"), Image.linear_gradient("L").rotate(90)],
    duration=100,
)
# Each frame begins with a block that has its duration.
SECOND_FRAME = ANIMATION.index(b"!\xf9\4", ANIMATION.index(b"!\xf9\4") + 1)


@pytest.mark.parametrize("after", [1, 2, 4, 9, 12, 17, 30, 1_000])
async def test_an_animation_truncated_within_a_later_frame_is_corrupt_not_shorter(
    imaging: Imaging, after: int
) -> None:
    cut = ANIMATION[: SECOND_FRAME + after]
    with pytest.raises(CorruptImage) as caught:
        await imaging.verify(cut)
    assert caught.value.message == f"the GIF file is cut short after {len(cut)} bytes"


async def test_an_animation_truncated_between_frames_is_a_shorter_one(imaging: Imaging) -> None:
    whole = Facts(mime="image/gif", width=256, height=256, frames=3)
    assert await imaging.verify(ANIMATION) == whole
    assert await imaging.verify(ANIMATION[:-1]) == whole
    alone = Facts(mime="image/gif", width=256, height=256, frames=1)
    assert await imaging.verify(ANIMATION[:SECOND_FRAME]) == alone


async def test_a_gif_with_unused_bytes_between_its_blocks_is_complete(imaging: Imaging) -> None:
    padded = ANIMATION[:SECOND_FRAME] + bytes(99) + ANIMATION[SECOND_FRAME:] + b"tail"
    assert (await imaging.verify(padded)).frames == 3


RECTANGLES = list(gif_blocks.frames(ANIMATION))


@sample(100)
@given(kept=st.integers(0, len(ANIMATION)))
def test_property_a_truncated_gif_has_the_first_of_its_frames_or_is_corrupt(kept: int) -> None:
    found: list[gif_blocks.Rectangle] = []
    with contextlib.suppress(CorruptImage):
        # What was found before a cut stays in the list.
        found.extend(gif_blocks.frames(ANIMATION[:kept]))
    assert found == RECTANGLES[: len(found)]


@sample(200)
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_property_any_bytes_are_parsed_or_corrupt(head: bytes, tail: bytes) -> None:
    data = b"GIF89a" + head + ANIMATION[SECOND_FRAME:] + tail
    with contextlib.suppress(CorruptImage):
        for left, top, right, bottom in gif_blocks.frames(data):
            assert 0 <= left <= right <= 2 * 65_535
            assert 0 <= top <= bottom <= 2 * 65_535


def without_a_clock(data: bytes) -> bytes:
    """An AVIF animation whose time runs in steps of a zeroth of a second."""
    clock = data.index(b"mdhd") + 4
    steps = clock + (20 if data[clock] else 12)
    return data[:steps] + bytes(4) + data[steps + 4 :]


async def test_an_internal_error_of_a_decoder_is_not_quoted(wide: Imaging) -> None:
    frames = [Image.linear_gradient("L"), Image.radial_gradient("L")]
    data = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:])
    assert (await wide.verify(data)).frames == 2
    with pytest.raises(CorruptImage, match=r"^the picture does not decode$"):
        await wide.verify(without_a_clock(data))


async def test_a_decoder_message_for_programmers_is_not_quoted(imaging: Imaging) -> None:
    note = chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(2 << 20)))
    with pytest.raises(CorruptImage, match=r"^the picture does not decode$"):
        await imaging.verify(png(8, 8, note, pixels=bytes(72)))


async def test_a_decoder_message_for_people_is_quoted(imaging: Imaging) -> None:
    data = encoded(Image.linear_gradient("L"), "JPEG")
    with pytest.raises(
        CorruptImage, match=r"^the picture does not decode: image file is truncated"
    ):
        await imaging.verify(data[: len(data) // 2])
