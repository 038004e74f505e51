"""The first bytes of a file -> its MIME type; names and extensions are never asked."""

from __future__ import annotations

# The accepted formats, each with the only Pillow decoder that may open it.
DECODERS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
}

# How a reader knows each format we can tell, accepted or not.
NAMES = {
    "image/png": "a PNG file",
    "image/jpeg": "a JPEG file",
    "image/gif": "a GIF file",
    "image/webp": "a WebP file",
    "image/svg+xml": "an SVG file",
    "image/bmp": "a BMP file",
    "image/tiff": "a TIFF file",
    "image/heic": "a HEIC file",
    "image/avif": "an AVIF file",
    "image/x-icon": "an ICO file",
    "application/pdf": "a PDF file",
    "text/html": "an HTML page",
}

# How much of a file `sniff` needs to see.
HEAD_BYTES = 1024

_PREFIXES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"II+\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"MM\x00+", "image/tiff"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"%PDF-", "application/pdf"),
)
_HEIF_BRANDS = {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"}
_AVIF_BRANDS = {b"avif", b"avis"}


def sniff(head: bytes) -> str | None:
    """The MIME type that the first bytes show, or None where they show none we know."""
    for prefix, mime in _PREFIXES:
        if head.startswith(prefix):
            return mime
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    # Two letters alone are too little: a bitmap also has four reserved zero bytes.
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "image/bmp"
    return _sniff_heif(head) or _sniff_markup(head[:HEAD_BYTES])


def webp_canvas(head: bytes) -> tuple[int, int] | None:
    """Width and height from a WebP header, or None where the header is damaged.

    Pillow's decoder allocates the whole canvas when it opens a file, so the size has to be known
    before that.
    """
    kind = head[12:16]
    if len(head) < 30:
        return None
    if kind == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    if kind == b"VP8L" and head[20] == 0x2F:
        packed = _little(head, 21, 4)
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    return None


def _little(head: bytes, start: int, size: int) -> int:
    return int.from_bytes(head[start : start + size], "little")


def _sniff_heif(head: bytes) -> str | None:
    if head[4:8] != b"ftyp":
        return None
    box = head[8 : min(int.from_bytes(head[:4], "big"), 64)]
    brands = {box[start : start + 4] for start in range(0, len(box), 4)}
    if brands & _AVIF_BRANDS:
        return "image/avif"
    return "image/heic" if brands & _HEIF_BRANDS else None


def _sniff_markup(head: bytes) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not text.startswith(b"<"):
        return None
    if text.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return "image/svg+xml" if b"<svg" in text else None
