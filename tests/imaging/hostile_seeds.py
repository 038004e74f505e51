"""Healthy files of every accepted type, a few of each, as input for the mutators."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any

from imaging_samples import encoded
from PIL import Image, ImageCms, ImageDraw

Seeds = list[bytes]


def scene(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """A gradient, a disc, a line and a patch of noise: something for every part of a codec."""
    ramp = Image.linear_gradient("L").resize((width, height))
    image = Image.merge(
        "RGB",
        (ramp, ramp.rotate(180), ramp.transpose(Image.Transpose.ROTATE_90).resize((width, height))),
    )
    draw = ImageDraw.Draw(image)
    draw.ellipse((width // 8, height // 8, width // 2, height // 2), fill="teal")
    draw.line((0, height - 1, width - 1, 0), fill="white", width=2)
    edge = min(width, height) // 3
    grain = random.Random(width * height).randbytes(3 * edge * edge)
    image.paste(Image.frombytes("RGB", (edge, edge), grain), (width - edge, 0))
    if mode in {"RGBA", "LA"}:
        image.putalpha(ramp)
    return image.convert(mode)


def _frames(mode: str = "RGB") -> list[Image.Image]:
    return [scene(48, 40, mode).rotate(30 * turn) for turn in range(3)]


def _moving(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    first, *others = _frames(mode)
    return encoded(first, kind, save_all=True, append_images=others, duration=80, **options)


def _profile() -> bytes:
    made = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    # Without the moment it was made, so that a case is the same tomorrow.
    return made[:24] + bytes(12) + made[36:]


def _turn_upright() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def _png() -> Seeds:
    return [
        encoded(scene(97, 61), "PNG", icc_profile=_profile(), exif=_turn_upright()),
        encoded(scene(640, 420), "PNG"),
        encoded(scene(97, 61, "RGBA"), "PNG"),
        encoded(scene(97, 61).quantize(32), "PNG", transparency=3),
        encoded(scene(97, 61, "LA"), "PNG"),
        encoded(scene(97, 61, "1"), "PNG"),
        encoded(scene(97, 61, "L").convert("I;16"), "PNG"),
        _moving("PNG", "RGBA"),
    ]


def _jpeg() -> Seeds:
    return [
        encoded(scene(97, 61), "JPEG", icc_profile=_profile(), exif=_turn_upright()),
        encoded(scene(640, 420), "JPEG", progressive=True),
        encoded(scene(97, 61), "JPEG", quality=95, subsampling=0, restart_marker_blocks=4),
        encoded(scene(97, 61, "L"), "JPEG", comment=b"grey"),
        encoded(scene(97, 61, "CMYK"), "JPEG"),
        _moving("MPO"),
    ]


def _gif() -> Seeds:
    return [
        encoded(scene(97, 61), "GIF"),
        encoded(scene(97, 61).quantize(16), "GIF", transparency=2, comment=b"still"),
        _moving("GIF", disposal=2, loop=0),
        _moving("GIF", "RGBA", optimize=False),
    ]


def _webp() -> Seeds:
    return [
        encoded(scene(97, 61), "WEBP", icc_profile=_profile(), exif=_turn_upright()),
        encoded(scene(640, 420), "WEBP"),
        encoded(scene(97, 61), "WEBP", lossless=True),
        encoded(scene(97, 61, "RGBA"), "WEBP"),
        _moving("WEBP", "RGBA"),
    ]


def _avif() -> Seeds:
    return [
        encoded(scene(97, 61), "AVIF", speed=10, exif=_turn_upright(), icc_profile=_profile()),
        encoded(scene(320, 200), "AVIF", speed=10, subsampling="4:4:4"),
        encoded(scene(97, 61, "RGBA"), "AVIF", speed=10),
        _undated(_moving("AVIF", speed=10)),
    ]


def _undated(film: bytes) -> bytes:
    """The film without the moment it was made, which three kinds of its boxes hold."""
    out = bytearray(film)
    for kind in (b"mvhd", b"tkhd", b"mdhd"):
        start = film.index(kind) + 8
        out[start : start + 16] = bytes(16)
    return bytes(out)


def _heic() -> Seeds:
    import pillow_heif

    def heic(*images: Image.Image, **options: Any) -> bytes:
        file = pillow_heif.HeifFile()
        for image in images:
            file.add_from_pillow(image)
        out = BytesIO()
        file.save(out, quality=50, **options)
        return out.getvalue()

    return [
        heic(scene(97, 61), exif=_turn_upright().tobytes()),
        heic(scene(320, 200)),
        heic(scene(97, 61, "RGBA")),
        heic(scene(97, 61, "L")),
        heic(*_frames()),
    ]


def _tiff() -> Seeds:
    plain = ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"]
    return [
        *(encoded(scene(97, 61), "TIFF", compression=kind) for kind in plain),
        encoded(scene(97, 61, "1"), "TIFF", compression="group4"),
        encoded(scene(97, 61, "CMYK"), "TIFF", compression="tiff_lzw", exif=_turn_upright()),
        encoded(scene(97, 61, "F"), "TIFF"),
        encoded(scene(97, 61, "L").convert("I;16B"), "TIFF"),
        encoded(scene(97, 61).quantize(16), "TIFF", big_tiff=True),
        encoded(scene(97, 61, "LAB"), "TIFF", icc_profile=_profile()),
        _moving("TIFF", compression="packbits"),
    ]


def _rle_bmp() -> bytes:
    """8-bit run-length encoding, which Pillow reads but does not write."""
    palette = b"".join(bytes((value, value, value, 0)) for value in range(256))
    row = b"\3\x09" + b"\0\4abcd"
    body = b"".join(bytes((20, y)) + row + bytes((8, y, 0, 0)) for y in range(24)) + b"\0\1"
    start = 14 + 40 + len(palette)
    info = struct.pack("<IiiHHIIiiII", 40, 35, 24, 1, 8, 1, len(body), 2835, 2835, 256, 0)
    return struct.pack("<2sIII", b"BM", start + len(body), 0, start) + info + palette + body


def _os2_bmp() -> bytes:
    """The twelve-byte header of OS/2."""
    info = struct.pack("<IHHHH", 12, 20, 10, 1, 24)
    pixels = bytes(range(200)) * 3
    return struct.pack("<2sIII", b"BM", 26 + len(pixels), 0, 26) + info + pixels


def _bmp() -> Seeds:
    modes = ["RGB", "L", "1", "RGBA"]
    return [
        *(encoded(scene(97, 61, mode), "BMP") for mode in modes),
        encoded(scene(97, 61).quantize(16), "BMP"),
        _rle_bmp(),
        _os2_bmp(),
    ]


def _ico() -> Seeds:
    sizes = [(16, 16), (48, 48), (128, 128)]
    return [
        encoded(scene(128, 128, "RGBA"), "ICO", sizes=sizes),
        encoded(scene(128, 128, "RGBA"), "ICO", sizes=sizes, bitmap_format="bmp"),
        encoded(scene(32, 32), "ICO", sizes=[(32, 32)], bitmap_format="bmp"),
    ]


def pdf_of(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A document of those objects, the first being its catalogue, with a true table of them."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    starts: list[int] = []
    for number, body in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(starts) + 1)
    out += b"".join(b"%010d 00000 n \n" % start for start in starts)
    out += b"trailer\n<< /Size %d /Root 1 0 R %b >>\n" % (len(starts) + 1, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


def pdf_stream(body: bytes, entries: bytes = b"") -> bytes:
    """A compressed stream object."""
    packed = zlib.compress(body)
    head = b"<< /Length %d /Filter /FlateDecode %b >>" % (len(packed), entries)
    return head + b"\nstream\n" + packed + b"\nendstream"


def pdf_page(content: bytes, *, box: bytes = b"0 0 200 140", more: tuple[bytes, ...] = ()) -> bytes:
    """A document of one page; ``more`` objects are numbered from 6, form ``X6`` being the first."""
    resources = b"<< /Font << /F1 5 0 R >> /XObject << /X6 6 0 R >> >>"
    return pdf_of(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [%b] /Contents 4 0 R /Resources %b >>"
        % (box, resources),
        pdf_stream(content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *more,
    )


def _pdf() -> Seeds:
    form = pdf_stream(
        b"0 0 1 rg 0 0 20 20 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 20 20]"
    )
    content = (
        b"q 1 0 0 rg 10 10 80 60 re f 0 1 0 RG 4 w 20 20 m 90 120 150 10 180 90 c S Q\n"
        b"BT /F1 24 Tf 40 100 Td (limner) Tj ET q 2 0 0 2 120 60 cm /X6 Do Q"
    )
    undated: dict[str, Any] = {"creationDate": None, "modDate": None}
    return [
        pdf_page(content, more=(form,)),
        encoded(scene(97, 61), "PDF", **undated),
        encoded(scene(97, 61, "1"), "PDF", **undated),
        _moving("PDF", **undated),
    ]


_SVG_BODIES = (
    '<linearGradient id="g"><stop stop-color="red"/><stop offset="1" stop-color="#00f"/>'
    '</linearGradient><rect width="90" height="50" fill="url(#g)" rx="4"/>',
    '<g id="a"><circle cx="20" cy="20" r="9" fill="green"/></g><use href="#a" x="30" y="9"/>'
    '<use href="#a" x="50" y="19" opacity=".5"/>',
    '<path d="M10 10 C 20 80, 90 -40, 90 50 Z" stroke="navy" stroke-width="3" fill="none"/>'
    '<text x="8" y="50" font-size="14">limner</text>',
    '<filter id="f"><feGaussianBlur stdDeviation="2"/></filter><clipPath id="c"><circle cx="40" '
    'cy="30" r="25"/></clipPath><rect width="80" height="50" filter="url(#f)" '
    'clip-path="url(#c)" fill="orange"/>',
    '<style>.a { fill: purple; stroke: black }</style><mask id="m"><rect width="60" height="60" '
    'fill="white"/></mask><polygon class="a" points="5,5 90,20 40,55" mask="url(#m)" '
    'transform="rotate(12) scale(.9)"/>',
)


def svg_of(body: str, *, size: str = 'width="97" height="61" viewBox="0 0 97 61"') -> bytes:
    """A document around that drawing."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{body}</svg>'.encode()


def _svg() -> Seeds:
    return [svg_of(body) for body in _SVG_BODIES]


_MAKERS: dict[str, Callable[[], Seeds]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
    "avif": _avif,
    "heic": _heic,
    "tiff": _tiff,
    "bmp": _bmp,
    "ico": _ico,
    "pdf": _pdf,
    "svg": _svg,
}
KINDS = tuple(_MAKERS)


@cache
def seeds(kind: str) -> Seeds:
    """The healthy files of one type."""
    return _MAKERS[kind]()
