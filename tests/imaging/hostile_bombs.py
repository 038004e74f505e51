"""A random number generator -> files that are well formed, small, and ask for far too much."""

from __future__ import annotations

import random
import re
import struct
import zlib
from collections.abc import Callable
from functools import cache

from hostile_anatomy import png_chunks
from hostile_seeds import pdf_of, pdf_page, pdf_stream, seeds, svg_of
from imaging_samples import chunk, png

Bomb = Callable[[random.Random], bytes]

# Edges around the pixel cap, the signed and unsigned limits, and what formats can say at most.
_EDGES = (0, 1, 9_900, 16_383, 30_000, 65_500, 65_535, 0x7FFFFFFF, 0xFFFFFFFF)
_MANY = (100, 1_000, 20_000)


@cache
def _zeros(mebibytes: int) -> bytes:
    """So many zeros, deflated to a thousandth of that."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


def _png_that_claims_a_size(rng: random.Random) -> bytes:
    return png(rng.choice(_EDGES), rng.choice(_EDGES))


def _png_that_inflates(rng: random.Random) -> bytes:
    width, height = rng.choice([(9_900, 9_900), (97, 61), (60_000, 1_600)])
    whole = png(width, height)
    start, end = next((start, end) for start, kind, end in png_chunks(whole) if kind == b"IDAT")
    return whole[:start] + chunk(b"IDAT", _zeros(95)) + whole[end:]


def _png_with_a_note_that_inflates(rng: random.Random) -> bytes:
    note = rng.choice([b"zTXt", b"iCCP", b"iTXt"])
    head = b"note\0\1\0\0\0" if note == b"iTXt" else b"note\0\0"
    return png(8, 8, chunk(note, head + _zeros(60)) * rng.choice([1, 8]))


def _png_with_many_chunks(rng: random.Random) -> bytes:
    kind = rng.choice([b"tEXt", b"fcTL", b"IDAT", b"eXIf", b"PLTE"])
    return png(8, 8, chunk(kind, b"a\0b") * rng.choice(_MANY))


def _png_with_endless_frames(rng: random.Random) -> bytes:
    return png(8, 8, chunk(b"acTL", struct.pack(">II", rng.choice(_EDGES), 0)))


def _jpeg_that_claims_a_size(rng: random.Random) -> bytes:
    edges = [rng.choice([1, 9_900, 65_500, 65_535]) for _ in range(2)]
    return _with_jpeg_edges(rng.choice(seeds("jpeg")), *edges)


def _jpeg_of_many_scans(rng: random.Random) -> bytes:
    """Each scan of a progressive file goes over all of its pixels."""
    whole = seeds("jpeg")[1]
    last = whole.rindex(b"\xff\xda")
    many = whole[:last] + whole[last:-2] * rng.choice([10, 100, 400]) + whole[-2:]
    return rng.choice([many, _with_jpeg_edges(many, 6_000, 6_000)])


def _with_jpeg_edges(data: bytes, height: int, width: int) -> bytes:
    at = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2")) + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def _gif(width: int, height: int, *blocks: bytes) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width & 0xFFFF, height & 0xFFFF, 0x80, 0, 0)
    return head + b"\0\0\0\xff\xff\xff" + b"".join(blocks) + b";"


def _gif_frame(*rectangle: int) -> bytes:
    return b"," + struct.pack("<HHHHB", *rectangle, 0) + b"\2\2\x4c\1\0"


def _gif_that_claims_a_size(rng: random.Random) -> bytes:
    width, height = rng.choice(_EDGES) & 0xFFFF, rng.choice(_EDGES) & 0xFFFF
    return _gif(width, height, _gif_frame(0, 0, width, height))


def _gif_of_many_frames(rng: random.Random) -> bytes:
    size = rng.choice([1, 500, 9_900])
    return _gif(size, size, _gif_frame(0, 0, 1, 1) * rng.choice(_MANY))


def _gif_with_frames_outside(rng: random.Random) -> bytes:
    corners = [[rng.choice([0, 5, 9_000, 65_535]) for _ in range(4)] for _ in range(4)]
    return _gif(10, 10, *(_gif_frame(*corner) for corner in corners))


def _webp_that_claims_a_size(rng: random.Random) -> bytes:
    whole = bytearray(seeds("webp")[4])
    edges = [rng.choice([0, 9_899, 16_382, 0xFFFFFF]) for _ in range(2)]
    whole[24:30] = b"".join(edge.to_bytes(3, "little") for edge in edges)
    return bytes(whole)


def _webp_of_many_frames(rng: random.Random) -> bytes:
    whole = seeds("webp")[4]
    first = whole.index(b"ANMF")
    second = whole.index(b"ANMF", first + 4)
    body = whole[8:first] + whole[first:second] * rng.choice([100, 400]) + whole[second:]
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _avif_that_claims_a_size(rng: random.Random) -> bytes:
    return _with_box_edges(rng.choice(seeds("avif")), rng.choice(_EDGES), rng.choice(_EDGES))


def _heic_that_claims_a_size(rng: random.Random) -> bytes:
    return _with_box_edges(rng.choice(seeds("heic")), rng.choice(_EDGES), rng.choice(_EDGES))


def _with_box_edges(data: bytes, width: int, height: int) -> bytes:
    edges = struct.pack(">II", width, height)
    return re.sub(rb"(ispe....).{8}", lambda found: found[1] + edges, data, flags=re.DOTALL)


def _tiff(*tags: tuple[int, int, int, int], following: int = 0, tail: bytes = b"") -> bytes:
    """A file of one directory, which ends at byte 10 + 12 x tags + 4; ``tail`` begins there."""
    rows = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return (
        b"II*\0\x08\0\0\0"
        + struct.pack("<H", len(tags))
        + rows
        + struct.pack("<I", following)
        + tail
    )


def _tiff_that_inflates(rng: random.Random) -> bytes:
    width, height = rng.choice([(9_900, 9_900), (64, 64), (65_535, 65_535), (1, 90_000_000)])
    packed, depth = _zeros(95), rng.choice([1, 8, 16, 32])
    rows = rng.choice([1, height, 0xFFFFFFFF])
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, depth), (259, 3, 1, 8)]
    tags += [(262, 3, 1, 1), (273, 4, 1, 122), (278, 4, 1, rows), (279, 4, 1, len(packed))]
    return _tiff(*tags, tail=bytes(12) + packed)


def _tiff_in_circles(rng: random.Random) -> bytes:
    tags = [(256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    tags += [(273, 4, 1, 8), (279, 4, 1, 64)]
    # EXIF and sub-directories may lead back to the start as well.
    tags += [(rng.choice([330, 34665, 34853]), 4, 1, 8)]
    return _tiff(*tags, following=8, tail=bytes(64))


def _tiff_of_many_pages(rng: random.Random) -> bytes:
    pages, out = rng.choice(_MANY), bytearray(b"II*\0\x08\0\0\0")
    for _ in range(pages):
        out += struct.pack("<HHHII", 1, 256, 4, 1, 8) + struct.pack("<I", len(out) + 18)
    return bytes(out)


def _bmp_that_claims_a_size(rng: random.Random) -> bytes:
    whole = bytearray(rng.choice(seeds("bmp")[:-1]))
    edges = [rng.choice([1, 9_900, 30_000, 0x7FFFFFFF, -9_900, -0x80000000]) for _ in range(2)]
    whole[18:26] = struct.pack("<ii", *edges)
    return bytes(whole)


def _ico_of(image: bytes, *, entries: int) -> bytes:
    """So many entries for one and the same picture."""
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(image), 6 + 16 * entries)
    return b"\0\0\1\0" + struct.pack("<H", entries) + entry * entries + image


def _ico_of_many(rng: random.Random) -> bytes:
    return _ico_of(png(16, 16), entries=rng.choice([1_000, 65_535]))


def _ico_that_claims_a_size(rng: random.Random) -> bytes:
    bitmap = struct.pack("<IiiHHIIiiII", 40, 30_000, 60_000, 1, 32, 0, 0, 0, 0, 0, 0)
    inner = rng.choice([_png_that_claims_a_size(rng), _png_that_inflates(rng), bitmap])
    return _ico_of(inner, entries=1)


_FORM = b"/Type /XObject /Subtype /Form /BBox [0 0 200 140] "


def _pdf_of_forms_that_multiply(rng: random.Random) -> bytes:
    levels, width = rng.choice([(1, 2), (12, 4), (200, 1), (30, 10)])
    forms = [
        pdf_stream(
            b"/X Do " * width + b"0 0 9 9 re f",
            # The last one leads back to the first.
            _FORM + b"/Resources << /XObject << /X %d 0 R >> >>" % (6 + (level + 1) % levels),
        )
        for level in range(levels)
    ]
    return pdf_page(b"/X6 Do", more=tuple(forms))


def _pdf_of_a_size(rng: random.Random) -> bytes:
    edges = (b"0", b"-1", b"1", b"14400", b"1000000", b"1e30", b"99999999999", b"nan")
    box = b" ".join(rng.choice(edges) for _ in range(4))
    return pdf_page(b"0 0 9 9 re f", box=rng.choice([box, b"0 0 " + box]))


def _pdf_of_pages_in_circles(rng: random.Random) -> bytes:
    kids = rng.choice([b"2 0 R", b"2 0 R 3 0 R", b"3 0 R " * 50_000])
    return pdf_of(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d /Parent 2 0 R >>" % (kids, rng.choice(_EDGES)),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] >>",
        trailer=rng.choice([b"", b"/Prev 15", b"/XRefStm 15", b"/Encrypt 1 0 R"]),
    )


def _pdf_that_draws_on_and_on(rng: random.Random) -> bytes:
    line = rng.choice([b"0 0 200 140 re f\n", b"q ", b"0 0 m 1 1 l 9 9 200 1 7 7 c S\n", b"[ "])
    return pdf_page(line * rng.choice([1_000, 300_000]))


def _pdf_of_an_image_that_inflates(rng: random.Random) -> bytes:
    edge = rng.choice([9_900, 30_000, 0x7FFFFFFF])
    image = b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray " % (
        edge,
        edge,
    ) + b"/BitsPerComponent 8 /Filter /FlateDecode /Length %d >>\nstream\n" % len(_zeros(95))
    return pdf_page(b"200 0 0 140 0 0 cm /X6 Do", more=(image + _zeros(95) + b"\nendstream",))


def _pdf_that_nests(rng: random.Random) -> bytes:
    depth = rng.choice([50, 5_000, 200_000])
    opening, closing = rng.choice([(b"[", b"]"), (b"<< /A ", b">>"), (b"(", b")")])
    return pdf_of(opening * depth + closing * depth, b"<< /Type /Catalog /Pages 1 0 R >>")


def _svg_of_entities(rng: random.Random) -> bytes:
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    outside = '<!ENTITY x SYSTEM "file:///etc/passwd">'
    body = svg_of(f"<text>{rng.choice(['&e9;', '&x;'])}</text>")
    return f'<!DOCTYPE svg [<!ENTITY e0 "ha">{levels}{outside}]>'.encode() + body


def _svg_of_uses_that_multiply(rng: random.Random) -> bytes:
    levels, width = rng.choice([(3, 10), (20, 10), (90, 2), (400, 1)])
    groups = (
        f'<g id="a{level}">' + f'<use href="#a{level + 1}"/>' * width + "</g>"
        for level in range(levels)
    )
    return svg_of("".join(groups) + f'<rect id="a{levels}" width="9" height="9"/>')


def _svg_that_nests(rng: random.Random) -> bytes:
    tag, depth = rng.choice(["g", "svg", "text", "mask"]), rng.choice([60, 99, 5_000])
    return svg_of(f"<{tag}>" * depth + f"</{tag}>" * depth)


def _svg_of_a_size(rng: random.Random) -> bytes:
    edges = ("0", "-5", "1", "97", "1e9", "1e308", "NaN", "100%", "99999em", "")
    width, height, *box = (rng.choice(edges) for _ in range(6))
    size = f'width="{width}" height="{height}" viewBox="{" ".join(box)}"'
    return svg_of('<rect width="9" height="9"/>', size=size)


def _svg_that_blurs_on_and_on(rng: random.Random) -> bytes:
    filters = ('<feGaussianBlur stdDeviation="400"/>', '<feTurbulence numOctaves="5"/>')
    rects = '<rect width="97" height="61" filter="url(#f)"/>' * rng.choice([1, 20])
    return svg_of(f'<filter id="f">{rng.choice(filters) * rng.choice([1, 6])}</filter>{rects}')


def _svg_that_reaches_out(rng: random.Random) -> bytes:
    target = rng.choice(["file:///etc/passwd", "http://127.0.0.1:9/", "/etc/passwd", "data:,x"])
    return svg_of(
        rng.choice(
            [
                f'<image href="{target}" width="9" height="9"/>',
                f'<use href="{target}#a"/>',
                f'<rect fill="url({target})" width="9" height="9"/>',
                f"<style>@import url({target});</style>",
                f'<script href="{target}"/>',
            ]
        )
    )


BOMBS: dict[str, tuple[Bomb, ...]] = {
    "png": (
        _png_that_claims_a_size,
        _png_that_inflates,
        _png_with_a_note_that_inflates,
        _png_with_many_chunks,
        _png_with_endless_frames,
    ),
    "jpeg": (_jpeg_that_claims_a_size, _jpeg_of_many_scans),
    "gif": (_gif_that_claims_a_size, _gif_of_many_frames, _gif_with_frames_outside),
    "webp": (_webp_that_claims_a_size, _webp_of_many_frames),
    "avif": (_avif_that_claims_a_size,),
    "heic": (_heic_that_claims_a_size,),
    "tiff": (_tiff_that_inflates, _tiff_in_circles, _tiff_of_many_pages),
    "bmp": (_bmp_that_claims_a_size,),
    "ico": (_ico_of_many, _ico_that_claims_a_size),
    "pdf": (
        _pdf_of_forms_that_multiply,
        _pdf_of_a_size,
        _pdf_of_pages_in_circles,
        _pdf_that_draws_on_and_on,
        _pdf_of_an_image_that_inflates,
        _pdf_that_nests,
    ),
    "svg": (
        _svg_of_entities,
        _svg_of_uses_that_multiply,
        _svg_that_nests,
        _svg_of_a_size,
        _svg_that_blurs_on_and_on,
        _svg_that_reaches_out,
    ),
}
