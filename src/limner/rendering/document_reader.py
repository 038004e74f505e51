"""JSON as its author wrote it -> JSON with the names that elements have, and notes.

A model that writes a document guesses names: "xLabel", "participants", "align": "left". A name
with one possible meaning is understood. A name that means nothing here is ignored, and a note says
so: a picture with a note helps its author more than an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from limner.json_shapes import as_list, as_object
from limner.rendering.elements import (
    BarChart,
    Chart,
    ChartSeries,
    ColumnBox,
    Commit,
    CommitGraph,
    Container,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    Document,
    DocumentElement,
    GanttChart,
    GanttTask,
    ItemList,
    NodeGroup,
    Page,
    ScatterPlot,
    SequenceDiagram,
    SequenceFrame,
    SequenceMessage,
    StepList,
    TextBlock,
    Timeline,
)
from limner.rendering.spellings import (
    FIELD_NAMES,
    STYLE_FIELDS,
    STYLE_WORDS,
    TYPE_NAMES,
    VALUE_NAMES,
)

Fields = dict[str, Any]
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
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s{0,9}(?:px|pt)?")
_ARROW = re.compile(
    r"(.{1,400}?)\s{0,9}(?:->>|-->|->|→)\s{0,9}(.{1,400}?)(?:\s{0,9}:\s{0,9}(.{0,4000}))?"
)
_NAME_KEYS = ("label", "name", "title", "category", "key", "x", "id")
_VALUE_KEYS = ("value", "y", "count", "amount", "total", "percent", "percentage")
_SIZE_KEYS = ("size", "r", "radius", "z")
_TIME_KEYS = ("time", "date", "year", "when", "day", "month", "period", "at", "start")
_TEXT_KEYS = ("title", "text", "label", "name", "event", "heading", "step")
_MORE_KEYS = ("description", "text", "detail", "details", "subtitle", "note", "body")
_TITLES = (("title", "title"), ("subtitle", "small"), ("description", "small"), ("text", "body"))


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
    notes = (f"Ignored: {', '.join(reader.ignored)}.",) if reader.ignored else ()
    return UnderstoodDocument(element=element, page=around, notes=notes)


class _Reader:
    """Renames the fields of one document, and collects what it has to ignore."""

    def __init__(self) -> None:
        self.ignored: dict[str, None] = {}

    def element(self, value: object) -> object:
        """An element with our names; a text alone is a text block."""
        if isinstance(value, str):
            return {"type": "text", "text": value}
        if not isinstance(value, dict):
            return value
        fields = cast("Fields", value)
        kind = _kind(fields)
        if kind is None:
            return fields  # the decoder says what is wrong
        implied = TYPE_NAMES.get(_squeeze(fields.get("type")), ("", {}))[1]
        own = {key: item for key, item in fields.items() if key != "type" and item is not None}
        for of, shape in _SHAPES:
            if issubclass(kind, of):
                own = shape(own, kind)
        return {
            "type": kind.__struct_config__.tag,
            **{name: item for name, item in implied.items() if name not in own},
            **self.struct(own, kind),
        }

    def struct(self, fields: Mapping[str, Any], kind: type[msgspec.Struct]) -> Fields:
        """The fields of one value with our names."""
        form = _form(kind)
        ours = {_squeeze(name): name for name in form}
        named: Fields = {}
        rest: Fields = {}
        for key, item in fields.items():
            if item is None:
                continue
            name = key if key in form else ours.get(_squeeze(key))
            target, at = (rest, key) if name is None or name in named else (named, name)
            target[at] = item
        for key, item in rest.items():
            self._add_other(key, item, named, kind)
        values = {name: self._value(name, item, kind) for name, item in named.items()}
        return {name: item for name, item in values.items() if item is not None}

    def _add_other(self, key: str, item: Any, named: Fields, kind: type[msgspec.Struct]) -> None:
        form, word = _form(kind), _squeeze(key)
        said = STYLE_WORDS.get(_squeeze(item)) if word in STYLE_FIELDS else None
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
        if name == "column_align":
            words = VALUE_NAMES["align"]
            return [words.get(_squeeze(one), one) for one in as_list(item)]
        field = _form(kind)[name]
        if (parts := as_object(item)) and not field.takes & {dict, list}:
            return _first(parts, _TEXT_KEYS)
        if isinstance(item, str):
            return self._word(name, item, kind)
        if isinstance(item, int | float) and str in field.takes and not field.takes_numbers:
            return f"{item:.15g}"
        return item

    def _word(self, name: str, text: str, kind: type[msgspec.Struct]) -> Any:
        """A text in our words, or the number that it says; None if it is ignored."""
        field = _form(kind)[name]
        item = VALUE_NAMES.get(name, {}).get(_squeeze(text), text)
        if not isinstance(item, str) or str in field.takes or item in field.choices:
            return item
        if (word := _squeeze(item)) in field.choices:
            return word
        if field.takes_numbers and (length := _LENGTH.fullmatch(item.strip())):
            return float(length[1])
        if not field.choices or field.required:
            return item  # the decoder says what is wrong
        self._ignore(f"{name} {item[:40]}", kind)
        return None

    def _each(self, item: object, nested: type[msgspec.Struct]) -> object:
        if not isinstance(item, list):
            return item
        values = cast("list[object]", item)
        if nested is DocumentElement:
            return [self.element(one) for one in values]
        return [
            self.struct(cast("Fields", one), nested) if isinstance(one, dict) else one
            for one in values
        ]

    def _ignore(self, what: str, kind: type[msgspec.Struct]) -> None:
        of = kind.__struct_config__.tag or _SMALL_KINDS.get(kind, "")
        self.ignored[f"{what} of {of}"] = None


def _squeeze(name: object) -> str:
    """A name without its case, blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", str(name)[:80]).lower()


def _kind(fields: Mapping[str, Any]) -> type[DocumentElement] | None:
    """The kind of an element, by its type, or by a field that only one kind has."""
    if fields.get("type") is None:
        return next((kind for name, kind in _TELLING.items() if name in fields), None)
    name = _squeeze(fields["type"])
    if name == "chart":
        name = _squeeze(
            next((fields[key] for key in ("kind", "chart_type") if key in fields), "bar")
        )
    return _KINDS.get(name) or _KINDS.get(TYPE_NAMES.get(name, ("", {}))[0])


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
    kind = _kind(fields)
    if kind is None or kind is Page:
        return {}
    known = _form(kind)
    found = {key: fields.pop(key) for key in _PAGE_ONLY if key in fields and key not in known}
    if isinstance(fields.get("size"), str) and "x" in fields["size"].lower():
        found["size"] = fields.pop("size")
    elif (size := _pixels(fields)) is not None:
        found["size"] = size
        del fields["width"], fields["height"]
    return found


def _pixels(fields: Mapping[str, Any]) -> str | None:
    """A width and a height as one size."""
    edges = [fields.get("width"), fields.get("height")]
    if not all(isinstance(edge, int | float) and 0 < edge < 10_000 for edge in edges):
        return None
    return "x".join(f"{edge:.0f}" for edge in edges)


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of some keys that is there."""
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _take(fields: Fields, *keys: str) -> tuple[Any, Fields]:
    """The value of the first of some keys that is there, and the other fields."""
    key = next((one for one in keys if fields.get(one) is not None), None)
    rest = {name: item for name, item in fields.items() if name != key}
    return (None if key is None else fields[key]), rest


def _texts(fields: Mapping[str, Any]) -> list[str]:
    """The title and the text of a part that is an object."""
    title = _first(fields, _TEXT_KEYS)
    more = next((fields[key] for key in _MORE_KEYS if fields.get(key) not in (None, title)), None)
    return [str(text) for text in (title, more) if text is not None]


def _shape_container(fields: Fields, kind: type[msgspec.Struct]) -> Fields:
    """Titles and texts of a container become its first children."""
    known = _form(kind)
    if kind is Page and "size" not in fields and (size := _pixels(fields)):
        fields = {**fields, "size": size, "width": None, "height": None}
    titles = {
        name: {"type": "text", "text": fields[name], "size": size}
        for name, size in _TITLES
        if name not in known and isinstance(fields.get(name), str)
    }
    rest = {name: item for name, item in fields.items() if name not in titles}
    children, rest = _take(rest, "children", "items", "elements", "content", "body")
    if children is not None and not isinstance(children, list):
        children = [children]
    return {**rest, "children": [*titles.values(), *as_list(cast("object", children))]}


def _shape_chart(fields: Fields, kind: type[msgspec.Struct]) -> Fields:
    """Rows of objects or pairs become labels and values, or points."""
    if {"labels", "datasets", "series", "values"} & set(data := as_object(fields.get("data"))):
        fields = {**{key: item for key, item in fields.items() if key != "data"}, **data}
    series, fields = _take(fields, "series", "datasets")
    if isinstance(series, list):
        rows = as_list(cast("object", series))
        series = [_shape_series(as_object(one)) or one for one in rows]
    if series is not None:
        fields["series"] = series
    rows, rest = _take(fields, "values", "data", "slices", "points")
    if kind is ScatterPlot:
        return {**_points(rows), **rest} if rows is not None else fields
    pairs = _pairs(rows)
    if not pairs:
        return fields
    colors = [as_object(row).get("color") for row in as_list(rows)]
    given = {} if None in colors else {"colors": colors}
    labels, values = ([pair[place] for pair in pairs] for place in (0, 1))
    return {**given, "labels": labels, "values": values, **rest}


def _shape_series(fields: Mapping[str, Any]) -> Fields:
    """A series, with its pairs as points."""
    rows, rest = _take(dict(fields), "data", "values", "points")
    points = _points(rows).get("points", ())
    is_plain = not points or not all(as_list(point) for point in points)
    return dict(fields) if is_plain else {**rest, "points": points}


def _points(rows: object) -> Fields:
    """The points of a scatter plot, and their names if all have one."""
    objects = [as_object(row) for row in as_list(rows)]
    if not objects or not all(objects):
        return {"points": rows}
    points = [
        [_first(one, keys) for keys in (("x",), ("y", "value"), _SIZE_KEYS)] for one in objects
    ]
    names = [_first(one, ("label", "name", "title", "id")) for one in objects]
    found = {"points": [[part for part in point if part is not None] for point in points]}
    return found if None in names else {**found, "labels": names}


def _pairs(rows: object) -> list[list[Any]]:
    """The name and the value of each row, if every row is an object or a pair."""
    found: list[list[Any]] = []
    for row in as_list(rows):
        fields = as_object(row)
        pair = [_first(fields, _NAME_KEYS), _first(fields, _VALUE_KEYS)] if fields else as_list(row)
        if len(pair) != 2 or None in pair:
            return []
        found.append(pair)
    return found


def _shape_table(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Rows and columns that are objects become plain lists."""
    rows, fields = _take(fields, "rows", "data", "items", "body")
    columns, fields = _take(fields, "columns", "headers", "header", "head")
    if isinstance(fields.get("align"), list):
        fields["column_align"] = fields.pop("align")
    records = [as_object(row) for row in as_list(rows)]
    if records and all(records):
        names = list(dict.fromkeys(name for record in records for name in record))
        rows = [[record.get(name) for name in names] for record in records]
        columns = names if columns is None else columns
    heads = [as_object(column) for column in as_list(columns)]
    if heads and all(heads):
        columns = [_first(one, ("label", "title", "header", "name", "key")) for one in heads]
        if any("align" in one for one in heads):
            fields["column_align"] = [one.get("align", "start") for one in heads]
    if isinstance(columns, list):
        texts = as_list(cast("object", columns))
        fields["columns"] = ["" if one is None else str(one) for one in texts]
    return fields if rows is None else {**fields, "rows": rows}


def _shape_events(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Events that are objects, or have a title and a text, become pairs."""

    def pair(event: object) -> object:
        if parts := as_object(event):
            return [_first(parts, _TIME_KEYS) or "", ": ".join(_texts(parts))]
        time, *rest = as_list(event) or [event]
        return [time, ": ".join(str(one) for one in rest)] if len(rest) > 1 else event

    return _map_list(fields, ("events", "items", "milestones", "entries", "data"), pair)


def _shape_steps(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    def step(one: object) -> object:
        return _texts(as_object(one)) or one

    return _map_list(fields, ("steps", "items", "stages", "data"), step)


def _shape_gantt(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Tasks that are lists become objects."""

    def task(one: object) -> object:
        parts = as_list(one)
        return dict(zip(("name", "start", "end", "section"), parts, strict=False)) if parts else one

    return _map_list(fields, ("tasks", "items", "rows", "data", "bars", "events"), task)


def _shape_list(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    def item(one: object) -> object:
        return ": ".join(_texts(as_object(one))) or (one if isinstance(one, str) else str(one))

    return _map_list(fields, ("items", "children", "data", "entries"), item)


def _map_list(fields: Fields, keys: Sequence[str], change: Callable[[object], object]) -> Fields:
    """The list under the first of some keys, changed one by one, under the first key."""
    value, rest = _take(fields, *keys)
    if not isinstance(value, list):
        return fields
    return {**rest, keys[0]: [change(one) for one in as_list(cast("object", value))]}


def _shape_diagram(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Nodes that are a dictionary, and edges that are texts, become lists."""

    def node(one: object) -> object:
        own = as_object(one)
        if "type" not in own or "shape" in own:
            return one
        return {"shape" if key == "type" else key: item for key, item in own.items()}

    if named := as_object(fields.get("nodes")):
        nodes = [
            {"id": name, **(as_object(item) or {"label": item})} for name, item in named.items()
        ]
        fields = {**fields, "nodes": nodes}
    fields = _map_list(fields, ("nodes",), node)
    return _map_list(fields, ("edges", "connections", "links"), _arrow)


def _arrow(edge: object) -> object:
    """An edge or a message that is written as a text."""
    found = _ARROW.fullmatch(edge) if isinstance(edge, str) else None
    return edge if found is None else [part for part in found.groups() if part]


def _shape_sequence(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Actors that are objects become names, also in the messages."""
    fields = _map_list(fields, ("messages", "steps", "interactions"), _arrow)
    fields = _map_list(fields, ("actors", "participants", "lifelines"), lambda one: one)
    actors = as_list(fields.get("actors"))
    objects = [as_object(actor) for actor in actors]
    if not any(objects):
        return fields
    shown = [
        _first(one, ("label", "name", "title", "id")) if one else actor
        for one, actor in zip(objects, actors, strict=True)
    ]
    names = {one.get("id"): name for one, name in zip(objects, shown, strict=True) if one}

    def renamed(message: object) -> object:
        if parts := as_object(message):
            ends = ("from", "to", "source", "target", "sender", "receiver")
            return {
                key: names.get(item, item) if key in ends else item for key, item in parts.items()
            }
        ends = as_list(message)
        return [*(names.get(end, end) for end in ends[:2]), *ends[2:]]

    return _map_list({**fields, "actors": shown}, ("messages",), renamed)


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
_SHAPES: Sequence[
    tuple[type[DocumentElement], Callable[[Fields, type[msgspec.Struct]], Fields]]
] = (
    (Container, _shape_container),
    (Chart, _shape_chart),
    (DataTable, _shape_table),
    (Timeline, _shape_events),
    (StepList, _shape_steps),
    (GanttChart, _shape_gantt),
    (ItemList, _shape_list),
    (Diagram, _shape_diagram),
    (SequenceDiagram, _shape_sequence),
)
