"""A source in a language of others -> what its parsers share: limits, and errors with a line."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import msgspec

from limner.errors import InputInvalid
from limner.rendering.colours import parse_colour
from limner.rendering.elements import (
    Diagram,
    DiagramEdge,
    DiagramNode,
    DocumentElement,
    NodeGroup,
)

MAX_SOURCE_CHARS = 200_000
Element = TypeVar("Element", bound=DocumentElement)


def check_length(source: str) -> None:
    """Refuse a source that is too long to be a diagram for a reader."""
    if len(source) > MAX_SOURCE_CHARS:
        raise InputInvalid(
            f"the source has {len(source):,} characters; {MAX_SOURCE_CHARS:,} are allowed",
            field="source",
        )


def refuse_line(source: str, at: int, what: str, hint: str) -> NoReturn:
    """Refuse a source, with the number and the text of the line at a position."""
    number = source.count("\n", 0, at) + 1
    line = source.split("\n")[number - 1].strip()
    raise InputInvalid(f"line {number}: {what}: {line[:120]!r}", field="source", hint=hint)


def check_element(element: Element) -> Element:
    """Refuse an element that a document could not contain: too many nodes, a text too long."""
    try:
        return msgspec.convert(msgspec.to_builtins(element), type=type(element))
    except msgspec.ValidationError as error:
        raise InputInvalid(f"the diagram is too large: {error}", field="source") from error


def known_colour(text: str) -> str | None:
    """A colour, or None if it is not known; X11 has shades with a digit at the end."""
    try:
        return parse_colour(text[:7] if text.startswith("#") else text.rstrip("1234"))
    except InputInvalid:
        return None


class GraphBuilder:
    """Collects nodes, edges and groups in their order, and builds the diagram."""

    def __init__(self) -> None:
        self.nodes: dict[str, DiagramNode] = {}
        self.edges: list[DiagramEdge] = []
        self.groups: list[tuple[str, str, dict[str, None]]] = []
        self.group_styles: dict[str, dict[str, Any]] = {}
        self.open_groups: list[int] = []
        self.direction: Any = "down"
        self.title = ""

    def add_node(self, name: str, **fields: Any) -> None:
        """Make a node, or change it; it belongs to all groups that are open."""
        known = self.nodes.get(name, DiagramNode(id=name))
        self.nodes[name] = msgspec.structs.replace(known, **fields)
        for group in self.open_groups:
            self.groups[group][2][name] = None

    def add_edge(self, start: str, end: str, **fields: Any) -> None:
        """Connect two nodes."""
        self.edges.append(DiagramEdge(start=start, end=end, **fields))

    def open_group(self, name: str, label: str) -> None:
        """What is added next is in this group."""
        self.open_groups.append(len(self.groups))
        self.groups.append((name, label, {}))

    def build(self) -> Diagram:
        """The diagram; an edge to a group ends at its first node, one from it leaves its last."""
        first = {name: next(iter(members), name) for name, _, members in self.groups}
        last = {name: next(reversed(members), name) for name, _, members in self.groups}
        for name, member in first.items():
            if member != name:
                self.nodes.pop(name, None)
        edges = [
            msgspec.structs.replace(
                edge, start=last.get(edge.start, edge.start), end=first.get(edge.end, edge.end)
            )
            for edge in self.edges
        ]
        return check_element(
            Diagram(
                nodes=list(self.nodes.values()),
                edges=[*edges],
                groups=[
                    NodeGroup(
                        label=label,
                        nodes=[name for name in members if name in self.nodes],
                        **self.group_styles.get(group, {}),
                    )
                    for group, label, members in self.groups
                    if members
                ],
                direction=self.direction,
                title=self.title,
            )
        )
