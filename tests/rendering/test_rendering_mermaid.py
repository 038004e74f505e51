"""Mermaid becomes diagrams, sequences and charts; what is not Mermaid is refused with its line."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.errors import InputInvalid
from limner.rendering.elements import (
    BarChart,
    ChartSeries,
    Commit,
    CommitGraph,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    GanttChart,
    GanttTask,
    NodeGroup,
    PieChart,
    ScatterPlot,
    SequenceActivation,
    SequenceDiagram,
    SequenceFrame,
    SequenceMessage,
    Timeline,
)
from limner.rendering.mermaid import parse_mermaid

HEADERS = (
    *("flowchart LR", "sequenceDiagram", "classDiagram", "stateDiagram-v2", "pie", "mindmap"),
    *("erDiagram", "gantt", "xychart-beta", "quadrantChart", "journey", "kanban", "sankey-beta"),
    *("C4Context", "gitGraph"),
)
PARTS = (
    *("A", "B", "-->", "---", "-.->", "==>", "--", "-.", "|", "[", "]", "(", ")", "{", "}", '"'),
    *("&", ";", ":", "\n", "subgraph", "end", "class", "state", "note", "loop", "->>", "<|--", "*"),
    *("[*]", "~", ">", "<", "participant", "as", "over", "12", "timeline", "title"),
)


def test_a_flowchart_with_shapes_links_chains_and_groups_is_parsed() -> None:
    source = """---
title: Login
---
    flowchart LR
      %% a comment
      A([Start]) --> B[Check<br/>login]; B --> C{"Valid (now)?"}
      C -->|yes| D & E
      C -- no --> F
      F -.-> B
      D ==> G[(Users)]
      E --- H>Note #35;1]
      F <--> G
      D-. maybe .->F
      subgraph s1 [The store]
        G
        subgraph Inner part
          I((I))
        end
      end
      A --> s1
      classDef red fill:#f00
      style A fill:#0f0
    """
    assert parse_mermaid(source) == (
        Diagram(
            nodes=[
                DiagramNode(id="A", label="Start", shape="round", color="#00ff00"),
                DiagramNode(id="B", label="Check\nlogin"),
                DiagramNode(id="C", label="Valid (now)?", shape="diamond"),
                DiagramNode(id="D"),
                DiagramNode(id="E"),
                DiagramNode(id="F"),
                DiagramNode(id="G", label="Users", shape="cylinder"),
                DiagramNode(id="H", label="Note #1", shape="note"),
                DiagramNode(id="I", label="I", shape="circle"),
            ],
            edges=[
                DiagramEdge(start="A", end="B"),
                DiagramEdge(start="B", end="C"),
                DiagramEdge(start="C", end="D", label="yes"),
                DiagramEdge(start="C", end="E", label="yes"),
                DiagramEdge(start="C", end="F", label="no"),
                DiagramEdge(start="F", end="B", dashed=True),
                DiagramEdge(start="D", end="G"),
                DiagramEdge(start="E", end="H", arrow="none"),
                DiagramEdge(start="F", end="G", arrow="both"),
                DiagramEdge(start="D", end="F", label="maybe", dashed=True),
                DiagramEdge(start="A", end="G"),
            ],
            groups=[
                NodeGroup(label="The store", nodes=["G", "I"]),
                NodeGroup(label="Inner part", nodes=["I"]),
            ],
            direction="right",
            title="Login",
        ),
        [],
    )


def test_a_sequence_with_aliases_notes_and_blocks_is_parsed() -> None:
    source = """sequenceDiagram
        participant B as Browser
        B->>+API: GET /page
        loop each second
        API-->>B: progress
        end
        activate B
        Note over B,API: done
        API->>API: rests
    """

    def message(start: str, end: str, text: str, **rest: bool) -> SequenceMessage:
        return SequenceMessage(start=start, end=end, text=text, **rest)

    assert parse_mermaid(source) == (
        SequenceDiagram(
            actors=["Browser", "API"],
            messages=[
                message("Browser", "API", "GET /page"),
                message("API", "Browser", "progress", dashed=True),
                message("Browser", "API", "done", note=True),
                message("API", "API", "rests"),
            ],
            frames=[SequenceFrame(label="loop [each second]", first=1, last=1)],
            activations=[
                SequenceActivation(actor="API", first=0, last=3),
                SequenceActivation(actor="Browser", first=1, last=3),
            ],
        ),
        [],
    )


def test_a_class_diagram_with_members_and_relations_is_parsed() -> None:
    source = """classDiagram
        class Animal {
            <<interface>>
            +name: str
        }
        Animal : +run()
        Animal <|-- Dog
        Dog *-- Collar
        Owner "1" --> "0..*" Animal : owns
        Cat ..|> Animal
        class List~T~ { +add(item) }
    """
    assert parse_mermaid(source) == (
        Diagram(
            nodes=[
                DiagramNode(id="Animal", rows=["«interface»", "+name: str", "+run()"]),
                DiagramNode(id="Dog"),
                DiagramNode(id="Collar"),
                DiagramNode(id="Owner"),
                DiagramNode(id="Cat"),
                DiagramNode(id="List", label="List<T>", rows=["+add(item)"]),
            ],
            edges=[
                DiagramEdge(start="Dog", end="Animal", arrow="triangle"),
                DiagramEdge(start="Collar", end="Dog", arrow="diamond"),
                DiagramEdge(start="Owner", end="Animal", label="1 owns 0..*"),
                DiagramEdge(start="Cat", end="Animal", arrow="triangle", dashed=True),
            ],
        ),
        [],
    )


def test_a_state_diagram_with_a_start_an_end_and_a_state_of_states_is_parsed() -> None:
    source = """stateDiagram-v2
        direction LR
        [*] --> Idle
        Idle --> Load : fetch
        state Load {
            Connect --> Read
        }
        Load --> [*]
        state "Not sure" as N
        state c <<choice>>
        N --> c
    """
    assert parse_mermaid(source)[0] == Diagram(
        nodes=[
            DiagramNode(id="start ", label="", shape="circle"),
            DiagramNode(id="Idle", shape="round"),
            DiagramNode(id="Connect", shape="round"),
            DiagramNode(id="Read", shape="round"),
            DiagramNode(id="end ", label="", shape="double"),
            DiagramNode(id="N", label="Not sure", shape="round"),
            DiagramNode(id="c", label="", shape="diamond"),
        ],
        edges=[
            DiagramEdge(start="start ", end="Idle"),
            DiagramEdge(start="Idle", end="Connect", label="fetch"),
            DiagramEdge(start="Connect", end="Read"),
            DiagramEdge(start="Read", end="end "),
            DiagramEdge(start="N", end="c"),
        ],
        groups=[NodeGroup(label="Load", nodes=["Connect", "Read"])],
        direction="right",
    )


def test_a_pie_a_timeline_and_a_mind_map_are_parsed() -> None:
    assert parse_mermaid('pie title Pets\n "Dogs" : 40\n "Cats" : 60.5')[0] == PieChart(
        title="Pets", values={"Dogs": 40.0, "Cats": 60.5}
    )
    assert parse_mermaid("timeline\n title Space\n 1969 : Moon : Earth\n : Mars")[0] == Timeline(
        title="Space", events=[["1969", "Moon\nEarth\nMars"]]
    )
    mind_map = parse_mermaid("mindmap\n root((Limner))\n  Draw\n   Charts\n  Look")[0]
    assert isinstance(mind_map, Diagram)
    assert mind_map.edges == [
        DiagramEdge(start="n0", end="n1", arrow="none"),
        DiagramEdge(start="n1", end="n2", arrow="none"),
        # The second half of the branches is to the left of the root.
        DiagramEdge(start="n3", end="n0", arrow="none"),
    ]


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("", "line 0: nothing to draw", "Start with one of: flowchart TD"),
        ("venn\n a", "line 1: 'venn' is not a form of Mermaid that is drawn", "sequenceDiagram"),
        ("graph XY\n A", "line 1: the direction is not known: 'graph XY'", "TD, TB, LR, RL, BT"),
        ("graph TD\n A --> ", "line 2: a node is missing at the end: 'A -->'", "A[Start] --> B"),
        ("graph TD\n A[Start --> B", "line 2: ']' is missing: 'A[Start --> B'", "Write: A[Start]"),
        ("graph TD\n A -> B", "line 2: expected a link such as -->, found '-> B'", "-->"),
        ("graph TD\n A -->|yes B", "line 2: the text of the link has no end", "A -->|text| B"),
        ("graph TD\n\n end", "line 3: there is no subgraph to end: 'end'", "Remove this line."),
        ("graph TD", "line 1: the diagram has no nodes: 'graph TD'", "A[Start]"),
        ("sequenceDiagram\n A says hi", "line 2: this is not a message: 'A says hi'", "Alice->>"),
        ("classDiagram\n A = B", "line 2: this is not a relation: 'A = B'", "Animal <|-- Dog"),
        ("stateDiagram\n A -> B", "line 2: this is not a state or a transition", "[*] --> Idle"),
        ("pie\n Dogs 40", "line 2: this is not a slice: 'Dogs 40'", '"Apples" : 12'),
        ("timeline\n 1969", "line 2: this is not an event: '1969'", "1969 : Moon landing"),
        ("graph TD\n" + "A" * 200_000, "the source has 200,009 characters", ""),
    ],
)
def test_broken_mermaid_is_refused_with_its_line_and_what_to_write(
    source: str, message: str, hint: str
) -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_mermaid(source)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


@settings(max_examples=examples(100))
@given(st.sampled_from(HEADERS), st.lists(st.sampled_from(PARTS), max_size=24), st.booleans())
def test_every_text_is_parsed_or_refused(header: str, parts: list[str], spaced: bool) -> None:
    with suppress(InputInvalid):
        parse_mermaid(f"{header}\n{(' ' if spaced else '').join(parts)}")


@pytest.mark.parametrize(
    "source",
    [
        "graph TD\n" + "A-->" * 40_000 + "A",
        "graph TD\nA" + "[" * 190_000,
        "graph TD\nA --" + " -" * 90_000,
        "graph TD\nA[" + "<" * 190_000 + "]",
        "sequenceDiagram\nA->>B" + " " * 100_000 + "C",
        "classDiagram\n" + '"' * 190_000,
        "classDiagram\n" + "A~" * 90_000,
        "stateDiagram\n" + "state a {\n" * 19_000,
        "classDiagram\n" + "A : b\n" * 30_000,
        "graph TD\n" + "\n".join(f"a{place}" for place in range(25_000)),
    ],
)
def test_a_hostile_source_takes_no_time(source: str) -> None:
    with pytest.raises(InputInvalid, match=r"line|too large"):
        parse_mermaid(source)


def test_the_fills_of_classes_and_styles_colour_the_nodes() -> None:
    diagram, notes = parse_mermaid(
        "flowchart TD\n A --> B:::good --> C --> D\n classDef good fill:#bbf7d0,stroke:#000\n"
        " class C good\n style A fill:#f00\n style D stroke:#000\n"
    )
    assert isinstance(diagram, Diagram)
    nodes = [node for node in diagram.nodes if isinstance(node, DiagramNode)]
    colours = {node.id: node.color for node in nodes}
    assert colours == {"A": "#ff0000", "B": "#bbf7d0", "C": "#bbf7d0", "D": None}
    assert notes == ["Ignored: style."]


def test_a_note_stands_beside_its_class_or_state() -> None:
    states = (
        "---\ntitle: Order\n---\nstateDiagram-v2\n A --> B\n note right of A\n Be quick\n end note"
    )
    classes = 'classDiagram\n A --> B\n note for A "Be quick"'
    wanted: list[tuple[str, str, Literal["round", "box"]]] = [
        (states, "Order", "round"),
        (classes, "", "box"),
    ]
    for source, title, shape in wanted:
        assert parse_mermaid(source) == (
            Diagram(
                title=title,
                nodes=[
                    DiagramNode(id="A", shape=shape),
                    DiagramNode(id="B", shape=shape),
                    DiagramNode(id="note 2", label="Be quick", shape="note"),
                ],
                edges=[
                    DiagramEdge(start="A", end="B"),
                    DiagramEdge(start="A", end="note 2", dashed=True, arrow="none"),
                ],
            ),
            [],
        )


@pytest.mark.parametrize(
    ("source", "ignored"),
    [
        ("%%{init: {'theme': 'dark'}}%%\nflowchart LR\n a --> b", "init"),
        ("---\ntitle: T\nconfig:\n  theme: dark\n---\nflowchart LR\n a --> b", "config"),
        ("sequenceDiagram\n A->>B: hi\n destroy B", "destroy"),
    ],
)
def test_what_is_left_out_is_reported(source: str, ignored: str) -> None:
    assert parse_mermaid(source)[1] == [f"Ignored: {ignored}."]


def test_a_class_of_style_is_not_part_of_the_name_of_a_state() -> None:
    diagram, _ = parse_mermaid("stateDiagram-v2\n A:::x --> B:::x : go")
    assert isinstance(diagram, Diagram)
    assert diagram.edges == [DiagramEdge(start="A", end="B", label="go")]


def test_a_git_graph_has_branches_merges_and_tags() -> None:
    source = """gitGraph
        commit id: "init" tag: "v1"
        branch develop
        commit
        commit id: "undo" type: REVERSE
        checkout main
        merge develop tag: "v2"
        cherry-pick id: "undo"
    """
    assert parse_mermaid(source) == (
        CommitGraph(
            branches=["main", "develop"],
            commits=[
                Commit(id="init", label="init", tag="v1"),
                Commit(id="commit 2", label="", branch="develop", parents=["init"]),
                Commit(
                    id="undo", label="undo", branch="develop", parents=["commit 2"], kind="reverse"
                ),
                Commit(id="commit 4", label="", parents=["init", "undo"], tag="v2"),
                Commit(id="commit 5", label="cherry-pick undo", parents=["commit 4"]),
            ],
        ),
        [],
    )
    with pytest.raises(InputInvalid, match="line 2: there is no branch 'dev'"):
        parse_mermaid("gitGraph\n merge dev")


def test_an_actor_is_a_person_and_a_participant_is_a_box() -> None:
    sequence, _ = parse_mermaid("sequenceDiagram\n actor U as User\n U->>App: hi")
    assert isinstance(sequence, SequenceDiagram)
    assert (sequence.actors, sequence.people) == (["User", "App"], ["User"])


def test_entities_have_attributes_and_relations_have_counts() -> None:
    source = """erDiagram
        CUSTOMER ||--o{ ORDER : places
        CUSTOMER {
            string id PK "a number"
            string name
        }
        ORDER }|..|| CLERK : "is for"
    """
    assert parse_mermaid(source)[0] == Diagram(
        nodes=[
            DiagramNode(id="CUSTOMER", rows=["id string PK a number", "name string"]),
            DiagramNode(id="ORDER"),
            DiagramNode(id="CLERK"),
        ],
        edges=[
            DiagramEdge(start="CUSTOMER", end="ORDER", label="1 places 0..*", arrow="none"),
            DiagramEdge(
                start="ORDER", end="CLERK", label="1..* is for 1", arrow="none", dashed=True
            ),
        ],
    )


def test_tasks_of_a_plan_follow_each_other() -> None:
    source = """gantt
        title Plan
        dateFormat YYYY-MM-DD
        section Build
        Design :done, d1, 2026-03-02, 5d
        Code :crit, after d1, 1w
        Tests :2026-03-16, 2026-03-18
        Launch :milestone, 0d
    """
    assert parse_mermaid(source)[0] == GanttChart(
        title="Plan",
        tasks=[
            GanttTask(
                name="Design",
                start="2026-03-02T00:00:00",
                end="2026-03-07T00:00:00",
                state="done",
                section="Build",
            ),
            GanttTask(
                name="Code",
                start="2026-03-07T00:00:00",
                end="2026-03-14T00:00:00",
                state="critical",
                section="Build",
            ),
            GanttTask(
                name="Tests",
                start="2026-03-16T00:00:00",
                end="2026-03-18T00:00:00",
                section="Build",
            ),
            GanttTask(
                name="Launch",
                start="2026-03-18T00:00:00",
                end="2026-03-18T00:00:00",
                milestone=True,
                section="Build",
            ),
        ],
    )


def test_bars_and_lines_of_a_chart_share_their_axis() -> None:
    source = """xychart-beta
        title "Sales"
        x-axis [Jan, "Feb"]
        y-axis "EUR" 0 --> 20
        bar [12, 18]
        line "Goal" [10, 20]
    """
    assert parse_mermaid(source)[0] == BarChart(
        title="Sales",
        labels=["Jan", "Feb"],
        y_label="EUR",
        y_min=0.0,
        y_max=20.0,
        series=[
            ChartSeries(values=[12.0, 18.0]),
            ChartSeries(name="Goal", values=[10.0, 20.0], line=True),
        ],
    )


def test_points_in_quadrants_have_names() -> None:
    source = """quadrantChart
        x-axis Low --> High
        quadrant-2 Do first
        Task A: [0.3, 0.6]
    """
    assert parse_mermaid(source)[0] == ScatterPlot(
        points=[[0.3, 0.6]],
        labels=["Task A"],
        quadrants=["", "Do first", "", ""],
        x_label="Low → High",
        x_min=0,
        x_max=1,
        y_min=0,
        y_max=1,
    )


def test_a_journey_is_a_table_and_flows_are_lines_with_amounts() -> None:
    assert parse_mermaid("journey\n section Tea\n Boil: 5: Me, Cat\n Drink: 3: Me") == (
        DataTable(
            columns=["Part", "Task", "Score", "Who"],
            rows=[["Tea", "Boil", "5/5", "Me, Cat"], ["", "Drink", "3/5", "Me"]],
        ),
        ["The journey is drawn as a table."],
    )
    assert parse_mermaid("sankey-beta\n\nCoal,Power,12")[0] == Diagram(
        nodes=[DiagramNode(id="Coal"), DiagramNode(id="Power")],
        edges=[DiagramEdge(start="Coal", end="Power", label="12")],
        direction="right",
    )


def test_a_model_of_systems_has_people_stores_and_boundaries() -> None:
    source = """C4Context
        Person(u, "User", "Buys")
        System_Boundary(b, "Shop") {
            ContainerDb(d, "Orders", "SQL")
        }
        Rel(u, d, "fills", "HTTPS")
    """
    assert parse_mermaid(source)[0] == Diagram(
        nodes=[
            DiagramNode(id="u", label="User\nBuys", shape="person"),
            DiagramNode(id="d", label="Orders\nSQL", shape="cylinder"),
        ],
        edges=[DiagramEdge(start="u", end="d", label="fills\n[HTTPS]", dashed=True)],
        groups=[NodeGroup(label="Shop", nodes=["d"])],
    )


def test_a_form_that_is_not_drawn_says_what_to_write_instead() -> None:
    with pytest.raises(InputInvalid) as error:
        parse_mermaid("block-beta\n a b")
    assert error.value.hint == (
        "Write flowchart with a subgraph for each row, or rows of cards in JSON."
    )


def test_shapes_in_braces_and_dashed_frames_are_understood() -> None:
    source = """flowchart LR
        A@{ shape: cyl, label: "Data" } e1@--> B{{"Hex"}} --> C[/In/]
        subgraph S [Part]
          C
        end
        style S fill:#eef,stroke-dasharray: 5 5
    """
    diagram, notes = parse_mermaid(source)
    assert isinstance(diagram, Diagram)
    assert diagram.nodes == [
        DiagramNode(id="A", label="Data", shape="cylinder"),
        DiagramNode(id="B", label="Hex", shape="hexagon"),
        DiagramNode(id="C", label="In", shape="parallelogram"),
    ]
    assert diagram.groups == [NodeGroup(label="Part", nodes=["C"], color="#eeeeff", dashed=True)]
    assert notes == []


def test_classes_of_style_paint_states() -> None:
    diagram, notes = parse_mermaid("stateDiagram-v2\n A:::x --> B : go\n classDef x fill:#f00")
    assert isinstance(diagram, Diagram)
    assert diagram.nodes == [
        DiagramNode(id="A", shape="round", color="#ff0000"),
        DiagramNode(id="B", shape="round"),
    ]
    assert notes == []


def test_actors_work_for_a_while_are_grouped_and_messages_get_lost() -> None:
    source = """sequenceDiagram
        box Clinic
        participant R
        end
        P->>+R: ask
        activate P
        R--xP: no
        R-->>-P: later
        deactivate P
    """
    sequence, notes = parse_mermaid(source)
    assert sequence == SequenceDiagram(
        actors=["R", "P"],
        groups=[NodeGroup(label="Clinic", nodes=["R"])],
        messages=[
            SequenceMessage(start="P", end="R", text="ask"),
            SequenceMessage(start="R", end="P", text="no", dashed=True, lost=True),
            SequenceMessage(start="R", end="P", text="later", dashed=True),
        ],
        activations=[
            SequenceActivation(actor="R", first=0, last=2),
            SequenceActivation(actor="P", first=0, last=2),
        ],
    )
    assert notes == []


def test_a_class_with_parameters_is_the_class_without_them() -> None:
    diagram, _ = parse_mermaid("classDiagram\n class Repo~T~\n Repo <|.. OrderRepo")
    assert isinstance(diagram, Diagram)
    assert diagram.nodes == [DiagramNode(id="Repo", label="Repo<T>"), DiagramNode(id="OrderRepo")]


def test_the_first_event_of_a_section_has_its_name() -> None:
    source = "timeline\n section Steam\n 1769 : Watt\n 1829 : Rocket\n section Oil\n 1859 : Drake"
    assert parse_mermaid(source) == (
        Timeline(events=[["Steam\n1769", "Watt"], ["1829", "Rocket"], ["Oil\n1859", "Drake"]]),
        [],
    )
