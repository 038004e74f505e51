"""SVG bytes -> an opened picture of the drawing, under the rules of ``imaging.svg``."""

from __future__ import annotations

import codecs
import re
from io import BytesIO

from PIL import Image

from limner.errors import CorruptImage, ImageTooLarge, UnsafeSvg
from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import root_start
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels
from limner.imaging.svg.parser import SVG_NAMESPACE
from limner.imaging.svg.renderer import render_at_natural_size
from limner.imaging.svg.rules import ATTRIBUTES, DRAWN, DROPPED, REASONS

_ENCODING = re.compile(rb"<\?xml\s[^<>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_SINGLE_BYTE = frozenset({"us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252"})
# A document type without declarations: many editors and plotters write one.
# What a refusal may contain of a document: quoted values, names of elements, rules of CSS.
_WORDS = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|<(?P<mark>[?!]?)(?P<tag>[^\s<>?]+)"""
    r"|@(?P<at_rule>[\w-]*)"
)
_OWN_NAMES = {"#id", "xml-stylesheet", "DOCTYPE", "svg", SVG_NAMESPACE}
_OWN_WORDS = ATTRIBUTES | DRAWN | DROPPED | REASONS.keys() | _OWN_NAMES
_AT_RULES = frozenset({"import", "charset", "font-face", "media", "namespace", "keyframes"})
_BARE_DOCTYPE = re.compile(r"<!DOCTYPE[^<>\[\]]*>")


def svg(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - every decoder has this signature
    """Draw an SVG file at its own size.

    Raises:
        UnsafeSvg: the document contains something that is not allowed.
        ImageTooLarge: it is over a limit.
        CorruptImage: it is not an SVG document.
    """
    if len(data) > 2 * limits.max_svg_bytes:
        raise ImageTooLarge(f"the SVG document has more than {limits.max_svg_bytes:,} bytes")
    document = _text(data)
    start = root_start(document)
    prolog = _BARE_DOCTYPE.sub("", document[:start])
    try:
        png = render_at_natural_size(prolog + document[start:], limits)
    except (UnsafeSvg, CorruptImage) as error:
        raise type(error)(without_free_text(error.message), hint=error.hint) from None
    drawn = Image.open(BytesIO(png), formats=["PNG"])
    check_pixels(drawn.size, max_pixels=limits.max_pixels)
    return OpenedPicture(image=drawn)


def without_free_text(message: str) -> str:
    """A refusal without the words of the document: only names of the SVG language stay."""

    def keep(match: re.Match[str]) -> str:
        quoted, tag, at_rule = match["quoted"], match["tag"], match["at_rule"]
        if quoted is not None:
            return match[0] if quoted[1:-1] in _OWN_WORDS else "'…'"
        if tag is not None:
            return match[0] if tag in _OWN_WORDS else f"<{match['mark'] or ''}…"
        return match[0] if at_rule in _AT_RULES else "@…"

    return _WORDS.sub(keep, message)


def _text(data: bytes) -> str:
    """Decode the document by its byte order mark, by the encoding it declares, or as UTF-8."""
    declared = _ENCODING.match(data.lstrip())
    encoding = declared[1].decode().lower() if declared else "utf-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif encoding not in _SINGLE_BYTE:
        encoding = "utf-8"
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode(encoding)
    except UnicodeDecodeError:
        raise CorruptImage(f"the SVG document is not written in {encoding}") from None
