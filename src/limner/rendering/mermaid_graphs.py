"""Flowcharts, class diagrams and state diagrams in Mermaid -> boxes and arrows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import msgspec

from limner.errors import InputInvalid
from limner.rendering.colours import parse_colour
from limner.rendering.diagram_source import GraphBuilder
from limner.rendering.elements import MAX_NODES, Diagram
from limner.rendering.mermaid_lines import MermaidSource, plain_text

_DIRECTIONS: dict[str, Any] = {
    "TD": "down",
    "TB": "down",
    "LR": "right",
    "RL": "left",
    "BT": "up",
}
_FILL = re.compile(r"(?:^|[\s,])fill\s*:\s*([#\w]+)")
_IGNORED = ("linkStyle", "click", "accTitle:", "accDescr:")
_CLASS_SUFFIX = re.compile(r":::[\w-]*")
_SPLIT = re.compile(r'#\w{1,10};|;|"[^"]*"')
_MAX_DEPTH, _MAX_ROWS = 20, 60
_BLANKS = re.compile(r"\s*")
_ID = re.compile(r"\w(?:[\w.]|-(?=\w))*")
# Each shape of a flowchart: how it opens and closes.
_SHAPES: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("(((", (")))",), "double"),
    ("([", ("])",), "round"),
    ("[[", ("]]",), "box"),
    ("[(", (")]",), "cylinder"),
    ("((", ("))",), "circle"),
    ("{{", ("}}",), "hexagon"),
    ("[/", ("/]",), "parallelogram"),
    ("[/", ("\\]",), "trapezoid"),
    ("[\\", ("\\]", "/]"), "parallelogram"),
    ("[", ("]",), "box"),
    ("(", (")",), "round"),
    ("{", ("}",), "diamond"),
    (">", ("]",), "note"),
)
_OPTION = re.compile(r'(\w{1,20})\s{0,9}:\s{0,9}("[^"]*"|[^,"]+)')
# The names of shapes in @{ shape: … }.
_OPTION_SHAPES: Mapping[str, Any] = {
    **dict.fromkeys(("rounded", "event", "stadium", "pill", "terminal", "delay"), "round"),
    **dict.fromkeys(("diam", "diamond", "decision", "question"), "diamond"),
    **dict.fromkeys(("circle", "circ", "start", "sm-circ", "f-circ", "junction"), "circle"),
    **dict.fromkeys(("dbl-circ", "double-circle", "fr-circ", "stop"), "double"),
    **dict.fromkeys(("cyl", "cylinder", "db", "database", "lin-cyl", "disk", "h-cyl"), "cylinder"),
    **dict.fromkeys(("hex", "hexagon", "prepare"), "hexagon"),
    **dict.fromkeys(("lean-r", "lean-right", "in-out", "lean-l", "lean-left"), "parallelogram"),
    **dict.fromkeys(("trap-b", "trap-t", "trapezoid", "manual", "priority"), "trapezoid"),
    **dict.fromkeys(("doc", "document", "docs", "lin-doc", "tag-doc", "comment"), "note"),
    **dict.fromkeys(("fork", "join"), "bar"),
    "text": "text",
}
_LINK = re.compile(
    r"(?:\w{1,40}@)?(<|[xo](?=--|==|-\.))?(?:(-{2,}|={2,}|~{3,})|(-\.+-))(>|[xo](?=[\s|]))?"
)
_DOTTED_TEXT = re.compile(r"-\.(?!\.*-)")
_CLOSERS = {
    "-": re.compile(r"-{2,}(>|[xo](?=\s))?"),
    "=": re.compile(r"={2,}(>|[xo](?=\s))?"),
    ".": re.compile(r"\.+-(>|[xo](?=\s))?"),
}
_FLOW_HINT = 'Write: A[Start] --> B{Ready?}, and B -->|yes| C[Go]. Put signs in quotes: A["a (b)"].'


def parse_flowchart(lines: MermaidSource) -> Diagram:
    """Parse a flowchart."""
    graph = GraphBuilder()
    head, *rest = _statements(lines.header)
    graph.direction = _DIRECTIONS.get(head.partition(" ")[2].strip().upper() or "TD")
    if graph.direction is None:
        lines.refuse("the direction is not known", f"Write one of {', '.join(_DIRECTIONS)}.")
    graph.title = lines.title
    for statement in rest:
        _flow_statement(statement, graph, lines)
    for line in lines:
        for statement in _statements(line):
            _flow_statement(statement, graph, lines)
    _paint(graph, lines)
    return _finish(graph, lines, _FLOW_HINT)


def _finish(graph: GraphBuilder, lines: MermaidSource, hint: str) -> Diagram:
    if not graph.nodes:
        lines.refuse("the diagram has no nodes", hint)
    return graph.build()


def _statements(line: str) -> list[str]:
    """The parts of a line between semicolons that are not in quotes."""
    cuts = [found.start() for found in _SPLIT.finditer(line) if found[0] == ";"]
    parts = [line[a:b].strip(" \t;") for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    return [part for part in parts if part]


def _open_group(graph: GraphBuilder, lines: MermaidSource, name: str, label: str) -> None:
    if len(graph.open_groups) >= _MAX_DEPTH:
        lines.refuse(f"more than {_MAX_DEPTH} groups in each other", "Use fewer levels.")
    graph.open_group(name, plain_text(label))


def _flow_statement(text: str, graph: GraphBuilder, lines: MermaidSource) -> None:
    word, _, rest = text.partition(" ")
    if word in _IGNORED or word == "direction":
        lines.ignored[word.rstrip(":")] = None
    elif word in ("classDef", "class", "style"):
        _take_style(word, rest, lines)
    elif word == "subgraph":
        name = _ID.match(rest.strip())
        after = rest.strip()[name.end() :].strip() if name else ""
        if name and after.startswith("["):
            _open_group(graph, lines, name[0], after.strip("[]"))
        else:
            _open_group(graph, lines, rest.strip().strip('"'), rest)
    elif text == "end":
        if not graph.open_groups:
            lines.refuse("there is no subgraph to end", "Remove this line.")
        graph.open_groups.pop()
    else:
        _Chain(text, graph, lines).parse()


def _take_style(word: str, rest: str, lines: MermaidSource) -> None:
    """Remember the fill of a class or a node, or the class of some nodes."""
    names, _, value = rest.strip().partition(" ")
    fill, dash = _FILL.search(value), "stroke-dasharray" in value
    for name in filter(None, names.split(",")):
        if word == "class":
            lines.classes[name] = value.strip()
        elif fill is None and not dash:
            lines.ignored[word] = None
        else:
            lines.styles[f"{word} {name}"] = (fill[1] if fill else None), dash


def _paint(graph: GraphBuilder, lines: MermaidSource) -> None:
    """Give the nodes and the groups the fills and dashes of their styles and classes."""
    groups = [name for name, _, _ in graph.groups]
    for name in (*graph.nodes, *groups):
        kind = lines.classes.get(name, "default" if name in graph.nodes else "")
        found = lines.styles.get(f"style {name}") or lines.styles.get(f"classDef {kind}")
        if found is None:
            continue
        fill, dashed = found
        style: dict[str, Any] = {"dashed": True} if dashed else {}
        try:
            style |= {"color": parse_colour(fill)} if fill else {}
        except InputInvalid:
            lines.ignored[f"the colour {str(fill)[:40]}"] = None
        if name in groups:
            graph.group_styles[name] = style
        else:
            graph.nodes[name] = msgspec.structs.replace(graph.nodes[name], **style)


class _Chain:
    """One statement of a flowchart: nodes, and links between them."""

    def __init__(self, text: str, graph: GraphBuilder, lines: MermaidSource) -> None:
        self.text = text
        self.graph = graph
        self.lines = lines
        self.at = 0

    def parse(self) -> None:
        """Add what the statement says to the graph."""
        before = self._nodes()
        while self._skip_blanks() < len(self.text):
            label, style = self._link()
            after = self._nodes()
            for start in before:
                for end in after:
                    if style is not None:
                        way = (end, start) if style["back"] else (start, end)
                        self.graph.add_edge(
                            *way, label=label, dashed=style["dashed"], arrow=style["arrow"]
                        )
            if len(self.graph.edges) > 4 * MAX_NODES:
                self.lines.refuse(f"more than {4 * MAX_NODES} edges", "Draw the part that matters.")
            before = after

    def _skip_blanks(self) -> int:
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _nodes(self) -> list[str]:
        names = [self._node()]
        while self._skip_blanks() < len(self.text) and self.text[self.at] == "&":
            self.at += 1
            names.append(self._node())
        return names

    def _node(self) -> str:
        self._skip_blanks()
        name = _ID.match(self.text, self.at)
        if not name:
            rest = self.text[self.at : self.at + 30]
            what = f"expected a node, found {rest!r}" if rest else "a node is missing at the end"
            self.lines.refuse(what, _FLOW_HINT)
        self.at = name.end()
        fields: dict[str, Any] = {}
        if self.text.startswith("@{", self.at):
            fields = self._options()
        for opening, closings, shape in _SHAPES:
            closed = any(closing in self.text[self.at :] for closing in closings)
            if self.text.startswith(opening, self.at) and (closed or opening != "[/"):
                self.at += len(opening)
                fields = {"label": self._label(closings), "shape": shape}
                break
        if self.text.startswith(":::", self.at):
            style = _ID.match(self.text, self.at + 3)
            self.at = style.end() if style else self.at + 3
            self.lines.classes[name[0]] = style[0] if style else ""
        self.graph.add_node(name[0], **fields)
        return name[0]

    def _options(self) -> dict[str, Any]:
        """The shape and the label of a node that are written as @{ shape: cyl, label: "Data" }."""
        end = self.text.find("}", self.at)
        if end < 0:
            self.lines.refuse("'}' is missing", _FLOW_HINT)
        given = {
            found[1]: plain_text(found[2]) for found in _OPTION.finditer(self.text, self.at, end)
        }
        self.at = end + 1
        shape = _OPTION_SHAPES.get(given.get("shape", "rect"), "box")
        label = {"label": given["label"]} if "label" in given else {}
        return {"shape": shape, **label} if given else {}

    def _label(self, closings: tuple[str, ...]) -> str:
        """The text up to the end of a shape; quotes may contain any sign."""
        start = self._skip_blanks()
        search = start
        if self.text.startswith('"', start):
            search = max(self.text.find('"', start + 1), start)
        ends = [
            (found, closing)
            for closing in closings
            if (found := self.text.find(closing, search)) >= 0
        ]
        if not ends:
            self.lines.refuse(f"{closings[0]!r} is missing", _FLOW_HINT)
        end, closing = min(ends)
        self.at = end + len(closing)
        return plain_text(self.text[start:end])

    def _link(self) -> tuple[str, dict[str, Any] | None]:
        """The label and the style of a link; no style if it is invisible."""
        found = _LINK.match(self.text, self.at)
        dotted = _DOTTED_TEXT.match(self.text, self.at)
        if not found and not dotted:
            rest = self.text[self.at : self.at + 30]
            self.lines.refuse(f"expected a link such as -->, found {rest!r}", _FLOW_HINT)
        body = (found[2] or found[3]) if found else "-."
        back = bool(found and found[1])
        head = found[4] if found else None
        self.at = found.end() if found else self.at + 2
        label = ""
        if dotted or (body in ("--", "==") and not head):
            closer = _CLOSERS["." if dotted else body[0]].search(self.text, self.at)
            if not closer:
                self.lines.refuse("the text of the link has no end", "Write: A -- text --> B")
            label, head = self.text[self.at : closer.start()], closer[1]
            self.at = closer.end()
        if self.text.startswith("|", self._skip_blanks()):
            end = self.text.find("|", self.at + 1)
            if end < 0:
                self.lines.refuse("the text of the link has no end", "Write: A -->|text| B")
            label, self.at = self.text[self.at + 1 : end], end + 1
        if body.startswith("~"):
            return "", None
        arrow = "both" if back and head else ("end" if back or head else "none")
        dashed = body.startswith("-.")
        return plain_text(label), {"back": back and not head, "dashed": dashed, "arrow": arrow}


_RELATION = re.compile(
    r'"[^"]*"|<\|--|<\|\.\.|--\|>|\.\.\|>|\*--|--\*|o--|--o|<-->|<--|-->|<\.\.|\.\.>|--|\.\.'
    r"|`[^`]*`|\w[\w.]*\w(?:~[^~\s]*~)?|\w(?:~[^~\s]*~)?"
)
# The first sign that a relation contains says what its head is.
_CLASS_ARROWS = (
    ("|", "triangle"),
    ("*", "diamond"),
    ("o", "diamond"),
    ("<-->", "both"),
    ("<", "end"),
    (">", "end"),
)
_CLASS_HINT = (
    'Write: class Dog { +name: str }, Animal <|-- Dog, or Owner "1" --> "0..*" Dog : owns.'
)


def parse_class_diagram(lines: MermaidSource) -> Diagram:
    """Parse a class diagram."""
    graph = GraphBuilder()
    graph.title = lines.title
    inside = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        if inside:
            if line.rstrip().endswith("}"):
                _add_row(graph, lines, inside, line.rstrip()[:-1])
                inside = ""
            else:
                _add_row(graph, lines, inside, line)
        elif line == "}" and graph.open_groups:
            graph.open_groups.pop()
        elif word == "namespace":
            label = rest.strip(" {")
            _open_group(graph, lines, f"namespace {label}", label)
        elif word == "class":
            inside = _open_class(graph, rest, lines)
        elif word == "direction":
            graph.direction = _DIRECTIONS.get(rest.strip().upper(), "down")
        elif word in ("note", "link", "click", "callback", "style", "classDef", "cssClass"):
            _class_remark(graph, word, rest, lines)
        elif line.startswith("<<"):
            kind, _, name = line.partition(">>")
            _add_row(graph, lines, _class_name(name), f"{kind}>>")
        else:
            _class_line(graph, line, lines)
    _paint(graph, lines)
    return _finish(graph, lines, _CLASS_HINT)


def _class_name(text: str) -> str:
    """The name of a class without its parameters: Repo~T~ and Repo are one class."""
    return text.strip().strip("`").partition("~")[0]


def _add_class(graph: GraphBuilder, text: str) -> str:
    """Add a class; its label has the parameters of its type."""
    name = _class_name(text)
    label = text.strip().strip("`").replace("~", "<", 1).replace("~", ">", 1)
    known = graph.nodes[name].label if name in graph.nodes else None
    graph.add_node(name, label=label if label != name else known)
    return name


def _add_row(graph: GraphBuilder, lines: MermaidSource, name: str, row: str) -> None:
    rows = graph.nodes[name].rows if name in graph.nodes else []
    if len(rows) >= _MAX_ROWS:
        lines.refuse(f"more than {_MAX_ROWS} members", "Leave out what matters less.")
    text = plain_text(row.replace("~", "<", 1).replace("~", ">", 1)) if row.strip() else ""
    if row.strip().startswith("<<"):
        text = f"«{row.strip().strip('<>').strip()}»"
    graph.add_node(name, rows=[*rows, text] if text else rows)


def _open_class(graph: GraphBuilder, rest: str, lines: MermaidSource) -> str:
    """Add a class; returns its name if its members follow on the next lines."""
    head, brace, members = rest.partition("{")
    title, _, label = head.partition("[")
    if not _class_name(title):
        lines.refuse("the class has no name", _CLASS_HINT)
    name = _add_class(graph, _without_class(title, lines))
    graph.add_node(name, **({"label": plain_text(label.strip().rstrip("]"))} if label else {}))
    if brace and members.rstrip().endswith("}"):
        for row in members.rstrip()[:-1].split(";"):
            _add_row(graph, lines, name, row)
        return ""
    return name if brace else ""


def _class_line(graph: GraphBuilder, line: str, lines: MermaidSource) -> None:
    """A relation of two classes, or one member of a class."""
    head, colon, label = line.partition(":")
    tokens = [found[0] for found in _RELATION.finditer(head)]
    cards = ["", ""]
    names: list[str] = []
    kind = ""
    for token in tokens:
        if token.startswith('"'):
            cards[bool(kind)] = token.strip('"')
        elif token[0].isalnum() or token[0] in "_`":
            names.append(token)
        else:
            kind = token
    if len(names) == 1 and colon and not kind:
        _add_row(graph, lines, _class_name(names[0]), label)
        return
    if len(names) != 2 or not kind:
        lines.refuse("this is not a relation", _CLASS_HINT)
    names = [_add_class(graph, name) for name in names]
    parts = [cards[0], plain_text(label), cards[1]]
    if kind.startswith(("<", "*", "o")) and kind != "<-->":
        names.reverse()
    text = " ".join(part for part in parts if part)
    signs = (arrow for sign, arrow in _CLASS_ARROWS if sign in kind)
    graph.add_edge(*names, label=text, dashed=".." in kind, arrow=next(signs, "none"))


def _class_remark(graph: GraphBuilder, word: str, rest: str, lines: MermaidSource) -> None:
    """Draw a note, with a line to the class that it is for; use a style; ignore a link."""
    if word in ("style", "classDef", "cssClass"):
        _take_style(word.replace("cssClass", "class"), rest.replace('"', ""), lines)
        return
    if word != "note":
        lines.ignored[word] = None
        return
    found = re.match(r"for\s+(\S+)\s+(.*)", rest)
    name, text = (found[1], found[2]) if found else ("", rest)
    _add_note(graph, _class_name(name), plain_text(text))


def _state_note(rest: str, lines: MermaidSource) -> tuple[str, str]:
    """The state that a note is for, and its text on the same line or up to "end note"."""
    head, colon, text = rest.partition(":")
    if not colon:
        text = "\n".join(takewhile(lambda line: line != "end note", lines))
    return head.rpartition(" of ")[2].strip(), plain_text(text)


def _add_note(graph: GraphBuilder, name: str, text: str) -> None:
    """Draw a note beside what it is for."""
    note = f"note {len(graph.nodes)}"
    graph.add_node(note, label=text, shape="note")
    if name:
        graph.add_edge(name, note, dashed=True, arrow="none")


_STATE_HINT = "Write: [*] --> Idle, Idle --> Busy : start, or state Busy { ... }."


def parse_states(lines: MermaidSource) -> Diagram:
    """Parse a state diagram."""
    graph = GraphBuilder()
    graph.title = lines.title
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "note":
            _add_note(graph, *_state_note(rest, lines))
        elif word == "direction":
            graph.direction = _DIRECTIONS.get(rest.strip().upper(), "down")
        elif word in ("classDef", "class", "style"):
            _take_style(word, rest, lines)
        elif word in _IGNORED or line == "--":
            lines.ignored[word.rstrip(":")] = None
        elif line == "}":
            if not graph.open_groups:
                lines.refuse("there is no state to end", "Remove this line.")
            graph.open_groups.pop()
        elif word == "state":
            _declare_state(graph, rest, lines)
        else:
            _state_line(graph, line, lines)
    _paint(graph, lines)
    return _finish(graph, lines, _STATE_HINT)


def _declare_state(graph: GraphBuilder, rest: str, lines: MermaidSource) -> None:
    text = rest.strip().rstrip("{").strip()
    label, _, name = text.rpartition(" as ")
    name, _, kind = name.partition("<<")
    name = name.strip().strip('"')
    if rest.rstrip().endswith("{"):
        _open_group(graph, lines, name, label or name)
    else:
        shapes = {"choice>>": "diamond", "fork>>": "bar", "join>>": "bar"}
        shape = shapes.get(kind.strip(), "round")
        graph.add_node(name, label="" if kind else plain_text(label or name), shape=shape)


def _without_class(text: str, lines: MermaidSource) -> str:
    """A name without the class of style after it, as in ``Idle:::calm``."""
    found = _CLASS_SUFFIX.sub("", text)
    if found != text:
        lines.classes[found.strip()] = text.rpartition(":::")[2].strip()
    return found


def _state_line(graph: GraphBuilder, line: str, lines: MermaidSource) -> None:
    start, arrow, after = line.partition("-->")
    if not arrow:
        name, colon, label = line.partition(":")
        if len(name.split()) != 1:
            lines.refuse("this is not a state or a transition", _STATE_HINT)
        fields = {"label": plain_text(label)} if colon else {}
        graph.add_node(name.strip(), shape="round", **fields)
        return
    end, _, label = _without_class(after, lines).partition(":")
    names = [_without_class(start, lines).strip(), end.strip()]
    if not all(names):
        lines.refuse("a state is missing", _STATE_HINT)
    for place, name in enumerate(names):
        if name == "[*]":
            scope = graph.open_groups[-1] if graph.open_groups else ""
            names[place] = f"{('start', 'end')[place]} {scope}"
            graph.add_node(names[place], label="", shape=("circle", "double")[place])
        elif name in graph.nodes:
            graph.add_node(name)
        else:
            graph.add_node(name, shape="round")
    graph.add_edge(*names, label=plain_text(label))
