"""The text of a source, in any format that limner renders -> an SVG document with its size.

The host only chooses the format. A worker process parses the source and draws it, because a
hostile source can keep a process busy for minutes. `FORMATS` is the table of all formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from limner.errors import CorruptImage, ImageError, ImageTooLarge, InputInvalid, MissingExtra
from limner.imaging.limits import WorkerLimits
from limner.imaging.process import RENDERING_WORKER

# Every list of tools loads this module, and few programs render anything.
if TYPE_CHECKING:
    from limner.imaging.pool import Imaging
    from limner.rendering.canvas import RenderedDocument
    from limner.rendering.elements import Document

SourceFormat = Literal["limner", "svg", "dot", "mermaid", "vega-lite", "typst"]
Size = tuple[int, int]

MAX_SOURCE_BYTES = 1_000_000
_MERMAID = re.compile(
    r"---\s*\n|(?:flowchart|graph|sequenceDiagram|classDiagram|stateDiagram|erDiagram|gantt|pie"
    r"|xychart|quadrantChart|timeline|mindmap|gitGraph|journey|kanban|sankey|C4[A-Z][a-z]+|block|packet"
    r"|architecture|requirementDiagram|radar|treemap|zenuml)\b"
)
_COMMENTS = ("//", "#", "%%")
_TYPST = re.compile(
    r"#(?:set|show|let|import|align|table|grid|text|heading|figure|rect|block|box|stack|place)\b"
    r"|={1,6} |\$ "
)
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


class FormatSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A format that limner renders.

    ``starts`` tells an author how a source starts, and ``matches`` whether a text is such a source.
    ``compile`` turns a source into SVG, at a size or at its own; it runs in the worker ``program``.
    ``package`` is the library that the extra ``extra`` installs. ``help`` is a part of the help on
    ``topic``.
    """

    title: str
    starts: str
    matches: Callable[[str], bool]
    compile: Callable[[str, Size | None, WorkerLimits], RenderedDocument]
    program: str = RENDERING_WORKER
    extra: str | None = None
    package: str = "limner"
    topic: str = "formats"
    help: str = ""


async def compile_source(
    source: str, *, kind: SourceFormat | None, size: Size | None, imaging: Imaging
) -> CompiledSource:
    """Compile a source to SVG in a worker. Without a size the document decides it.

    Raises:
        InputInvalid: the source is too large, or not what its format says; the message says where.
        MissingExtra: the format needs a package that is not installed; the hint is the command.
        ImageError: it is SVG that cannot be drawn, or the worker was stopped.
    """
    payload = source.encode(errors="surrogatepass")
    if len(payload) > MAX_SOURCE_BYTES:
        raise InputInvalid(f"source has more than {MAX_SOURCE_BYTES:,} bytes", field="source")
    kind = kind or detect_format(source)
    spec = FORMATS[kind]
    if find_spec(spec.package) is None:
        install = f"pip install 'limner[{spec.extra}]'"
        raise MissingExtra(f"rendering {spec.title} needs limner[{spec.extra}]", hint=install)
    arguments = {"format": kind, "size": size, "subject": "the document"}
    try:
        reply = await imaging.run(spec.program, "compile", payload, **arguments)
        return msgspec.json.decode(reply, type=CompiledSource)
    except msgspec.DecodeError:
        raise CorruptImage("the document confused its compiler") from None
    except ImageError as error:
        error.untrusted = False  # the caller wrote the document that the message quotes
        if isinstance(error, ImageTooLarge) and error.hint is None:
            error.hint = "Make the document smaller: fewer elements, rows, nodes or words."
        raise


async def lay_out(
    document: Document, size: Size, largest_text: float, *, imaging: Imaging
) -> RenderedDocument:
    """Draw a document in a worker; its words may be those of a prompt.

    Raises:
        InputInvalid: it is too much for one picture.
        ImageError: the worker was stopped.
    """
    from limner.rendering.canvas import RenderedDocument  # noqa: PLC0415 - loaded on first use

    # A prompt may have lone surrogates, which the JSON of msgspec refuses.
    payload = json.dumps(msgspec.to_builtins(document)).encode()
    given = {"size": size, "largest_text": largest_text, "subject": "the picture of the prompt"}
    reply = await imaging.run(RENDERING_WORKER, "lay_out", payload, **given)
    return msgspec.json.decode(reply, type=RenderedDocument)


def detect_format(source: str) -> SourceFormat:
    """The format of a source, by how it starts.

    Raises:
        InputInvalid: it starts like none of them.
    """
    text = source.lstrip("\ufeff \t\r\n")
    for name, spec in FORMATS.items():
        if spec.matches(text):
            return name
    listed = "; ".join(f"{spec.title}: {spec.starts}" for spec in FORMATS.values())
    raise InputInvalid(
        f"the source starts with {text[:40]!r}, which is no format that limner renders",
        field="source",
        hint=f"Start it as one of these, or say its format. {listed}.",
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


class _Keys(msgspec.Struct, rename={"schema": "$schema"}):
    """The keys of a JSON document that tell its format."""

    schema: Any = None
    type: Any = None
    mark: Any = None
    encoding: Any = None
    layer: Any = None


_decoder = msgspec.json.Decoder(_Keys)


def _looks_like_vega_lite(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        keys = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    if keys.type is not None:
        return False
    return "vega-lite" in str(keys.schema) or bool(keys.mark and keys.encoding) or bool(keys.layer)


def _compile_json(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.document import parse_document  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_document(source), size)


def _compile_svg(source: str, size: Size | None, limits: WorkerLimits) -> RenderedDocument:
    from limner.rendering.svg_source import measure_source  # noqa: PLC0415 - loaded on first use

    return measure_source(source, size, limits)


def _compile_dot(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.dot import parse_dot  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_dot(source), size)


def _compile_mermaid(source: str, size: Size | None, _: WorkerLimits) -> RenderedDocument:
    from limner.rendering.mermaid import parse_mermaid  # noqa: PLC0415 - loaded on first use

    return _draw_parsed(*parse_mermaid(source), size)


def _compile_vega_lite(source: str, size: Size | None, limits: WorkerLimits) -> RenderedDocument:
    from limner.rendering.vega_lite import compile_spec  # noqa: PLC0415 - loaded on first use

    return compile_spec(source, size, limits)


def _compile_typst(source: str, size: Size | None, limits: WorkerLimits) -> RenderedDocument:
    from limner.rendering.typst import compile_page  # noqa: PLC0415 - loaded on first use

    return compile_page(source, size, limits)


def _draw_parsed(document: Document, notes: list[str], size: Size | None) -> RenderedDocument:
    from limner.rendering.document import draw_document  # noqa: PLC0415 - loaded on first use

    try:
        drawn = draw_document(document, size)
    except InputInvalid as error:
        # What was ignored may be what is missing.
        error.hint = " ".join([*([error.hint] if error.hint else []), *notes]) or None
        raise
    return msgspec.structs.replace(drawn, notes=(*notes, *drawn.notes))


# In the order in which a source is compared with them.
FORMATS: Mapping[SourceFormat, FormatSpec] = {
    "svg": FormatSpec(
        title="SVG",
        starts="<svg …>",
        matches=lambda text: text.startswith("<"),
        compile=_compile_svg,
    ),
    "vega-lite": FormatSpec(
        title="Vega-Lite",
        starts='{"$schema": "…vega-lite…", …} or {"mark": …, "encoding": …}',
        matches=_looks_like_vega_lite,
        compile=_compile_vega_lite,
        program="limner.rendering.vega_lite",
        extra="charts",
        package="vl_convert",
        topic="charts",
        help='Any other chart: a Vega-Lite specification with its rows inline, as {"data": '
        '{"values": [{"a": 1, "b": 2}]}, "mark": "point", "encoding": {"x": {"field": "a", '
        '"type": "quantitative"}, "y": {"field": "b", "type": "quantitative"}}}. No url.',
    ),
    "limner": FormatSpec(
        title="limner's JSON",
        starts='{"type": …}',
        matches=lambda text: text.startswith("{"),
        compile=_compile_json,
    ),
    "typst": FormatSpec(
        title="Typst",
        starts="#set …, #show …, #table(…) or = Heading",
        matches=lambda text: _TYPST.match(text) is not None,
        compile=_compile_typst,
        program="limner.rendering.typst",
        extra="typst",
        package="typst",
        topic="pages",
        help="A document may also be Typst: = Heading, *bold*, $ x^2 $, #table(columns: 2, [a], "
        "[b]), #set page(width: 12cm, height: 8cm, fill: aqua), #text(size: 30pt, fill: "
        'red)[Sale], #align(center)[…]. Fonts: "Inter", "Lora", "JetBrains Mono", "Caveat". No '
        "files, no packages.",
    ),
    "dot": FormatSpec(
        title="DOT",
        starts="digraph { a -> b }",
        matches=lambda text: _DOT.match(text, _after_comments(text)) is not None,
        compile=_compile_dot,
        topic="diagrams",
        help='A diagram may also be DOT of Graphviz: digraph { a -> b [label="yes"] }.',
    ),
    "mermaid": FormatSpec(
        title="Mermaid",
        starts="flowchart, sequenceDiagram, classDiagram, stateDiagram, erDiagram, gantt, …",
        matches=lambda text: _MERMAID.match(text, _after_comments(text)) is not None,
        compile=_compile_mermaid,
        topic="diagrams",
        help="Or Mermaid: flowchart, sequenceDiagram, classDiagram, stateDiagram-v2, erDiagram, "
        "gantt, gitGraph, mindmap, timeline, pie, xychart-beta, quadrantChart, journey, kanban.",
    ),
}
