"""How authors arrange the data of an element -> how elements arrange it.

Rows as objects become lists, pairs become labels and values, a tree becomes nodes and edges.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from limner.json_shapes import as_list, as_object
from limner.rendering.elements import (
    MAX_NODES,
    Chart,
    Container,
    DataTable,
    Diagram,
    DocumentElement,
    GanttChart,
    ItemList,
    Page,
    ScatterPlot,
    SequenceDiagram,
    StepList,
    Timeline,
)
from limner.rendering.spellings import STYLE_WORDS, squeeze

Fields = dict[str, Any]
_ARROW = re.compile(
    r"(.{1,400}?)\s{0,9}(?:->>|-->|->|→)\s{0,9}(.{1,400}?)(?:\s{0,9}:\s{0,9}(.{0,4000}))?"
)
_AMOUNT = re.compile(
    r"([$€£¥]?)\s{0,2}(-?\d{1,15}(?:,\d{3})*(?:\.\d{1,9})?)\s{0,2}([^\d\s,.]{0,6})"
)
_NAME_KEYS = ("label", "name", "title", "category", "key", "x", "id")
_VALUE_KEYS = ("value", "y", "count", "amount", "total", "percent", "percentage")
_SIZE_KEYS = ("size", "r", "radius", "z")
_TIME_KEYS = ("time", "date", "year", "when", "day", "month", "period", "at", "start")
_TEXT_KEYS = ("title", "text", "label", "name", "event", "heading", "step")
_MORE_KEYS = ("description", "text", "detail", "details", "subtitle", "note", "body")
_TITLES = (("title", "title"), ("subtitle", "small"), ("description", "small"), ("text", "body"))


def _names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields of an element in JSON."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))


def first_text(fields: Mapping[str, Any]) -> Any:
    """What an object says if only a text has room: its title or its text."""
    return first(fields, _TEXT_KEYS)


def pixels(fields: Mapping[str, Any]) -> str | None:
    """A width and a height as one size."""
    edges = [fields.get("width"), fields.get("height")]
    if not all(isinstance(edge, int | float) and 0 < edge < 10_000 for edge in edges):
        return None
    return "x".join(f"{edge:.0f}" for edge in edges)


def first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of some keys that is there."""
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _take(fields: Fields, *keys: str) -> tuple[Any, Fields]:
    """The value of the first of some keys that is there, and the other fields."""
    key = next((one for one in keys if fields.get(one) is not None), None)
    rest = {name: item for name, item in fields.items() if name != key}
    return (None if key is None else fields[key]), rest


def _texts(fields: Mapping[str, Any]) -> list[str]:
    """The title and the text of a part that is an object."""
    title = first(fields, _TEXT_KEYS)
    more = next((fields[key] for key in _MORE_KEYS if fields.get(key) not in (None, title)), None)
    return [str(text) for text in (title, more) if text is not None]


def _shape_container(fields: Fields, kind: type[msgspec.Struct]) -> Fields:
    """Titles and texts of a container become its first children."""
    known = _names(kind)
    if kind is Page and "size" not in fields and (size := pixels(fields)):
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
    if STYLE_WORDS.get(squeeze(fields.get("stacked"))) == ("percent", True):
        fields = {**fields, "stacked": True, "percent": True}
    if {"labels", "datasets", "series", "values"} & set(data := as_object(fields.get("data"))):
        fields = {**{key: item for key, item in fields.items() if key != "data"}, **data}
    series, fields = _take(fields, "series", "datasets")
    if isinstance(series, list):
        rows = as_list(cast("object", series))
        series = [_shape_series(as_object(one)) or one for one in rows]
    if series is not None:
        fields["series"] = series
    fields = _with_numbers(fields)
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


def _with_numbers(fields: Fields) -> Fields:
    """Values that are texts such as "45%" or "$1,200" become numbers, and their sign the unit."""
    values = fields.get("values")
    named = as_object(values)
    texts = list(named.values()) if named else as_list(values)
    found = [_AMOUNT.fullmatch(one.strip()) for one in texts if isinstance(one, str)]
    if not found or len(found) != len(texts) or not all(found):
        return fields
    amounts = [one for one in found if one]
    numbers: list[float] = [float(one[2].replace(",", "")) for one in amounts]
    units = {one[1] + one[3] for one in amounts}
    unit = {"unit": units.pop()} if len(units) == 1 and "unit" not in fields else {}
    values = dict(zip(named, numbers, strict=True)) if named else numbers
    return {**fields, **unit, "values": values}


def _shape_series(fields: Mapping[str, Any]) -> Fields:
    """A series, with its pairs as points."""
    rows, rest = _take(dict(fields), "data", "values", "points")
    points = as_list(_points(rows).get("points"))
    is_plain = not points or not all(as_list(point) for point in points)
    return dict(fields) if is_plain else {**rest, "points": points}


def _points(rows: object) -> Fields:
    """The points of a scatter plot, and their names if all have one."""
    objects = [as_object(row) for row in as_list(rows)]
    if not objects or not all(objects):
        return {"points": rows}
    points = [
        [first(one, keys) for keys in (("x",), ("y", "value"), _SIZE_KEYS)] for one in objects
    ]
    names = [first(one, ("label", "name", "title", "id")) for one in objects]
    found = {"points": [[part for part in point if part is not None] for point in points]}
    return found if None in names else {**found, "labels": names}


def _pairs(rows: object) -> list[list[Any]]:
    """The name and the value of each row, if every row is an object or a pair."""
    found: list[list[Any]] = []
    for row in as_list(rows):
        fields = as_object(row)
        pair = [first(fields, _NAME_KEYS), first(fields, _VALUE_KEYS)] if fields else as_list(row)
        if len(pair) != 2 or None in pair:
            return []
        found.append(pair)
    return found


def _shape_table(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Rows and columns that are objects become plain lists."""
    rows, fields = _take(fields, "rows", "data", "items", "body")
    columns, fields = _take(fields, "columns", "headers", "header", "head")
    across, fields = _take(fields, "x_labels", "xLabels", "x")
    down, fields = _take(fields, "y_labels", "yLabels", "y")
    if across is not None and rows is None:
        rows, fields = _take(fields, "values")
    if isinstance(across, list) and isinstance(rows, list):
        names = as_list(cast("object", down)) or [""] * len(as_list(cast("object", rows)))
        values = as_list(cast("object", rows))
        rows = [[name, *as_list(row)] for name, row in zip(names, values, strict=False)]
        columns = ["", *as_list(cast("object", across))]
    if isinstance(align := fields.get("align"), list | str):
        count = max((len(as_list(row)) for row in as_list(rows)), default=0)
        given = as_list(fields.pop("align"))
        fields["column_align"] = given or [align] * count
    records = [as_object(row) for row in as_list(rows)]
    if records and all(records):
        names = list(dict.fromkeys(name for record in records for name in record))
        rows = [[record.get(name) for name in names] for record in records]
        columns = names if columns is None else columns
    heads = [as_object(column) for column in as_list(columns)]
    if heads and all(heads):
        columns = [first(one, ("label", "title", "header", "name", "key")) for one in heads]
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
            return [first(parts, _TIME_KEYS) or "", ": ".join(_texts(parts))]
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

    fields = _with_tree(fields)
    if named := as_object(fields.get("nodes")):
        nodes = [
            {"id": name, **(as_object(item) or {"label": item})} for name, item in named.items()
        ]
        fields = {**fields, "nodes": nodes}
    if (first_state := fields.get("initial")) is not None:
        start = {"id": "initial", "label": "", "shape": "circle"}
        nodes = [start, *as_list(first(fields, ("nodes", "states")))]
        edges = [["initial", first_state], *as_list(first(fields, ("edges", "transitions")))]
        rest = {"initial": None, "states": None, "transitions": None}
        fields = {**fields, **rest, "nodes": nodes, "edges": edges}
    fields = _with_groups(_map_list(fields, ("nodes", "states", "entities"), node))
    keys = ("edges", "connections", "links", "transitions", "relations", "relationships")
    return _map_list(fields, keys, _arrow)


def _with_tree(fields: Fields) -> Fields:
    """A tree that is written as a root with children becomes nodes and edges."""
    root, rest = _take(fields, "root", "tree", "center", "central")
    children, rest = _take(rest, "branches", "children")
    if (root is None and children is None) or "edges" in fields:
        return fields
    both_sides = squeeze(fields.get("layout")) != "tree" and children is not None
    top = as_object(root) or {"label": str(root or fields.get("title") or "")}
    if children is not None:
        top = {**top, "children": children}
    nodes: list[Fields] = []
    edges: list[Fields] = []
    waiting = deque([(top, "", 0)])
    while waiting and len(nodes) <= MAX_NODES:
        here, parent, side = waiting.popleft()
        name = f"node {len(nodes)}"
        words = [
            str(here[key]) for key in ("label", "name", "title", "text", "id") if here.get(key)
        ]
        more = [str(here[key]) for key in ("role", "subtitle", "description") if here.get(key)]
        color = {"color": here["color"]} if here.get("color") else {}
        nodes.append({"id": name, "label": "\n".join(words[:1] + more), **color})
        if parent:
            ends = (name, parent) if side else (parent, name)
            edges.append({"from": ends[0], "to": ends[1], "arrow": "none"})
        below = as_list(first(here, ("children", "reports", "branches", "items", "nodes")))
        for place, one in enumerate(below):
            left = side if parent else both_sides and place >= (len(below) + 1) // 2
            waiting.append((as_object(one) or {"label": str(one)}, name, int(left)))
    direction = {"direction": "right"} if both_sides and "direction" not in fields else {}
    return {**rest, **direction, "nodes": nodes, "edges": edges}


def _with_groups(fields: Fields) -> Fields:
    """The groups that nodes name become frames around them."""
    groups: dict[str, list[Any]] = {}
    nodes: list[object] = []
    for one in as_list(fields.get("nodes")):
        own = as_object(one)
        name, rest = _take(dict(own), "group", "cluster")
        nodes.append(one if name is None else rest)
        if name is not None:
            groups.setdefault(str(name), []).append(own.get("id") or own.get("name"))
    if not groups or fields.get("groups"):
        return fields
    return {
        **fields,
        "nodes": nodes,
        "groups": [{"label": name, "nodes": nodes} for name, nodes in groups.items()],
    }


def _arrow(edge: object) -> object:
    """An edge or a message that is written as a text."""
    found = _ARROW.fullmatch(edge) if isinstance(edge, str) else None
    return edge if found is None else [part for part in found.groups() if part]


def _shape_sequence(fields: Fields, _: type[msgspec.Struct]) -> Fields:
    """Actors that are objects become names, also in the messages."""

    def message(one: object) -> object:
        parts = as_list(_arrow(one))
        if not isinstance(one, str) or "-->" not in one or len(parts) < 2:
            return _arrow(one)
        text = parts[2] if len(parts) > 2 else ""
        return {"from": parts[0], "to": parts[1], "text": text, "dashed": True}

    fields = _map_list(fields, ("messages", "steps", "interactions"), message)
    fields = _map_list(fields, ("actors", "participants", "lifelines"), lambda one: one)
    actors = as_list(fields.get("actors"))
    objects = [as_object(actor) for actor in actors]
    if not any(objects):
        return fields
    shown = [
        first(one, ("label", "name", "title", "id")) if one else actor
        for one, actor in zip(objects, actors, strict=True)
    ]
    # By the JSON of the ids, which may be values of any type.
    names = {
        json.dumps(one.get("id")): name for one, name in zip(objects, shown, strict=True) if one
    }

    def named(end: object) -> object:
        return names.get(json.dumps(end), end)

    def renamed(message: object) -> object:
        if parts := as_object(message):
            ends = ("from", "to", "source", "target", "sender", "receiver")
            return {key: named(item) if key in ends else item for key, item in parts.items()}
        ends = as_list(message)
        return [*map(named, ends[:2]), *ends[2:]]

    people = [
        name
        for one, name in zip(objects, shown, strict=True)
        if squeeze(one.get("type", one.get("kind"))) in ("actor", "person", "user", "human")
    ]
    people = {"people": people} if people else {}
    return _map_list({**fields, **people, "actors": shown}, ("messages",), renamed)


SHAPES: Sequence[tuple[type[DocumentElement], Callable[[Fields, type[msgspec.Struct]], Fields]]] = (
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
