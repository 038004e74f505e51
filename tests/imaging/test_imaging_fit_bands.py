"""A large picture that is scaled while it is decoded: the pixels, the errors and the memory."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from imaging_samples import chunk
from PIL import Image, ImageOps

from limner.imaging.decode import open_picture
from limner.imaging.fit import bands
from limner.imaging.fit.source import DecodedSource, resize
from limner.imaging.limits import DEFAULT_LIMITS

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not bands.is_installed(), reason="Linux and the extra `fast` only"
)

SIZE, WANTED = (2600, 1700), (1568, 1025)
NOISE = Image.effect_noise((260, 170), 90)
PICTURE = Image.merge("RGB", (NOISE, ImageOps.invert(NOISE), ImageOps.mirror(NOISE))).resize(SIZE)


def encoded(form: str, **options: Any) -> bytes:
    out = BytesIO()
    PICTURE.save(out, form, **options)
    return out.getvalue()


JPEG, PNG = encoded("JPEG"), encoded("PNG", compress_level=1)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


def opened(data: bytes) -> Image.Image:
    return open_picture(data, limits=DEFAULT_LIMITS)[1].image


def decoded_first(data: bytes) -> Image.Image:
    image = opened(data)
    image.load()
    return resize(image, WANTED, (0, 0, *SIZE))


@pytest.mark.parametrize(
    "data",
    [JPEG, encoded("JPEG", progressive=True), PNG],
    ids=["JPEG", "progressive JPEG", "PNG"],
)
def test_the_pixels_are_those_of_a_picture_that_is_decoded_first(
    thread: ThreadPoolExecutor, data: bytes
) -> None:
    assert bands.can_decode(opened(data), WANTED)
    source = DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread)
    assert source.at_size(WANTED).tobytes() == decoded_first(data).tobytes()


@pytest.mark.parametrize("wanted", [WANTED, (2000, 1400), (37, 1700)])
def test_two_threads_scale_to_the_pixels_that_one_makes(
    thread: ThreadPoolExecutor, wanted: tuple[int, int]
) -> None:
    box = 100.5, 20.25, 2500.0, 1650.0
    found = resize(PICTURE, wanted, box, thread)
    assert found.tobytes() == resize(PICTURE, wanted, box).tobytes()


def interlaced() -> bytes:
    """The header alone decides, and its picture is never decoded here."""
    data = bytearray(PNG)
    data[28] = 1
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        interlaced(),
        encoded("PNG", compress_level=1, transparency=(1, 2, 3)),
        encoded("BMP"),
    ],
    ids=["interlaced", "one transparent colour", "rows from below"],
)
def test_a_picture_whose_rows_do_not_come_in_order_is_decoded_first(data: bytes) -> None:
    with Image.open(BytesIO(data)) as image:
        assert not bands.can_decode(image, WANTED)


def outcome(work: Callable[[], Image.Image]) -> bytes | str:
    try:
        return work().tobytes()
    except OSError as error:
        return str(error)


def with_stream(change: Callable[[bytes], bytes]) -> bytes:
    """The PNG with another stream of pixels, as one chunk."""
    with Image.open(BytesIO(PNG)) as image:
        stream = zlib.compress(b"".join(b"\0" + row for row in rows(image.tobytes())), 1)
    header = struct.pack(">IIBBBBB", *SIZE, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", change(stream)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


def rows(pixels: bytes) -> Iterator[bytes]:
    length = 3 * SIZE[0]
    yield from (pixels[start : start + length] for start in range(0, len(pixels), length))


@pytest.mark.parametrize(
    "data",
    [
        JPEG[: len(JPEG) // 2],
        PNG[: len(PNG) // 2],
        with_stream(lambda stream: stream[:-1] + b"?"),
        # zlib-ng does not accept it, and Pillow alone does.
        with_stream(lambda stream: stream[:-4]),
    ],
    ids=["half of a JPEG", "half of a PNG", "wrong checksum", "no checksum"],
)
def test_a_damaged_picture_has_the_outcome_of_one_that_is_decoded_first(
    thread: ThreadPoolExecutor, data: bytes
) -> None:
    source = DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread)
    assert outcome(lambda: source.at_size(WANTED)) == outcome(lambda: decoded_first(data))


PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from limner.imaging.fit.source import DecodedSource
from limner.imaging.limits import DEFAULT_LIMITS

def peak_mib():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) >> 10

data = Path(sys.argv[1]).read_bytes()
with ThreadPoolExecutor(1) as thread:
    source = DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread)
    before = peak_mib()
    source.at_size((784, 2352))
print(peak_mib() - before)
"""


def test_memory_does_not_hold_all_rows_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tall.png"
    PICTURE.resize((2000, 6000), Image.Resampling.NEAREST).save(path, compress_level=1)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    pixels_mib = 2000 * 6000 * 4 >> 20
    assert int(done.stdout) < pixels_mib // 1.5
