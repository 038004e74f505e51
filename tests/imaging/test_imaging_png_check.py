"""A PNG that is checked without its pixels: accepted only if Pillow decodes it."""

from __future__ import annotations

import zlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import chunk, encoded
from PIL import Image
from png_samples import (
    DAMAGED_STREAMS,
    HEIGHT,
    KINDS,
    STREAM,
    WHOLE,
    WIDTH,
    pixel_data,
    png,
)
from tests.fuzz import sample

from limner.errors import CorruptImage
from limner.imaging import png_chunks
from limner.imaging.decoders import OpenedPicture, quick_png
from limner.imaging.decoders.png_check import can_decode
from limner.imaging.limits import WorkerLimits
from limner.imaging.pixels import verify

SIZE = WIDTH, HEIGHT
END = chunk(b"IEND", b"")


def decodes(data: bytes) -> bool:
    """Whether Pillow decodes it."""
    try:
        Image.open(BytesIO(data), formats=["PNG"]).load()
    except Exception:
        return False
    return True


@pytest.mark.parametrize(("colour", "depth"), KINDS)
@pytest.mark.parametrize("level", [0, 6])
def test_every_kind_of_png_needs_no_decoder(colour: int, depth: int, level: int) -> None:
    data = png(zlib.compress(pixel_data(colour, depth), level), colour, depth)
    assert decodes(data)
    assert can_decode(data, SIZE)


@pytest.mark.parametrize("step", [1, 7, 32_768, 1 << 20])
def test_the_length_of_the_chunks_changes_nothing(step: int) -> None:
    assert can_decode(png(STREAM, step=step), SIZE)


def test_rows_that_repeat_for_megabytes_need_no_decoder() -> None:
    data = encoded(Image.new("RGB", (3000, 2000), "teal"), "PNG", compress_level=9)
    assert len(data) < 50_000
    assert can_decode(data, (3000, 2000))


def test_an_interlaced_picture_is_left_to_its_decoder() -> None:
    data = png(zlib.compress(pixel_data(2, 8, interlaced=True)), interlaced=True)
    assert decodes(data)
    assert not can_decode(data, SIZE)


def test_a_moving_picture_is_left_to_its_decoder() -> None:
    frames = [Image.effect_noise((90, 70), 50 + 30 * turn).convert("RGB") for turn in range(2)]
    data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    assert decodes(data)
    assert not can_decode(data, (90, 70))


@pytest.mark.parametrize("kind", [b"IDAT", b"eXIf", b"zTXt", b"tRNS", b"IHDR"])
def test_a_chunk_behind_the_pixels_that_means_something_is_left_to_the_decoder(kind: bytes) -> None:
    data = WHOLE.removesuffix(END) + chunk(kind, b"some bytes") + END
    assert not can_decode(data, SIZE)


def test_a_picture_of_another_size_is_left_to_its_decoder() -> None:
    assert not can_decode(WHOLE, (WIDTH, HEIGHT + 1))


@pytest.mark.parametrize("bits", range(9, 15))
def test_a_small_window_is_left_to_the_decoder(bits: int) -> None:
    packer = zlib.compressobj(wbits=bits)
    assert not can_decode(png(packer.compress(pixel_data(2, 8)) + packer.flush()), SIZE)


@pytest.mark.parametrize("stream", DAMAGED_STREAMS)
@pytest.mark.parametrize("step", [4096, 1 << 20])
def test_a_damaged_stream_is_never_accepted(stream: bytes, step: int) -> None:
    assert not can_decode(png(stream, step=step), SIZE)


SAMPLES = [
    WHOLE,
    *(png(zlib.compress(pixel_data(*kind)), *kind, step=400) for kind in ((0, 1), (3, 4), (6, 16))),
]
edits = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=4)
# Most edits of a whole file are in its pixels.
header_edits = st.lists(st.tuples(st.integers(8, 60), st.integers(1, 255)), max_size=2)


def with_true_checksums(data: bytearray) -> bytes:
    for one in png_chunks.walk(BytesIO(data)):
        end = one.start + one.length
        if end + 4 <= len(data):
            data[end : end + 4] = zlib.crc32(data[one.start - 4 : end]).to_bytes(4, "big")
    return bytes(data)


@sample(300)
@given(whole=st.sampled_from(SAMPLES), edits=edits, header_edits=header_edits)
def test_a_changed_file_is_accepted_only_if_pillow_decodes_it(
    whole: bytes, edits: list[tuple[int, int]], header_edits: list[tuple[int, int]]
) -> None:
    damaged = bytearray(whole)
    for at, change in (*edits, *header_edits):
        damaged[at % len(damaged)] ^= change
    data = with_true_checksums(damaged)
    try:
        image = Image.open(BytesIO(data), formats=["PNG"])
    except (OSError, SyntaxError, ValueError):
        return
    if can_decode(data, image.size):
        assert image.load() is not None
        assert image.size == image.copy().size


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_pixels_that_are_inflated_by_the_check_are_those_of_the_file(
    colour: int, depth: int, interlaced: bool
) -> None:
    stream = zlib.compress(pixel_data(colour, depth, interlaced=interlaced))
    data = png(stream, colour, depth, interlaced=interlaced)
    kept: list[OpenedPicture] = []
    verify(data, limits=WorkerLimits(), keep=lambda _, __, opened: kept.append(opened))
    (opened,) = kept
    plain = Image.open(BytesIO(data), formats=["PNG"])
    plain.load()
    assert opened.image.tobytes() == plain.tobytes()
    assert opened.image.info == plain.info


@given(rows=st.integers(1, 400), level=st.sampled_from([0, 1, 9]))
@sample(40)
def test_pixels_are_the_same_wherever_a_block_of_the_stream_ends(rows: int, level: int) -> None:
    image = Image.effect_noise((512, rows), 80)
    data = encoded(image, "PNG", compress_level=level)
    kept: list[OpenedPicture] = []
    verify(data, limits=WorkerLimits(), keep=lambda _, __, opened: kept.append(opened))
    assert kept[0].image.tobytes() == image.tobytes()


def test_text_behind_the_pixels_counts_with_that_before_them() -> None:
    before = chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 20))) * 63
    behind = chunk(b"tEXt", b"k\0" + b"a" * (1 << 20))
    head = 8 + 25
    whole = WHOLE.replace(END, behind + END)
    full = whole[:head] + before + whole[head:]
    assert verify(whole, limits=WorkerLimits()).width == WIDTH
    assert not decodes(full)
    with pytest.raises(ValueError, match="text"):
        verify(full, limits=WorkerLimits())


@pytest.mark.parametrize("is_faster", [True, False])
def test_exif_behind_the_pixels_hides_no_damage(
    monkeypatch: pytest.MonkeyPatch, *, is_faster: bool
) -> None:
    monkeypatch.setattr(quick_png, "IS_FASTER", quick_png.IS_FASTER and is_faster)
    exif = Image.Exif()
    exif[0x0112] = 6
    behind = chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
    whole = WHOLE.replace(END, behind + END)
    assert verify(whole, limits=WorkerLimits()).width == HEIGHT
    middle = len(STREAM) // 2
    damaged = png(STREAM[:middle] + bytes([STREAM[middle] ^ 0x55]) + STREAM[middle + 1 :])
    with pytest.raises((OSError, CorruptImage, SyntaxError)):
        verify(damaged.replace(END, behind + END), limits=WorkerLimits())
