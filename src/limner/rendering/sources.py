"""The text of a source, in any format that limner renders -> an SVG document with its size.

The host only chooses the format. A worker process parses the source and draws it, because a
hostile source can keep a process busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from limner.errors import CorruptImage, ImageError, ImageTooLarge, InputInvalid
from limner.imaging.limits import WorkerLimits

# Every list of tools loads this module, and few programs render anything.
if TYPE_CHECKING:
    from limner.imaging.pool import Imaging
    from limner.rendering.document import RenderedDocument
    from limner.rendering.elements import Document

SourceFormat = Literal["limner", "svg", "dot", "mermaid"]
Size = tuple[int, int]
Compiler = Callable[[str, Size | None, WorkerLimits], "RenderedDocument"]
"""Turns a source into SVG, at a size or at its own. It runs in a worker."""

WORKER = "limner.rendering.worker"
MAX_SOURCE_BYTES = 1_000_000
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
    source: str, *, kind: SourceFormat | None, size: Size | None, imaging: Imaging
) -> CompiledSource:
    """Compile a source to SVG in a worker. Without a size the document decides it.

    Raises:
        InputInvalid: the source is too large, or not what its format says; the message says where.
        ImageError: it is SVG that cannot be drawn, or the worker was stopped.
    """
    payload = source.encode(errors="surrogatepass")
    if len(payload) > MAX_SOURCE_BYTES:
        raise InputInvalid(f"source has more than {MAX_SOURCE_BYTES:,} bytes", field="source")
    kind = kind or detect_format(source)
    try:
        reply = await imaging.run(
            "compile", payload, format=kind, size=size, subject="the document"
        )
        return msgspec.json.decode(reply, type=CompiledSource)
    except msgspec.DecodeError:
        raise CorruptImage("the document confused its compiler") from None
    except ImageError as error:
        error.untrusted = False  # the caller wrote the document that the message quotes
        if isinstance(error, ImageTooLarge) and error.hint is None:
            error.hint = "Make the document smaller: fewer elements, rows, nodes or words."
        raise


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


def _compile_json(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.document import draw_document, parse_document  # noqa: PLC0415

    return draw_document(parse_document(source), size)


def _compile_svg(source: str, size: Size | None, limits: WorkerLimits) -> RenderedDocument:
    from limner.rendering.svg_source import measure_source  # noqa: PLC0415 - loaded on first use

    return measure_source(source, size, limits)


def _compile_dot(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.dot import parse_dot  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_dot(source), size)


def _compile_mermaid(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.mermaid import parse_mermaid  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_mermaid(source), size)


def _draw_parsed(document: Document, notes: list[str], size: Size | None) -> RenderedDocument:
    from limner.rendering.document import draw_document  # noqa: PLC0415 - loaded on first use

    drawn = draw_document(document, size)
    return msgspec.structs.replace(drawn, notes=(*notes, *drawn.notes))


COMPILERS: Mapping[SourceFormat, Compiler] = {
    "limner": _compile_json,
    "svg": _compile_svg,
    "dot": _compile_dot,
    "mermaid": _compile_mermaid,
}
