"""Small pictures that are sent unchanged without a worker, and those that need one."""

from __future__ import annotations

import io
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.fuzz import examples

from limner.errors import ImageTooLarge
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.passthrough import pass_through
from limner.imaging.limits import DEFAULT_LIMITS, WorkerLimits
from limner.imaging.pool import Imaging

KINDS = ["PNG", "JPEG", "GIF", "WEBP"]


def encoded(image: Image.Image, kind: str, **how: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def picture(width: int = 40, height: int = 30, *, mode: str = "RGB") -> Image.Image:
    return Image.linear_gradient("L").resize((width, height)).convert(mode)


def known(data: bytes, **asked: Any) -> Fitted | None:
    return pass_through(data, FitRequest(**asked), max_pixels=DEFAULT_LIMITS.max_pixels)


def by_the_worker(data: bytes, **asked: Any) -> Fitted:
    with ThreadPoolExecutor(1) as thread:
        return Engine(thread=thread, limits=DEFAULT_LIMITS).fit(data, FitRequest(**asked))[0]


def with_chunk(png: bytes, kind: bytes, body: bytes) -> bytes:
    """The PNG with one more chunk after its header."""
    checksum = zlib.crc32(kind + body)
    return (
        png[:33] + struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
    ) + png[33:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["seed", "fast"])
def test_a_simple_picture_passes_through_without_a_worker(kind: str, mode: str) -> None:
    data = encoded(picture(), kind)
    assert known(data, mode=mode) == by_the_worker(data, mode=mode)


async def test_no_worker_starts_for_a_simple_picture() -> None:
    data = encoded(picture(), "PNG")
    # With less memory than Python itself needs, no worker could start.
    async with Imaging(limits=WorkerLimits(memory_bytes=1 << 20)) as imaging:
        fitted, sent = await imaging.fit(lambda: data, FitRequest())
    assert (fitted.untouched, sent) == (True, data)


@pytest.mark.parametrize(
    "asked",
    [
        {"max_width": 39},
        {"max_height": 29},
        {"max_bytes": 100},
        {"formats": ("image/jpeg",)},
        {"region": Region(x=0, y=0, width=40, height=30)},
        {"page": 2},
    ],
)
def test_a_request_that_changes_the_picture_needs_a_worker(asked: dict[str, Any]) -> None:
    assert known(encoded(picture(), "PNG"), **asked) is None


def test_the_pixel_cap_holds_without_a_worker_too() -> None:
    data = encoded(picture(), "PNG")
    assert pass_through(data, FitRequest(), max_pixels=1199) is None
    with ThreadPoolExecutor(1) as thread, pytest.raises(ImageTooLarge):
        Engine(thread=thread, limits=WorkerLimits(max_pixels=1199)).fit(data, FitRequest())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_with_exif_needs_a_worker(kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert known(encoded(picture(), kind, exif=exif)) is None


@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP"])
def test_an_animation_needs_a_worker(kind: str) -> None:
    frames = [picture(), picture().transpose(Image.Transpose.ROTATE_180)]
    assert known(encoded(frames[0], kind, save_all=True, append_images=frames[1:])) is None


def test_a_picture_with_a_palette_text_and_a_profile_passes_through() -> None:
    profile = b"\0" * 128
    data = encoded(picture().quantize(16), "PNG", icc_profile=profile, transparency=3)
    data = with_chunk(data, b"tEXt", b"Software\0a painter")
    assert known(data) == by_the_worker(data)


def test_a_png_with_an_unknown_critical_chunk_needs_a_worker() -> None:
    assert known(with_chunk(encoded(picture(), "PNG"), b"RARE", b"")) is None


def test_a_gif_whose_frame_is_larger_than_its_canvas_needs_a_worker() -> None:
    data = bytearray(encoded(picture(), "GIF"))
    data[6] -= 1  # the canvas is one pixel narrower than the frame
    assert known(bytes(data)) is None


def with_header(png: bytes, **changed: int) -> bytes:
    """The PNG with other numbers in its header, and the right checksum of them."""
    names = ("width", "height", "depth", "colour", "compression", "filter", "interlace")
    numbers = dict(zip(names, struct.unpack_from(">IIBBBBB", png, 16), strict=True))
    body = b"IHDR" + struct.pack(">IIBBBBB", *(numbers | changed).values())
    return png[:12] + body + struct.pack(">I", zlib.crc32(body)) + png[33:]


@pytest.mark.parametrize(
    "changed",
    [
        {"depth": 3},
        {"depth": 4},
        {"depth": 32},
        {"colour": 1},
        {"colour": 3},
        {"colour": 3, "depth": 16},
        {"compression": 1},
        {"filter": 1},
        {"interlace": 2},
        {"width": 0},
    ],
)
def test_a_png_header_that_no_decoder_knows_needs_a_worker(changed: dict[str, int]) -> None:
    data = encoded(picture(), "PNG")
    assert known(with_header(data, interlace=1)) == by_the_worker(with_header(data, interlace=1))
    assert known(with_header(data, **changed)) is None


def test_a_png_frame_outside_an_animation_needs_a_worker() -> None:
    assert known(with_chunk(encoded(picture(), "PNG"), b"fcTL", bytes(26))) is None


@pytest.mark.parametrize(("at", "value"), [(3, 8), (4, 12), (9, 2), (9, 4)])
def test_a_jpeg_header_that_no_decoder_knows_needs_a_worker(at: int, value: int) -> None:
    data = bytearray(encoded(picture(), "JPEG"))
    data[data.index(b"\xff\xc0") + at] = value
    assert known(bytes(data)) is None


def test_a_jpeg_truncated_before_its_pixels_needs_a_worker() -> None:
    data = encoded(picture(), "JPEG")
    pixels = data.index(b"\xff\xda") + 14
    assert [known(data[:end]) is None for end in (pixels - 1, pixels)] == [True, False]


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize(("at", "change"), [(4, 2), (4, -2), (16, 2), (16, -2)])
def test_a_webp_whose_lengths_disagree_needs_a_worker(lossless: bool, at: int, change: int) -> None:
    data = bytearray(encoded(picture(), "WEBP", lossless=lossless) + bytes(9))
    assert known(bytes(data)) == by_the_worker(bytes(data))
    struct.pack_into("<I", data, at, struct.unpack_from("<I", data, at)[0] + change)
    assert known(bytes(data)) is None


@pytest.mark.parametrize(
    ("lossless", "at", "bits"),
    [(False, 20, 0x01), (False, 20, 0x08), (False, 20, 0x10), (False, 22, 0xFF), (True, 24, 0x20)],
    ids=["no key frame", "a later version", "not shown", "too long a part", "a later version"],
)
def test_a_webp_frame_that_no_decoder_knows_needs_a_worker(
    lossless: bool, at: int, bits: int
) -> None:
    data = bytearray(encoded(picture(), "WEBP", lossless=lossless))
    data[at] ^= bits
    assert known(bytes(data)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_header_needs_a_worker(kind: str) -> None:
    data = encoded(picture(), kind)
    for length in range(30):
        assert known(data[:length]) is None


@given(data=st.data(), kind=st.sampled_from(KINDS), mode=st.sampled_from(["L", "RGB"]))
@settings(max_examples=examples(100))
def test_property_a_damaged_file_that_passes_through_has_the_size_its_decoder_finds(
    data: st.DataObject, kind: str, mode: str
) -> None:
    file = bytearray(encoded(picture(mode=mode), kind))
    for _ in range(data.draw(st.integers(0, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    fitted = known(bytes(file))
    if fitted is None:
        return
    assert by_the_worker(bytes(file)) == fitted
