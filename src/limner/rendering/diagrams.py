"""Boxes and arrows -> their sizes, a layout, and the drawing of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from limner.errors import InputInvalid
from limner.imaging.fonts import FontStyle
from limner.rendering.brush import Brush, Rect
from limner.rendering.canvas import Point, closed, mix, number
from limner.rendering.colours import contrast, parse_colour, readable_on
from limner.rendering.elements import (
    MAX_NODES,
    Diagram,
    DiagramEdge,
    DiagramNode,
    TitledElement,
)
from limner.rendering.graph.layout import lay_out
from limner.rendering.graph.model import (
    Graph,
    GraphEdge,
    GraphGroup,
    GraphLayout,
    GraphNode,
)
from limner.rendering.text import TextLines, wrap

# All sizes are in parts of the text size, so that a layout serves every size of picture.
_LABEL_WIDTH, _EDGE_LABEL_WIDTH, _FRAME_LABEL_WIDTH, _DIAMOND_WIDTH = 11.0, 10.0, 16.0, 8.0
_ROW_WIDTH = 26.0
_SMALL = 0.82
_PAD_X, _PAD_Y = 1.0, 0.6
_LID = 0.45
_FOLD = 0.8
_PALE = 1.9
_HEAD = 0.7
# A small diagram in a large box gets text of at most this size, and gaps of at most this width.
_MAX_ENLARGED, _MAX_SPREAD, _MAX_TITLE = 1.5, 1.9, 1.5
_SHAPE_COLOURS = {"box": 0, "diamond": 1, "cylinder": 2, "circle": 4, "round": 2, "note": 5}


class SizedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its text broken into lines."""

    node: DiagramNode
    label: TextLines
    rows: tuple[TextLines, ...]
    width: float
    height: float


class SizedDiagram(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a diagram that does not depend on the picture's size."""

    nodes: list[SizedNode]
    edges: list[DiagramEdge]
    edge_labels: list[TextLines | None]
    frame_labels: list[TextLines]
    frame_colours: list[str | None]
    graph: Graph


def measure_diagram(diagram: Diagram, brush: Brush, max_width: float) -> tuple[float, float]:
    """Width and height of a diagram, scaled if it is too wide."""
    layout = _natural(diagram, brush.style.font)
    scale = min(brush.style.base, max_width / layout.width)
    title = title_height(diagram, _for_title(brush, scale), max_width)
    return layout.width * scale, layout.height * scale + title


def _for_title(brush: Brush, scale: float) -> Brush:
    """A brush for a title that is not much larger than the text of its diagram."""
    return brush.with_style(base=min(brush.style.base, scale * _MAX_TITLE))


def title_height(element: TitledElement, brush: Brush, max_width: float) -> float:
    """The height of a title and the gap below it."""
    high = brush.title_height(element, max_width)
    return high + brush.style.base * 0.6 if high else 0.0


def draw_title(element: TitledElement, brush: Brush, box: Rect) -> Rect:
    """Draw a title at the top of a box; returns what is left below it."""
    brush.title(box, element)
    return box.below(title_height(element, brush, box.width))


def draw_diagram(diagram: Diagram, brush: Brush, box: Rect) -> None:
    """Draw a diagram in the middle of a box."""
    sized, layout = _sized(diagram, brush.style.font), _natural(diagram, brush.style.font)
    box = draw_title(diagram, _for_title(brush, _scale(layout, brush, box)), box)
    scale = _scale(layout, brush, box)
    across = min(max(box.width / (layout.width * scale), 1.0), _MAX_SPREAD)
    down = min(max(box.height / (layout.height * scale), 1.0), _MAX_SPREAD)
    if len(sized.nodes) <= 80 and max(across, down) > 1.1:
        along, beside = (across, down) if sized.graph.right else (down, across)
        wider = lay_out(
            msgspec.structs.replace(
                sized.graph,
                node_gap=sized.graph.node_gap * beside,
                layer_gap=sized.graph.layer_gap * along,
            )
        )
        # Lines that are longer need more room; a little smaller is better than crowded.
        if _scale(wider, brush, box) >= 0.92 * scale:
            layout, scale = wider, min(_scale(wider, brush, box), scale)
    x = box.x + (box.width - layout.width * scale) / 2
    y = box.y + (box.height - layout.height * scale) / 2
    _Painter(sized, layout, brush.with_style(base=scale), (x, y)).paint()


def _scale(layout: GraphLayout, brush: Brush, box: Rect) -> float:
    largest = brush.style.base * _MAX_ENLARGED
    return min(largest, box.width / layout.width, box.height / layout.height)


@lru_cache(maxsize=32)
def _cached(source: bytes, font: FontStyle) -> tuple[SizedDiagram, GraphLayout]:
    sized = _size(msgspec.json.decode(source, type=Diagram), font)
    return sized, lay_out(sized.graph)


def _sized(diagram: Diagram, font: FontStyle) -> SizedDiagram:
    return _cached(msgspec.json.encode(diagram), font)[0]


def _natural(diagram: Diagram, font: FontStyle) -> GraphLayout:
    return _cached(msgspec.json.encode(diagram), font)[1]


def _size(diagram: Diagram, font: FontStyle) -> SizedDiagram:
    edges = [
        edge
        if isinstance(edge, DiagramEdge)
        else DiagramEdge(start=edge[0], end=edge[1], label=edge[2] if len(edge) > 2 else "")
        for edge in diagram.edges
    ]
    nodes = _all_nodes(diagram, edges)
    place = {node.id: number for number, node in enumerate(nodes)}
    edges = _joined_loops(edges)
    sized = [_size_node(node, font) for node in nodes]
    edge_labels = [
        wrap(edge.label, _SMALL, _EDGE_LABEL_WIDTH, font) if edge.label.strip() else None
        for edge in edges
    ]
    frame_labels = [
        wrap(group.label, _SMALL, _FRAME_LABEL_WIDTH, font, bold=True) for group in diagram.groups
    ]
    graph = Graph(
        nodes=[
            GraphNode(width=node.width, height=node.height, power=_power(node.node))
            for node in sized
        ],
        edges=[
            GraphEdge(
                start=place[edge.start],
                end=place[edge.end],
                label=(label.width + 0.5, label.height + 0.2) if label else (0.0, 0.0),
                up=edge.arrow in ("triangle", "diamond"),
            )
            for edge, label in zip(edges, edge_labels, strict=True)
        ],
        groups=[
            GraphGroup(
                nodes=tuple(place[name] for name in group.nodes),
                label=(label.width, label.height) if group.label else (0.0, 0.0),
            )
            for group, label in zip(diagram.groups, frame_labels, strict=True)
        ],
        right=diagram.direction in ("right", "left"),
        mirrored=diagram.direction in ("up", "left"),
    )
    return SizedDiagram(
        nodes=sized,
        edges=edges,
        edge_labels=edge_labels,
        frame_labels=frame_labels,
        frame_colours=[group.color for group in diagram.groups],
        graph=graph,
    )


def _all_nodes(diagram: Diagram, edges: Sequence[DiagramEdge]) -> list[DiagramNode]:
    """The nodes that are declared, and those that only edges or groups name."""
    found: dict[str, DiagramNode] = {}
    for node in diagram.nodes:
        made = DiagramNode(id=node) if isinstance(node, str) else node
        found[made.id] = made
    names = [name for edge in edges for name in (edge.start, edge.end)]
    names += [name for group in diagram.groups for name in group.nodes]
    for name in names:
        if name not in found:
            found[name] = DiagramNode(id=name)
    if not found:
        raise InputInvalid(
            "a diagram needs nodes", field="source", hint='Write "edges": [["A", "B"]].'
        )
    if len(found) > MAX_NODES:
        raise InputInvalid(
            f"the diagram has {len(found)} nodes; {MAX_NODES} are allowed", field="source"
        )
    return list(found.values())


def _joined_loops(edges: Sequence[DiagramEdge]) -> list[DiagramEdge]:
    """Several edges from a node to itself become one, with all their labels."""
    loops: dict[str, list[str]] = {}
    for edge in edges:
        if edge.start == edge.end:
            loops.setdefault(edge.start, []).append(edge.label)
    kept: list[DiagramEdge] = []
    for edge in edges:
        if edge.start != edge.end:
            kept.append(edge)
        elif edge.start in loops:
            labels = [label for label in loops.pop(edge.start) if label]
            kept.append(msgspec.structs.replace(edge, label="\n".join(labels)))
    return kept


def _power(node: DiagramNode) -> float:
    return {"diamond": 1.0, "circle": 2.0}.get(node.shape, math.inf)


def _size_node(node: DiagramNode, font: FontStyle) -> SizedNode:
    text = node.id if node.label is None else node.label
    limit = _DIAMOND_WIDTH if node.shape in ("diamond", "circle") else _LABEL_WIDTH
    # A long text gets wider lines, so that its box keeps a good shape.
    limit = max(limit, math.sqrt(len(text)) * 1.3)
    label = wrap(text, 1.0, limit, font, bold=bool(node.rows))
    rows = tuple(wrap(row, 0.9, _ROW_WIDTH, font) for row in node.rows)
    wide = max([label.width, *(row.width for row in rows)])
    high = label.height
    if node.shape == "circle":
        wide = high = math.hypot(wide, high) + 0.7 if text else 1.0
    elif node.shape == "diamond":
        wide, high = max(wide * 1.75, 2.5) + 1.6, high * 2.1 + 1.2
    else:
        wide, high = max(wide + 2 * _PAD_X, 3.6), high + 2 * _PAD_Y
        high += {"cylinder": 2.4 * _LID, "note": 0.2}.get(node.shape, 0.0)
    if rows:
        high += sum(row.height for row in rows) + _PAD_Y
    return SizedNode(node=node, label=label, rows=rows, width=wide, height=high)


class _Painter:
    """Draws a layout at a scale and a place."""

    def __init__(
        self, sized: SizedDiagram, layout: GraphLayout, brush: Brush, origin: Point
    ) -> None:
        self.sized = sized
        self.layout = layout
        self.brush = brush
        self.scale = brush.style.base
        self.origin = origin
        self.heads: list[tuple[Point, Point, float, DiagramEdge]] = []
        theme = brush.style.theme
        self.stroke = max(self.scale / 13, 1.0)
        self.ground = mix(theme.background, theme.surface, 0.75)
        self.line_colour = mix(brush.style.ink, theme.background, 0.35)

    def paint(self) -> None:
        """Frames first, then lines, then boxes and words."""
        for box, colour in zip(self.layout.frames, self.sized.frame_colours, strict=True):
            if box is not None:
                self._frame(box, colour)
        for place, edge in enumerate(self.sized.edges):
            self._edge(edge, self.layout.edges[place])
        for head in self.heads:
            self._head(*head)
        for place, sized in enumerate(self.sized.nodes):
            self._node(sized, self._rect(self.layout.nodes[place]), self._colour(place))
        for label, at in zip(self.sized.edge_labels, self.layout.labels, strict=True):
            if label is not None and at is not None:
                self._edge_label(label, self._at(at))
        for label, box in zip(self.sized.frame_labels, self.layout.frames, strict=True):
            if box is not None:
                self._frame_label(label, box)

    def _at(self, point: Point) -> Point:
        return self.origin[0] + point[0] * self.scale, self.origin[1] + point[1] * self.scale

    def _rect(self, box: Rect) -> Rect:
        x, y = self._at((box.x, box.y))
        return Rect(x, y, box.width * self.scale, box.height * self.scale)

    def _text(self, text: TextLines) -> TextLines:
        return TextLines(
            lines=text.lines, size=text.size * self.scale, width=text.width * self.scale
        )

    def _colour(self, place: int) -> str:
        """Its own colour, that of its group, or that of its shape."""
        node, series = self.sized.nodes[place].node, self.brush.style.theme.series
        if node.color:
            return parse_colour(node.color)
        groups = [
            number for number, group in enumerate(self.sized.graph.groups) if place in group.nodes
        ]
        return series[(groups[-1] if groups else _SHAPE_COLOURS[node.shape]) % len(series)]

    def _frame(self, box: Rect, colour: str | None) -> None:
        theme = self.brush.style.theme
        fill, edge = self.ground, mix(theme.line, theme.muted, 0.25)
        if colour:
            own = parse_colour(colour)
            fill, edge = mix(theme.background, own, 0.2), mix(own, theme.muted, 0.25)
        self.brush.panel(self._rect(box), fill, radius=self.scale * 0.7, stroke=edge)

    def _frame_label(self, label: TextLines, box: Rect) -> None:
        """The label of a frame, in a corner that no line passes if there is one."""
        graph, room = self.sized.graph, label.height + 0.6
        top = box.bottom - room if graph.mirrored and not graph.right else box.y
        last = box.right - label.width - 0.8
        lefts = (box.x + 0.8, last, (box.x + 0.8 + last) / 2)
        lines = [
            (min(x0, x1) - 0.3, max(x0, x1) + 0.3)
            for points in self.layout.edges
            for (x0, y0), (x1, y1) in pairwise(points[::3])
            if (y0 < top + room or y1 < top + room) and (y0 > top or y1 > top)
        ]
        free = [
            left
            for left in lefts
            if not any(low < left + label.width and high > left for low, high in lines)
        ]
        rect = self._rect(Rect((free or lefts)[0], top + 0.4, label.width, label.height))
        if not free:
            self.brush.panel(rect.inset(-self.scale * 0.2, 0), self.ground)
        self.brush.lines(rect, self._text(label), bold=True, color=self.brush.style.theme.muted)

    def _edge_label(self, label: TextLines, middle: Point) -> None:
        """A label on its own line: the line is interrupted."""
        text = self._text(label)
        box = Rect(middle[0] - text.width / 2, middle[1] - text.height / 2, text.width, text.height)
        framed = any(_holds(self._rect(frame), middle) for frame in self.layout.frames if frame)
        ground = self.ground if framed else self.brush.style.theme.background
        self.brush.panel(box.inset(-self.scale * 0.2, 0), ground, radius=self.scale * 0.25)
        self.brush.lines(box, text, align="center")

    def _edge(self, edge: DiagramEdge, points: Sequence[Point]) -> None:
        places = [self._at(point) for point in points]
        if not places:
            return
        hollow = edge.arrow in ("triangle", "diamond")
        head = self.scale * (_HEAD * 1.25 if hollow else _HEAD)
        length = head * (1.7 if edge.arrow == "diamond" else 1.0)
        if edge.arrow != "none":
            self.heads.append((places[-1], places[-2], head, edge))
            places[-1] = _towards(places[-1], places[-2], length * 0.9)
        if edge.arrow == "both":
            self.heads.append((places[0], places[1], head, edge))
            places[0] = _towards(places[0], places[1], length * 0.9)
        data = "M" + _pair(places[0])
        for one, two, end in zip(places[1::3], places[2::3], places[3::3], strict=True):
            data += f"C{_pair(one)} {_pair(two)} {_pair(end)}"
        dash = self.scale * 0.35
        more = {"stroke_dasharray": f"{dash:.1f} {dash * 1.2:.1f}"} if edge.dashed else {}
        self.brush.canvas.line(data, self._line_colour(edge), self.stroke, **more)

    def _line_colour(self, edge: DiagramEdge) -> str:
        return parse_colour(edge.color) if edge.color else self.line_colour

    def _head(self, tip: Point, back: Point, size: float, edge: DiagramEdge) -> None:
        angle = math.atan2(back[1] - tip[1], back[0] - tip[0])
        away = (math.cos(angle), math.sin(angle))
        side = (-away[1], away[0])

        def corner(along: float, across: float) -> Point:
            return (
                tip[0] + size * (away[0] * along + side[0] * across),
                tip[1] + size * (away[1] * along + side[1] * across),
            )

        outline = [tip, corner(1, 0.38), corner(1, -0.38)]
        arrow, colour = edge.arrow, self._line_colour(edge)
        fill, more = colour, {"stroke_linejoin": "round"}
        if arrow == "triangle":
            outline = [tip, corner(1, 0.6), corner(1, -0.6)]
            fill = self.brush.style.theme.background
        elif arrow == "diamond":
            outline = [tip, corner(0.9, 0.45), corner(1.8, 0), corner(0.9, -0.45)]
        more |= {"stroke": colour, "stroke_width": number(self.stroke)}
        self.brush.canvas.path(closed(outline), fill, **more)

    def _node(self, sized: SizedNode, box: Rect, colour: str) -> None:
        theme = self.brush.style.theme
        # The author's colour fills the box; a colour of the theme is its border.
        pale = contrast(colour, theme.background) < _PALE
        fill = colour if sized.node.color else mix(theme.background, colour, 0.8 if pale else 0.16)
        edge = mix(colour, theme.ink, 0.4 if pale else 0.12)
        if sized.node.shape == "circle" and not any(sized.label.lines):
            fill = edge
        ink = readable_on(fill, dark=theme.ink, light=theme.background)
        label = self._text(sized.label)
        if sized.rows and sized.node.color:
            # The colour of a table is that of its head.
            body = mix(theme.background, colour, 0.1)
            self._shape(sized.node.shape, box, body, edge)
            high = label.height + 1.5 * _PAD_Y * self.scale
            self.brush.panel(Rect(box.x, box.y, box.width, high), fill, radius=self.scale * 0.3)
        else:
            body = fill
            self._shape(sized.node.shape, box, fill, edge)
        if not sized.rows:
            lid = _LID * self.scale * 1.2 if sized.node.shape == "cylinder" else 0.0
            self.brush.lines(box.below(lid), label, align="center", color=ink, centred=True)
            return
        head = Rect(box.x, box.y + _PAD_Y * self.scale, box.width, label.height)
        self.brush.lines(head, label, align="center", color=ink, bold=True)
        y = head.bottom + _PAD_Y * self.scale / 2
        self.brush.canvas.line(
            f"M{number(box.x)} {number(y)}H{number(box.right)}", edge, self.stroke
        )
        y += _PAD_Y * self.scale / 2
        for row in sized.rows:
            lines = self._text(row)
            inner = Rect(box.x + _PAD_X * self.scale, y, box.width, lines.height)
            below = readable_on(body, dark=theme.ink, light=theme.background)
            self.brush.lines(inner, lines, color=below)
            y += lines.height

    def _shape(self, shape: str, box: Rect, fill: str, edge: str) -> None:
        canvas, scale = self.brush.canvas, self.scale
        more = {"stroke": edge, "stroke_width": number(self.stroke), "stroke_linejoin": "round"}
        x, y = box.middle
        if shape == "diamond":
            canvas.path(
                closed([(x, box.y), (box.right, y), (x, box.bottom), (box.x, y)]), fill, **more
            )
        elif shape == "circle":
            canvas.ellipse(x, y, box.width / 2, box.height / 2, fill, **more)
        elif shape == "cylinder":
            lid = _LID * scale
            arc = f"A{number(box.width / 2)} {number(lid)} 0 0"
            left, right, top = number(box.x), number(box.right), number(box.y + lid)
            side, low = number(box.height - 2 * lid), number(box.bottom - lid)
            canvas.path(
                f"M{left} {top}{arc} 1 {right} {top}v{side}{arc} 1 {left} {low}Z",
                fill,
                **more,
            )
            canvas.line(f"M{left} {top}{arc} 0 {right} {top}", edge, self.stroke)
        elif shape == "note":
            fold = _FOLD * scale
            corner = (box.right - fold, box.y + fold)
            canvas.path(
                closed(
                    [
                        (box.x, box.y),
                        (corner[0], box.y),
                        (box.right, corner[1]),
                        (box.right, box.bottom),
                        (box.x, box.bottom),
                    ]
                ),
                fill,
                **more,
            )
            canvas.path(closed([(corner[0], box.y), corner, (box.right, corner[1])]), edge, **more)
        else:
            radius = box.height / 2 if shape == "round" else scale * 0.4
            canvas.rect(*box, fill, rx=number(min(radius, scale * 1.6)), **more)


def _holds(box: Rect, point: Point) -> bool:
    return box.x <= point[0] <= box.right and box.y <= point[1] <= box.bottom


def _towards(point: Point, other: Point, length: float) -> Point:
    away = math.dist(point, other) or 1.0
    share = length / away
    return point[0] + (other[0] - point[0]) * share, point[1] + (other[1] - point[1]) * share


def _pair(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
