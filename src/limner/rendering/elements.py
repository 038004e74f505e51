"""The elements of a document in limner's own JSON: a chart, a table, a diagram, a page of them.

Each element is a Struct. Its fields are the grammar: the parser, the error texts and the help that
a model reads are derived from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limner.imaging.fonts import FontStyle

Align = Literal["start", "center", "end"]
TextSize = Literal["small", "body", "heading", "title", "huge"]
# Differences and sums of such numbers are finite.
Whole = Annotated[int, Meta(ge=-(10**18), le=10**18)]
Number = Whole | Annotated[float, Meta(ge=-1e100, le=1e100)]
Cell = str | int | float | bool | None
Positive = Annotated[float, Meta(gt=0, le=8192)]
Share = Annotated[float, Meta(ge=0, le=1)]

MAX_POINTS = 2_000
MAX_NODES = 300
MAX_CHILDREN = 500
MAX_TEXT_CHARS = 4_000

Words = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
Colour = Annotated[str, Meta(max_length=40)]
Values = Annotated[list[Number | None], Meta(max_length=MAX_POINTS)]
Points = Annotated[
    list[Annotated[list[Number], Meta(min_length=2, max_length=3)]], Meta(max_length=MAX_POINTS)
]
Labels = Annotated[list[Words | Number], Meta(max_length=MAX_POINTS)]


class DocumentElement(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag=str.lower,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """What every element has: its place, a share of the room that is left, sizes in pixels."""

    grow: Annotated[float, Meta(ge=0, le=100)] | None = None
    width: Positive | None = None
    height: Positive | None = None
    align: Align | None = None


class TextBlock(DocumentElement, frozen=True, kw_only=True, tag="text"):
    """Words. They are wrapped to the width that is there."""

    text: Words
    size: TextSize | Positive = "body"
    bold: bool = False
    italic: bool = False
    color: Colour | None = None
    font: FontStyle | None = None


class AssetPicture(DocumentElement, frozen=True, kw_only=True, tag="asset"):
    """A ready-made picture by its name."""

    name: Annotated[str, Meta(max_length=120)]
    size: Positive | None = None


class Divider(DocumentElement, frozen=True, kw_only=True):
    """A thin line across."""


class Spacer(DocumentElement, frozen=True, kw_only=True):
    """Empty room."""


class Badge(DocumentElement, frozen=True, kw_only=True):
    """A short word on a coloured ground."""

    text: Words
    color: Colour | None = None


class Button(DocumentElement, frozen=True, kw_only=True):
    """A button of a screen."""

    text: Words
    color: Colour | None = None
    outline: bool = False
    disabled: bool = False


class InputField(DocumentElement, frozen=True, kw_only=True, tag="field"):
    """An input field of a screen, with its label above it."""

    label: Words = ""
    value: Words = ""
    placeholder: Words = ""
    password: bool = False


class Checkbox(DocumentElement, frozen=True, kw_only=True):
    """A box with a label; with ``radio`` it is round."""

    label: Words
    checked: bool = False
    radio: bool = False


class Toggle(DocumentElement, frozen=True, kw_only=True):
    """A switch with a label."""

    label: Words
    on: bool = False


class Metric(DocumentElement, frozen=True, kw_only=True):
    """A number that matters, with its label and how it changed."""

    label: Words
    value: Words | Number
    change: Words = ""


class ProgressBar(DocumentElement, frozen=True, kw_only=True, tag="progress"):
    """A bar that is filled up to a value; ``text`` replaces the number beside it."""

    label: Words = ""
    value: Number
    max: Number | None = None
    unit: Annotated[str, Meta(max_length=20)] = ""
    text: Words = ""
    color: Colour | None = None


class ItemList(DocumentElement, frozen=True, kw_only=True, tag="list"):
    """Lines with bullets or numbers; ``active`` marks one, as in a menu."""

    items: Annotated[list[Words], Meta(max_length=MAX_CHILDREN)]
    ordered: bool = False
    bullets: bool = True
    active: int | None = None


class TitledElement(DocumentElement, frozen=True, kw_only=True):
    """What every element with a title has; the subtitle is smaller, below it."""

    title: Words = ""
    subtitle: Words = ""


class StepList(TitledElement, frozen=True, kw_only=True, tag="steps"):
    """Numbered steps from left to right, each a title or a title and a text.

    The steps after ``current`` are pale.
    """

    steps: Annotated[
        list[Words | Annotated[list[Words], Meta(min_length=1, max_length=2)]],
        Meta(min_length=1, max_length=12),
    ]
    current: Annotated[int, Meta(ge=1, le=12)] | None = None


class QrCode(DocumentElement, frozen=True, kw_only=True, tag="qr"):
    """A QR code, with an optional caption below it."""

    data: Annotated[str, Meta(min_length=1, max_length=2_000)]
    caption: Words = ""
    size: Positive | None = None


class ChartSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of values of a chart; with ``line`` it is a line over the bars.

    ``points`` are those of a scatter plot: x, y, and a size if they have one.
    """

    name: Words = ""
    values: Values = []
    points: Points = []
    color: Colour | None = None
    dashed: bool = False
    line: bool = False


class Chart(TitledElement, frozen=True, kw_only=True):
    """What every chart has. Give ``labels`` and ``values``, or ``labels`` and ``series``."""

    labels: Labels = []
    values: Values | dict[str, Number | None] = []
    series: Annotated[list[ChartSeries], Meta(max_length=40)] | dict[str, Values] = []
    unit: Annotated[str, Meta(max_length=20)] = ""
    x_label: Words = ""
    y_label: Words = ""
    y_min: Number | None = None
    y_max: Number | None = None
    footer: Words = ""
    show_values: bool = True
    thousands: bool = False
    colors: Annotated[list[Colour], Meta(max_length=40)] = []


class BarChart(Chart, frozen=True, kw_only=True, tag="bar"):
    """Bars; several series stand side by side, or ``stacked``, with ``percent`` up to 100 %."""

    stacked: bool = False
    percent: bool = False
    horizontal: bool = False


class LineChart(Chart, frozen=True, kw_only=True, tag="line"):
    """Lines over labels."""


class AreaChart(Chart, frozen=True, kw_only=True, tag="area"):
    """Lines with the area below them filled; ``stacked`` puts each on the one before it."""

    stacked: bool = False


class PieChart(Chart, frozen=True, kw_only=True, tag="pie"):
    """Shares of a whole; ``donut`` leaves the middle empty, for the text ``center``."""

    donut: bool = False
    center: Words = ""


class ScatterPlot(Chart, frozen=True, kw_only=True, tag="scatter"):
    """Points by two numbers, or three: the last is their size. ``labels`` are their names.

    ``quadrants`` are texts for the upper right, upper left, lower left and lower right quarter.
    """

    points: Points = []
    x_min: Number | None = None
    x_max: Number | None = None
    quadrants: Annotated[list[Words], Meta(max_length=4)] = []


class DataTable(TitledElement, frozen=True, kw_only=True, tag="table"):
    """Rows and columns; ``heat`` colours the cells by their numbers."""

    columns: Annotated[list[Words], Meta(max_length=40)] = []
    rows: Annotated[list[Annotated[list[Cell], Meta(max_length=40)]], Meta(max_length=400)]
    column_align: Annotated[list[Align], Meta(max_length=40)] = []
    heat: bool = False


NodeShape = Literal[
    "box",
    "round",
    "diamond",
    "circle",
    "double",
    "cylinder",
    "note",
    "hexagon",
    "parallelogram",
    "trapezoid",
    "house",
    "folder",
    "component",
    "person",
    "cloud",
    "bar",
    "text",
]


class DiagramNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A box of a diagram. Without a label it shows its id; ``rows`` are lines below the label."""

    id: Words
    label: Words | None = None
    shape: NodeShape = "box"
    color: Colour | None = None
    dashed: bool = False
    rows: Annotated[list[Words], Meta(max_length=60)] = []


class DiagramEdge(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"start": "from", "end": "to"},
):
    """A line of a diagram from one node to another.

    A ``free`` line does not decide which node is above the other; a ``hidden`` one only does that.
    """

    start: Words
    end: Words
    label: Words = ""
    color: Colour | None = None
    dashed: bool = False
    free: bool = False
    hidden: bool = False
    arrow: Literal["end", "both", "none", "triangle", "diamond"] = "end"


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame around some nodes of a diagram."""

    label: Words
    color: Colour | None = None
    dashed: bool = False
    nodes: Annotated[list[Words], Meta(max_length=MAX_NODES)]


EdgeText = Annotated[list[Words], Meta(min_length=2, max_length=3)]


class Diagram(TitledElement, frozen=True, kw_only=True):
    """Boxes and arrows, placed by the layout. Nodes that only edges name are made.

    The nodes of each list in ``same_rank`` stand side by side.
    """

    nodes: Annotated[list[Words | DiagramNode], Meta(max_length=MAX_NODES)] = []
    edges: Annotated[list[EdgeText | DiagramEdge], Meta(max_length=4 * MAX_NODES)] = []
    groups: Annotated[list[NodeGroup], Meta(max_length=40)] = []
    same_rank: Annotated[
        list[Annotated[list[Words], Meta(max_length=40)]], Meta(max_length=60)
    ] = []
    direction: Literal["down", "right", "up", "left"] = "down"


class SequenceMessage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"start": "from", "end": "to"},
):
    """One arrow of a sequence; with ``note`` it is a text over the lines instead.

    A ``lost`` message ends in a cross.
    """

    start: Words
    end: Words
    text: Words = ""
    dashed: bool = False
    note: bool = False
    lost: bool = False


class SequenceActivation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An actor that works, from message number ``first`` to number ``last``, counted from 0."""

    actor: Words
    first: Annotated[int, Meta(ge=0)]
    last: Annotated[int, Meta(ge=0)]


class SequenceFrame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame around messages, from number ``first`` to number ``last``, counted from 0.

    Each of the ``parts`` is a number and a text: a line above that message, as for "else".
    """

    label: Words = ""
    first: Annotated[int, Meta(ge=0)]
    last: Annotated[int, Meta(ge=0)]
    parts: Annotated[list[tuple[Annotated[int, Meta(ge=0)], Words]], Meta(max_length=40)] = []
    color: Colour | None = None


class SequenceDiagram(TitledElement, frozen=True, kw_only=True, tag="sequence"):
    """Messages between actors, from top to bottom; the actors in ``people`` are drawn as people."""

    actors: Annotated[list[Words], Meta(max_length=24)] = []
    people: Annotated[list[Words], Meta(max_length=24)] = []
    messages: Annotated[list[EdgeText | SequenceMessage], Meta(max_length=200)]
    frames: Annotated[list[SequenceFrame], Meta(max_length=60)] = []
    activations: Annotated[list[SequenceActivation], Meta(max_length=100)] = []
    groups: Annotated[list[NodeGroup], Meta(max_length=24)] = []


class GanttTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task from ``start`` to ``end``, or for some ``days``: dates as 2026-03-02, or numbers."""

    name: Words
    start: Words | Number
    end: Words | Number | None = None
    days: Number | None = None
    section: Words = ""
    state: Literal["", "done", "active", "critical"] = ""
    milestone: bool = False
    color: Colour | None = None


class GanttChart(TitledElement, frozen=True, kw_only=True, tag="gantt"):
    """Tasks as bars on an axis of time."""

    tasks: Annotated[list[GanttTask], Meta(min_length=1, max_length=80)]


class Commit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit of a branch. Without ``parents`` it follows the last one of its branch."""

    id: Words
    label: Words | None = None
    branch: Words = "main"
    parents: Annotated[list[Words], Meta(max_length=8)] = []
    tag: Words = ""
    kind: Literal["normal", "highlight", "reverse"] = "normal"


class CommitGraph(TitledElement, frozen=True, kw_only=True, tag="gitgraph"):
    """The commits of a repository in their order, with a lane for each branch."""

    branches: Annotated[list[Words], Meta(max_length=24)] = []
    commits: Annotated[list[Commit], Meta(min_length=1, max_length=120)]


class Timeline(TitledElement, frozen=True, kw_only=True):
    """Events in their order: pairs of a time and a text."""

    events: Annotated[
        list[Annotated[list[Words | Number], Meta(min_length=2, max_length=2)]],
        Meta(min_length=1, max_length=40),
    ]


class Container(DocumentElement, frozen=True, kw_only=True):
    """What every element with children has. ``background`` is a colour, or two for a gradient."""

    children: Annotated[list[AnyElement], Meta(max_length=MAX_CHILDREN)]
    gap: Annotated[float, Meta(ge=0, le=2048)] | None = None
    padding: Annotated[float, Meta(ge=0, le=2048)] | None = None
    radius: Annotated[float, Meta(ge=0, le=2048)] | None = None
    background: Colour | Annotated[list[Colour], Meta(min_length=1, max_length=3)] | None = None
    color: Colour | None = None


class ColumnBox(Container, frozen=True, kw_only=True, tag="column"):
    """Elements from top to bottom."""


class RowBox(Container, frozen=True, kw_only=True, tag="row"):
    """Elements from left to right; they share the width unless one says how wide it is."""


class Card(Container, frozen=True, kw_only=True):
    """A column on a ground of its own with round corners; ``accent`` makes its border stand out."""

    title: Words = ""
    accent: bool = False


class Page(Container, frozen=True, kw_only=True):
    """The whole picture."""

    size: Annotated[str, Meta(pattern=r"^\s*\d{1,4}\s*[xX]\s*\d{1,4}\s*$")] | None = None
    theme: Literal["light", "dark", "warm", "forest", "blueprint"] = "light"
    font: FontStyle = "sans"
    border: Colour | None = None
    justify: Literal["start", "center", "spread"] = "center"


AnyElement = (
    TextBlock
    | AssetPicture
    | Divider
    | Spacer
    | Badge
    | Button
    | InputField
    | Checkbox
    | Toggle
    | Metric
    | ProgressBar
    | ItemList
    | StepList
    | QrCode
    | BarChart
    | LineChart
    | AreaChart
    | PieChart
    | ScatterPlot
    | DataTable
    | Diagram
    | SequenceDiagram
    | CommitGraph
    | GanttChart
    | Timeline
    | ColumnBox
    | RowBox
    | Card
)
Document = AnyElement | Page
