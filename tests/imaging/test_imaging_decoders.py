from __future__ import annotations

import struct
from io import BytesIO

import pillow_heif
import pytest
from format_samples import (
    CORNERS,
    HEIGHT,
    QUARTERS,
    SAMPLES,
    SVG,
    WIDTH,
    avif,
    bmp,
    corners,
    exif,
    grey_tiff,
    heic,
    icon,
    icon_bitmap,
    pdf,
    scene,
    strip,
    tiff,
)
from imaging_samples import decoded, encoded
from PIL import Image, ImageCms

from limner.imaging.facts import Facts
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.fit.request import Mode
from limner.imaging.pool import Imaging


@pytest.mark.parametrize("sample", SAMPLES)
async def test_every_format_is_decoded_upright_in_its_colours(wide: Imaging, sample: str) -> None:
    mime, data = SAMPLES[sample]
    assert await wide.verify(data) == Facts(mime=mime, width=WIDTH, height=HEIGHT, frames=1)
    converted = decoded(await wide.convert(data))
    assert (converted.format, converted.size, corners(converted)) == (
        "PNG",
        (WIDTH, HEIGHT),
        CORNERS,
    )
    thumbnail = await wide.preview(data, columns=24, rows=24)
    assert (thumbnail.width, thumbnail.height) == (24, 16)
    assert corners(Image.frombytes("RGB", (24, 16), thumbnail.rgb)) == CORNERS


@pytest.mark.parametrize("mode", ["seed", "fast"])
@pytest.mark.parametrize("sample", SAMPLES)
async def test_a_model_gets_every_format_as_one_that_it_accepts(
    wide: Imaging, sample: str, mode: Mode
) -> None:
    request = FitRequest(mode=mode, formats=("image/png", "image/jpeg"))
    fitted, sent = await wide.fit(SAMPLES[sample][1], request)
    assert fitted == Fitted(
        mime=fitted.mime,
        width=WIDTH,
        height=HEIGHT,
        original_width=WIDTH,
        original_height=HEIGHT,
        part=Region(x=0, y=0, width=WIDTH, height=HEIGHT),
        animated=False,
        untouched=False,
    )
    assert fitted.mime in {"image/png", "image/jpeg"}
    assert Image.MIME[decoded(sent).format or ""] == fitted.mime
    assert corners(sent) == CORNERS


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("kind", ["heic", "avif", "tiff", "tiff by LZW"])
async def test_a_rotated_picture_is_rotated_once(wide: Imaging, kind: str, turn: int) -> None:
    flags = exif(turn)
    match kind:
        case "heic":
            data = heic(scene(), exif=flags.tobytes())
        case "avif":
            data = avif(scene(), exif=flags)
        case "tiff":
            data = encoded(scene(), "TIFF", exif=flags)
        case _:
            data = encoded(scene(), "TIFF", exif=flags, compression="tiff_lzw")
    red, lime, blue, white = CORNERS
    expected = {
        1: (red, lime, blue, white),
        2: (lime, red, white, blue),
        3: (white, blue, lime, red),
        4: (blue, white, red, lime),
        5: (red, blue, lime, white),
        6: (blue, red, white, lime),
        7: (white, lime, blue, red),
        8: (lime, white, red, blue),
    }[turn]
    size = (HEIGHT, WIDTH) if turn >= 5 else (WIDTH, HEIGHT)
    converted = decoded(await wide.convert(data))
    assert (converted.size, corners(converted)) == (size, expected)
    fitted, sent = await wide.fit(data, FitRequest())
    assert ((fitted.width, fitted.height), corners(sent)) == (size, expected)


def half_clear() -> Image.Image:
    """Opaque red on the left, nothing on the right."""
    image = Image.new("RGBA", (WIDTH, HEIGHT), (255, 0, 0, 255))
    image.paste((255, 0, 0, 0), (WIDTH // 2, 0, WIDTH, HEIGHT))
    return image


def bmp_with_alpha() -> bytes:
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, WIDTH, -HEIGHT, 1, 32, 3, 0, 0, 0, 0, 0)
    return bmp(header + masks + bytes(52), b"", half_clear().tobytes("raw", "BGRA"))


@pytest.mark.parametrize(
    "data",
    [
        heic(half_clear()),
        avif(half_clear()),
        encoded(half_clear(), "TIFF"),
        bmp_with_alpha(),
        encoded(half_clear(), "ICO", sizes=[(WIDTH, HEIGHT)]),
        encoded(half_clear(), "ICO", sizes=[(WIDTH, HEIGHT)], bitmap_format="bmp"),
        b"<svg width='48' height='32'><rect width='24' height='32' fill='red'/></svg>",
    ],
    ids=["heic", "avif", "tiff", "bmp", "ico", "ico of bitmaps", "svg"],
)
async def test_transparency_is_kept(wide: Imaging, data: bytes) -> None:
    converted = decoded(await wide.convert(data))
    assert converted.mode == "RGBA"
    alpha = converted.getchannel("A")
    assert (alpha.getpixel((12, 16)), alpha.getpixel((36, 16))) == (255, 0)
    thumbnail = await wide.preview(data, columns=WIDTH, rows=HEIGHT)
    shown = Image.frombytes("RGB", (WIDTH, HEIGHT), thumbnail.rgb)
    assert corners(shown) == ("red", "white", "red", "white")


def swapped_profile() -> bytes:
    """sRGB's own profile with red and green exchanged: wrong in a way one can see."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    swapped = profile.replace(b"rXYZ", b"tmp1").replace(b"gXYZ", b"rXYZ").replace(b"tmp1", b"gXYZ")
    return bytes(swapped).replace(b"s\0R\0G\0B", b"t\0R\0G\0B")


@pytest.mark.parametrize("kind", ["heic", "avif", "tiff"])
async def test_a_colour_profile_is_applied_and_no_metadata_is_kept(
    wide: Imaging, kind: str
) -> None:
    write = {"heic": heic, "avif": avif, "tiff": lambda image, **o: encoded(image, "TIFF", **o)}
    data = write[kind](scene(), icc_profile=swapped_profile())
    converted = decoded(await wide.convert(data))
    assert corners(converted) == ("lime", "red", "blue", "white")
    assert converted.info.keys() <= {"transparency"}


async def test_a_heic_of_ten_bits_keeps_its_colours(wide: Imaging) -> None:
    wide_pixels = b"".join(struct.pack("<H", value * 257) for value in scene().tobytes())
    made = pillow_heif.from_bytes("RGB;16", (WIDTH, HEIGHT), wide_pixels)
    out = BytesIO()
    made.save(out, quality=95, chroma=444)
    assert pillow_heif.open_heif(out.getvalue()).info["bit_depth"] == 10
    assert corners(await wide.convert(out.getvalue())) == CORNERS


@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
async def test_the_first_frame_of_an_animation_is_sent_and_the_animation_is_reported(
    wide: Imaging, kind: str
) -> None:
    others = [scene().rotate(180), Image.new("RGB", (WIDTH, HEIGHT))]
    data = encoded(scene(), kind, save_all=True, append_images=others, quality=95)
    facts = await wide.verify(data)
    assert (facts.width, facts.height, facts.frames, facts.pages) == (WIDTH, HEIGHT, 3, 1)
    fitted, sent = await wide.fit(data, FitRequest())
    assert (fitted.animated, fitted.pages) == (True, 1)
    assert corners(sent) == CORNERS


async def test_the_largest_image_of_an_icon_with_the_most_colours_is_taken(wide: Imaging) -> None:
    data = icon(
        (16, 32, icon_bitmap(16, "blue")),
        (40, 24, icon_bitmap(40, "yellow", bits=24)),
        (40, 32, icon_bitmap(40, "red")),
        (20, 32, encoded(Image.new("RGBA", (20, 20), "lime"), "PNG")),
    )
    facts = await wide.verify(data)
    assert facts == Facts(mime="image/x-icon", width=40, height=40, frames=1)
    assert corners(await wide.convert(data)) == ("red",) * 4


async def test_the_mask_of_an_icon_without_alpha_is_its_transparency(wide: Imaging) -> None:
    image = icon_bitmap(40, "yellow", bits=24)
    masked = image[: -8 * 40] + b"\xff" * 8 * 20 + bytes(8 * 20)
    converted = decoded(await wide.convert(icon((40, 24, masked))))
    assert corners(converted) == ("yellow",) * 4
    alpha = converted.getchannel("A")
    # The mask runs from the bottom up.
    assert (alpha.getpixel((20, 10)), alpha.getpixel((20, 30))) == (255, 0)


@pytest.mark.parametrize("edge", [256, 300])
async def test_an_icon_may_be_larger_than_its_list_can_say(wide: Imaging, edge: int) -> None:
    for image in (icon_bitmap(edge, "red"), encoded(Image.new("RGB", (edge, edge), "red"), "PNG")):
        data = icon((16, 32, icon_bitmap(16, "blue")), (edge, 32, image))
        converted = decoded(await wide.convert(data))
        assert (converted.size, corners(converted)) == ((edge, edge), ("red",) * 4)


FULL, HALF = 65535, 32896


@pytest.mark.parametrize(
    "data",
    [
        grey_tiff([0, HALF, FULL], "H", bits=16),
        grey_tiff([0, HALF, FULL], "H", bits=16, order=">"),
        grey_tiff([0, HALF, FULL], "H", bits=16, big=True),
        grey_tiff([FULL, HALF - 257, 0], "H", bits=16, photometric=0),
        grey_tiff([-1000, 4, 1000], "i", bits=32, sample_format=2),
        grey_tiff([0.0, 0.502, 1.0], "f", bits=32, sample_format=3),
        grey_tiff([0.0, 0.502, 1.0], "f", bits=32, sample_format=3, order=">"),
        grey_tiff([-50.0, 0.2, 50.0], "f", bits=32, sample_format=3),
        tiff(strip(3, 1, [12], 1, 6), bytes((0x00, 0x08, 0x08, 0xFF, 0xF0, 0x00))),
    ],
    ids=[
        "16 bits",
        "16 bits, big end first",
        "16 bits in a BigTIFF",
        "16 bits, white is zero",
        "32 bits with a sign",
        "fractions",
        "fractions, big end first",
        "any numbers",
        "12 bits",
    ],
)
async def test_deep_grey_is_spread_over_eight_bits(wide: Imaging, data: bytes) -> None:
    greys = decoded(await wide.convert(data)).convert("L").tobytes()
    assert greys[0] == 0
    assert greys[1] in range(126, 131)
    assert greys[2] == 255


async def test_grey_of_one_value_or_of_none_is_still_a_picture(wide: Imaging) -> None:
    for values in ([0.5] * 3, [float("nan")] * 3, [float("inf"), 0.0, 1.0]):
        data = grey_tiff(values, "f", bits=32, sample_format=3)
        assert decoded(await wide.convert(data)).size == (3, 1)


async def test_a_tiff_of_one_bit_by_fax_is_decoded(wide: Imaging) -> None:
    image = Image.new("1", (WIDTH, HEIGHT), 1)
    image.paste(0, (0, 0, WIDTH // 2, HEIGHT))
    data = encoded(image, "TIFF", compression="group4")
    assert corners(await wide.convert(data)) == ("black", "white", "black", "white")


async def test_a_tiff_in_lab_is_decoded(wide: Imaging) -> None:
    # Red in CIELAB: lightness 54 of 100, a = 81, b = 70.
    lab = bytes((137, 81, 70)) * 4
    data = tiff(strip(2, 2, [8, 8, 8], 8, len(lab)), lab)
    assert corners(await wide.convert(data)) == ("red",) * 4


async def test_a_pdf_page_is_drawn_large_enough_to_read(wide: Imaging) -> None:
    facts = await wide.verify(pdf(QUARTERS))
    assert facts == Facts(mime="application/pdf", width=144, height=96, frames=1)
    assert corners(await wide.convert(pdf(QUARTERS))) == CORNERS
    a4 = await wide.verify(pdf(b"", box=b"0 0 595.276 841.89"))
    assert (a4.width, a4.height) == (1786, 2526)
    poster = await wide.verify(pdf(b"", box=b"0 0 2384 3370"))
    assert (poster.width, poster.height) == (1822, 2576)


async def test_a_rotated_pdf_page_is_shown_as_a_pdf_viewer_shows_it(wide: Imaging) -> None:
    converted = decoded(await wide.convert(pdf(QUARTERS, page=b"/Rotate 90")))
    assert (converted.size, corners(converted)) == ((96, 144), ("blue", "red", "white", "lime"))


async def test_an_empty_pdf_page_is_white_paper(wide: Imaging) -> None:
    converted = decoded(await wide.convert(pdf(b"")))
    assert (converted.mode, corners(converted)) == ("RGB", ("white",) * 4)


async def test_annotations_and_filled_in_fields_of_a_pdf_are_drawn(wide: Imaging) -> None:
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 24 16]/Length 24>>stream\n%s\nendstream"
    data = pdf(
        b"",
        catalogue=b"/AcroForm<</Fields[5 0 R]>>",
        page=b"/Annots[5 0 R 6 0 R]",
        more=[
            b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(x)/Rect[0 16 24 32]/F 4/AP<</N 7 0 R>>>>",
            b"<</Type/Annot/Subtype/Stamp/Rect[24 0 48 16]/F 4/AP<</N 8 0 R>>>>",
            look % b"1 0 0 rg 0 0 24 16 re f ",
            look % b"0 0 1 rg 0 0 24 16 re f ",
        ],
    )
    assert corners(await wide.convert(data)) == ("red", "white", "white", "blue")


async def test_the_region_of_a_page_is_in_pixels_of_its_drawing(wide: Imaging) -> None:
    region = Region(x=72, y=0, width=72, height=48)
    fitted, sent = await wide.fit(pdf(QUARTERS), FitRequest(region=region))
    assert (fitted.part, fitted.original_width, fitted.original_height) == (region, 144, 96)
    assert corners(sent) == ("lime",) * 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
async def test_a_drawing_is_decoded_in_the_encoding_it_declares(
    wide: Imaging, encoding: str
) -> None:
    text = SVG.decode().replace("UTF-8", encoding).replace("made by hand", "peint à la main")
    assert corners(await wide.convert(text.encode(encoding))) == CORNERS


async def test_text_in_a_drawing_is_set_in_the_bundled_font(wide: Imaging) -> None:
    document = (
        b"<svg width='60' height='20'><rect width='60' height='20' fill='white'/>"
        b"<text x='2' y='16' font-family='Comic Sans MS'>Hello</text></svg>"
    )
    black, _ = decoded(await wide.convert(document)).convert("L").getextrema()
    assert black == 0
