"""The specified resize: every limit, default and step of its ladder."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imaging_samples import worker_pids
from PIL import Image, ImageDraw
from tests.fuzz import sample

from limner.imaging.fit import FitRequest, Fitted
from limner.imaging.fit.encoders import Candidate, is_flat
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.ladder import descend
from limner.imaging.fit.request import scale_by_percent, scale_into
from limner.imaging.fit.source import DecodedSource
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.pool import Imaging


@pytest.fixture(scope="module")
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def engine(thread: ThreadPoolExecutor) -> Engine:
    return Engine(thread=thread, limits=DEFAULT_LIMITS)


def encoded(image: Image.Image, kind: str = "PNG", **how: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def noise(width: int, height: int, *, seed: int = 1) -> Image.Image:
    """What no encoder can make small."""
    return Image.frombytes(
        "RGB", (width, height), random.Random(seed).randbytes(3 * width * height)
    )


def flat(width: int, height: int) -> Image.Image:
    """What every encoder makes small."""
    image = Image.new("RGB", (width, height), "#f4f1e8")
    ImageDraw.Draw(image).rectangle((width // 4, height // 4, width // 2, height // 2), "#204080")
    return image


def shape(data: bytes) -> tuple[str | None, tuple[int, int]]:
    with Image.open(io.BytesIO(data)) as image:
        return image.format, image.size


def fit(engine: Engine, data: bytes, **asked: Any) -> tuple[Fitted, bytes]:
    return engine.fit(data, FitRequest(**asked))


def test_the_defaults_are_1568_by_1568_500_kib_and_quality_75() -> None:
    request = FitRequest()
    assert (request.max_width, request.max_height, request.max_bytes, request.quality) == (
        1568,
        1568,
        500 * 1024,
        75,
    )


def test_the_fast_path_sends_a_small_picture_byte_for_byte(engine: Engine) -> None:
    data = encoded(flat(1568, 1568))
    assert len(data) <= 125 * 1024
    fitted, sent = fit(engine, data)
    assert sent == data
    assert (fitted.untouched, fitted.mime, fitted.width, fitted.height) == (
        True,
        "image/png",
        1568,
        1568,
    )


def test_the_fast_path_ends_at_one_pixel_over_the_width(engine: Engine) -> None:
    fitted, sent = fit(engine, encoded(flat(1569, 100)))
    assert (fitted.untouched, shape(sent)[1]) == (False, (1568, 100))


def test_the_fast_path_ends_at_one_byte_over_a_quarter_of_the_byte_limit(engine: Engine) -> None:
    data = encoded(noise(60, 60))
    at_limit, _ = fit(engine, data, max_bytes=4 * len(data))
    over, _ = fit(engine, data, max_bytes=4 * len(data) - 1)
    assert (at_limit.untouched, over.untouched) == (True, False)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_the_fast_path_keeps_each_of_the_four_formats(engine: Engine, kind: str) -> None:
    data = encoded(flat(50, 40), kind)
    fitted, sent = fit(engine, data)
    assert (sent == data, fitted.mime) == (True, f"image/{kind.lower()}")


def test_the_fast_path_needs_the_picture_to_be_upright(engine: Engine) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    fitted, sent = fit(engine, encoded(flat(80, 40), "JPEG", exif=exif))
    assert fitted.untouched is False
    assert (fitted.width, fitted.height) == shape(sent)[1] == (40, 80)


@pytest.mark.parametrize(
    ("size", "sent"),
    [
        ((3136, 2000), (1568, 1000)),
        ((2000, 3136), (1000, 1568)),
        ((4000, 3000), (1568, 1176)),
        ((1568, 9000), (273, 1568)),
        ((10000, 3), (1568, 1)),
        ((3, 10000), (1, 1568)),
        ((1, 1), (1, 1)),
    ],
)
def test_the_width_is_limited_first_then_the_height_rounded_half_up(
    size: tuple[int, int], sent: tuple[int, int]
) -> None:
    assert scale_into(size, 1568, 1568) == sent


@pytest.mark.slow
def test_the_first_pass_keeps_the_smallest_of_png_jpeg_and_webp(engine: Engine) -> None:
    photo = noise(40, 30).resize((2000, 1500), Image.Resampling.BICUBIC)
    _, sent = fit(engine, encoded(photo))
    small = photo.resize((1568, 1176), Image.Resampling.LANCZOS)
    sizes = {
        kind: len(encoded(small, kind, **how))
        for kind, how in {"PNG": {}, "JPEG": {"quality": 75}, "WEBP": {"quality": 75}}.items()
    }
    assert shape(sent) == (min(sizes, key=lambda kind: sizes[kind]), (1568, 1176))


@pytest.mark.parametrize(
    ("sizes", "winner"),
    [((5, 5, 5), "image/png"), ((6, 5, 5), "image/jpeg"), ((6, 6, 5), "image/webp")],
)
def test_a_tie_goes_to_png_then_jpeg_then_webp(sizes: tuple[int, ...], winner: str) -> None:
    from limner.imaging.fit.ladder import _smallest

    mimes = ("image/webp", "image/jpeg", "image/png")
    rivals = [
        Candidate(mime, bytes(size), (1, 1))
        for mime, size in zip(mimes, reversed(sizes), strict=True)
    ]
    assert _smallest(rivals).mime == winner


def test_the_quality_ladder_is_70_60_50_40() -> None:
    from limner.imaging.fit.ladder import QUALITIES

    assert QUALITIES == (70, 60, 50, 40)


def test_the_dimension_ladder_is_100_75_50_35_25_percent_with_a_floor_of_100_pixels() -> None:
    from limner.imaging.fit.ladder import MIN_EDGE, PERCENTS

    # The step of 100 percent is the quality ladder itself.
    assert ((100, *PERCENTS), MIN_EDGE) == ((100, 75, 50, 35, 25), 100)
    assert [scale_by_percent((1568, 1045), percent) for percent in PERCENTS] == [
        (1176, 784),
        (784, 523),
        (549, 366),
        (392, 261),
    ]


def test_a_fallback_is_never_a_png(engine: Engine) -> None:
    data = encoded(noise(400, 400))
    for max_bytes in (60_000, 30_000, 15_000):
        assert fit(engine, data, max_bytes=max_bytes)[0].mime in {"image/jpeg", "image/webp"}


def test_the_smallest_candidate_is_sent_if_every_rung_is_over_the_limit(engine: Engine) -> None:
    data = encoded(noise(400, 300))
    fitted, sent = fit(engine, data, max_bytes=100)
    assert (fitted.width, fitted.height) == shape(sent)[1] == (140, 105)


def test_the_reported_size_is_the_sent_size_if_the_ladder_ends_at_the_floor(
    engine: Engine,
) -> None:
    # 126 pixels at 75 percent are below the floor: nothing smaller is tried or reported.
    fitted, sent = fit(engine, encoded(noise(126, 126)), max_bytes=1000)
    assert (fitted.width, fitted.height) == shape(sent)[1] == (126, 126)


def test_a_model_that_does_not_accept_webp_gets_none(engine: Engine) -> None:
    formats = ("image/png", "image/jpeg")
    for data in (encoded(noise(300, 300)), encoded(flat(40, 40), "WEBP")):
        assert fit(engine, data, formats=formats, max_bytes=40_000)[0].mime in formats


# The whole ladder, tried rung by rung


@pytest.mark.parametrize("mode", ["seed", "fast"])
@pytest.mark.parametrize("picture", [noise(300, 200), flat(300, 200)], ids=["noise", "flat"])
def test_a_model_that_accepts_only_png_gets_png(
    engine: Engine, mode: str, picture: Image.Image
) -> None:
    asked = {"mode": mode, "formats": ("image/png",), "max_bytes": 60_000}
    fitted, sent = fit(engine, encoded(picture), **asked)
    assert shape(sent) == ("PNG", (fitted.width, fitted.height))
    assert len(sent) <= 60_000


def exhaustive(source: DecodedSource, request: FitRequest) -> tuple[str, int, tuple[int, int]]:
    """What the specification says, done in full: type, bytes and size of the choice."""

    def lossy(image: Image.Image, quality: int, webp: int) -> list[tuple[int, int, str]]:
        white = image
        if image.mode == "RGBA":
            white = Image.new("RGB", image.size, "white")
            white.paste(image, mask=image.getchannel("A"))
        return [
            (len(encoded(white, "JPEG", quality=quality, subsampling=2)), 1, "image/jpeg"),
            (len(encoded(image, "WEBP", quality=webp, method=2)), 2, "image/webp"),
        ]

    size = request.size_for(source.part)
    image = source.at_size(size)
    png = len(encoded(image, "PNG", compress_level=4 if is_flat(image) else 1))
    size_bytes, _, mime = min([(png, 0, "image/png"), *lossy(image, 75, webp=75)])
    best = (mime, size_bytes, size)
    if size_bytes <= request.max_bytes:
        return best
    for percent in (100, 100, 75, 50, 35, 25):
        smaller = scale_by_percent(size, percent)
        if percent < 100 and min(smaller) < 100:
            break
        image = source.at_size(smaller)
        for quality in (70, 60, 50, 40):
            size_bytes, _, mime = min(lossy(image, quality, webp=quality))
            if size_bytes <= request.max_bytes:
                return mime, size_bytes, smaller
            if size_bytes < best[1]:
                best = (mime, size_bytes, smaller)
    return best


@st.composite
def pictures(draw: st.DrawFn) -> bytes:
    width, height = draw(st.integers(1, 420)), draw(st.integers(1, 420))
    kind = draw(st.sampled_from(["flat", "noise", "smooth", "alpha", "grey", "palette"]))
    image = flat(width, height) if kind in {"flat", "palette"} else noise(width, height)
    if kind == "smooth":
        image = noise(7, 5).resize((width, height), Image.Resampling.BICUBIC)
    if kind == "alpha":
        image.putalpha(Image.linear_gradient("L").resize((width, height)))
    if kind == "grey":
        image = image.convert("L")
    if kind == "palette":
        image = image.quantize(16)
    return encoded(image, draw(st.sampled_from(["PNG", "WEBP"])))


@pytest.mark.slow
@given(
    data=pictures(),
    edge=st.integers(20, 400),
    max_bytes=st.sampled_from([50, 500, 2_000, 8_000, 30_000, 512_000]),
)
@settings(max_examples=60)
def test_property_the_choice_is_that_of_trying_every_rung(
    data: bytes, edge: int, max_bytes: int
) -> None:
    request = FitRequest(max_width=edge, max_height=edge, max_bytes=max_bytes)
    with ThreadPoolExecutor(1) as thread:
        source, again = (
            DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread) for _ in range(2)
        )
        chosen = descend(source, request, thread)
    assert (chosen.mime, len(chosen.data), chosen.size) == exhaustive(again, request)
    assert shape(chosen.data)[1] == chosen.size


# Encodings that are not made, because rows of the picture say that they are too large


NOISE = random.Random(3).randbytes(200 * 600 * 4)


def scene(kind: str, mode: str, width: int, height: int) -> Image.Image:
    channels = len(mode)
    if kind == "repeated":
        # A PNG of some rows alone takes many times the bytes that they take in the whole.
        row = NOISE[: width * channels * 3]
        return Image.frombytes(
            mode, (width, height), row * (height // 3) + row[: height % 3 * width * channels]
        )
    noisy = Image.frombytes(mode, (width, height), NOISE[: width * height * channels])
    if kind == "smooth":
        return noisy.resize((9, 7)).resize((width, height), Image.Resampling.BICUBIC)
    if kind == "half flat":
        noisy.paste(
            0 if mode == "L" else (9, 9, 9, 255)[:channels], (0, height // 3, width, height)
        )
    if kind == "one line":
        noisy.paste(0 if mode == "L" else (9, 9, 9, 255)[:channels], (0, 1, width, height))
    return noisy


@sample(40)
@given(
    kind=st.sampled_from(["repeated", "smooth", "half flat", "one line", "noise"]),
    mode=st.sampled_from(["L", "RGB", "RGBA"]),
    width=st.integers(60, 200),
    height=st.integers(240, 600),
)
def test_a_sample_of_rows_does_not_change_which_encoding_is_chosen(
    thread: ThreadPoolExecutor, kind: str, mode: str, width: int, height: int
) -> None:
    data, request = encoded(scene(kind, mode, width, height)), FitRequest()
    source = DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread)
    chosen = descend(source, request, thread)
    again = DecodedSource(data, region=None, limits=DEFAULT_LIMITS, thread=thread)
    assert (chosen.mime, len(chosen.data), chosen.size) == exhaustive(again, request)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
async def test_a_worker_does_not_grow_with_each_png_that_is_not_chosen() -> None:
    data = encoded(noise(900, 900))
    others = set(worker_pids())

    async def memory_kib(pool: Imaging, fits: int) -> int:
        for _ in range(fits):
            fitted, _ = await pool.fit(data, FitRequest())
            assert fitted.mime != "image/png"
        (pid,) = set(worker_pids()) - others
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    async with Imaging(workers=1) as pool:
        before = await memory_kib(pool, 10)
        assert await memory_kib(pool, 40) < before + 8_000


@given(
    width=st.integers(1, 20_000),
    height=st.integers(1, 20_000),
    box=st.tuples(st.integers(1, 4000), st.integers(1, 4000)),
)
def test_property_a_size_stays_in_the_box_and_in_proportion(
    width: int, height: int, box: tuple[int, int]
) -> None:
    small = scale_into((width, height), *box)
    assert small[0] <= min(width, box[0])
    assert small[1] <= min(height, box[1])
    assert min(small) >= 1
    # Rounding twice moves an edge by less than a pixel and a half, unless it would vanish.
    assert abs(small[0] * height - small[1] * width) <= 1.5 * max(width, height) + 1
