"""A PNG that zlib-ng inflates: the same pixels and the same errors as with Pillow alone."""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image, PngImagePlugin
from png_samples import CHANNELS, DAMAGED_STREAMS, KINDS, STREAM, WHOLE, pixel_data, png
from tests.fuzz import sample

from limner.imaging.decoders import png_check, quick_png

pytestmark = pytest.mark.skipif(
    not quick_png.IS_FASTER, reason="zlib-ng is not installed, or Pillow has it itself"
)

Decoded = tuple[str, tuple[int, int], bytes, dict[str, object]]


def decode(data: bytes, plugin: str) -> Decoded | tuple[str, str]:
    """The mode, size, pixels and texts of a picture, or its error."""
    try:
        image = Image.open(BytesIO(data), formats=[plugin])
        image.load()
    except Exception as error:  # whatever it is, it must be the same
        # Pillow names the file object in this one.
        unknown = isinstance(error, Image.UnidentifiedImageError)
        return type(error).__name__, "" if unknown else str(error)
    assert isinstance(image, PngImagePlugin.PngImageFile)
    return image.mode, image.size, image.tobytes(), {**image.info, **image.text}


def both(data: bytes) -> tuple[Decoded | tuple[str, str], Decoded | tuple[str, str]]:
    return decode(data, quick_png.NAME), decode(data, "PNG")


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_every_kind_of_png_has_the_same_pixels(colour: int, depth: int, interlaced: bool) -> None:
    stream = zlib.compress(pixel_data(colour, depth, interlaced=interlaced))
    quick, plain = both(png(stream, colour, depth, interlaced=interlaced))
    assert quick == plain
    assert len(plain) == 4


@pytest.mark.parametrize("step", [1, 7, 8192, 1 << 20])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_the_length_of_the_chunks_changes_nothing(step: int, level: int) -> None:
    quick, plain = both(png(zlib.compress(pixel_data(2, 8), level), step=step))
    assert quick == plain
    assert len(plain) == 4


@pytest.mark.parametrize("bits", range(9, 16))
def test_a_stream_with_a_small_window_has_the_same_pixels(bits: int) -> None:
    packer = zlib.compressobj(wbits=bits)
    stream = packer.compress(pixel_data(2, 8)) + packer.flush()
    quick, plain = both(png(stream))
    assert quick == plain
    assert len(plain) == 4


def test_the_first_frame_of_a_moving_png_has_the_same_pixels() -> None:
    frames = [Image.effect_noise((90, 70), 50 + 30 * turn).convert("RGB") for turn in range(3)]
    for default in (False, True):
        data = encoded(
            frames[0], "PNG", save_all=True, append_images=frames[1:], default_image=default
        )
        quick, plain = both(data)
        assert quick == plain
        assert len(plain) == 4


def test_all_frames_of_a_moving_png_have_the_same_pixels() -> None:
    frames = [Image.effect_noise((90, 70), 50 + 30 * turn).convert("RGB") for turn in range(3)]
    data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    quick = Image.open(BytesIO(data), formats=[quick_png.NAME])
    plain = Image.open(BytesIO(data), formats=["PNG"])
    for number in (0, 2, 1):
        quick.seek(number)
        plain.seek(number)
        assert quick.tobytes() == plain.tobytes()


@pytest.mark.parametrize("stream", DAMAGED_STREAMS)
@pytest.mark.parametrize("step", [4096, 1 << 20])
def test_a_damaged_stream_is_accepted_or_refused_as_by_pillow_alone(
    stream: bytes, step: int
) -> None:
    quick, plain = both(png(stream, step=step))
    assert quick == plain


@sample(150)
@given(
    at=st.integers(0, len(STREAM) - 1),
    change=st.integers(1, 255),
    step=st.sampled_from([1000, 8192, 1 << 20]),
    interlaced=st.booleans(),
)
def test_a_changed_byte_of_the_stream_has_the_same_effect(
    at: int, change: int, step: int, interlaced: bool
) -> None:
    stream = zlib.compress(pixel_data(2, 8, interlaced=interlaced)) if interlaced else STREAM
    damaged = bytearray(stream)
    damaged[at % len(damaged)] ^= change
    quick, plain = both(png(bytes(damaged), interlaced=interlaced, step=step))
    assert quick == plain


@sample(150)
@given(
    end=st.integers(0, len(WHOLE)), at=st.integers(0, len(WHOLE) - 1), change=st.integers(0, 255)
)
def test_a_truncated_and_changed_file_has_the_same_effect(end: int, at: int, change: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[at] ^= change
    quick, plain = both(bytes(damaged[:end]))
    assert quick == plain


@pytest.fixture(scope="module")
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


def filtered(size: tuple[int, int], bits: int, filters: bytes) -> bytes:
    """Rows of noise, each with its filter."""
    chance, length = random.Random(3), (size[0] * bits + 7) // 8
    return b"".join(bytes([kind]) + chance.randbytes(length) for kind in filters)


def shared(data: bytes, thread: ThreadPoolExecutor) -> tuple[bool, Decoded | tuple[str, str]]:
    """Whether two threads decode a picture that was inflated before, and what they decode."""
    image, blocks = Image.open(BytesIO(data), formats=[quick_png.NAME]), deque[bytes]()
    assert isinstance(image, PngImagePlugin.PngImageFile)
    assert png_check.can_decode(data, image.size, keep=blocks.append)
    quick_png.reuse(image, blocks)
    is_shared = quick_png.share(image, thread)
    image.load()
    return is_shared, (image.mode, image.size, image.tobytes(), {**image.info, **image.text})


@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_two_threads_decode_the_same_pixels(
    colour: int, depth: int, thread: ThreadPoolExecutor
) -> None:
    size, filters = (503, 499), bytes([4, 2, 3, 4, 1, 2, 4] * 72)[:498] + b"\0"
    data = filtered(size, CHANNELS[colour] * depth, filters)
    whole = png(zlib.compress(data, 1), colour, depth, size=size)
    assert shared(whole, thread) == (True, decode(whole, "PNG"))


@sample(20)
@given(
    filters=st.lists(st.sampled_from(range(5)), min_size=280, max_size=300).map(bytes),
    width=st.integers(990, 1010),
)
def test_any_filters_have_the_same_pixels_on_two_threads(
    filters: bytes, width: int, thread: ThreadPoolExecutor
) -> None:
    size = width, len(filters)
    whole = png(zlib.compress(filtered(size, 24, filters), 1), size=size)
    _, found = shared(whole, thread)
    assert found == decode(whole, "PNG")


@pytest.mark.parametrize(
    ("size", "first"),
    [((500, 499), 250), ((3000, 3001), 1500), ((500, 600), 119), ((500, 600), 481)],
    ids=["small", "large", "too far up", "too far down"],
)
def test_one_thread_decodes_what_is_not_worth_two(
    size: tuple[int, int], first: int, thread: ThreadPoolExecutor
) -> None:
    filters = b"\4" * first + b"\1" + b"\2" * (size[1] - first - 1)
    whole = png(zlib.compress(filtered(size, 8, filters), 1), 0, 8, size=size)
    assert shared(whole, thread) == (False, decode(whole, "PNG"))


def test_a_picture_whose_rows_all_need_the_one_above_stays_on_one_thread(
    thread: ThreadPoolExecutor,
) -> None:
    size = 600, 500
    whole = png(zlib.compress(filtered(size, 24, b"\4" * 500), 1), size=size)
    assert shared(whole, thread) == (False, decode(whole, "PNG"))
