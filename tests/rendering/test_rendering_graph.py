"""The layout of graphs: properties that hold for every graph."""

from __future__ import annotations

import math
from itertools import combinations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.rendering.brush import Rect
from limner.rendering.graph.layout import lay_out
from limner.rendering.graph.model import (
    Graph,
    GraphEdge,
    GraphGroup,
    GraphLayout,
    GraphNode,
)

SLACK = 1e-6
SIZES = st.floats(1, 12)
BESIDE_A_LOOP = Graph(
    nodes=[GraphNode(width=1.0, height=1.0), GraphNode(width=1.0, height=1.0)],
    edges=[
        GraphEdge(start=1, end=0, free=True),
        GraphEdge(start=1, end=1, label=(3.0, 1.0)),
    ],
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 14))
    numbers = st.integers(0, count - 1)
    nodes = draw(
        st.lists(
            st.builds(
                GraphNode, width=SIZES, height=SIZES, power=st.sampled_from([1.0, 2.0, math.inf])
            ),
            min_size=count,
            max_size=count,
        )
    )
    labels = st.sampled_from([(0.0, 0.0), (0.0, 0.0), (3.0, 1.0), (7.0, 2.5)])
    often_false = st.integers(0, 4).map(lambda number: number == 0)
    edges = st.builds(
        GraphEdge, start=numbers, end=numbers, label=labels, up=st.booleans(), free=often_false
    )
    groups = st.builds(
        GraphGroup,
        nodes=st.lists(numbers, max_size=5).map(tuple),
        label=st.sampled_from([(0.0, 0.0), (9.0, 1.0)]),
    )
    found = draw(st.lists(edges, max_size=24))
    # The caller joins the loops of a node.
    loops = {edge.start: edge for edge in found if edge.start == edge.end}
    return Graph(
        nodes=nodes,
        edges=[edge for edge in found if edge.start != edge.end or edge is loops[edge.start]],
        groups=draw(st.lists(groups, max_size=3)),
        ranks=draw(st.lists(st.lists(numbers, max_size=5).map(tuple), max_size=2)),
        right=draw(st.booleans()),
    )


def overlaps(one: Rect, other: Rect) -> bool:
    return (
        one.x + one.width > other.x + SLACK
        and other.x + other.width > one.x + SLACK
        and one.y + one.height > other.y + SLACK
        and other.y + other.height > one.y + SLACK
    )


def contains(outer: Rect, inner: Rect) -> bool:
    return (
        outer.x <= inner.x + SLACK
        and outer.y <= inner.y + SLACK
        and inner.x + inner.width <= outer.x + outer.width + SLACK
        and inner.y + inner.height <= outer.y + outer.height + SLACK
    )


def points_of(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points along a row of cubic curves."""
    found = [curve[0]]
    for place in range(0, len(curve) - 3, 3):
        a, b, c, d = curve[place : place + 4]
        for step in range(1, 13):
            t = step / 12
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            found.append(
                (
                    sum(w * p[0] for w, p in zip(weights, (a, b, c, d), strict=True)),
                    sum(w * p[1] for w, p in zip(weights, (a, b, c, d), strict=True)),
                )
            )
    return found


def label_boxes(graph: Graph, layout: GraphLayout) -> list[Rect]:
    return [
        Rect(at[0] - edge.label[0] / 2, at[1] - edge.label[1] / 2, *edge.label)
        for edge, at in zip(graph.edges, layout.labels, strict=True)
        if at is not None
    ]


@pytest.mark.slow
@settings(max_examples=examples(25, 3_000))
@given(graphs())
def test_no_two_boxes_or_labels_overlap_and_all_are_within_the_drawing(graph: Graph) -> None:
    layout = lay_out(graph)
    boxes = [*layout.nodes, *label_boxes(graph, layout)]
    assert [(a, b) for a, b in combinations(boxes, 2) if overlaps(a, b)] == []
    whole = Rect(0, 0, layout.width, layout.height)
    frames = [frame for frame in layout.frames if frame is not None]
    assert [box for box in [*boxes, *frames] if not contains(whole, box)] == []


@settings(max_examples=examples(25, 3_000))
@given(graphs())
def test_every_edge_starts_and_ends_at_the_outlines_of_its_nodes(graph: Graph) -> None:
    layout = lay_out(graph)
    for edge, curve in zip(graph.edges, layout.edges, strict=True):
        for number, (x, y) in ((edge.start, curve[0]), (edge.end, curve[-1])):
            node, box = graph.nodes[number], layout.nodes[number]
            across = abs(x - box.x - box.width / 2) / (box.width / 2)
            down = abs(y - box.y - box.height / 2) / (box.height / 2)
            if node.power == math.inf:
                assert max(across, down) == pytest.approx(1)
            else:
                assert across**node.power + down**node.power == pytest.approx(1)


@settings(max_examples=examples(20, 3_000))
@given(graphs())
@example(BESIDE_A_LOOP)
def test_no_line_passes_through_a_box_or_the_label_of_another_edge(graph: Graph) -> None:
    layout = lay_out(graph)
    for place, curve in enumerate(layout.edges):
        ends = {graph.edges[place].start, graph.edges[place].end}
        others = [box for number, box in enumerate(layout.nodes) if number not in ends]
        labels = [
            Rect(at[0] - edge.label[0] / 2, at[1] - edge.label[1] / 2, *edge.label)
            for number, (edge, at) in enumerate(zip(graph.edges, layout.labels, strict=True))
            if at is not None and number != place
        ]
        touched = [
            box
            for box in [*others, *labels]
            for x, y in points_of(curve)
            if box.x + SLACK < x < box.x + box.width - SLACK
            and box.y + SLACK < y < box.y + box.height - SLACK
        ]
        assert touched == []


@settings(max_examples=examples(25, 3_000))
@given(graphs())
def test_a_frame_contains_its_nodes_and_no_others(graph: Graph) -> None:
    # Groups that overlap share no frame; here they have different nodes.
    seen: set[int] = set()
    groups: list[GraphGroup] = []
    for group in graph.groups:
        groups.append(GraphGroup(nodes=tuple(set(group.nodes) - seen), label=group.label))
        seen |= set(group.nodes)
    graph = msgspec.structs.replace(graph, groups=groups)
    layout = lay_out(graph)
    for group, frame in zip(groups, layout.frames, strict=True):
        if frame is None:
            assert group.nodes == ()
            continue
        for number, box in enumerate(layout.nodes):
            assert contains(frame, box) if number in group.nodes else not overlaps(frame, box)
    frames = [frame for frame in layout.frames if frame is not None]
    assert [(a, b) for a, b in combinations(frames, 2) if overlaps(a, b)] == []


@settings(max_examples=examples(10))
@given(graphs())
def test_the_same_graph_has_the_same_layout(graph: Graph) -> None:
    assert lay_out(graph) == lay_out(graph)


def test_a_chain_is_one_straight_line() -> None:
    nodes = [GraphNode(width=4, height=2)] * 5
    layout = lay_out(Graph(nodes=nodes, edges=[GraphEdge(start=n, end=n + 1) for n in range(4)]))
    assert {point[0] for curve in layout.edges for point in curve} == {2.0}
    assert [box.y for box in layout.nodes] == sorted(box.y for box in layout.nodes)


def test_a_group_in_a_group_has_a_frame_within_its_frame() -> None:
    graph = Graph(
        nodes=[GraphNode(width=4, height=2)] * 4,
        edges=[GraphEdge(start=0, end=1), GraphEdge(start=1, end=2), GraphEdge(start=2, end=3)],
        groups=[GraphGroup(nodes=(1, 2), label=(3, 1)), GraphGroup(nodes=(1,), label=(3, 1))],
    )
    outer, inner = lay_out(graph).frames
    assert outer is not None
    assert inner is not None
    assert contains(outer, inner)
    assert outer != inner


def test_an_inheriting_class_is_below_its_base() -> None:
    layout = lay_out(
        Graph(nodes=[GraphNode(width=4, height=2)] * 2, edges=[GraphEdge(start=0, end=1, up=True)])
    )
    assert layout.nodes[1].y < layout.nodes[0].y
    assert layout.edges[0][0][1] > layout.edges[0][-1][1]


def test_a_rank_is_one_row_and_its_edges_are_straight() -> None:
    """A chain in a row, with a label, and a line that cannot be straight goes over it."""
    layout = lay_out(
        Graph(
            nodes=[GraphNode(width=4, height=2)] * 4,
            edges=[
                GraphEdge(start=0, end=1, label=(3, 1)),
                GraphEdge(start=1, end=2),
                GraphEdge(start=0, end=2),
                GraphEdge(start=1, end=3),
            ],
            ranks=[(0, 1, 2)],
        )
    )
    tops = [box.y for box in layout.nodes]
    assert tops[0] == tops[1] == tops[2] < tops[3]
    middle = tops[0] + 1
    assert {y for _, y in layout.edges[0]} == {middle}
    assert {y for _, y in layout.edges[1]} == {middle}
    assert min(y for _, y in layout.edges[2]) < tops[0]
    assert [box.x for box in layout.nodes[:3]] == sorted(box.x for box in layout.nodes[:3])


def test_a_free_edge_does_not_move_its_end_down() -> None:
    nodes = [GraphNode(width=4, height=2)] * 3
    edges = [GraphEdge(start=0, end=1), GraphEdge(start=0, end=2)]
    layout = lay_out(Graph(nodes=nodes, edges=[*edges, GraphEdge(start=1, end=2, free=True)]))
    assert layout.nodes[1].y == layout.nodes[2].y
