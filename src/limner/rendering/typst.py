"""A Typst document -> SVG of its first page, by the Typst compiler in a process of its own.

Started by `imaging.process` as ``python -P -m limner.rendering.typst LIMITS``. Typst computes on
several threads, which must start before the sandbox. It draws letters as outlines, so the SVG
looks the same everywhere.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from limner.errors import InputInvalid
from limner.imaging.fonts import FOLDER, FONTS, cjk_family, cjk_font
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import TYPST
from limner.imaging.worker import JobTable, serve
from limner.rendering.canvas import RenderedDocument
from limner.rendering.document import DEFAULT_EDGE
from limner.rendering.svg_source import measure_source
from limner.rendering.text import missing_note

# A page without a size of its own is so wide, in points, and as high as its content.
_PAGE_WIDTH = 480
_MARGIN = 24
# A package is fetched through this proxy, which does not exist, if the system has no sandbox.
_NO_PROXY = "http://127.0.0.1:9"
_POSITION = re.compile(r"\.typ:(\d+):\d+\n")
_PATHS = re.compile(r" \((?:searched at|https?:)[^)]*\)?")
# A picture has no links. The letters of a page are outlines, so this matches no text.
_LINK = re.compile(r"</?a\b[^>]*>")
_MAX_WARNINGS = 6


def main() -> None:
    """Run jobs until stdin closes."""
    serve(TYPST, load=load_library, prepare=prepare)


def load_library(limits: WorkerLimits) -> None:  # noqa: ARG001 - every worker has this signature
    """Load the native library."""
    os.environ.update(dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), _NO_PROXY))
    import_module("typst")


def prepare(limits: WorkerLimits) -> JobTable:
    """Draw a first page: it starts the threads, which the sandbox would not allow."""
    from limner.rendering.worker import compile_job  # noqa: PLC0415 - it loads this module

    compile_job({"format": "typst", "size": None}, b"= A $x^2$", limits)
    return {"compile": compile_job}


def compile_page(
    source: str, size: tuple[int, int] | None, limits: WorkerLimits
) -> RenderedDocument:
    """Draw the first page. Its own size counts if none is given.

    Raises:
        InputInvalid: Typst refuses the document; the message says the line.
        ImageError: the drawing is over a limit.
    """
    width, height = size or (1, 0)
    high = f"{_PAGE_WIDTH * height / width:.2f}pt" if height else "auto"
    families = [FONTS["sans"].family, *([cjk_family(source)] if cjk_font() else ())]
    # The document may overrule them.
    defaults = (
        f"#set page(width: {_PAGE_WIDTH}pt, height: {high}, margin: {_MARGIN}pt); "
        f"#set text(font: ({', '.join(map(json.dumps, families))},))\n"
    )
    typst: Any = import_module("typst")
    text = (defaults + source).encode(errors="replace")
    try:
        pages, warnings = _compiler().compile_with_warnings(input=text, format="svg")
    except typst.TypstError as error:
        raise _explain(error) from None
    notes = [f"Typst: {warning.message[:200]}" for warning in warnings[:_MAX_WARNINGS]]
    count = 1 if isinstance(pages, bytes) else len(pages)
    if count > 1:
        notes.append(
            f"The document has {count} pages, and the picture shows the first. "
            "`#set page(height: auto)` makes one long page."
        )
    first: bytes = pages if isinstance(pages, bytes) else pages[0]
    notes += missing_note("".join(filter(str.isalpha, source)))
    drawn = measure_source(_LINK.sub("", first.decode()), size, limits, min_edge=DEFAULT_EDGE)
    return replace(drawn, notes=(*notes, *drawn.notes))


@cache
def _compiler() -> Any:
    typst: Any = import_module("typst")
    folders = [str(font.parent) for font in (FOLDER / "*", cjk_font()) if font]
    fonts = typst.Fonts(include_system_fonts=False, font_paths=folders)
    # Typst reads no file outside of its root, and it needs one.
    return typst.Compiler(b"", root=str(FOLDER), font_paths=fonts)


def _explain(error: Any) -> InputInvalid:
    """An error of Typst with its line; paths of this machine are of no use to an author."""
    message: str = _PATHS.sub("", error.message)
    hints: list[str] = [*error.hints]
    if "package" in message:
        message = "packages cannot be loaded"
        hints = ["Write what you need into the document; it must not import @preview."]
    elif any(words in message for words in ("file not found", "load file", "project root")):
        message = "files cannot be read"
        hints = ["Write the data into the document; draw pictures with shapes."]
    found = _POSITION.search(error.diagnostic)
    where = f"line {int(found[1]) - 1}: " if found else ""  # the defaults are line 1
    return InputInvalid(f"{where}{message}", field="source", hint=" ".join(hints) or None)


if __name__ == "__main__":
    main()
