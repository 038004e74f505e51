"""The first bytes of a file -> its format; file names and extensions are ignored."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Literal

import msgspec


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A format that the first bytes identify.

    ``name`` is how the setting ``images.accept`` spells it, and ``label`` how a sentence does.
    ``decoder`` is the function that opens it, as ``module:name`` within `decoders`; a format
    without one is never accepted. ``extra`` is the extra of limner that installs the decoder's
    library. ``needs_threads`` says that the library starts threads of its own.
    """

    name: str
    mime: str
    label: str
    decoder: str | None = None
    extra: str | None = None
    needs_threads: bool = False

    @property
    def title(self) -> str:
        """The label without its article and noun, for lists: PNG, WebP."""
        return self.label.split()[1]


_FORMATS = (
    Format(name="png", mime="image/png", label="a PNG file", decoder="raster:png"),
    Format(name="jpeg", mime="image/jpeg", label="a JPEG file", decoder="raster:jpeg"),
    Format(name="gif", mime="image/gif", label="a GIF file", decoder="raster:gif"),
    Format(name="webp", mime="image/webp", label="a WebP file", decoder="raster:webp"),
    Format(name="avif", mime="image/avif", label="an AVIF file", decoder="avif:avif"),
    Format(name="bmp", mime="image/bmp", label="a BMP file", decoder="raster:bmp"),
    Format(
        name="heic",
        mime="image/heic",
        label="a HEIC file",
        decoder="heif:heic",
        extra="heic",
        needs_threads=True,
    ),
    Format(name="ico", mime="image/x-icon", label="an ICO file", decoder="raster:ico"),
    Format(name="pdf", mime="application/pdf", label="a PDF file", decoder="pdf:pdf", extra="pdf"),
    Format(name="svg", mime="image/svg+xml", label="an SVG file", decoder="svg:svg"),
    Format(name="tiff", mime="image/tiff", label="a TIFF file", decoder="tiff:tiff"),
    Format(name="html", mime="text/html", label="an HTML page"),
)

BY_NAME = {form.name: form for form in _FORMATS}
BY_MIME = {form.mime: form for form in _FORMATS}

# The suffixes of picture files.
PICTURE_SUFFIXES = frozenset(
    (
        *(".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".webp", ".avif", ".bmp"),
        *(".dib", ".heic", ".heif", ".ico", ".jxl", ".svg", ".tif", ".tiff"),
    )
)

# The formats that pictures can be converted to.
OutputFormat = Literal["png", "jpeg", "webp"]
# Services send these, so no setting can turn them off.
ALWAYS_ACCEPTED = ("png", "jpeg", "gif", "webp")

# How much of a file `sniff` may need: an SVG document can begin with a long comment.
HEAD_BYTES = 256 * 1024

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PREFIXES = (
    (PNG_SIGNATURE, "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\x00", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"\x00\x00\x01\x00", "ico"),
    (b"%PDF-", "pdf"),
)
_HEIF_BRANDS = frozenset(
    (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1")
)
_AVIF_BRANDS = frozenset((b"avif", b"avis"))
_MAX_BRANDS_BYTES = 256

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# One piece of what may come before the root element; a document type may hold declarations.
# `re` compiles both when a file may be markup, which few are.
_PROLOG_PIECE = r"(?si)\s+|<\?.*?\?>|<!--.*?-->|<!doctype(?!\s+html)[^<>\[]*(?:\[.*?\]\s*)?>"
_ROOT = r"(?i)<(?:!doctype\s+)?(?:[\w.-]+:)?([a-z][\w.-]*)(?=[\s/>])"


def accepted_formats(names: Iterable[str]) -> tuple[str, ...]:
    """The formats that are always accepted and these, each once.

    Raises:
        ValueError: a name is not one of a format that can be accepted.
    """
    wanted = dict.fromkeys((*ALWAYS_ACCEPTED, *sorted(names)))
    for name in wanted:
        if name not in BY_NAME or BY_NAME[name].decoder is None:
            raise ValueError(f"no such format: {name!r}")
    return tuple(wanted)


def sniff(head: bytes) -> Format | None:
    """The format of a file by its first bytes; None if they match no known format."""
    name = _sniff_magic(head) or _sniff_heif(head) or _sniff_markup(head)
    return None if name is None else BY_NAME[name]


def _sniff_magic(head: bytes) -> str | None:
    for prefix, name in _PREFIXES:
        if head.startswith(prefix):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    # Two letters alone are too little: a bitmap also has four reserved zero bytes.
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "bmp"
    return None


def _sniff_heif(head: bytes) -> str | None:
    if head[4:8] != b"ftyp":
        return None
    box = head[8 : min(int.from_bytes(head[:4], "big"), _MAX_BRANDS_BYTES)]
    # The second word is a version, not a brand.
    brands = {box[start : start + 4] for start in range(0, len(box), 4) if start != 4}
    if brands & _AVIF_BRANDS:
        return "avif"
    return "heic" if brands & _HEIF_BRANDS else None


def _sniff_markup(head: bytes) -> str | None:
    tag = root_tag(head[:HEAD_BYTES])
    return tag if tag in {"svg", "html"} else None


def root_tag(head: bytes) -> str | None:
    """The name of the root element in lower case and without prefix; None if there is none.

    A page that declares itself ``<!doctype html>`` counts as ``html`` whatever follows.
    """
    text = _decode_markup(head)
    root = re.compile(_ROOT).match(text, root_start(text))
    return None if root is None else root[1].lower()


def root_start(text: str) -> int:
    """Where the root element begins: after declarations, comments, instructions and white space."""
    start, prolog_piece = 0, re.compile(_PROLOG_PIECE)
    while piece := prolog_piece.match(text, start):
        start = piece.end()
    return start


def _decode_markup(head: bytes) -> str:
    """The head as text, to find markup only, which is ASCII in every encoding but UTF-16."""
    if head.startswith(_UTF16):
        return head.decode("utf-16", errors="replace")
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return head.decode("latin-1") if head.startswith(b"<") else ""


def webp_canvas(head: bytes) -> tuple[int, int] | None:
    """Width and height from a WebP header; None if the header is damaged.

    Pillow's decoder allocates the whole canvas when it opens a file, so the size has to be known
    before that.
    """
    kind = head[12:16]
    if len(head) < 30:
        return None
    if kind == b"VP8X":
        return _little_endian(head, 24, 3) + 1, _little_endian(head, 27, 3) + 1
    if kind == b"VP8L" and head[20] == 0x2F:
        packed = _little_endian(head, 21, 4)
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return _little_endian(head, 26, 2) & 0x3FFF, _little_endian(head, 28, 2) & 0x3FFF
    return None


def _little_endian(head: bytes, start: int, size: int) -> int:
    return int.from_bytes(head[start : start + size], "little")
