"""The numbers, rows and relations in the words of a prompt -> the data of a chart or a diagram."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from limner.rendering.elements import (
    AreaChart,
    BarChart,
    ChartSeries,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    LineChart,
    PieChart,
    ScatterPlot,
    SequenceDiagram,
    SequenceMessage,
    StepList,
    Timeline,
)

_NUMBER = r"[-+]?[$€£¥]?\d[\d,]*(?:\.\d+)?%?"
_PAIR = re.compile(rf"^(.*?)[\s:=]*\(?({_NUMBER})\)?$")
_NAMED = re.compile(rf"([^\d\s;,][^\d;,]*?)[\s:=]+({_NUMBER})(?=\s|$)")
_ARROW = re.compile(r"\s*(?:->|→|=>)\s*")
_IF = re.compile(r"^if\s+(\w[\w' ]*?)\s+((?:show|go|then|do|send|open|return|stop|end)\b.*)$")
_LEADS = re.compile(
    r"^(.+?)\s+(?:leads|manages|heads|supervises|reports to|is the parent of)\s+(.+)$"
)
_SPEAKS = re.compile(r"^(?P<one>\w[\w ]*?)\s+(?P<verb>asks|tells|sends|calls|requests|queries)\s+")
_REPLIES = re.compile(r"^(?P<one>\w[\w ]*?)\s+(?:answers|replies|responds|returns)\b(?P<rest>.*)$")
_QUOTES = "\"“”«»'"
AnyChart = BarChart | LineChart | AreaChart | PieChart | ScatterPlot
_CHARTS: dict[str, type[BarChart | LineChart | AreaChart | PieChart]] = {
    "bar": BarChart,
    "stacked": BarChart,
    "line": LineChart,
    "area": AreaChart,
    "pie": PieChart,
}
MIN_ROWS = 2


def read_chart(kind: str, body: str, title: str) -> AnyChart | None:
    """A chart of the labels and numbers in a text; None if there are too few."""
    if kind == "scatter":
        return _read_scatter(body, title)
    groups = [part for part in re.split(r"[;\n]", body) if part.strip()]
    if len(groups) >= MIN_ROWS and all(len(_NAMED.findall(_rest(part))) > 1 for part in groups):
        return _read_series(kind, groups, title)
    pairs = [(found[1], found[2]) for part in _parts(body) if (found := _PAIR.match(part))]
    pairs = [(label.strip(" :-"), word) for label, word in pairs if label.strip(" :-")]
    if len(pairs) < MIN_ROWS:
        return None
    return _CHARTS[kind](
        title=title,
        labels=[label for label, _ in pairs],
        values=[to_number(word) for _, word in pairs],
        unit=_unit([word for _, word in pairs]),
    )


def read_table(body: str, title: str) -> DataTable | None:
    """A table of "the columns A, B, C and the rows a b c; d e f"."""
    found = re.search(r"columns?:?\s+(.+?)(?:\s+and\s+(?:the\s+)?|[;:.]\s*)rows?:?\s+(.+)$", body)
    if found is None:
        return None
    columns = _parts(found[1])
    rows = [_cells(row, len(columns)) for row in re.split(r"[;\n]", found[2]) if row.strip()]
    return DataTable(title=title, columns=columns, rows=[[*row] for row in rows])


def read_flow(body: str, title: str) -> Diagram | None:
    """A diagram of steps joined by arrows; "if X A, else B" becomes a decision."""
    nodes: dict[str, DiagramNode] = {}
    edges: list[DiagramEdge] = []
    previous: str | None = None
    decision: str | None = None
    for chain in re.split(r"[,;\n]", body):
        steps = [step.strip(f" .{_QUOTES}") for step in _ARROW.split(chain)]
        if len(steps) > 1 and not steps[0].lower().startswith(("if ", "else")):
            previous = None
        for step in filter(None, steps):
            label = ""
            if found := _IF.match(step):
                decision = f"{found[1].strip().capitalize()}?"
                nodes[decision] = DiagramNode(id=decision, shape="diamond")
                if previous is not None:
                    edges.append(DiagramEdge(start=previous, end=decision))
                previous, label, step = decision, "yes", found[2]  # noqa: PLW2901 - the rest of it
            elif step.lower().startswith(("else ", "otherwise ")) and decision is not None:
                previous, label, step = decision, "no", step.split(maxsplit=1)[1]  # noqa: PLW2901
            name = step[:1].upper() + step[1:] if label else step
            nodes.setdefault(name, DiagramNode(id=name, shape=_shape(name)))
            if previous is not None:
                edges.append(DiagramEdge(start=previous, end=name, label=label))
            previous = name
    if not edges:
        return None
    return Diagram(title=title, nodes=list(nodes.values()), edges=[*edges])


def read_organisation(body: str, title: str) -> Diagram | None:
    """A diagram of who leads whom."""
    edges: list[DiagramEdge] = []
    for clause in re.split(r"[,;.\n]\s*(?=\w+\s+(?:leads|manages|heads|supervises))|;", body):
        if found := _LEADS.match(clause.strip(" .")):
            others = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[2])
            edges += [
                DiagramEdge(start=found[1].strip(), end=other.strip()) for other in others if other
            ]
    return Diagram(title=title, edges=[*edges]) if edges else None


def read_sequence(body: str, title: str) -> SequenceDiagram | None:
    """Messages of "A asks B for rows, B answers"."""
    messages: list[SequenceMessage] = []
    actors: list[str] = []
    for clause in filter(None, (part.strip(" .") for part in re.split(r"[,;\n]", body))):
        if found := _SPEAKS.match(clause):
            other, _, text = clause[found.end() :].partition(" ")
            one, dashed = found["one"], False
            text = f"{found['verb']} {text}".strip()
        elif found := _REPLIES.match(clause):
            one, dashed, text = found["one"], True, "answers"
            other = found["rest"].replace(" to ", " ").strip() or _asker(messages, one)
        else:
            continue
        if not other:
            continue
        actors += [name for name in (one, other) if name not in actors]
        messages.append(SequenceMessage(start=one, end=other, text=text, dashed=dashed))
    return SequenceDiagram(title=title, actors=actors, messages=[*messages]) if messages else None


def read_timeline(body: str, title: str) -> Timeline | None:
    """Events that start with a year or a date."""
    events: list[list[str | float]] = []
    for part in _parts(body, joined=False):
        when, _, what = part.partition(" ")
        if when[:1].isdigit() and what:
            events.append([when.rstrip(":"), what.strip(" :-")])
    return Timeline(title=title, events=[*events]) if len(events) >= MIN_ROWS else None


def read_steps(body: str, title: str) -> StepList | None:
    """Steps of a list."""
    parts = [re.sub(r"^\d+[.)]?\s*", "", part) for part in re.split(r"[,;\n]|->|→", body)]
    steps = [part.strip() for part in parts if part.strip()]
    return StepList(title=title, steps=[*steps[:12]]) if len(steps) >= MIN_ROWS else None


def to_number(word: str) -> float:
    """A number with currency, separators or a percent sign."""
    value = float(re.sub(r"[$€£¥,%+]", "", word))
    return int(value) if value.is_integer() else value


def _rest(group: str) -> str:
    """A group without its label, the first word."""
    return group.strip().partition(" ")[2]


def _read_series(kind: str, groups: Sequence[str], title: str) -> AnyChart:
    labels = [group.strip().split()[0] for group in groups]
    rows: dict[str, list[float | None]] = {}
    for place, group in enumerate(groups):
        for name, word in _NAMED.findall(_rest(group)):
            row = rows.setdefault(name.strip(" :,"), [None] * len(groups))
            row[place] = to_number(word)
    series = [ChartSeries(name=name.capitalize(), values=[*row]) for name, row in rows.items()]
    chart = _CHARTS[kind]
    if chart is BarChart:
        return BarChart(title=title, labels=[*labels], series=series, stacked=kind == "stacked")
    return chart(title=title, labels=[*labels], series=series)


def _read_scatter(body: str, title: str) -> ScatterPlot | None:
    numbers = [re.findall(_NUMBER, part) for part in _parts(body)]
    points = [(to_number(pair[0]), to_number(pair[1])) for pair in numbers if len(pair) == 2]
    axes = re.search(r"(\w+)\s+(?:against|vs\.?|versus|and|by)\s+(\w+)", title, re.IGNORECASE)
    if len(points) < MIN_ROWS:
        return None
    return ScatterPlot(
        title=title,
        points=points,
        x_label=axes[1].capitalize() if axes else "",
        y_label=axes[2].capitalize() if axes else "",
    )


def _parts(text: str, *, joined: bool = True) -> list[str]:
    """The parts of a list; a comma within a number does not separate them."""
    pattern = r",\s+(?:and\s+)?|;|\n|\s+and\s+" if joined else r",\s+(?:and\s+)?|;|\n"
    return [part.strip(" .") for part in re.split(pattern, text) if part.strip(" .")]


def _cells(row: str, count: int) -> list[str]:
    words = row.strip(" .").split()
    if "," in row:
        return [cell.strip() for cell in row.split(",")]
    # The first column takes the words that are left over.
    head = max(len(words) - count + 1, 1)
    return [" ".join(words[:head]), *words[head:]]


def _unit(words: Sequence[str]) -> str:
    for sign in "$€£¥%":
        if all(sign in word for word in words):
            return sign
    return ""


def _shape(name: str) -> Literal["box", "round", "diamond"]:
    plain = name.lower()
    if plain in ("start", "end", "stop", "finish", "begin"):
        return "round"
    return "diamond" if name.endswith("?") else "box"


def _asker(messages: Sequence[SequenceMessage], one: str) -> str:
    return next((m.start for m in reversed(messages) if m.end == one and not m.dashed), "")
