"""Pictures with too many pixels for memory: parts of them equal those of the whole picture."""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageFilter

from limner.errors import CorruptImage, ImageError, ImageTooLarge
from limner.imaging.decode import open_picture
from limner.imaging.decoders import part_reader, png_rows, tiff_blocks
from limner.imaging.deflate import inflate
from limner.imaging.fit import FitRequest, Region
from limner.imaging.fit.source import DecodedSource, resize
from limner.imaging.formats import ALWAYS_ACCEPTED
from limner.imaging.limits import DEFAULT_LIMITS, WorkerLimits, limits_for
from limner.imaging.orientation import (
    convert_to_scalable,
    convert_to_srgb,
    stored_box,
    turn_upright,
    upright_size,
)
from limner.imaging.pixels import convert, preview, verify
from limner.imaging.pool import Imaging

ACCEPT = (*ALWAYS_ACCEPTED, "tiff")
WHOLE = WorkerLimits(accept=ACCEPT)
PARTS = WorkerLimits(accept=ACCEPT, max_pixels=30_000, max_large_pixels=10_000_000)
# A block that ends within a pixel of the result adds its share to it, rounded.
TOLERANCE = 6
SIZE = (301, 203)
THREAD = ThreadPoolExecutor(1)

GREY = Image.effect_noise(SIZE, 60).filter(ImageFilter.GaussianBlur(3))
RGB = Image.merge(
    "RGB", (GREY, ImageChops.invert(GREY), GREY.transpose(Image.Transpose.ROTATE_180))
)
RGBA = Image.merge("RGBA", (*RGB.split(), GREY.transpose(Image.Transpose.FLIP_LEFT_RIGHT)))
MODES = {
    "1": GREY.point([0] * 128 + [255] * 128).convert("1"),
    "L": GREY,
    "P": RGB.quantize(40),
    "LA": RGBA.convert("LA"),
    "RGB": RGB,
    "RGBA": RGBA,
    "CMYK": RGB.convert("CMYK"),
    "I;16": GREY.convert("I").point(lambda value: value * 257).convert("I;16"),
}


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def difference(left: Image.Image, right: Image.Image) -> int:
    assert left.size == right.size
    found = ImageChops.difference(left.convert("RGBA"), right.convert("RGBA"))
    return max(index % 256 for index, count in enumerate(found.histogram()) if count)


def reduced(data: bytes, region: Region, size: tuple[int, int]) -> Image.Image:
    """The part of the whole picture, averaged and then scaled, as a reader does it in blocks."""
    image = convert_to_scalable(open_picture(data, limits=WHOLE)[1].image)
    image = image.crop((region.x, region.y, region.x + region.width, region.y + region.height))
    factors = int(region.width / size[0] / 2) or 1, int(region.height / size[1] / 2) or 1
    box = 0, 0, region.width / factors[0], region.height / factors[1]
    return convert_to_srgb(resize(image.reduce(factors), size, box))


def assert_same(data: bytes) -> None:
    """The parts of a picture are those of the whole one, and at full detail exactly."""
    assert open_picture(data, limits=PARTS, large=True)[1].reader is not None
    for region, size, most in (
        (Region(x=0, y=0, width=SIZE[0], height=SIZE[1]), (60, 41), TOLERANCE),
        (Region(x=0, y=0, width=SIZE[0], height=SIZE[1]), (23, 17), TOLERANCE),
        (Region(x=11, y=13, width=240, height=160), (30, 20), TOLERANCE),
        (Region(x=57, y=31, width=113, height=91), (113, 91), 0),
    ):
        part = DecodedSource(data, region=region, limits=PARTS, thread=THREAD).at_size(size)
        assert difference(part, reduced(data, region, size)) <= most


@pytest.fixture(params=[1_000, 4_000_000], ids=["few at once", "all at once"])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tiff_blocks, png_rows):
        monkeypatch.setattr(module, "GROUP_PIXELS", request.param)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
@pytest.mark.parametrize("mode", MODES)
def test_the_strips_of_a_tiff_make_the_same_picture(mode: str, compression: str | None) -> None:
    data = encoded(MODES[mode], "TIFF", compression=compression, tiffinfo={278: 16})
    assert_same(data)


def test_raw_strips_that_are_divided_unevenly_lose_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiff_blocks, "GROUP_PIXELS", 7 * SIZE[0])  # 7, 7 and 2 rows of each strip
    data = encoded(RGB, "TIFF", tiffinfo={278: 16})
    reader = open_picture(data, limits=PARTS, large=True)[1].reader
    assert reader is not None
    region = Region(x=0, y=0, width=140, height=SIZE[1])
    part = DecodedSource(data, region=region, limits=PARTS, thread=THREAD).at_size((140, SIZE[1]))
    assert difference(part, RGB.crop((0, 0, 140, SIZE[1]))) == 0


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("mode", "compression"),
    [("L", "jpeg"), ("RGB", "jpeg"), ("CMYK", "jpeg"), ("1", "group3"), ("1", "group4")],
)
def test_strips_of_other_compressions_make_the_same_picture(mode: str, compression: str) -> None:
    data = encoded(MODES[mode], "TIFF", compression=compression, tiffinfo={278: 16})
    assert_same(data)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "CMYK"])
def test_the_rows_of_a_png_make_the_same_picture(mode: str) -> None:
    data = encoded(MODES[mode], "PNG")
    assert_same(data)


@pytest.mark.usefixtures("group")
def test_the_rows_of_a_png_with_a_transparent_grey_of_sixteen_bits_make_the_same_picture() -> None:
    data = encoded(MODES["I;16"], "PNG")
    transparent = struct.pack(">H", 128 * 257)
    at = data.index(b"IDAT") - 4
    chunk = b"tRNS" + transparent
    length, checksum = struct.pack(">I", 2), struct.pack(">I", zlib.crc32(chunk))
    assert_same(data[:at] + length + chunk + checksum + data[at:])


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_the_rows_of_a_png_with_few_colours_make_the_same_picture(bits: int) -> None:
    data = encoded(RGB.quantize(2**bits), "PNG", bits=bits)
    assert_same(data)


@pytest.mark.usefixtures("group")
def test_the_rows_of_a_png_with_sixteen_bits_make_the_same_picture() -> None:
    width, height = SIZE
    raw = RGB.tobytes()
    deep = bytes(value for byte in raw for value in (byte, byte ^ 0x5A))
    rows = b"".join(b"\0" + deep[y * width * 6 : (y + 1) * width * 6] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    assert_same(b"\x89PNG\r\n\x1a\n" + body)


def differences(pixels: bytes, samples: int, width: int) -> bytes:
    """Each sample as what it differs from the one of the pixel before in its row."""
    row = width * samples
    return bytes(
        (value - (pixels[at - samples] if at % row >= samples else 0)) % 256
        for at, value in enumerate(pixels)
    )


def tiled_tiff(
    image: Image.Image,
    tile: tuple[int, int],
    *,
    order: str = "<",
    big: bool = False,
    planes: bool = False,
    predictor: int = 1,
    orientation: int = 1,
    changes: dict[int, list[int]] | None = None,
) -> bytes:
    """A TIFF with tiles, deflated; ``changes`` replaces the values of tags."""
    bands = image.split()
    layers = list(bands) if planes else [image]
    places: list[int] = []
    lengths: list[int] = []
    body = bytearray(bytes(16))
    for layer in layers:
        for y in range(0, image.height, tile[1]):
            for x in range(0, image.width, tile[0]):
                pixels = layer.crop((x, y, x + tile[0], y + tile[1])).tobytes()
                if predictor == 2:
                    pixels = differences(pixels, len(layer.getbands()), tile[0])
                packed = zlib.compress(pixels)
                places.append(len(body))
                lengths.append(len(packed))
                body += packed
    tags = {
        256: [image.width],
        257: [image.height],
        258: [8] * len(bands),
        259: [8],
        262: [2 if len(bands) > 1 else 1],
        274: [orientation],
        277: [len(bands)],
        284: [2 if planes else 1],
        317: [predictor],
        322: [tile[0]],
        323: [tile[1]],
        324: places,
        325: lengths,
        **({338: [2]} if len(bands) == 4 else {}),
    } | (changes or {})
    kind, word, room = (16, "Q", 8) if big else (4, "I", 4)
    entries = b""
    for name, values in sorted(tags.items()):
        raw = struct.pack(f"{order}{len(values)}{word}", *values)
        if len(raw) > room:
            at = len(body)
            body += raw
            raw = struct.pack(order + word, at)
        entries += struct.pack(f"{order}HH{word}", name, kind, len(values)) + raw
    start = len(body)
    body += struct.pack(order + ("Q" if big else "H"), len(tags)) + entries + bytes(room)
    mark = b"II" if order == "<" else b"MM"
    head = (
        struct.pack(f"{order}HHHQ", 43, 8, 0, start)
        if big
        else struct.pack(f"{order}HI", 42, start)
    )
    body[: len(head) + 2] = mark + head
    return bytes(body)


@given(
    across=st.sampled_from([16, 48, 128, 304]),
    down=st.sampled_from([16, 64, 208]),
    order=st.sampled_from("<>"),
    mode=st.sampled_from(["L", "RGB", "RGBA"]),
    planes=st.booleans(),
    predictor=st.sampled_from([1, 2]),
    most=st.sampled_from([1, 2, 5, 64]),
)
def test_tiles_make_the_same_picture(
    across: int, down: int, order: str, mode: str, planes: bool, predictor: int, most: int
) -> None:
    planes = planes and mode != "L"
    data = tiled_tiff(MODES[mode], (across, down), order=order, planes=planes, predictor=predictor)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiff_blocks, "_MAX_STACKED", most)
        assert_same(data)


def test_the_tiles_of_a_big_tiff_make_the_same_picture() -> None:
    assert_same(tiled_tiff(RGB, (64, 32), big=True))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_part_of_a_turned_picture_is_the_part_that_is_seen(orientation: int) -> None:
    data = tiled_tiff(RGB, (64, 32), orientation=orientation)
    region = Region(x=57, y=31, width=101, height=91)
    part, whole = (
        DecodedSource(data, region=region, limits=limits, thread=THREAD).at_size((101, 91))
        for limits in (PARTS, WHOLE)
    )
    assert difference(part, whole) == 0


@given(
    orientation=st.integers(1, 8),
    left=st.integers(0, 5),
    top=st.integers(0, 3),
    width=st.integers(1, 4),
    height=st.integers(1, 4),
)
def test_a_box_of_the_upright_picture_is_found_in_the_stored_one(
    orientation: int, left: int, top: int, width: int, height: int
) -> None:
    stored = Image.frombytes("L", (9, 7), bytes(range(63)))
    if orientation >= 5:
        stored = stored.resize((7, 9))
    upright = turn_upright(stored, orientation)
    box = left, top, min(left + width, upright.width), min(top + height, upright.height)
    part = stored.crop(stored_box(box, upright_size(stored.size, orientation), orientation))
    assert turn_upright(part, orientation).tobytes() == upright.crop(box).tobytes()


def test_a_jpeg_is_decoded_at_a_part_of_its_size() -> None:
    data = encoded(RGB.resize((1204, 812)), "JPEG", quality=95)
    limits = WorkerLimits(max_pixels=300_000, max_large_pixels=10_000_000)
    for region in (None, Region(x=100, y=80, width=1000, height=700)):
        parts = DecodedSource(data, region=region, limits=limits, thread=THREAD).at_size((100, 70))
        whole = DecodedSource(data, region=region, limits=WHOLE, thread=THREAD).at_size((100, 70))
        # libjpeg averages whole blocks; Lanczos does not.
        assert difference(parts, whole) <= 2 * TOLERANCE


def test_a_small_region_of_a_large_jpeg_says_how_large_it_must_be() -> None:
    data = encoded(RGB.resize((1204, 812)), "JPEG")
    limits = WorkerLimits(max_pixels=300_000, max_large_pixels=10_000_000)
    source = DecodedSource(
        data, region=Region(x=0, y=0, width=90, height=60), limits=limits, thread=THREAD
    )
    with pytest.raises(ImageTooLarge, match=r"read at 1/2 of its size at most") as caught:
        source.at_size((90, 60))
    assert caught.value.hint == (
        "ask for a region of 180x120 or more, or convert the picture to a tiled TIFF"
    )


def test_a_progressive_jpeg_that_needs_too_much_memory_is_refused() -> None:
    data = encoded(RGB, "JPEG", progressive=True)
    with pytest.raises(ImageTooLarge, match="a progressive JPEG of 301x203 needs"):
        verify(data, limits=WorkerLimits(max_pixels=1, max_large_pixels=10**6, memory_bytes=10**5))


def test_an_interlaced_png_is_refused() -> None:
    data = bytearray(encoded(RGB, "PNG"))
    data[28] = 1
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    with pytest.raises(ImageTooLarge, match="interlaced") as caught:
        verify(bytes(data), limits=PARTS)
    assert caught.value.hint == "save it without interlacing"


def test_a_part_with_too_many_pixels_is_refused() -> None:
    source = DecodedSource(tiled_tiff(RGB, (64, 32)), region=None, limits=PARTS, thread=THREAD)
    with pytest.raises(ImageTooLarge) as caught:
        source.at_size(SIZE)
    assert caught.value.hint == "ask for a smaller region or fewer pixels"


def test_only_a_fit_and_a_preview_accept_a_large_picture() -> None:
    data = encoded(RGB, "PNG")
    seen = preview(data, limits=PARTS, columns=20, rows=20)
    assert (seen.width, seen.height) == (20, 14)
    with pytest.raises(ImageTooLarge) as caught:
        convert(data, limits=PARTS, to="png", cover=None)
    assert caught.value.hint == (
        "only `fit`, `inspect` and previews accept more: fit the picture first"
    )


def test_the_refusal_names_the_setting() -> None:
    with pytest.raises(ImageTooLarge) as caught:
        verify(encoded(RGB, "PNG"), limits=WorkerLimits(max_pixels=100))
    assert caught.value.hint == ("scale the picture down first, or set images.max_megapixels")


def test_the_limits_grow_with_the_setting_but_not_the_memory() -> None:
    raised = limits_for(1000)
    assert limits_for(100) == DEFAULT_LIMITS
    assert (limits_for(50).max_pixels, limits_for(50).max_large_pixels) == (50_000_000, 0)
    assert (raised.max_pixels, raised.max_large_pixels) == (100_000_000, 1_000_000_000)
    assert (raised.cpu_s, raised.timeout_s, raised.max_file_bytes) == (200, 300.0, 1 << 30)
    assert raised.memory_bytes == DEFAULT_LIMITS.memory_bytes


HOSTILE = {
    "offsets outside the file": ({324: [10**9] * 49}, "is missing"),
    "no bytes": ({325: [0] * 49}, "is missing"),
    "wrong byte counts": ({325: [5] * 49}, "decoder error|does not decode|deflate|-2"),
    "too few tiles": ({324: [16] * 3}, "has 3 strips or tiles instead of 35"),
    "tiles without pixels": ({322: [0]}, "blocks without pixels"),
    "a tile with billions of pixels": ({322: [60_000], 323: [60_000]}, "megapixels"),
    "millions of tiles": ({322: [1], 323: [1]}, "instead of 61103"),
    "larger than it says": ({256: [3000], 257: [3000]}, "instead of"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tiff_fails_with_a_clear_error(name: str) -> None:
    changes, message = HOSTILE[name]
    data = tiled_tiff(RGB, (64, 32), changes=changes)
    with pytest.raises((ImageError, OSError), match=message):
        verify(data, limits=PARTS)


def test_a_tile_that_inflates_to_far_more_is_not_inflated_beyond_its_pixels() -> None:
    bomb = zlib.compress(bytes(50 << 20))
    data = tiled_tiff(RGB, (304, 208))
    at = len(data)
    data += bomb
    packed = tiled_tiff(RGB, (304, 208), changes={324: [at], 325: [len(bomb)]})
    source = DecodedSource(packed.ljust(at, b"\0") + bomb, region=None, limits=PARTS, thread=THREAD)
    assert source.at_size((60, 41)).getextrema() == ((0, 0), (0, 0), (0, 0))


def test_a_deflated_tile_counts_only_as_a_whole_stream_of_its_size() -> None:
    stream = zlib.compress(b"pixels")
    assert inflate(stream, 6) == b"pixels"
    assert inflate(zlib.compress(bytes(50 << 20)), 6) is None
    assert [inflate(stream, size) for size in (5, 7)] == [None, None]
    assert inflate(stream[:-1], 6) is None
    assert inflate(stream[:-1] + b"?", 6) is None
    assert inflate(b"no stream", 6) is None


def test_a_tile_with_a_wrong_checksum_is_decoded_as_pillow_does() -> None:
    data = bytearray(tiled_tiff(RGB, SIZE))
    at = data.index(zlib.compress(RGB.tobytes())) + len(zlib.compress(RGB.tobytes()))
    data[at - 1] ^= 1
    found: list[object] = []
    for limits in (WHOLE, PARTS):
        try:
            source = DecodedSource(bytes(data), region=None, limits=limits, thread=THREAD)
            found.append(source.at_size((60, 41)).size)
        except (ImageError, OSError) as error:
            found.append(type(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("kept", [0.3, 0.9])
@pytest.mark.parametrize("form", ["PNG", "TIFF", "JPEG"])
def test_a_truncated_picture_is_not_verified(form: str, kept: float) -> None:
    data = encoded(RGB, form, **({"compression": "tiff_lzw"} if form == "TIFF" else {}))
    with pytest.raises((ImageError, OSError, SyntaxError)):
        verify(data[: int(len(data) * kept)], limits=PARTS)


def test_a_png_whose_pixels_end_early_is_not_verified() -> None:
    data = encoded(RGB, "PNG")
    short = bytearray(data)
    short[20:24] = struct.pack(">I", 1000)
    short[29:33] = struct.pack(">I", zlib.crc32(short[12:29]))
    with pytest.raises(CorruptImage, match="the pixels of the PNG end after row"):
        verify(bytes(short), limits=PARTS)


async def test_a_worker_verifies_and_fits_a_large_picture() -> None:
    wide = Image.linear_gradient("L").resize((12_000, 9_000)).convert("1")
    data = encoded(wide, "TIFF", compression="group4", tiffinfo={278: 64})
    async with Imaging(workers=1, limits=limits_for(200), accept=("tiff",)) as imaging:
        facts = await imaging.verify(data)
        fitted, _ = await imaging.fit(data, FitRequest(mode="fast", max_width=400, max_height=400))
    assert (facts.width, facts.height) == (12_000, 9_000)
    assert (fitted.width, fitted.height) == (400, 300)
    assert (fitted.original_width, fitted.original_height) == (12_000, 9_000)


def test_a_part_that_was_read_serves_a_smaller_size() -> None:
    reader = open_picture(tiled_tiff(RGB, (64, 32)), limits=PARTS, large=True)[1].reader
    assert isinstance(reader, part_reader.PartReader)
    whole = (0, 0, *SIZE)
    first, _ = reader.read(whole, (60, 41))
    reader.data = b""
    assert reader.read(whole, (30, 20))[0] is first
