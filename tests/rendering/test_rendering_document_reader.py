"""Documents as models write them: other names are understood, and the rest is noted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import InputInvalid
from limner.rendering import elements
from limner.rendering.document import parse_document
from limner.rendering.document_reader import TYPES
from limner.rendering.elements import (
    Align,
    AssetPicture,
    Badge,
    BarChart,
    Button,
    Card,
    ChartSeries,
    ColumnBox,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    Document,
    InputField,
    ItemList,
    LineChart,
    Metric,
    NodeGroup,
    Page,
    PieChart,
    QrCode,
    ScatterPlot,
    SequenceDiagram,
    SequenceMessage,
    StepList,
    TextBlock,
    Timeline,
    Toggle,
)
from limner.rendering.spellings import FIELD_NAMES, TYPE_NAMES, VALUE_NAMES

KINDS: tuple[type[msgspec.Struct], ...] = get_args(Document)
NESTED = (
    elements.ChartSeries,
    elements.DiagramNode,
    elements.DiagramEdge,
    elements.NodeGroup,
    elements.SequenceMessage,
    elements.GanttTask,
)


def read(document: object) -> tuple[Document, list[str]]:
    return parse_document(msgspec.json.encode(document).decode())


@pytest.mark.parametrize(
    ("document", "element"),
    [
        (
            {"type": "Bar Chart", "xLabel": "Quarter", "y-label": "k", "data": [["Q1", 2]]},
            BarChart(x_label="Quarter", y_label="k", labels=["Q1"], values=[2]),
        ),
        (
            {"type": "donut", "values": [{"name": "Rent", "amount": 9, "color": "red"}]},
            PieChart(donut=True, labels=["Rent"], values=[9], colors=["red"]),
        ),
        (
            {
                "type": "line",
                "data": {"labels": ["a"], "datasets": [{"label": "B", "data": [1]}]},
            },
            LineChart(labels=["a"], series=[ChartSeries(name="B", values=[1])]),
        ),
        (
            {"type": "scatter", "series": [{"name": "A", "data": [{"x": 1, "y": 2}]}]},
            ScatterPlot(series=[ChartSeries(name="A", points=[[1, 2]])]),
        ),
        (
            {"type": "bar", "horizontal": True, "values": {"a": 1}, "color": "#7c3aed"},
            BarChart(horizontal=True, values={"a": 1}, colors=["#7c3aed"]),
        ),
        (
            {"type": "table", "data": [{"Plan": "Free", "Price": 0}, {"Plan": "Pro"}]},
            DataTable(columns=["Plan", "Price"], rows=[["Free", 0], ["Pro", None]]),
        ),
        (
            {
                "type": "table",
                "columns": [{"title": "Item"}, {"title": "Sum", "align": "right"}],
                "rows": [["a", 1]],
            },
            DataTable(columns=["Item", "Sum"], rows=[["a", 1]], column_align=["start", "end"]),
        ),
        (
            {"type": "timeline", "items": [{"year": 1969, "title": "Moon", "text": "Apollo 11"}]},
            Timeline(events=[[1969, "Moon: Apollo 11"]]),
        ),
        (
            {"type": "steps", "items": ["Plan", {"title": "Build", "text": "it"}], "active": 2},
            StepList(steps=["Plan", ["Build", "it"]], current=2),
        ),
        (
            {"type": "list", "style": "numbered", "items": ["a", {"text": "b"}, 3]},
            ItemList(items=["a", "b", "3"], ordered=True),
        ),
        (
            {
                "type": "flowchart",
                "direction": "LR",
                "nodes": {"a": "Start", "b": {"type": "decision"}},
                "connections": ["a -> b: go", {"source": "b", "target": "a", "style": "dashed"}],
            },
            Diagram(
                direction="right",
                nodes=[DiagramNode(id="a", label="Start"), DiagramNode(id="b", shape="diamond")],
                edges=[["a", "b", "go"], DiagramEdge(start="b", end="a", dashed=True)],
            ),
        ),
        (
            {
                "type": "sequence",
                "participants": [{"id": "u", "name": "User"}, "API"],
                "messages": [["u", "API", "asks"], "API -> u: answers"],
            },
            SequenceDiagram(
                actors=["User", "API"],
                messages=[["User", "API", "asks"], ["API", "User", "answers"]],
            ),
        ),
        (
            {"type": "card", "title": "T", "subtitle": "S", "items": ["plain"]},
            Card(
                title="T",
                children=[TextBlock(text="S", size="small"), TextBlock(text="plain")],
            ),
        ),
        (
            {"type": "poster", "width": 800, "height": 600, "title": "Sale", "content": []},
            Page(size="800x600", children=[TextBlock(text="Sale", size="title")]),
        ),
        (
            {"type": "bar", "values": [1], "size": "640x480", "theme": "dark"},
            Page(size="640x480", theme="dark", children=[BarChart(values=[1])]),
        ),
        ({"type": "metric", "title": "Sales", "value": 3, "delta": "+1"}, None),
        ({"type": "icon", "icon": "moon", "align": "centre"}, None),
        ({"type": "switch", "text": "Dark mode", "value": "on"}, None),
        ({"type": "button", "label": "Go", "variant": "secondary", "align": "right"}, None),
        ({"type": "heading", "content": 42, "textAlign": "LEFT"}, None),
        ({"type": "qrcode", "url": "https://example.org", "label": "Scan"}, None),
        ({"type": "input", "label": "Name", "hint": "Your name"}, None),
        ({"type": "chip", "label": "New"}, None),
    ],
)
def test_other_names_are_understood(document: dict[str, Any], element: Document | None) -> None:
    small = {
        "metric": Metric(label="Sales", value=3, change="+1"),
        "icon": AssetPicture(name="moon", align="center"),
        "switch": Toggle(label="Dark mode", on=True),
        "button": Button(text="Go", outline=True, align="end"),
        "heading": TextBlock(text="42", size="heading", align="start"),
        "qrcode": QrCode(data="https://example.org", caption="Scan"),
        "input": InputField(label="Name", placeholder="Your name"),
        "chip": Badge(text="New"),
    }
    assert read(document) == (element or small[document["type"]], [])


def test_what_means_nothing_is_ignored_and_noted() -> None:
    page = {
        "type": "page",
        "theme": "ocean",
        "children": [{"type": "bar", "values": [1], "sparkle": 3, "legend": None}],
    }
    assert read(page) == (
        Page(children=[BarChart(values=[1])]),
        ["Ignored: theme ocean of page, sparkle of bar."],
    )


def test_an_element_without_a_type_is_known_by_its_fields() -> None:
    assert read({"edges": [["a", "b"]]}) == (Diagram(edges=[["a", "b"]]), [])
    assert read({"children": [{"children": []}]}) == (Page(children=[ColumnBox(children=[])]), [])


def test_our_own_names_come_before_those_of_others() -> None:
    document = {"type": "column", "children": [{"type": "badge", "label": "x", "text": "y"}]}
    assert read(document) == (
        ColumnBox(children=[Badge(text="y")]),
        ["Ignored: label of badge."],
    )


def test_every_other_name_stands_for_a_name_that_exists() -> None:
    fields = {
        field.encode_name for kind in (*KINDS, *NESTED) for field in msgspec.structs.fields(kind)
    }
    assert {name for names in FIELD_NAMES.values() for name in names} - fields == set()
    assert {name for name, _ in TYPE_NAMES.values()} - set(TYPES) == set()
    assert set(VALUE_NAMES) - fields == set()
    assert set(VALUE_NAMES["align"].values()) <= set(get_args(Align))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "children", "values", "data", "nodes", "edges", "rows", "items"]
            ),
            inner | st.sampled_from([*TYPES, *TYPE_NAMES]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_any_json_is_a_document_or_refused(value: object) -> None:
    with suppress(InputInvalid):
        assert isinstance(read(value)[0], KINDS)


def test_a_tree_becomes_nodes_and_edges() -> None:
    root = {"name": "Ada", "role": "CEO", "children": [{"name": "Ben"}, "Cy"]}
    nodes = [
        DiagramNode(id="node 0", label="Ada\nCEO"),
        DiagramNode(id="node 1", label="Ben"),
        DiagramNode(id="node 2", label="Cy"),
    ]
    down = [
        DiagramEdge(start="node 0", end="node 1", arrow="none"),
        DiagramEdge(start="node 0", end="node 2", arrow="none"),
    ]
    assert read({"type": "orgchart", "root": root}) == (Diagram(nodes=[*nodes], edges=[*down]), [])
    # The branches of a mind map are on both sides.
    mind_map = read({"type": "mindmap", "root": "Ada\nCEO", "branches": ["Ben", "Cy"]})
    left = DiagramEdge(start="node 2", end="node 0", arrow="none")
    assert mind_map == (Diagram(nodes=[*nodes], edges=[down[0], left], direction="right"), [])


def test_an_unknown_type_is_drawn_as_what_its_fields_tell_or_left_out() -> None:
    page = {
        "type": "page",
        "children": [
            {"type": "barcode", "code": 1},
            {"type": "sankeyish", "values": [1]},
            {"type": "funnel", "labels": ["a"], "values": [1]},
        ],
    }
    assert read(page) == (
        Page(children=[BarChart(values=[1]), BarChart(labels=["a"], values=[1], horizontal=True)]),
        [
            "Left out: there is no type 'barcode'.",
            "There is no type 'sankeyish': drawn as bar.",
            "There is no type 'funnel': drawn as bar.",
        ],
    )


def test_colours_are_read_as_screens_write_them_and_unknown_ones_are_noted() -> None:
    page = {
        "type": "page",
        "background": "linear-gradient(135deg, #123456, teal)",
        "color": "blurple",
        "children": [
            {"type": "badge", "text": "a", "color": "rgba(255, 0, 0, .5)"},
            {"type": "badge", "text": "b", "color": "success"},
            {"type": "badge", "text": "c", "color": "transparent"},
        ],
    }
    assert read(page) == (
        Page(
            background=["#123456", "teal"],
            children=[
                Badge(text="a", color="rgba(255, 0, 0, .5)"),
                Badge(text="b", color="success"),
                Badge(text="c"),
            ],
        ),
        ["Ignored: color blurple of page."],
    )


def test_shares_heat_and_groups_are_understood() -> None:
    assert read({"type": "bar", "stacked": "percent", "values": [1]})[0] == BarChart(
        stacked=True, percent=True, values=[1]
    )
    heat = {"type": "heatmap", "xLabels": ["Mo"], "yLabels": ["am", "pm"], "values": [[1], [2]]}
    assert read(heat)[0] == DataTable(columns=["", "Mo"], rows=[["am", 1], ["pm", 2]], heat=True)
    nodes = [{"id": "a", "group": "G"}, {"id": "b", "shape": "cloud"}]
    assert read({"type": "diagram", "nodes": nodes})[0] == Diagram(
        nodes=[DiagramNode(id="a"), DiagramNode(id="b", shape="cloud")],
        groups=[NodeGroup(label="G", nodes=["a"])],
    )


def test_a_field_that_only_says_how_something_looks_is_ignored_if_it_is_wrong() -> None:
    page = {"type": "page", "gap": [1], "children": [{"type": "text", "text": "a", "grow": "x"}]}
    element, notes = read(page)
    assert element == Page(children=[TextBlock(text="a")])
    assert notes == [
        "Ignored: gap, because it is wrong: Expected `float | null`, got `array` - at `$.gap`.",
        "Ignored: grow, because it is wrong: "
        "Expected `float | null`, got `str` - at `$.children[0].grow`.",
    ]


def test_amounts_with_their_unit_are_numbers_and_paper_has_a_size() -> None:
    assert read({"type": "bar", "values": ["$1,200", "$90.5"]})[0] == BarChart(
        values=[1200.0, 90.5], unit="$"
    )
    assert read({"type": "page", "size": "A4", "children": []})[0] == Page(
        size="1240x1754", children=[]
    )
    replies = read({"type": "sequence", "messages": ["A -> B: ask", "B --> A: tell"]})[0]
    assert replies == SequenceDiagram(
        messages=[
            ["A", "B", "ask"],
            SequenceMessage(start="B", end="A", text="tell", dashed=True),
        ]
    )


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"type": "bar", "series": [{"name": "a", "values": 1.5}]}, "$.series[0].values"),
        (
            {"type": "sequence", "actors": [{"name": "A"}], "messages": [{"from": ["A"], "to": 1}]},
            "$.messages[0].from",
        ),
        (
            {"type": "sequence", "actors": [{"name": "A"}], "messages": [["A", [], "hi"]]},
            "$.messages[0][1]",
        ),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_its_place(document: object, place: str) -> None:
    with pytest.raises(InputInvalid) as refused:
        read(document)
    assert f"`{place}`" in refused.value.message


def test_an_id_may_be_a_value_of_any_type() -> None:
    actors = [{"id": ["x"], "name": "A"}, {"id": 2, "name": "B"}]
    found, _ = read({"type": "sequence", "actors": actors, "messages": [[["x"], 2, "hi"]]})
    assert isinstance(found, SequenceDiagram)
    assert found.messages == [["A", "B", "hi"]]
