"""PDF bytes -> a page drawn on white, with the extra ``limner[pdf]``.

PDFium is built without a script engine and follows no link, so no code of a document runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from PIL import Image

from limner.errors import CorruptImage
from limner.imaging.decoders import OpenedPicture, check_page
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels

# It has no types.
_pdfium: Any = import_module("pypdfium2")

# 216 dots per inch show small print; larger sheets are drawn with fewer.
_PIXELS_PER_POINT = 3.0
MAX_EDGE = 2576


def pdf(data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
    """Draw one page with its annotations and filled-in form fields.

    Raises:
        CorruptImage: the file does not open, or does not have that page.
    """
    with _document(data) as document:
        # This must be the first call on the document, else form fields stay empty.
        document.init_forms()
        pages = len(document)
        check_page(page, pages)
        return OpenedPicture(image=_draw(document[page - 1], limits), pages=pages)


def _document(data: bytes) -> Any:
    try:
        return _pdfium.PdfDocument(data)
    except _pdfium.PdfiumError as error:
        if error.err_code == _pdfium.raw.FPDF_ERR_PASSWORD:
            hint = "Save a copy without the password."
            raise CorruptImage("the PDF file needs a password", hint=hint) from None
        raise CorruptImage("the PDF file is damaged") from None


def _draw(sheet: Any, limits: WorkerLimits) -> Image.Image:
    width, height = sheet.get_size()
    # The drawing is rounded up to whole pixels.
    scale = min(_PIXELS_PER_POINT, (MAX_EDGE - 0.5) / max(width, height))
    check_pixels((int(width * scale) + 1, int(height * scale) + 1), max_pixels=limits.max_pixels)
    return sheet.render(scale=scale, rev_byteorder=True).to_pil()
