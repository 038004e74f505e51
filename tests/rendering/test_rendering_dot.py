"""Graphs in DOT become diagrams; what is not DOT is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.errors import InputInvalid
from limner.rendering.dot import parse_dot
from limner.rendering.elements import Diagram, DiagramEdge, DiagramNode, NodeGroup

PARTS = (
    *("digraph", "graph", "{", "}", "a", '"b c"', "->", "--", "[", "]", "=", ";", ",", ":"),
    *("node", "edge", "subgraph", "cluster_a", "label", "shape", "record", "\n", "<", '"'),
)


def test_a_graph_with_defaults_chains_groups_and_attributes_is_parsed() -> None:
    source = r"""
    // a comment
    strict digraph "my graph" {
        rankdir=LR; label="Build\nplan" /* another
        comment */
        node [shape=box]; edge [style=dashed]
        a [label="Start \"now\"", shape=ellipse, fillcolor="#ff0000"]
        a -> b:port -> {c d} [label=go]
        subgraph cluster_x { label = "Inner"; d; e [shape=cylinder color=lightblue2]; }
        r [shape=record label="{<p>Name|+a: int\l+b\l|+m()}"];
        b -> a [dir=back arrowtail=diamond, style=solid, color=red];
    }
    """
    assert parse_dot(source) == (
        Diagram(
            nodes=[
                DiagramNode(id="a", label='Start "now"', shape="round", color="#ff0000"),
                DiagramNode(id="b", label="b"),
                DiagramNode(id="c", label="c"),
                DiagramNode(id="d", label="d"),
                DiagramNode(id="e", label="e", shape="cylinder", color="#f2f9fb"),
                DiagramNode(id="r", label="Name", rows=["+a: int", "+b", "+m()"]),
            ],
            edges=[
                DiagramEdge(start="a", end="b", label="go", dashed=True),
                DiagramEdge(start="b", end="c", label="go", dashed=True),
                DiagramEdge(start="b", end="d", label="go", dashed=True),
                DiagramEdge(start="a", end="b", arrow="diamond", color="#ff0000"),
            ],
            groups=[NodeGroup(label="Inner", nodes=["d", "e"])],
            direction="right",
            title="Build\nplan",
        ),
        ["Ignored: ports."],
    )


def test_an_undirected_graph_has_lines_without_heads() -> None:
    diagram, notes = parse_dot("graph { a -- b; { rank=same; a b } }")
    assert diagram.edges == [DiagramEdge(start="a", end="b", arrow="none")]
    assert diagram.same_rank == [["a", "b"]]
    assert notes == []


def test_attributes_that_change_the_graph_are_reported_if_they_are_not_drawn() -> None:
    source = """digraph { layout=neato; fontsize=9; a:n -> b [constraint=false, headlabel="x"];
        c [xlabel="y", style="filled,invis", peripheries=2]; a -> c [constraint=true] }"""
    assert parse_dot(source)[1] == ["Ignored: layout, ports, xlabel, peripheries."]


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("flow { a }", "line 1: a graph starts with digraph or graph: 'flow { a }'", "digraph {"),
        ("digraph {\n a -> b", "line 2: '}' is missing: 'a -> b'", "Close each { with a }."),
        ("digraph {\n a -- b }", "line 2: edges of this graph are written ->: 'a -- b }'", "->"),
        ("digraph {\n\n a [label=<<b>] }", "line 3: the label in HTML has no end", "Close each <"),
        ("digraph { a [label }", "line 1: expected a name, found '}'", "Write attributes as"),
        ("digraph { a ! b }", "line 1: unexpected '!'", "in quotes"),
        ("digraph { /* a }", "line 1: the comment has no end", "Write */"),
        ("digraph { }", "line 1: the graph has no nodes", "digraph {"),
        ("digraph {" + "{" * 30 + "a", "line 1: more than 20 subgraphs in each other", "fewer"),
        (
            "digraph {" + ";".join(f"n{n}" for n in range(301)) + "}",
            "line 1: more than 300 nodes",
            "Draw the part that matters.",
        ),
        ("digraph {" + "a->b;" * 1_201 + "}", "line 1: more than 1200 edges", "Draw the part"),
        ("x" * 200_001, "the source has 200,001 characters; 200,000 are allowed", ""),
    ],
)
def test_a_broken_graph_is_refused_with_its_line_and_what_to_write(
    source: str, message: str, hint: str
) -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_dot(source)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.sampled_from(PARTS),
        max_size=30,
    )
)
def test_every_text_is_parsed_or_refused(parts: list[str]) -> None:
    for source in (" ".join(parts), f"digraph {{ {' '.join(parts)} }}"):
        try:
            diagram, _ = parse_dot(source)
        except InputInvalid:
            continue
        assert diagram.nodes != []


def test_a_label_in_html_becomes_its_words_and_a_table_its_rows() -> None:
    cells = "<tr><td bgcolor='#336699'>orders</td></tr><tr><td>PK</td><td>a &amp; b</td></tr>"
    table = f"<table border='0'>{cells}</table>"
    source = f"digraph {{ a [label=<<b>orders</b><br/>6 x {{}}>]; b [label=<{table}>]; a -> b }}"
    diagram, notes = parse_dot(source)
    assert (diagram.nodes, notes) == (
        [
            DiagramNode(id="a", label="orders\n6 x {}", shape="round"),
            DiagramNode(id="b", label="orders", rows=["PK a & b"], color="#336699"),
        ],
        [],
    )


def test_attributes_of_edges_nodes_and_clusters_are_understood() -> None:
    source = """digraph { a -> b [constraint=false, style=invis]; a -> c [taillabel="1",
        label="has", headlabel="*"]; { rank=min; b } b [shape=folder, style=dashed];
        subgraph cluster_x { style=dotted; color=red; c [shape=doublecircle]; } }"""
    diagram, notes = parse_dot(source)
    assert diagram.edges == [
        DiagramEdge(start="a", end="b", free=True, hidden=True),
        DiagramEdge(start="a", end="c", label="1 has *"),
    ]
    assert diagram.nodes == [
        DiagramNode(id="a", label="a", shape="round"),
        DiagramNode(id="b", label="b", shape="folder", dashed=True),
        DiagramNode(id="c", label="c", shape="double"),
    ]
    assert diagram.groups == [NodeGroup(label="", nodes=["c"], dashed=True, color="#ffe0e0")]
    assert notes == ["Ignored: rank=min."]
