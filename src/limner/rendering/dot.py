"""A graph in the DOT language of Graphviz -> a diagram, and notes on what was left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from itertools import pairwise
from typing import Any, NoReturn, cast

import msgspec

from limner.rendering.canvas import mix
from limner.rendering.diagram_source import check_element, check_length, known_colour, refuse_line
from limner.rendering.elements import MAX_NODES, Diagram, DiagramEdge, DiagramNode, NodeGroup

_MAX_DEPTH = 20
_BLANK = re.compile(r"(?:[ \t\r\n\f\v]|//[^\n]*|#[^\n]*)+")
_NAME = re.compile(r"[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?)")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_MARKS = ("->", "--", "{", "}", "[", "]", ";", ",", "=", ":", "+")
_SHAPES: Mapping[str, Any] = {
    **dict.fromkeys(("ellipse", "oval", "egg", "Mrecord"), "round"),
    **dict.fromkeys(("circle", "point", "Mcircle"), "circle"),
    "doublecircle": "double",
    **dict.fromkeys(("diamond", "Mdiamond"), "diamond"),
    **dict.fromkeys(("hexagon", "septagon", "octagon"), "hexagon"),
    **dict.fromkeys(("trapezium", "invtrapezium"), "trapezoid"),
    **dict.fromkeys(("house", "invhouse", "triangle", "pentagon"), "house"),
    **dict.fromkeys(("folder", "tab"), "folder"),
    **dict.fromkeys(("plaintext", "plain", "none", "underline"), "text"),
    **{shape: shape for shape in ("cylinder", "note", "parallelogram", "component")},
}
_HEADS: Mapping[str, Any] = {
    **dict.fromkeys(("none", "tee", "crow"), "none"),
    **dict.fromkeys(("empty", "onormal", "invempty"), "triangle"),
    **dict.fromkeys(("diamond", "odiamond", "ediamond"), "diamond"),
}
_DIRECTIONS: Mapping[str, Any] = {"LR": "right", "RL": "left", "TB": "down", "BT": "up"}
# Attributes that would change what a graph says or how it is arranged. Fonts and widths of lines
# are not among them.
_REPORTED = frozenset(("xlabel", "image", "layout", "lhead", "ltail", "ordering")) | frozenset(
    ("peripheries", "pos", "URL", "href")
)
_BRACKET = re.compile("[<>]")
_HTML_BREAK = re.compile(r"<(?:br\b[^<>]*|/tr\s*)>", re.IGNORECASE)
_HTML_CELL = re.compile(r"</td\s*>", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^<>]*>")
_HTML_COLOUR = re.compile(r"<t[rd]\b[^<>]*\bbgcolor\s*=\s*[\"']?([#\w]+)", re.IGNORECASE)
_EXAMPLE = 'Write: digraph { rankdir=LR; a [label="Start", shape=box]; a -> b [label="go"]; }'


class Token(msgspec.Struct, frozen=True):
    """A mark, or a name; a quoted name is never a keyword."""

    text: str
    at: int
    is_name: bool = False
    quoted: bool = False


def parse_dot(source: str) -> tuple[Diagram, list[str]]:
    """Parse a graph in DOT.

    Raises:
        InputInvalid: it is not DOT, or it needs what is not drawn; the message names the line.
    """
    check_length(source)
    return _Parser(source).parse()


def _tokens(source: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        if blank := _BLANK.match(source, at):
            at = blank.end()
        elif source.startswith("/*", at):
            end = source.find("*/", at)
            if end < 0:
                refuse_line(source, at, "the comment has no end", "Write */ at its end.")
            at = end + 2
        elif string := _STRING.match(source, at):
            tokens.append(Token(string[1], at, is_name=True, quoted=True))
            at = string.end()
        elif mark := next((mark for mark in _MARKS if source.startswith(mark, at)), None):
            tokens.append(Token(mark, at))
            at += len(mark)
        elif name := _NAME.match(source, at):
            tokens.append(Token(name[0], at, is_name=True))
            at = name.end()
        elif source[at] == "<":
            end = _html_end(source, at)
            tokens.append(Token(_html_label(source[at + 1 : end]), at, is_name=True, quoted=True))
            at = end + 1
        else:
            hint = 'Put names with blanks or signs in quotes: "my node" -> "b".'
            refuse_line(source, at, f"unexpected {source[at]!r}", hint)
    return tokens


def _html_end(source: str, at: int) -> int:
    """Where the HTML that starts at a position ends: at the bracket that closes the first one."""
    depth, end = 0, -1
    for found in _BRACKET.finditer(source, at):
        depth += 1 if found[0] == "<" else -1
        if depth == 0:
            end = found.start()
            break
    if end < 0:
        refuse_line(source, at, "the label in HTML has no end", "Close each < with a >.")
    return end


class HtmlTable(str):
    """The words of a table in HTML, a line for each row, and the colour of its first cell."""

    __slots__ = ("colour",)
    colour: str | None


def _html_label(html: str) -> str:
    """The words of a label in HTML; a table keeps the colour of its head."""
    text = _html_text(html)
    if "<table" not in html.lower():
        return text
    table = HtmlTable(text)
    found = _HTML_COLOUR.search(html)
    table.colour = known_colour(found[1]) if found else None
    return table


def _html_text(html: str) -> str:
    """The words of a label in HTML, with a line for each break and each row of a table."""
    broken = _HTML_CELL.sub("  ", _HTML_BREAK.sub("\n", html.replace("\n", " ")))
    lines = (" ".join(line.split()) for line in unescape(_HTML_TAG.sub("", broken)).split("\n"))
    return "\n".join(line for line in lines if line).replace("\\", "\\\\")


class _Parser:
    """Reads the tokens of one graph from left to right."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = _tokens(source)
        self.place = 0
        self.arrow = "->"
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.groups: list[tuple[dict[str, str], dict[str, None]]] = []
        self.ranks: list[dict[str, None]] = []
        self.graph: dict[str, str] = {}
        self.ignored: dict[str, None] = {}

    def parse(self) -> tuple[Diagram, list[str]]:
        """The whole graph."""
        self._skip_word("strict")
        if not (self._skip_word("digraph") or self._skip_word("graph")):
            self._refuse("a graph starts with digraph or graph", _EXAMPLE)
        self.arrow = "->" if self.tokens[self.place - 1].text.lower() == "digraph" else "--"
        if self._peek().is_name:
            self.place += 1
        self._expect("{", _EXAMPLE)
        self._statements({"node": {}, "edge": {}}, self.graph, 0)
        if not self.nodes:
            refuse_line(self.source, 0, "the graph has no nodes", _EXAMPLE)
        diagram = self._diagram()
        return diagram, [f"Ignored: {', '.join(self.ignored)}."] if self.ignored else []

    def _peek(self) -> Token:
        if self.place < len(self.tokens):
            return self.tokens[self.place]
        return Token("", max(len(self.source.rstrip()) - 1, 0))

    def _refuse(self, what: str, hint: str) -> NoReturn:
        refuse_line(self.source, self._peek().at, what, hint)

    def _skip(self, mark: str) -> bool:
        token = self._peek()
        found = token.text == mark and not token.is_name
        self.place += found
        return found

    def _skip_word(self, word: str) -> bool:
        token = self._peek()
        found = token.is_name and not token.quoted and token.text.lower() == word
        self.place += found
        return found

    def _expect(self, mark: str, hint: str) -> None:
        if not self._skip(mark):
            found = self._peek().text
            self._refuse(
                f"expected {mark!r}, found {found!r}" if found else f"{mark!r} is missing", hint
            )

    def _name(self, hint: str) -> str:
        token = self._peek()
        if not token.is_name:
            self._refuse(f"expected a name, found {token.text!r}", hint)
        self.place += 1
        text = token.text
        while token.quoted and self._skip("+"):
            text += self._name("Write a string in quotes after +.")
        return text

    def _statements(
        self, defaults: dict[str, dict[str, str]], graph: dict[str, str], depth: int
    ) -> dict[str, None]:
        """The statements up to a closing brace; returns the nodes that they name."""
        if depth > _MAX_DEPTH:
            self._refuse(f"more than {_MAX_DEPTH} subgraphs in each other", "Use fewer levels.")
        found: dict[str, None] = {}
        while not self._skip("}"):
            if self.place >= len(self.tokens):
                self._refuse("'}' is missing", "Close each { with a }.")
            if not self._skip(";") and not self._skip(","):
                self._statement(defaults, graph, found, depth)
        return found

    def _statement(
        self,
        defaults: dict[str, dict[str, str]],
        graph: dict[str, str],
        found: dict[str, None],
        depth: int,
    ) -> None:
        for word, values in (*defaults.items(), ("graph", graph)):
            if self._skip_word(word):
                values.update(self._attributes())
                return
        after = self.tokens[self.place + 1 : self.place + 2]
        if self._peek().is_name and after and after[0].text == "=" and not after[0].is_name:
            key = self._name("")
            self.place += 1
            graph[key] = self._name("Write key=value.")
            self._notice(key, graph[key])
            return
        ends = [self._end(defaults, depth)]
        while self._skip("->") or self._skip("--"):
            if self.tokens[self.place - 1].text != self.arrow:
                self.place -= 1
                self._refuse(f"edges of this graph are written {self.arrow}", _EXAMPLE)
            ends.append(self._end(defaults, depth))
        for names in ends:
            found |= names
        self._connect(ends, defaults)

    def _connect(self, ends: list[dict[str, None]], defaults: dict[str, dict[str, str]]) -> None:
        """Use the attributes after a node or a chain of edges."""
        own = self._attributes() if self._peek().text == "[" else {}
        if len(ends) == 1 and own:
            for name in ends[0]:
                self.nodes[name] |= own
        made = defaults["edge"] | own
        for starts, targets in pairwise(ends):
            self.edges += [(one, other, made) for one in starts for other in targets]
            if len(self.edges) > 4 * MAX_NODES:
                self._refuse(f"more than {4 * MAX_NODES} edges", "Draw the part that matters.")

    def _end(self, defaults: dict[str, dict[str, str]], depth: int) -> dict[str, None]:
        """The nodes at one end of an edge: a node, or those of a subgraph."""
        is_subgraph = self._skip_word("subgraph")
        name = ""
        if is_subgraph and self._peek().is_name:
            name = self._name("")
        if is_subgraph or self._peek().text == "{":
            self._expect("{", "Write: subgraph cluster_a { a; b; }")
            graph: dict[str, str] = {}
            inner = {kind: dict(values) for kind, values in defaults.items()}
            found = self._statements(inner, graph, depth + 1)
            if name.startswith("cluster") and found:
                self.groups.append(({"label": ""} | graph, found))
            if (rank := graph.get("rank")) is not None:
                self.ranks.append(found)
                if rank != "same":
                    self.ignored[f"rank={rank}"] = None
            return found
        name = self._name(_EXAMPLE)
        while self._skip(":"):
            self._name("Write a port after the colon, or nothing.")
            self.ignored["ports"] = None
        if name not in self.nodes:
            self.nodes[name] = dict(defaults["node"])
            if len(self.nodes) > MAX_NODES:
                self._refuse(f"more than {MAX_NODES} nodes", "Draw the part that matters.")
        return {name: None}

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        hint = 'Write attributes as [label="Start", shape=box].'
        self._expect("[", hint)
        while True:
            while not self._skip("]"):
                key = self._name(hint)
                found[key] = self._name(hint) if self._skip("=") else "true"
                self._notice(key, found[key])
                if not self._skip(","):
                    self._skip(";")
            if not self._skip("["):
                return found

    def _notice(self, key: str, value: str) -> None:
        """Note an attribute that has an effect in Graphviz and none here."""
        if key in _REPORTED:
            self.ignored[key] = None

    def _diagram(self) -> Diagram:
        return check_element(
            Diagram(
                nodes=[self._node(name, values) for name, values in self.nodes.items()],
                edges=[self._edge(*edge) for edge in self.edges],
                groups=[
                    NodeGroup(
                        label=_text(graph["label"]),
                        nodes=list(names),
                        color=_frame_colour(graph),
                        dashed=_is_dashed(graph),
                    )
                    for graph, names in self.groups
                ],
                same_rank=[list(names) for names in self.ranks],
                direction=_DIRECTIONS.get(self.graph.get("rankdir", "TB").upper(), "down"),
                title=_text(self.graph.get("label", "")),
            )
        )

    def _node(self, name: str, values: dict[str, str]) -> DiagramNode:
        shape = values.get("shape", "ellipse")
        label = values.get("label", "\\N").replace("\\N", name)
        colour = None
        for key in ("fillcolor", "color"):
            if colour is None and (text := values.get(key, "").split(":")[0]):
                colour = known_colour(text)
                if colour is not None and key == "color":
                    colour = mix("#ffffff", colour, 0.16)  # it is the colour of the border
                elif colour is None and text not in ("transparent", "none"):
                    self.ignored[f"color {text}"] = None
        if isinstance(values.get("label"), HtmlTable):
            table = cast("HtmlTable", values["label"])
            head, *rows = _text(table).split("\n")
            return DiagramNode(id=name, label=head, rows=rows, color=table.colour or colour)
        if shape in ("record", "Mrecord"):
            plain = re.sub(r"<[^<>|{}]*>", "", label.replace("{", "").replace("}", ""))
            parts = [_text(part).strip() for part in plain.split("|")]
            rows = [row for part in parts[1:] for row in part.split("\n")]
            return DiagramNode(id=name, label=parts[0], rows=rows, color=colour)
        text = "" if shape == "point" else _text(label)
        if "invis" in values.get("style", ""):
            shape, text = "none", ""
        return DiagramNode(
            id=name,
            label=text,
            shape=_SHAPES.get(shape, "box"),
            color=colour,
            dashed=_is_dashed(values),
        )

    def _edge(self, start: str, end: str, values: dict[str, str]) -> DiagramEdge:
        way = values.get("dir", "forward" if self.arrow == "->" else "none")
        head = _HEADS.get(values.get("arrowhead", "normal"), "end")
        colour = known_colour(values["color"].split(":")[0]) if "color" in values else None
        if way == "back":
            start, end = end, start
            head = _HEADS.get(values.get("arrowtail", "normal"), "end")
        tail = _HEADS.get(values.get("arrowtail", "normal"), "end") != "none"
        if way == "both" and head == "none" and tail:
            start, end, head = end, start, "end"
        if way == "none":
            head = "none"
        middle = values.get("label", values.get("xlabel", ""))
        outer = [values.get("taillabel", ""), values.get("headlabel", "")]
        parts = [_text(text) for text in (outer[0], middle, outer[1])]
        return DiagramEdge(
            start=start,
            end=end,
            label=" ".join(part for part in parts if part),
            color=colour,
            dashed=_is_dashed(values),
            free=values.get("constraint", "").lower() == "false",
            hidden="invis" in values.get("style", ""),
            arrow="both" if way == "both" and tail and head != "none" else head,
        )


def _is_dashed(values: Mapping[str, str]) -> bool:
    return any(word in values.get("style", "") for word in ("dashed", "dotted"))


def _frame_colour(values: Mapping[str, str]) -> str | None:
    """The ground of a cluster: its own, or a pale one if only its border has a colour."""
    keys = ["fillcolor", "bgcolor", *(["color"] if "filled" in values.get("style", "") else [])]
    ground = next((found for key in keys if (found := known_colour(values.get(key, "")))), None)
    border = known_colour(values.get("pencolor", values.get("color", "")))
    return ground or (mix("#ffffff", border, 0.12) if border else None)


def _text(text: str) -> str:
    """A label with its escapes resolved."""
    plain = re.sub(r"\\[nlr]", "\n", text.replace("\\\n", ""))
    return re.sub(r"\\(.)", r"\1", plain).strip("\n")
