"""The declared elements -> the help that a model reads before it writes a document."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from limner.rendering import elements
from limner.rendering.elements import Chart, Container, DocumentElement
from limner.rendering.sources import FORMATS

_EXAMPLES: Mapping[str, str] = {
    "charts": '{"type": "bar", "title": "Clean power", "unit": "TWh", "stacked": true, '
    '"labels": [2024, 2025], "series": [{"name": "Solar", "values": [18, 27]}, '
    '{"name": "Wind", "values": [34, 33]}]}',
    "diagrams": '{"type": "diagram", "direction": "right", "nodes": [{"id": "ok", "label": '
    '"Valid?", "shape": "diamond"}], "edges": [["Start", "ok"], ["ok", "Dashboard", "yes"], '
    '["ok", "Error", "no"]]}',
    "pages": '{"type": "page", "size": "1024x1024", "theme": "warm", "align": "center", '
    '"children": [{"type": "asset", "name": "croissant"}, {"type": "text", "text": "Crumb & Co", '
    '"size": "huge", "align": "center", "font": "serif"}]}',
}
SVG_HELP = """\
Write plain SVG: shapes, paths, text, gradients, patterns, masks, filters, use. No script, no \
image, no link, no url() but url(#id). The viewBox decides the size. Fonts: sans-serif, serif, \
monospace, cursive.
<asset name="robot" x="40" y="60" size="300"/> places a ready-made picture; everyday words find \
one ("moon", "coffee"), and asset_search shows them. It takes width and height instead of size, \
rotate (degrees), flip (horizontal or vertical), color (paints it in shades of one colour), \
shadow="true", opacity, transform and filter.
<scene name="beach sunset"/> draws a background over the whole drawing, or in x, y, width and \
height. Places: beach, sea, harbour, lake, river, waterfall, cliff, hill, hills, valley, canyon, \
mountains, mountain top, cave, forest, bamboo forest, jungle, swamp, meadow, path, garden, park, \
farm, wheat field, village, market, graveyard, savanna, city, street, desert, snow, ice, mars, \
space, moon, sky, clouds, underwater, room, bedroom, living room, bathroom, kitchen, library, \
office, classroom, cafe, stage, crowd. Hours: day, dawn, sunset, dusk, night. Weather: rain, \
storm, wind, snowfall, fog, clouds, aurora, spring, summer, autumn."""


def help_text(topic: str) -> str:
    """What can be written about a topic, with an example that works."""
    if topic == "svg":
        return SVG_HELP
    if topic == "formats":
        return _formats_help()
    kinds = [kind for kind in _kinds() if _topic(kind) == topic]
    parts = [f"{_tag(kind)}: {inspect.getdoc(kind)} Fields: {_fields(kind)}." for kind in kinds]
    if topic == "diagrams":
        parts.append(f"A node: {_fields(elements.DiagramNode)}.")
        parts.append(f"An edge: {_fields(elements.DiagramEdge)}; or a list: from, to, label.")
        parts.append(f"A task: {_fields(elements.GanttTask)}; or a list: name, start, end.")
        parts.append(f"A commit: {_fields(elements.Commit)}.")
        parts.append(f"A message: {_fields(elements.SequenceMessage)}; or a list: from, to, text.")
    others = [spec.help for spec in FORMATS.values() if spec.topic == topic]
    return "\n".join([*parts, *others, f"Example: {_EXAMPLES[topic]}"])


def _formats_help() -> str:
    lines = [
        f"{name}: starts with {spec.starts}"
        + (f"; needs limner[{spec.extra}]." if spec.extra else ".")
        for name, spec in FORMATS.items()
    ]
    said = "The start of the source decides the format; `source_format` says it otherwise."
    return "\n".join([*lines, said])


def _kinds() -> tuple[type[DocumentElement], ...]:
    return get_args(elements.Document)


def _topic(kind: type[DocumentElement]) -> str:
    if issubclass(kind, Chart | elements.DataTable):
        return "charts"
    drawn = (elements.Diagram, elements.SequenceDiagram, elements.Timeline, elements.StepList)
    drawn += (elements.CommitGraph, elements.GanttChart)
    return "diagrams" if issubclass(kind, drawn) else "pages"


def _tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _fields(kind: type[msgspec.Struct]) -> str:
    own = set(DocumentElement.__struct_fields__)
    shown = [
        f"{field.encode_name} ({_words(field.type)}{', required' if field.required else ''})"
        for field in msgspec.structs.fields(kind)
        if field.name not in own or not issubclass(kind, DocumentElement)
    ]
    return ", ".join(shown)


def _words(kind: Any) -> str:
    """A type in the words of JSON."""
    origin, parts = get_origin(kind), [one for one in get_args(kind) if one is not NoneType]
    if origin is Annotated:
        return _words(parts[0])
    if origin in (UnionType, Union):
        if any(isinstance(one, type) and issubclass(one, Container) for one in parts):
            return "element"
        return " or ".join(dict.fromkeys(map(_words, parts)))
    compound: Mapping[Any, Callable[[], str]] = {
        Literal: lambda: "|".join(map(str, parts)),
        list: lambda: f"list of {_words(parts[0])}",
        tuple: lambda: f"[{', '.join(map(_words, parts))}]",
        dict: lambda: "object",
    }
    if origin in compound:
        return compound[origin]()
    names = {str: "text", int: "number", float: "number", bool: "true/false"}
    return names.get(kind, "object")
