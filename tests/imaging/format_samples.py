"""One scene in every format and many variants, by hand if no library writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pillow_heif
from imaging_samples import decoded, encoded
from PIL import Image, ImageDraw

pillow_heif.register_heif_opener()

ALL = frozenset({"avif", "bmp", "heic", "ico", "pdf", "svg", "tiff"})
WIDTH, HEIGHT = 48, 32
CORNERS = ("red", "lime", "blue", "white")
COLOURS = {
    "red": (255, 0, 0),
    "lime": (0, 255, 0),
    "blue": (0, 0, 255),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "yellow": (255, 255, 0),
    "grey": (128, 128, 128),
}


def scene(width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    """Four quarters, so that every turn and every mix-up of channels shows."""
    image = Image.new("RGB", (width, height))
    draw = ImageDraw.Draw(image)
    across, down = width // 2, height // 2
    for index, colour in enumerate(CORNERS):
        left, top = (index % 2) * across, (index // 2) * down
        draw.rectangle((left, top, left + across - 1, top + down - 1), fill=colour)
    return image


def corners(image: Image.Image | bytes) -> tuple[str, ...]:
    """The colour of each quarter, row by row, by the nearest name."""
    picture = (decoded(image) if isinstance(image, bytes) else image).convert("RGB")
    width, height = picture.size
    points = [(x * width // 4, y * height // 4) for y in (1, 3) for x in (1, 3)]
    return tuple(_name(picture.getpixel(point)) for point in points)


def _name(pixel: Any) -> str:
    def distance(name: str) -> int:
        return sum((a - b) ** 2 for a, b in zip(pixel, COLOURS[name], strict=True))

    nearest = min(COLOURS, key=distance)
    assert distance(nearest) < 600, f"{pixel} is no colour of the scene"
    return nearest


def exif(orientation: int) -> Image.Exif:
    made = Image.Exif()
    made[0x0112] = orientation
    return made


# TIFF


def tiff(
    tags: dict[int, int | Sequence[int]],
    body: bytes,
    *,
    order: str = "<",
    big: bool = False,
    next_at: int = 0,
) -> bytes:
    """A file with one directory; tag 273 or 324 (where the pixels are) is filled in here."""
    offset_kind, count_kind, entry_bytes = ("Q", "Q", 20) if big else ("I", "H", 12)
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    start = 16 if big else 8
    head += struct.pack(order + "HHQ", 8, 0, start) if big else struct.pack(order + "I", start)
    tags = dict(sorted(tags.items()))
    far_at = start + struct.calcsize(count_kind) + len(tags) * entry_bytes
    far_at += struct.calcsize(offset_kind)
    far = b""
    room = struct.calcsize(offset_kind)
    entries = b""
    sizes = {tag: len(value) for tag, value in tags.items() if not isinstance(value, int)}
    pixels_at = far_at + sum(4 * size for size in sizes.values() if 4 * size > room)
    for tag, value in tags.items():
        numbers = [value] if isinstance(value, int) else list(value)
        if tag in {273, 324}:
            numbers = [pixels_at + number for number in numbers]
        packed = struct.pack(order + f"{len(numbers)}I", *numbers)
        if len(packed) > room:
            value_bytes = struct.pack(order + offset_kind, far_at + len(far))
            far += packed
        else:
            value_bytes = packed.ljust(room, b"\0")
        entries += struct.pack(order + "HH" + offset_kind, tag, 4, len(numbers)) + value_bytes
    directory = struct.pack(order + count_kind, len(tags)) + entries
    return head + directory + struct.pack(order + offset_kind, next_at) + far + body


def strip(
    width: int, height: int, bits: Sequence[int], photometric: int, size: int
) -> dict[int, Any]:
    """The tags of a picture in one uncompressed strip."""
    return {
        256: width,
        257: height,
        258: list(bits),
        259: 1,
        262: photometric,
        273: [0],
        277: len(bits),
        278: height,
        279: [size],
    }


def grey_tiff(
    values: Sequence[int | float],
    code: str,
    *,
    bits: int,
    order: str = "<",
    sample_format: int = 1,
    photometric: int = 1,
    big: bool = False,
) -> bytes:
    """One row of grey samples."""
    body = struct.pack(f"{order}{len(values)}{code}", *values)
    tags = strip(len(values), 1, [bits], photometric, len(body)) | {339: sample_format}
    return tiff(tags, body, order=order, big=big)


def tiled_tiff() -> bytes:
    """The scene in tiles of 16 x 16."""
    image = scene()
    boxes = [(x, y, x + 16, y + 16) for y in range(0, HEIGHT, 16) for x in range(0, WIDTH, 16)]
    tiles = [image.crop(box).tobytes() for box in boxes]
    tags = strip(WIDTH, HEIGHT, [8, 8, 8], 2, 0)
    del tags[273], tags[278], tags[279]
    tags |= {322: 16, 323: 16, 324: [768 * index for index in range(len(tiles))]}
    tags[325] = [768] * len(tiles)
    return tiff(tags, b"".join(tiles))


# BMP and ICO


def bmp(header: bytes, palette: bytes, pixels: bytes) -> bytes:
    offset = 14 + len(header) + len(palette)
    size = offset + len(pixels)
    return b"BM" + struct.pack("<IHHI", size, 0, 0, offset) + header + palette + pixels


def dib(width: int, height: int, bits: int, *, compression: int = 0, colours: int = 0) -> bytes:
    return struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, colours, 0)


def rle_bmp() -> bytes:
    """The scene in runs of palette entries, rows from the bottom up."""
    half = WIDTH // 2
    top, bottom = (bytes([half, left, half, left + 1, 0, 0]) for left in (0, 2))
    rows = bottom * (HEIGHT // 2) + top * (HEIGHT // 2) + b"\0\1"
    palette = b"".join(bytes((*reversed(COLOURS[name]), 0)) for name in CORNERS)
    return bmp(dib(WIDTH, HEIGHT, 8, compression=1, colours=4), palette, rows)


def os2_bmp() -> bytes:
    """The scene with the twelve-byte header of OS/2."""
    flipped = scene().transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    header = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 24)
    return bmp(header, b"", flipped.tobytes("raw", "BGR"))


def icon(*images: tuple[int, int, bytes]) -> bytes:
    """An icon file of (edge, bits, data)."""
    start = 6 + 16 * len(images)
    entries = b""
    for edge, bits, data in images:
        shown = edge if edge < 256 else 0
        entries += struct.pack("<BBBBHHII", shown, shown, 0, 0, 1, bits, len(data), start)
        start += len(data)
    head = struct.pack("<HHH", 0, 1, len(images))
    return head + entries + b"".join(data for _, _, data in images)


def icon_bitmap(edge: int, colour: str, *, bits: int = 32) -> bytes:
    """One colour as the bitmap of an icon: pixels, then a mask that hides nothing."""
    blue, green, red = reversed(COLOURS[colour])
    pixel = bytes((blue, green, red, 255)) if bits == 32 else bytes((blue, green, red))
    row = (pixel * edge).ljust((edge * len(pixel) + 3) // 4 * 4, b"\0")
    mask = bytes((edge + 31) // 32 * 4 * edge)
    return dib(edge, 2 * edge, bits) + row * edge + mask


# PDF

QUARTERS = (
    b"1 0 0 rg 0 16 24 16 re f 0 1 0 rg 24 16 24 16 re f "
    b"0 0 1 rg 0 0 24 16 re f 1 1 1 rg 24 0 24 16 re f"
)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n" % (len(data), entries) + data + b"\nendstream"


def pdf_of(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """A file of numbered objects, of which the first is the catalogue."""
    out, offsets = b"%PDF-1.7\n", list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end


def pdf(
    *contents: bytes,
    box: bytes = b"0 0 48 32",
    catalogue: bytes = b"",
    page: bytes = b"",
    more: Sequence[bytes] = (),
    trailer: bytes = b"",
) -> bytes:
    """A page for each content stream; ``more`` are the objects 1000 and up, renumbered."""
    first = 3
    kids = b" ".join(b"%d 0 R" % (first + 2 * index) for index in range(len(contents)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalogue,
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(contents)),
    ]
    for index, content in enumerate(contents):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Contents %d 0 R%s>>"
            % (box, first + 2 * index + 1, page)
        )
        objects.append(content if content.startswith(b"<<") else stream(content))
    return pdf_of([*objects, *more], trailer=trailer)


def deflated(data: bytes) -> bytes:
    return stream(zlib.compress(data, 9), b"/Filter/FlateDecode")


# SVG

SVG = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<!-- made by hand -->
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 48 32">
<rect width="24" height="16" fill="red"/><rect x="24" width="24" height="16" fill="lime"/>
<rect y="16" width="24" height="16" fill="blue"/>
<rect x="24" y="16" width="24" height="16" fill="white"/>
</svg>""".encode()


def heic(image: Image.Image, **options: Any) -> bytes:
    return encoded(image, "HEIF", **{"quality": 95, "chroma": 444, **options})


def avif(image: Image.Image, **options: Any) -> bytes:
    return encoded(image, "AVIF", **{"quality": 95, "subsampling": "4:4:4", "speed": 9, **options})


SAMPLES: dict[str, tuple[str, bytes]] = {
    "heic": ("image/heic", heic(scene())),
    "heic in tiles": ("image/heic", heic(scene(), tile_size=32)),
    "avif": ("image/avif", avif(scene())),
    "tiff": ("image/tiff", encoded(scene(), "TIFF")),
    "tiff in tiles": ("image/tiff", tiled_tiff()),
    "tiff by LZW": ("image/tiff", encoded(scene(), "TIFF", compression="tiff_lzw")),
    "tiff by JPEG": ("image/tiff", encoded(scene(), "TIFF", compression="jpeg", quality=98)),
    "tiff in CMYK": ("image/tiff", encoded(scene().convert("CMYK"), "TIFF")),
    "tiff in palette": ("image/tiff", encoded(scene().quantize(8), "TIFF")),
    "bmp": ("image/bmp", encoded(scene(), "BMP")),
    "bmp in runs": ("image/bmp", rle_bmp()),
    "bmp of OS/2": ("image/bmp", os2_bmp()),
    "ico": ("image/x-icon", encoded(scene(), "ICO", sizes=[(WIDTH, HEIGHT)])),
    "ico of bitmaps": (
        "image/x-icon",
        encoded(scene().convert("RGBA"), "ICO", sizes=[(WIDTH, HEIGHT)], bitmap_format="bmp"),
    ),
    "svg": ("image/svg+xml", SVG),
}
