"""The text of a source, in any format that limner renders -> an SVG document with its size."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from limner.errors import InputInvalid
from limner.imaging.fonts import FONTS, replaced_family, style_for
from limner.imaging.svg import SvgFacts

# Every list of tools loads this module, and few programs render anything.
if TYPE_CHECKING:
    from limner.rendering.document import RenderedDocument
    from limner.rendering.elements import Document

SourceFormat = Literal["limner", "svg", "dot", "mermaid"]
Size = tuple[int, int]
MeasureSvg = Callable[[str], Awaitable[SvgFacts]]
"""Parses an SVG document in a worker, and says how large it is and which fonts it names."""

MAX_SOURCE_BYTES = 1_000_000
_MAX_LISTED = 12
_MERMAID = re.compile(
    r"(?:---|flowchart|graph|sequenceDiagram|classDiagram|stateDiagram|pie|timeline|mindmap)\b"
)
_COMMENTS = ("//", "#", "%%")
_FORMATS = 'SVG, DOT, Mermaid, or the JSON of limner with a "type"'
_DOT = re.compile(
    r"(?:strict\s{1,9})?(?:di)?graph\b\s{0,9}(?:\w{1,99}|\"[^\"\n]{0,99}\")?\s{0,9}\{",
    re.IGNORECASE,
)


class CompiledSource(msgspec.Struct, frozen=True, kw_only=True):
    """A document that can be drawn, the format it was written in, and notes for its author."""

    format: SourceFormat
    svg: str
    width: int
    height: int
    notes: tuple[str, ...] = ()


async def compile_source(
    source: str,
    *,
    kind: SourceFormat | None,
    size: Size | None,
    measure_svg: MeasureSvg,
) -> CompiledSource:
    """Compile a source to SVG. Without a size the document decides it.

    Raises:
        InputInvalid: the source is too large, or not what its format says; the message says where.
        ImageError: it is SVG that cannot be drawn.
    """
    if len(source.encode(errors="surrogatepass")) > MAX_SOURCE_BYTES:
        raise InputInvalid(f"source has more than {MAX_SOURCE_BYTES:,} bytes", field="source")
    kind = kind or detect_format(source)
    if kind == "svg":
        facts = await measure_svg(source)
        return CompiledSource(
            format=kind,
            svg=source,
            width=size[0] if size else facts.width,
            height=size[1] if size else facts.height,
            notes=tuple(_font_notes(facts)),
        )
    drawn = await asyncio.to_thread(_DRAWERS[kind], source, size)
    return CompiledSource(
        format=kind, svg=drawn.svg, width=drawn.width, height=drawn.height, notes=drawn.notes
    )


def detect_format(source: str) -> SourceFormat:
    """The format of a source, by how it starts.

    Raises:
        InputInvalid: it starts like none of them.
    """
    text = source.lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        return "svg"
    if text.startswith("{"):
        return "limner"
    start = _after_comments(text)
    if _DOT.match(text, start):
        return "dot"
    if _MERMAID.match(text, start):
        return "mermaid"
    raise InputInvalid(
        f"the source starts with {text[:40]!r}, which is no format that limner renders",
        field="source",
        hint=f"Write {_FORMATS}; or say which format it is.",
    )


def _after_comments(text: str) -> int:
    """Where the first line starts that is neither blank nor a comment."""
    start = 0
    for line in text.splitlines(keepends=True):
        plain = line.strip()
        if plain and not plain.startswith(_COMMENTS):
            return start + line.index(plain)
        start += len(line)
    return start


def _draw_json(source: str, size: Size | None) -> RenderedDocument:
    from limner.rendering.document import draw_document, parse_document  # noqa: PLC0415

    return draw_document(parse_document(source), size)


def _draw_dot(source: str, size: Size | None) -> RenderedDocument:
    from limner.rendering.dot import parse_dot  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_dot(source), size)


def _draw_mermaid(source: str, size: Size | None) -> RenderedDocument:
    from limner.rendering.mermaid import parse_mermaid  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_mermaid(source), size)


def _draw_parsed(document: Document, notes: list[str], size: Size | None) -> RenderedDocument:
    from limner.rendering.document import draw_document  # noqa: PLC0415 - loaded on first use

    drawn = draw_document(document, size)
    return msgspec.structs.replace(drawn, notes=(*notes, *drawn.notes))


_DRAWERS: Mapping[SourceFormat, Callable[[str, Size | None], RenderedDocument]] = {
    "limner": _draw_json,
    "dot": _draw_dot,
    "mermaid": _draw_mermaid,
}


def _font_notes(facts: SvgFacts) -> list[str]:
    from limner.rendering.text import missing_characters  # noqa: PLC0415 - loaded on first use

    notes = [
        f"{name} is not bundled; the text is set in {FONTS[style_for(families)].family}."
        for families in facts.families[:_MAX_LISTED]
        if (name := replaced_family(families))
    ]
    if missing := missing_characters(re.sub(r"\s", "", facts.text)):
        notes.append(f"No bundled font has these characters: {missing[:60]}")
    return list(dict.fromkeys(notes))
