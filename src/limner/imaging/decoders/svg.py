"""SVG bytes -> an opened picture of the drawing, by our own rules for what may be drawn."""

from __future__ import annotations

import codecs
import re
from io import BytesIO

from PIL import Image

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import root_start
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels
from limner.imaging.svg.renderer import render_alone

_ENCODING = re.compile(rb"<\?xml\s[^<>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_SINGLE_BYTE = frozenset({"us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252"})
# A document type that declares nothing: many editors and plotters write one.
_BARE_DOCTYPE = re.compile(r"<!DOCTYPE[^<>\[\]]*>")


def svg(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:  # noqa: ARG001 - the shape of every reader
    """Draw a file that stands alone, at the size it gives itself.

    Raises:
        UnsafeSvg: it asks for more than drawing.
        ImageTooLarge: it is over a limit.
        CorruptImage: it is not an SVG document.
    """
    if len(data) > 2 * limits.max_svg_bytes:
        raise ImageTooLarge(f"the SVG document has more than {limits.max_svg_bytes:,} bytes")
    document = _text(data)
    start = root_start(document)
    prolog = _BARE_DOCTYPE.sub("", document[:start])
    drawn = Image.open(BytesIO(render_alone(prolog + document[start:], limits)), formats=["PNG"])
    check_pixels(drawn.size, max_pixels=limits.max_pixels)
    return OpenedPicture(image=drawn)


def _text(data: bytes) -> str:
    """The document as text: by its byte order mark, by what it declares, or as UTF-8."""
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
