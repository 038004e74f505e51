"""A document in limner's own JSON -> SVG at a size of its own or a given one."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from difflib import get_close_matches
from typing import Any, cast

import msgspec

from limner.errors import InputInvalid
from limner.rendering.brush import Brush, Rect, Style
from limner.rendering.canvas import Canvas, RenderedDocument, mix
from limner.rendering.colours import THEMES, contrast, parse_colour, readable_on
from limner.rendering.document_reader import TYPES, understand
from limner.rendering.elements import (
    Chart,
    CommitGraph,
    Container,
    Diagram,
    Document,
    Page,
    QrCode,
    SequenceDiagram,
    StepList,
    Timeline,
)
from limner.rendering.layout import draw_page, fits, ground_colours, measure
from limner.rendering.spellings import LOOKS
from limner.rendering.text import missing_note

# Text of this size fills about 38 x 38 lines and characters of a square picture.
_TEXT_SHARE = 38.0
# From the largest text to the smallest.
_SCALES = [0.93**step for step in range(16)]
# More than this is no picture for a reader, and would take long.
MAX_CHARS = 100_000
MAX_ELEMENTS = 2_000
MAX_DEPTH = 24
_TOO_DEEP = f"rows, columns and cards are more than {MAX_DEPTH} deep"
DEFAULT_EDGE = 1024
MAX_EDGE = 4096
_LARGE_EDGE = 1800
# The place of a wrong value in a message of msgspec, and the parts of such a place.
_WRONG_FIELD = re.compile(r" - at `(\$.*)\.(\w+)(?:\[\.\.\.\]|\[\d+\])*`$")
_PATH_PART = re.compile(r"\.(\w+)|\[(\d+)\]")
_MAX_WRONG_FIELDS = 20


def parse_document(source: str) -> tuple[Document, list[str]]:
    """Parse and check a document; returns it, and notes on what was ignored in it.

    Raises:
        InputInvalid: it is not JSON, or not a document; the message says where.
    """
    try:
        understood = understand(msgspec.json.decode(source))
        notes = [*understood.notes]
        document = cast("Document", _convert(understood.element, Document, notes))
        if understood.page and not isinstance(document, Page):
            around: dict[str, object] = {"type": "page", "children": [], **understood.page}
            page = cast("Page", _convert(around, Page, notes))
            document = msgspec.structs.replace(page, children=[document])
        return document, notes
    except msgspec.ValidationError as error:
        raise _explain(error) from error
    except RecursionError as error:
        raise InputInvalid(_TOO_DEEP, field="source") from error
    except msgspec.DecodeError as error:
        raise InputInvalid(syntax_error(source), field="source") from error


def _convert(value: object, kind: Any, notes: list[str]) -> object:
    """A value as elements; a field that only says how something looks is ignored if it is wrong."""
    for _ in range(_MAX_WRONG_FIELDS):
        try:
            return msgspec.convert(value, type=kind)
        except msgspec.ValidationError as error:
            place = _WRONG_FIELD.search(str(error))
            if place is None or not _remove_field(value, place[1], place[2]):
                raise
            notes.append(f"Ignored: {place[2]}, because it is wrong: {error}.")
    return msgspec.convert(value, type=kind)


def _remove_field(value: object, path: str, name: str) -> bool:
    """Remove a field that may be removed, at a path as ``$.children[0]``."""
    here: Any = value
    for key, number in _PATH_PART.findall(path):
        here = here[key] if key else here[int(number)]
    if name not in LOOKS or not isinstance(here, dict) or name not in here:
        return False
    del cast("dict[str, object]", here)[name]
    return True


def draw_document(
    document: Document, size: tuple[int, int] | None = None, *, largest_text: float = 1.0
) -> RenderedDocument:
    """Draw a document. Its own size counts if none is given.

    A document with little content may have larger text than usual, up to ``largest_text`` times.

    Raises:
        InputInvalid: it is too much for one picture, or an element of it is wrong.
    """
    page = document if isinstance(document, Page) else Page(children=[document])
    _check_amount(page)
    texts = "".join(_words(msgspec.to_builtins(page)))
    if len(texts) > MAX_CHARS:
        raise InputInvalid(
            f"the document has more than {MAX_CHARS:,} characters of text", field="source"
        )
    theme = THEMES[page.theme]
    colors = ground_colours(page) or [theme.background]
    ink = parse_colour(page.color) if page.color else theme.ink
    if not page.color and contrast(ink, colors[-1]) < 4.5:
        ink = readable_on(colors[-1])
    if page.background is not None:
        theme = msgspec.structs.replace(
            theme, background=colors[-1], muted=mix(ink, colors[-1], 0.3)
        )
    style = Style(theme=theme, base=1.0, font=page.font, ink=ink)
    width, height = size or _own_size(page, style)
    brush = _fitting_brush(page, style, width, height, largest_text)
    box = Rect(0, 0, width, height)
    fill = brush.canvas.fade(*colors) if len(colors) > 1 else colors[0]
    brush.canvas.rect(*box, fill)
    if page.border:
        edge = brush.style.base * 0.5
        color = parse_colour(page.border, field="border")
        brush.canvas.rect(
            *box.inset(edge), "none", stroke=color, stroke_width=f"{edge / 2:.1f}", rx=f"{edge:.1f}"
        )
    draw_page(page, brush, box)
    brush.notes.extend(missing_note(texts))
    return RenderedDocument(
        svg=brush.canvas.document(), width=width, height=height, notes=tuple(brush.notes)
    )


def _own_size(page: Page, style: Style) -> tuple[int, int]:
    if page.size:
        across, down = page.size.lower().split("x")
        return _within(int(across)), _within(int(down))
    if len(page.children) != 1 or isinstance(page.children[0], QrCode):
        return DEFAULT_EDGE, DEFAULT_EDGE
    only = page.children[0]
    if isinstance(only, Chart):
        return DEFAULT_EDGE, 768
    if isinstance(only, StepList) or (isinstance(only, Timeline) and len(only.events) <= 8):
        return 1600, 640
    # A diagram is as large as it needs to be; a large one has smaller text.
    bases, limit = (
        ((26.0, 21.0, 17.0, 14.0), MAX_EDGE)
        if isinstance(only, Diagram | SequenceDiagram | CommitGraph)
        else ((26.0,), DEFAULT_EDGE)
    )
    wide = high = 0.0
    for base in bases:
        sized = msgspec.structs.replace(style, base=base)
        brush = Brush(canvas=Canvas(1, 1), style=sized, notes=[])
        wide, high = (edge + 3.2 * base for edge in measure(only, brush, limit - 3.2 * base))
        if max(wide, high) <= _LARGE_EDGE:
            break
    return _within(math.ceil(wide)), _within(math.ceil(high))


def _within(edge: int) -> int:
    return max(64, min(edge, MAX_EDGE))


def _fitting_brush(page: Page, style: Style, width: int, height: int, largest: float) -> Brush:
    """A brush whose text is as large as the page has room for."""
    canvas, notes = Canvas(width, height), list[str]()
    box = Rect(0, 0, width, height)
    base = math.sqrt(width * height) / _TEXT_SHARE * largest

    def brush_for(scale: float) -> Brush:
        sized = msgspec.structs.replace(style, base=base * scale)
        return Brush(canvas=canvas, style=sized, notes=notes)

    step = bisect_left(_SCALES, True, key=lambda scale: fits(page, brush_for(scale), box))
    if step == len(_SCALES):
        notes.append("The content is larger than the picture; give it a larger size.")
    return brush_for(_SCALES[min(step, len(_SCALES) - 1)])


def _check_amount(page: Page) -> None:
    """Refuse what is too much for one picture.

    Raises:
        InputInvalid: too many elements, too deep, or too much text.
    """
    count, level = 0, list[Container]([page])
    for depth in range(MAX_DEPTH + 1):
        children = [child for container in level for child in container.children]
        count += len(children)
        if count > MAX_ELEMENTS:
            raise InputInvalid(
                f"the document has more than {MAX_ELEMENTS:,} elements", field="source"
            )
        level = [child for child in children if isinstance(child, Container)]
        if not level:
            break
        if depth == MAX_DEPTH:
            raise InputInvalid(_TOO_DEEP, field="source")


def _words(value: Any) -> list[str]:
    """Every text in a document."""
    if isinstance(value, str):
        return [value]
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, (list, tuple)):
        parts = list(cast("list[Any]", value))
    return [word for part in parts for word in _words(part)]


def _explain(error: msgspec.ValidationError) -> InputInvalid:
    """The message of msgspec, with the nearest word that would have been right."""
    text = str(error)
    hint = None
    if "Invalid value '" in text and ".type`" in text:
        wrong = text.split("'")[1]
        near = get_close_matches(wrong, TYPES, n=2)
        listed = f"The types are {', '.join(TYPES)}. Vega-Lite draws any other chart."
        hint = f"Did you mean {near[0]}? {listed}" if near else listed
    elif "missing required field `type`" in text:
        hint = f"Give each element a type: {', '.join(TYPES)}."
    return InputInvalid(text, field="source", hint=hint)


def syntax_error(source: str) -> str:
    """What is wrong with a text that is not JSON, and in which line."""
    try:
        json.loads(source)
    except ValueError as error:
        return f"the JSON is broken: {error}"
    return "the JSON is broken"
