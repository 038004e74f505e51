"""Boxes and arrows -> their sizes, a layout, and the drawing of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    NodeGroup,
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
_SHAPE_COLOURS = {
    "diamond": 1,
    "cylinder": 2,
    "circle": 4,
    "double": 4,
    "round": 2,
    "note": 5,
    "hexagon": 1,
    "person": 3,
}
_ROUND = ("circle", "double")
# The room that a shape needs beside and above its text, and how much of it is above.
_ROOM: Mapping[str, tuple[float, float, float]] = {
    "cylinder": (0.0, 2.4 * _LID, 1.2 * _LID),
    "note": (0.0, 0.2, 0.0),
    "hexagon": (1.6, 0.0, 0.0),
    "parallelogram": (1.4, 0.0, 0.0),
    "trapezoid": (1.4, 0.0, 0.0),
    "house": (0.0, 1.1, 1.1),
    "folder": (0.0, 0.6, 0.5),
    "component": (0.9, 0.3, 0.0),
    "person": (0.0, 2.9, 2.9),
    "cloud": (1.6, 1.2, 0.3),
    "text": (-0.8, -0.4, 0.0),
}
# The corners of shapes: a share of the width and one of the height, each with a distance from it.
_CORNERS: Mapping[str, Sequence[tuple[float, float, float, float]]] = {
    "diamond": ((0.5, 0, 0, 0), (1, 0, 0.5, 0), (0.5, 0, 1, 0), (0, 0, 0.5, 0)),
    "hexagon": (
        *((0, 0, 0.5, 0), (0, 0.8, 0, 0), (1, -0.8, 0, 0)),
        *((1, 0, 0.5, 0), (1, -0.8, 1, 0), (0, 0.8, 1, 0)),
    ),
    "parallelogram": ((0, 0.8, 0, 0), (1, 0, 0, 0), (1, -0.8, 1, 0), (0, 0, 1, 0)),
    "trapezoid": ((0, 0.8, 0, 0), (1, -0.8, 0, 0), (1, 0, 1, 0), (0, 0, 1, 0)),
    "house": (*((0, 0, 0, 1.1), (0.5, 0, 0, 0), (1, 0, 0, 1.1), (1, 0, 1, 0), (0, 0, 1, 0)),),
    "folder": (
        *((0, 0, 0, 0), (0, 2.0, 0, 0), (0, 2.3, 0, 0.5), (1, 0, 0, 0.5)),
        *((1, 0, 1, 0), (0, 0, 1, 0)),
    ),
    "note": (*((0, 0, 0, 0), (1, -_FOLD, 0, 0), (1, 0, 0, _FOLD), (1, 0, 1, 0), (0, 0, 1, 0)),),
}


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
    frames: list[NodeGroup]
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
                free=edge.free,
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
        ranks=[
            tuple(place[name] for name in dict.fromkeys(rank) if name in place)
            for rank in diagram.same_rank
        ],
        right=diagram.direction in ("right", "left"),
        mirrored=diagram.direction in ("up", "left"),
    )
    return SizedDiagram(
        nodes=sized,
        edges=edges,
        edge_labels=edge_labels,
        frame_labels=frame_labels,
        frames=diagram.groups,
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
    return {"diamond": 1.0, "circle": 2.0, "double": 2.0}.get(node.shape, math.inf)


def _size_node(node: DiagramNode, font: FontStyle) -> SizedNode:
    text = node.id if node.label is None else node.label
    limit = _DIAMOND_WIDTH if node.shape in ("diamond", *_ROUND) else _LABEL_WIDTH
    # A long text gets wider lines, so that its box keeps a good shape.
    limit = max(limit, math.sqrt(len(text)) * 1.3)
    label = wrap(text, 1.0, limit, font, bold=bool(node.rows))
    rows = tuple(wrap(row, 0.9, _ROW_WIDTH, font) for row in node.rows)
    wide = max([label.width, *(row.width for row in rows)])
    high = label.height
    if node.shape == "bar":
        wide, high = max(wide, 5.0), 0.45
    elif node.shape in _ROUND:
        more = 0.7 if node.shape == "circle" else 1.2
        wide = high = math.hypot(wide, high) + more if text else 1.0
    elif node.shape == "diamond":
        wide, high = max(wide * 1.75, 2.5) + 1.6, high * 2.1 + 1.2
    else:
        more = _ROOM.get(node.shape, (0.0, 0.0, 0.0))
        wide, high = max(wide + 2 * _PAD_X, 3.6) + more[0], high + 2 * _PAD_Y + more[1]
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
        frames = zip(self.layout.frames, self.sized.frames, strict=True)
        placed = [(box, frame) for box, frame in frames if box is not None]
        # A frame is drawn before those that are in it.
        for box, frame in sorted(placed, key=lambda pair: -pair[0].width * pair[0].height):
            self._frame(box, frame)
        for place, edge in enumerate(self.sized.edges):
            self._edge(edge, self.layout.edges[place])
        for head in self.heads:
            self._head(*head)
        for place, sized in enumerate(self.sized.nodes):
            self._node(sized, self._rect(self.layout.nodes[place]), self._colour(place))
        for label, at, edge in zip(
            self.sized.edge_labels, self.layout.labels, self.sized.edges, strict=True
        ):
            if label is not None and at is not None and not edge.hidden:
                self._edge_label(label, self._at(at))
        for label, box, frame in zip(
            self.sized.frame_labels, self.layout.frames, self.sized.frames, strict=True
        ):
            if box is not None:
                self._frame_label(label, box, self._ground(frame))

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
        return series[(groups[-1] if groups else _SHAPE_COLOURS.get(node.shape, 0)) % len(series)]

    def _frame(self, box: Rect, frame: NodeGroup) -> None:
        theme = self.brush.style.theme
        edge = mix(theme.line, theme.muted, 0.6 if frame.dashed else 0.25)
        if frame.color:
            edge = mix(parse_colour(frame.color), theme.muted, 0.25)
        more = {"stroke": edge, "stroke_width": number(self.stroke), **self._dash(frame.dashed)}
        self.brush.canvas.rect(
            *self._rect(box), self._ground(frame), rx=number(self.scale * 0.7), **more
        )

    def _ground(self, frame: NodeGroup) -> str:
        """The ground of a frame: pale, so that boxes stand out on it."""
        if not frame.color:
            return self.ground
        own, background = parse_colour(frame.color), self.brush.style.theme.background
        return own if contrast(own, background) < _PALE else mix(background, own, 0.2)

    def _dash(self, dashed: bool) -> dict[str, str]:
        length = self.scale * 0.35
        return {"stroke_dasharray": f"{length:.1f} {length * 1.2:.1f}"} if dashed else {}

    def _frame_label(self, label: TextLines, box: Rect, ground: str) -> None:
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
            self.brush.panel(rect.inset(-self.scale * 0.2, 0), ground)
        self.brush.lines(rect, self._text(label), bold=True, color=self.brush.style.theme.muted)

    def _edge_label(self, label: TextLines, middle: Point) -> None:
        """A label on its own line: the line is interrupted."""
        text = self._text(label)
        box = Rect(middle[0] - text.width / 2, middle[1] - text.height / 2, text.width, text.height)
        around = [
            (place.width, self._ground(frame))
            for place, frame in zip(self.layout.frames, self.sized.frames, strict=True)
            if place and _holds(self._rect(place), middle)
        ]
        ground = min(around)[1] if around else self.brush.style.theme.background
        self.brush.panel(box.inset(-self.scale * 0.2, 0), ground, radius=self.scale * 0.25)
        self.brush.lines(box, text, align="center")

    def _edge(self, edge: DiagramEdge, points: Sequence[Point]) -> None:
        places = [self._at(point) for point in points]
        if not places or edge.hidden:
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
        more = self._dash(edge.dashed)
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
        if sized.node.shape in ("circle", "bar") and not any(sized.label.lines):
            fill = edge
        elif sized.node.shape in ("text", "person"):
            fill = theme.background
        ink = readable_on(fill, dark=theme.ink, light=theme.background)
        label = self._text(sized.label)
        if sized.rows and sized.node.color:
            # The colour of a table is that of its head.
            body = mix(theme.background, colour, 0.1)
            self._shape(sized.node, box, body, edge)
            high = label.height + 1.5 * _PAD_Y * self.scale
            self.brush.panel(Rect(box.x, box.y, box.width, high), fill, radius=self.scale * 0.3)
        else:
            body = fill
            self._shape(sized.node, box, fill, edge)
        if not sized.rows:
            above = _ROOM.get(sized.node.shape, (0.0, 0.0, 0.0))[2] * self.scale
            self.brush.lines(box.below(above), label, align="center", color=ink, centred=True)
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

    def _shape(self, node: DiagramNode, box: Rect, fill: str, edge: str) -> None:
        canvas, scale, shape = self.brush.canvas, self.scale, node.shape
        more = {"stroke": edge, "stroke_width": number(self.stroke), "stroke_linejoin": "round"}
        more |= self._dash(node.dashed)
        if shape in _CORNERS:
            corners = [
                (box.x + box.width * x + dx * scale, box.y + box.height * y + dy * scale)
                for x, dx, y, dy in _CORNERS[shape]
            ]
            canvas.path(closed(corners), fill, **more)
            if shape == "note":
                tip, foot = corners[1:3]
                canvas.path(closed([tip, (tip[0], foot[1]), foot]), edge, **more)
        elif shape in _ROUND:
            canvas.ellipse(*box.middle, box.width / 2, box.height / 2, fill, **more)
            if shape == "double":
                inner = box.inset(scale * 0.25)
                middle = "none" if node.label else edge
                canvas.ellipse(*box.middle, inner.width / 2, inner.height / 2, middle, **more)
        elif shape == "cylinder":
            self._cylinder(box, fill, edge, more)
        elif shape == "cloud":
            canvas.path(_cloud(box), fill, **more)
        elif shape == "person":
            draw_person(self.brush, box._replace(height=scale * 2.7), edge)
        elif shape != "text":
            radius = box.height / 2 if shape == "round" else scale * 0.4
            canvas.rect(*box, fill, rx=number(min(radius, scale * 1.6)), **more)
            if shape == "component":
                self._lugs(box, fill, more)

    def _cylinder(self, box: Rect, fill: str, edge: str, more: dict[str, str]) -> None:
        lid = _LID * self.scale
        arc = f"A{number(box.width / 2)} {number(lid)} 0 0"
        left, right, top = number(box.x), number(box.right), number(box.y + lid)
        side, low = number(box.height - 2 * lid), number(box.bottom - lid)
        body = f"M{left} {top}{arc} 1 {right} {top}v{side}{arc} 1 {left} {low}Z"
        self.brush.canvas.path(body, fill, **more)
        self.brush.canvas.line(f"M{left} {top}{arc} 0 {right} {top}", edge, self.stroke)

    def _lugs(self, box: Rect, fill: str, more: dict[str, str]) -> None:
        scale = self.scale
        for down in (0.45, 1.15):
            lug = (box.x - scale * 0.4, box.y + down * scale, scale * 0.8, scale * 0.4)
            self.brush.canvas.rect(*lug, fill, **more)


def _cloud(box: Rect) -> str:
    """The outline of a cloud: five bows."""
    x, y, wide, high = box
    points = ((0.2, 0.95), (0.08, 0.5), (0.36, 0.24), (0.68, 0.22), (0.92, 0.52), (0.82, 0.95))
    places = [(x + wide * a, y + high * b) for a, b in points]
    data = f"M{_pair(places[0])}"
    for start, end in pairwise(places):
        radius = number(math.dist(start, end) * 0.56)
        data += f"A{radius} {radius} 0 0 1 {_pair(end)}"
    return f"{data}Z"


def draw_person(brush: Brush, box: Rect, colour: str) -> None:
    """A figure of a person, as high as a box and in the middle of it."""
    unit, (x, _) = box.height / 10, box.middle
    head = {"stroke": colour, "stroke_width": number(unit * 0.7)}
    brush.canvas.ellipse(x, box.y + unit * 1.8, unit * 1.6, unit * 1.6, "none", **head)
    body = (
        f"M{number(x)} {number(box.y + unit * 3.4)}v{number(unit * 3.2)}"
        f"l{number(-unit * 2)} {number(unit * 3)}m{number(unit * 2)} {number(-unit * 3)}"
        f"l{number(unit * 2)} {number(unit * 3)}"
        f"M{number(x - unit * 2.4)} {number(box.y + unit * 4.6)}h{number(unit * 4.8)}"
    )
    brush.canvas.line(body, colour, unit * 0.7)


def _holds(box: Rect, point: Point) -> bool:
    return box.x <= point[0] <= box.right and box.y <= point[1] <= box.bottom


def _towards(point: Point, other: Point, length: float) -> Point:
    away = math.dist(point, other) or 1.0
    share = length / away
    return point[0] + (other[0] - point[0]) * share, point[1] + (other[1] - point[1]) * share


def _pair(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
