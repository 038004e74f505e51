"""JSON as its author wrote it -> JSON with the names that elements have, and notes.

A model that writes a document guesses names: "xLabel", "participants", "align": "left". A name
with one possible meaning is understood. A name that means nothing here is ignored, and a note says
so: a picture with a note helps its author more than an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from limner.errors import InputInvalid
from limner.json_shapes import as_list, as_object
from limner.rendering.colours import parse_colour
from limner.rendering.diagram_source import known_colour
from limner.rendering.document_shapes import SHAPES, Fields, first_text, pixels
from limner.rendering.elements import (
    BarChart,
    ChartSeries,
    ColumnBox,
    Commit,
    CommitGraph,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    Divider,
    Document,
    DocumentElement,
    GanttChart,
    GanttTask,
    ItemList,
    NodeGroup,
    Page,
    SequenceDiagram,
    SequenceFrame,
    SequenceMessage,
    TextBlock,
    Timeline,
)
from limner.rendering.spellings import (
    FALSE_WORDS,
    FIELD_NAMES,
    INSTEAD,
    STYLE_FIELDS,
    STYLE_WORDS,
    TYPE_NAMES,
    VALUE_NAMES,
    squeeze,
)

_KINDS: Mapping[str, type[DocumentElement]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Document)
}
TYPES = list(_KINDS)
# What tells the kind of an element that has no type.
_TELLING: Mapping[str, type[DocumentElement]] = {
    "children": ColumnBox,
    "nodes": Diagram,
    "edges": Diagram,
    "messages": SequenceDiagram,
    "events": Timeline,
    "commits": CommitGraph,
    "tasks": GanttChart,
    "rows": DataTable,
    "values": BarChart,
    "series": BarChart,
    "text": TextBlock,
}
_PAGE_ONLY = ("theme", "background", "border", "justify")
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s{0,9}(?:px|pt|%)?")
_COLOURS = ("color", "background", "border")
_GRADIENT = re.compile(r"#[0-9a-fA-F]{3,8}|\b[a-z]{3,20}\b(?!\()|(?:rgb|hsl)a?\([^()]{3,40}\)")


class FieldForm(msgspec.Struct, frozen=True, kw_only=True):
    """What a field of an element takes: some words, and some types."""

    required: bool
    choices: tuple[str, ...]
    takes: frozenset[Any]

    @property
    def is_list(self) -> bool:
        """Whether only a list can be its value."""
        return all(one is list for one in self.takes)

    @property
    def takes_numbers(self) -> bool:
        """Whether a number can be its value."""
        return bool(self.takes & {int, float})


class UnderstoodDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document in our names, what it says about the page around it, and what was ignored."""

    element: object
    page: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()


def understand(document: object) -> UnderstoodDocument:
    """Give the fields of a document the names that elements have."""
    if not isinstance(document, dict):
        return UnderstoodDocument(element=document)
    reader = _Reader()
    fields = dict(cast("Fields", document))
    if "children" in fields:
        fields.setdefault("type", "page")
    page = _take_page_fields(fields)
    element = reader.element(fields)
    around = reader.struct(page, Page) if page else {}
    ignored = [f"Ignored: {', '.join(reader.ignored)}."] if reader.ignored else []
    return UnderstoodDocument(element=element, page=around, notes=(*reader.notes, *ignored))


class _Reader:
    """Renames the fields of one document, and collects what it has to ignore."""

    def __init__(self) -> None:
        self.ignored: dict[str, None] = {}
        self.notes: dict[str, None] = {}

    def element(self, value: object) -> object:
        """An element with our names; a text alone is a text block."""
        if isinstance(value, str):
            return {"type": "text", "text": value}
        if not isinstance(value, dict):
            return value
        fields = cast("Fields", value)
        kind, implied = _kind(fields)
        if kind is None:
            return fields  # the decoder says what is wrong
        word = squeeze(fields.get("type"))
        if fields.get("type") is not None and word not in _KINDS and word not in TYPE_NAMES:
            tag = kind.__struct_config__.tag
            self.notes[f"There is no type {str(fields['type'])[:40]!r}: drawn as {tag}."] = None
        own = {key: item for key, item in fields.items() if key != "type" and item is not None}
        for of, shape in SHAPES:
            if issubclass(kind, of):
                own = shape(own, kind)
        title = own.pop("title", None) if kind is ItemList else None
        made = {
            "type": kind.__struct_config__.tag,
            **{name: item for name, item in implied.items() if name not in own},
            **self.struct(own, kind),
        }
        if title is None:
            return made
        heading = {"type": "text", "text": str(title), "bold": True}
        return {"type": "column", "children": [heading, made]}

    def struct(self, fields: Mapping[str, Any], kind: type[msgspec.Struct]) -> Fields:
        """The fields of one value with our names."""
        form = _form(kind)
        ours = {squeeze(name): name for name in form}
        named: Fields = {}
        rest: Fields = {}
        for key, item in fields.items():
            if item is None:
                continue
            name = key if key in form else ours.get(squeeze(key))
            target, at = (rest, key) if name is None or name in named else (named, name)
            target[at] = item
        for key, item in rest.items():
            self._add_other(key, item, named, kind)
        values = {name: self._value(name, item, kind) for name, item in named.items()}
        return {name: item for name, item in values.items() if item is not None}

    def _add_other(self, key: str, item: Any, named: Fields, kind: type[msgspec.Struct]) -> None:
        form, word = _form(kind), squeeze(key)
        if kind is Divider and word in ("vertical", "orientation", "direction"):
            return  # its place decides
        said = STYLE_WORDS.get(squeeze(item)) if word in STYLE_FIELDS else None
        if said is not None and said[0] in form:
            named.setdefault(*said)
            return
        free = (one for one in FIELD_NAMES.get(word, ()) if one in form and one not in named)
        if (name := next(free, None)) is None:
            self._ignore(key, kind)
            return
        is_single = isinstance(item, str | int | float)
        named[name] = [item] if form[name].is_list and is_single else item

    def _value(self, name: str, item: Any, kind: type[msgspec.Struct]) -> Any:
        """A value in our words, with the values in it; None if it is ignored."""
        if nested := _NESTED.get(name):
            return self._each(item, nested)
        field = _form(kind)[name]
        if name in ("column_align", "colors"):
            words = VALUE_NAMES["align"]
            found = [
                self._colour(name, str(one), kind)
                if name == "colors"
                else words.get(squeeze(one), one)
                for one in as_list(item)
            ]
            return found if None not in found else None
        if (parts := as_object(item)) and not field.takes & {dict, list}:
            return first_text(parts)
        if isinstance(item, str):
            return (self._colour if name in _COLOURS else self._word)(name, item, kind)
        if isinstance(item, int | float) and str in field.takes and not field.takes_numbers:
            return f"{item:.15g}"
        return item

    def _word(self, name: str, text: str, kind: type[msgspec.Struct]) -> Any:
        """A text in our words, or the number that it says; None if it is ignored."""
        field = _form(kind)[name]
        item = VALUE_NAMES.get(name, {}).get(squeeze(text), text)
        if isinstance(item, str) and bool in field.takes and len(field.takes) == 1:
            item = squeeze(item) not in FALSE_WORDS
        if not isinstance(item, str) or str in field.takes or item in field.choices:
            return item
        if (word := squeeze(item)) in field.choices:
            return word
        if field.takes_numbers and (length := _LENGTH.fullmatch(item.strip())):
            return float(length[1])
        if not field.choices or field.required:
            return item  # the decoder says what is wrong
        self._ignore(f"{name} {item[:40]}", kind)
        return None

    def _colour(self, name: str, text: str, kind: type[msgspec.Struct]) -> Any:
        """A colour, or the colours of a gradient; None if it is none or not known."""
        if text.strip().lower() in ("none", "transparent", "inherit", "auto", ""):
            return None
        if "gradient(" in text and name == "background":
            found = [one for one in _GRADIENT.findall(text) if known_colour(one)]
            return found[:3] or None
        try:
            parse_colour(text)
        except InputInvalid:
            if (near := known_colour(text)) is None:
                self._ignore(f"{name} {text[:40]}", kind)
            return near
        return text

    def _each(self, item: object, nested: type[msgspec.Struct]) -> object:
        if not isinstance(item, list):
            return item
        values = cast("list[object]", item)
        if nested is DocumentElement:
            return [self.element(one) for one in values if self._is_drawn(one)]
        return [
            self.struct(cast("Fields", one), nested) if isinstance(one, dict) else one
            for one in values
        ]

    def _is_drawn(self, value: object) -> bool:
        """Whether a child can be drawn; one of an unknown type is left out."""
        fields = as_object(value)
        if not fields or _kind(fields)[0] is not None:
            return True
        self.notes[f"Left out: there is no type {str(fields.get('type'))[:40]!r}."] = None
        return False

    def _ignore(self, what: str, kind: type[msgspec.Struct]) -> None:
        of = kind.__struct_config__.tag or _SMALL_KINDS.get(kind, "")
        self.ignored[f"{what} of {of}"] = None


def _kind(fields: Mapping[str, Any]) -> tuple[type[DocumentElement] | None, Mapping[str, Any]]:
    """The kind of an element and the fields that its type implies.

    If the type is missing or unknown, a field that only one kind has tells the kind.
    """
    name = squeeze(fields.get("type"))
    if name == "chart":
        keys = ("kind", "chart_type", "chartType", "chart")
        name = squeeze(next((fields[key] for key in keys if key in fields), "bar"))
    if name in _KINDS:
        return _KINDS[name], {}
    if found := TYPE_NAMES.get(name) or INSTEAD.get(name):
        return _KINDS[found[0]], found[1]
    return next((kind for key, kind in _TELLING.items() if key in fields), None), {}


@cache
def _form(kind: type[msgspec.Struct]) -> Mapping[str, FieldForm]:
    found: dict[str, FieldForm] = {}
    for field in msgspec.structs.fields(kind):
        parts = _flat(field.type)
        choices = tuple(str(word) for _, words in parts for word in words)
        takes = frozenset(plain for plain, _ in parts)
        found[field.encode_name] = FieldForm(required=field.required, choices=choices, takes=takes)
    return found


def _flat(kind: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The plain types that a type is made of, with the words of literals."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _flat(parts[0])
    if origin in (Union, UnionType):
        return [one for part in parts for one in _flat(part)]
    return [(Literal, parts)] if origin is Literal else [(origin or kind, ())]


def _take_page_fields(fields: Fields) -> Fields:
    """Remove from an element on its own what it says about the picture, and return it."""
    kind = _kind(fields)[0]
    if kind is None or kind is Page:
        return {}
    known = _form(kind)
    found = {key: fields.pop(key) for key in _PAGE_ONLY if key in fields and key not in known}
    if isinstance(fields.get("size"), str) and "x" in fields["size"].lower():
        found["size"] = fields.pop("size")
    elif (size := pixels(fields)) is not None:
        found["size"] = size
        del fields["width"], fields["height"]
    return found


_NESTED: Mapping[str, type[msgspec.Struct]] = {
    "children": DocumentElement,
    "series": ChartSeries,
    "nodes": DiagramNode,
    "edges": DiagramEdge,
    "messages": SequenceMessage,
    "commits": Commit,
    "tasks": GanttTask,
    "groups": NodeGroup,
    "frames": SequenceFrame,
}
_SMALL_KINDS: Mapping[type[msgspec.Struct], str] = {
    ChartSeries: "a series",
    DiagramNode: "a node",
    DiagramEdge: "an edge",
    SequenceMessage: "a message",
    Commit: "a commit",
    GanttTask: "a task",
    NodeGroup: "a group",
    SequenceFrame: "a frame",
}
