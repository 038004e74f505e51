"""Models and maps in Mermaid -> boxes and lines: erDiagram, C4, sankey, mind maps."""

from __future__ import annotations

import csv
import re

from limner.rendering.diagram_source import GraphBuilder
from limner.rendering.elements import Diagram
from limner.rendering.mermaid_lines import MermaidSource, plain_text

_MAX_ROWS = 60
_RELATION = re.compile(
    r"(?P<one>\"[^\"]*\"|[\w.-]+?)\s*(?P<left>\|o|\|\||\}o|\}\||\}\.)\s*(?P<line>--|\.\.)\s*"
    r"(?P<right>o\||\|\||o\{|\|\{)\s*(?P<other>\"[^\"]*\"|[\w.-]+)\s*(?::\s*(?P<label>.*))?"
)
_COUNTS = {
    **dict.fromkeys(("|o", "o|"), "0..1"),
    "||": "1",
    **dict.fromkeys(("}o", "o{"), "0..*"),
    **dict.fromkeys(("}|", "|{"), "1..*"),
}
_ER_HINT = "Write: CUSTOMER ||--o{ ORDER : places, or CUSTOMER { string name PK }."
_CALL = re.compile(r"(\w+)\s*\((.*)\)\s*(\{?)")
_C4_HINT = 'Write: Person(u, "User"), System(s, "Shop", "What it does"), or Rel(u, s, "buys").'
_C4_SHAPES = {"person": "person", "db": "cylinder", "queue": "parallelogram"}


def parse_er_diagram(lines: MermaidSource) -> Diagram:
    """Parse entities with their attributes, and relations between them."""
    graph = GraphBuilder()
    inside = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        if inside:
            row = line.rstrip("}").strip()
            if row and len(graph.nodes[inside].rows) < _MAX_ROWS:
                graph.add_node(inside, rows=[*graph.nodes[inside].rows, _attribute(row)])
            inside = "" if line.endswith("}") else inside
        elif word == "title":
            lines.title = plain_text(rest)
        elif word == "direction":
            graph.direction = {"LR": "right", "RL": "left", "BT": "up"}.get(rest.strip(), "down")
        elif word in ("style", "classDef", "class"):
            lines.ignored[word] = None
        elif found := _RELATION.fullmatch(line):
            names = [_entity(graph, found[end]) for end in ("one", "other")]
            parts = [_COUNTS.get(found["left"], ""), plain_text(found["label"] or "")]
            text = " ".join(part for part in [*parts, _COUNTS[found["right"]]] if part)
            graph.add_edge(*names, label=text, arrow="none", dashed=found["line"] == "..")
        else:
            inside = _open_entity(graph, line, lines)
    graph.title = lines.title
    if not graph.nodes:
        lines.refuse("the diagram has no entities", _ER_HINT)
    return graph.build()


def _open_entity(graph: GraphBuilder, line: str, lines: MermaidSource) -> str:
    """Add an entity; returns its name if its attributes follow on the next lines."""
    head, brace, row = line.partition("{")
    if len(head.split()) != 1 and not head.strip().startswith('"') and "[" not in head:
        lines.refuse("this is not an entity or a relation", _ER_HINT)
    name = _entity(graph, head)
    if row.strip(" }"):
        graph.add_node(name, rows=[_attribute(row.rstrip("}"))])
    return name if brace and not row.endswith("}") else ""


def _entity(graph: GraphBuilder, text: str) -> str:
    """Add an entity, which may have another name in brackets."""
    name, _, label = text.strip().partition("[")
    name = name.strip().strip('"')
    graph.add_node(name, **({"label": plain_text(label.rstrip("] "))} if label else {}))
    return name


def _attribute(row: str) -> str:
    """An attribute with its name before its type, and its comment last."""
    kind, _, rest = row.strip().partition(" ")
    name, _, more = rest.strip().partition(" ")
    return " ".join(part for part in (name, kind, more.replace('"', "").strip()) if part)


def parse_c4(lines: MermaidSource) -> Diagram:
    """Parse a model of people, systems and containers."""
    graph = GraphBuilder()
    for line in lines:
        found = _CALL.fullmatch(line)
        if line.startswith("title"):
            graph.title = plain_text(line[5:])
        elif line == "}" and graph.open_groups:
            graph.open_groups.pop()
        elif not found:
            lines.refuse("this is not an element or a relation", _C4_HINT)
        else:
            _take_call(graph, lines, found[1], _arguments(found[2]))
    graph.title = graph.title or lines.title
    if not graph.nodes:
        lines.refuse("the diagram has no elements", _C4_HINT)
    return graph.build()


def _arguments(text: str) -> list[str]:
    return [plain_text(part) for part in _cells(text) if not part.startswith("$")]


def _cells(line: str) -> list[str]:
    """The parts of a line between commas that are not in quotes."""
    try:
        return next(iter(csv.reader([line], skipinitialspace=True)))
    except csv.Error:
        return []


def _take_call(graph: GraphBuilder, lines: MermaidSource, word: str, given: list[str]) -> None:
    kind = word.lower()
    if kind.startswith(("rel", "birel")) and len(given) >= 3:
        tech = f"\n[{given[3]}]" if len(given) > 3 and given[3] else ""
        arrow = "both" if kind.startswith("bi") else "end"
        graph.add_edge(given[0], given[1], label=given[2] + tech, arrow=arrow, dashed=True)
    elif "boundary" in kind or "node" in kind:
        graph.open_group(given[0], given[1] if len(given) > 1 else given[0])
    elif kind.startswith(("person", "system", "container", "component")) and len(given) > 1:
        # A container names its technology before its description.
        more = [part for part in given[2:4] if part]
        shape = next((shape for part, shape in _C4_SHAPES.items() if part in kind), "box")
        fill = {"color": "#d4d4d8"} if kind.endswith("ext") and shape != "person" else {}
        graph.add_node(given[0], label="\n".join([given[1], *more]), shape=shape, **fill)
    else:
        lines.ignored[word] = None


def parse_sankey(lines: MermaidSource) -> Diagram:
    """Parse flows: boxes, with the amounts on the lines between them."""
    graph = GraphBuilder()
    graph.direction, graph.title = "right", lines.title
    for line in lines:
        parts = _cells(line)
        if len(parts) != 3:
            lines.refuse("this is not a flow", "Write: Coal,Power plant,120")
        start, end, amount = (part.strip() for part in parts)
        graph.add_node(start)
        graph.add_node(end)
        graph.add_edge(start, end, label=amount)
    if not graph.nodes:
        lines.refuse("the diagram has no flows", "Write: Coal,Power plant,120")
    lines.remark("The flows are lines with their amounts: their widths are equal.")
    return graph.build()


def parse_mindmap(lines: MermaidSource) -> Diagram:
    """The root is in the middle, with half of its branches to each side."""
    graph = GraphBuilder()
    graph.direction = "right"
    graph.title = lines.title
    above: list[tuple[int, str]] = []
    parents: dict[str, str] = {}
    for place, line in enumerate(lines):
        if line.startswith("::"):
            lines.ignored["icons and classes"] = None
            continue
        while above and above[-1][0] >= lines.indent:
            above.pop()
        name = f"n{place}"
        label = line.partition("[" if "[" in line else "(")[2].strip("([{}])") or line
        graph.add_node(name, label=plain_text(label), shape="box" if above else "round")
        if above:
            parents[name] = above[-1][1]
        above.append((lines.indent, name))
    roots = [name for name in graph.nodes if name not in parents]
    branches = [name for name, parent in parents.items() if parent in roots[:1]]
    left = set(branches[(len(branches) + 1) // 2 :])
    for name, parent in parents.items():
        if parent in left:
            left.add(name)
        graph.add_edge(*((name, parent) if name in left else (parent, name)), arrow="none")
    if not graph.nodes:
        lines.refuse(
            "the mind map has no root", "Write: mindmap, then root((Idea)), then branches."
        )
    return graph.build()
