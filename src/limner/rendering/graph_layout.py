"""Boxes, edges and groups -> where they go: a layered layout, as Sugiyama and others describe it.

Edges that close a cycle are turned around, nodes get layers, an edge over several layers gets a
point in each of them, the layers are ordered to avoid crossings, and then everything gets
coordinates. Labels of edges have layers of their own, so that they take room like nodes. Lines
bend only between the layers, so no line ever touches a box or a foreign frame.

The module calculates with layers from top to bottom; for the other direction it swaps the axes.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise

import msgspec

from limner.rendering.brush import Rect

Point = tuple[float, float]
Extent = tuple[float, float]

# Distances, in parts of the text size.
_EDGE_GAP = 1.1
_FRAME_PAD = 1.0
_FRAME_GAP = 1.2
_LOOP = 1.7
_PORT_GAP = 1.3
_COMPONENT_GAP = 2.6
_STUB = 0.9
_FAR, _TINY = 1_000.0, 1e-6
# How wide rows of parts should be, in parts of their height, and how many widths are tried.
_ASPECT = 1.5
_MAX_LIMITS = 60
# How much a straight line matters: between nodes, at an end of a long edge, within a long edge.
_WEIGHTS = (1.0, 2.0, 6.0)
_TURNED_WEIGHT = 0.1
_MAX_WORK = 60_000
_MAX_SWEEPS = 16
_MAX_POINTS = 5_000


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """A box and its outline: power 1 is a diamond, 2 an ellipse, infinity a rectangle."""

    width: float
    height: float
    power: float = math.inf

    def depth(self, offset: float) -> float:
        """Half the height of the outline, at an offset from its middle."""
        if self.power == math.inf:
            return self.height / 2
        share = min(abs(offset) * 2 / self.width, 1.0)
        return self.height / 2 * (1 - share**self.power) ** (1 / self.power)


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A line between two nodes; an edge that points ``up`` has its end above its start."""

    start: int
    end: int
    label: Extent = (0.0, 0.0)
    up: bool = False


class GraphGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes with a frame around them, and the size of its label."""

    nodes: tuple[int, ...]
    label: Extent = (0.0, 0.0)


class GraphLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything goes. An edge is a row of cubic curves: a point, then three for each."""

    width: float
    height: float
    nodes: list[Rect]
    edges: list[list[Point]]
    labels: list[Point | None]
    frames: list[Rect | None]


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be laid out, and the distances between nodes and between layers."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge] = ()
    groups: Sequence[GraphGroup] = ()
    right: bool = False
    mirrored: bool = False
    node_gap: float = 1.5
    layer_gap: float = 1.8


def lay_out(graph: Graph) -> GraphLayout:
    """Lay out a graph with nodes; parts that are not connected stand side by side."""
    turned = _swapped(graph) if graph.right else graph
    paths = _group_paths(turned)
    parts = [_Component(turned, members, paths) for members in _components(turned, paths)]
    for part in parts:
        part.run()
    nodes: list[Rect] = [Rect(0, 0, 0, 0)] * len(graph.nodes)
    edges: list[list[Point]] = [[] for _ in graph.edges]
    labels: list[Point | None] = [None] * len(graph.edges)
    frames: list[Rect | None] = [None] * len(graph.groups)
    sizes = [part.size() for part in parts]
    if graph.right:
        sizes = [(high, wide) for wide, high in sizes]
    places, (width, height) = _pack(sizes)
    for part, place in zip(parts, places, strict=True):
        dx, dy = place[::-1] if graph.right else place
        for node, box in part.boxes().items():
            nodes[node] = _moved(box, dx, dy, swap=graph.right)
        for group, box in part.frames().items():
            frames[group] = _moved(box, dx, dy, swap=graph.right)
        for edge, (points, label) in part.lines().items():
            edges[edge] = [_shifted(point, dx, dy, swap=graph.right) for point in points]
            labels[edge] = _shifted(label, dx, dy, swap=graph.right) if label else None
    layout = GraphLayout(
        width=width, height=height, nodes=nodes, edges=edges, labels=labels, frames=frames
    )
    return _mirrored(layout, across=graph.right) if graph.mirrored else layout


def _mirrored(layout: GraphLayout, *, across: bool) -> GraphLayout:
    """The same from right to left, or from bottom to top."""

    def turn(point: Point) -> Point:
        x, y = point
        return (layout.width - x, y) if across else (x, layout.height - y)

    def turn_box(box: Rect) -> Rect:
        x, y = turn((box.x, box.y))
        return box._replace(x=x - box.width) if across else box._replace(y=y - box.height)

    return msgspec.structs.replace(
        layout,
        nodes=[turn_box(box) for box in layout.nodes],
        edges=[[turn(point) for point in points] for points in layout.edges],
        labels=[turn(point) if point else None for point in layout.labels],
        frames=[turn_box(box) if box else None for box in layout.frames],
    )


def _swapped(graph: Graph) -> Graph:
    return msgspec.structs.replace(
        graph,
        nodes=[
            GraphNode(width=node.height, height=node.width, power=node.power)
            for node in graph.nodes
        ],
        edges=[msgspec.structs.replace(edge, label=edge.label[::-1]) for edge in graph.edges],
        groups=[msgspec.structs.replace(group, label=group.label[::-1]) for group in graph.groups],
    )


def _shifted(point: Point, dx: float, dy: float, *, swap: bool) -> Point:
    x, y = point[0] + dx, point[1] + dy
    return (y, x) if swap else (x, y)


def _moved(box: Rect, dx: float, dy: float, *, swap: bool) -> Rect:
    x, y = _shifted((box.x, box.y), dx, dy, swap=swap)
    return Rect(x, y, box.height, box.width) if swap else Rect(x, y, box.width, box.height)


def _pack(sizes: Sequence[Extent]) -> tuple[list[Point], Extent]:
    """Rows of boxes, in their order; together about as wide as a page."""
    widths = accumulate(wide + _COMPONENT_GAP for wide, _ in sizes)
    widest = max((wide for wide, _ in sizes), default=0.0)
    packed = [_rows(sizes, max(limit, widest)) for limit in list(widths)[:_MAX_LIMITS]]
    return min(packed, key=lambda rows: max(rows[1][0], rows[1][1] * _ASPECT))


def _rows(sizes: Sequence[Extent], limit: float) -> tuple[list[Point], Extent]:
    places: list[Point] = []
    x = y = row = right = 0.0
    for wide, high in sizes:
        if x and x + wide > limit:
            x, y, row = 0.0, y + row + _COMPONENT_GAP, 0.0
        places.append((x, y))
        right, row = max(right, x + wide), max(row, high)
        x += wide + _COMPONENT_GAP
    return places, (right, y + row)


def _group_paths(graph: Graph) -> list[tuple[int, ...]]:
    """The groups of each node, from the outermost; a node is in one of two that overlap."""
    paths: list[tuple[int, ...]] = [()] * len(graph.nodes)
    by_size = sorted(
        range(len(graph.groups)), key=lambda group: (-len(set(graph.groups[group].nodes)), group)
    )
    for group in by_size:
        members = set(graph.groups[group].nodes)
        if not members:
            continue
        counts = Counter(paths[node] for node in sorted(members))
        common = counts.most_common(1)[0][0]
        for node in members:
            if paths[node] == common:
                paths[node] = (*common, group)
    return paths


def _components(graph: Graph, paths: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """The nodes of each connected part, in the order of their first nodes."""
    root = list(range(len(graph.nodes)))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    pairs = [(edge.start, edge.end) for edge in graph.edges]
    first: dict[int, int] = {}
    for node, path in enumerate(paths):
        pairs += [(first.setdefault(group, node), node) for group in path]
    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    parts: dict[int, list[int]] = {}
    for node in range(len(root)):
        parts.setdefault(find(node), []).append(node)
    # What has no edge comes last.
    return sorted(parts.values(), key=lambda part: len(part) == 1)


class _Component:
    """A connected part of a graph. A vertex is a node or a point of an edge."""

    def __init__(self, graph: Graph, members: list[int], paths: list[tuple[int, ...]]) -> None:
        self.graph = graph
        self.members = members
        self.place = {node: vertex for vertex, node in enumerate(members)}
        self.path = [paths[node] for node in members]
        self.edges = [place for place, edge in enumerate(graph.edges) if edge.start in self.place]
        self.left = [graph.nodes[node].width / 2 for node in members]
        self.right = list(self.left)
        self.high = [graph.nodes[node].height for node in members]
        self.layer: list[int] = []
        self.layers: list[list[int]] = []
        self.chains: dict[int, list[int]] = {}
        self.label_at: dict[int, int] = {}
        self.above: list[list[int]] = []
        self.below: list[list[int]] = []
        self.x: list[float] = []
        self.turned: set[tuple[int, int]] = set()
        self.lean: dict[tuple[int, int], float] = {}
        self.links: list[list[tuple[int, float, float]]] = []
        self.strength: list[float] = []
        self.span: dict[int, tuple[int, int]] = {}
        self.inside: dict[int, frozenset[int]] = {}
        self.deepest_first: list[int] = []
        self.inset: dict[int, tuple[float, float]] = {}
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.tops: list[float] = []
        self.bottoms: list[float] = []

    def run(self) -> None:
        """Do each step of the layout."""
        self._room_for_loops()
        self._assign_layers()
        self._add_points()
        self._add_fillers()
        self._order()
        self._place_across()
        self._place_down()

    def _room_for_loops(self) -> None:
        for place in self.edges:
            edge = self.graph.edges[place]
            if edge.start == edge.end:
                vertex = self.place[edge.start]
                wide, high = edge.label
                more = _LOOP + (wide + 0.4 if wide else 0)
                self.right[vertex] = max(self.right[vertex], self.left[vertex] + more)
                self.high[vertex] = max(self.high[vertex], high)

    def _assign_layers(self) -> None:
        """A layer for each node; all nodes of a group follow those of a group that points to it."""
        levels: dict[tuple[int, ...], dict[tuple[int, int], None]] = {}
        items: dict[tuple[int, ...], dict[int, None]] = {}
        for vertex, path in enumerate(self.path):
            for depth in range(len(path) + 1):
                items.setdefault(path[:depth], {})[self._item(vertex, depth)] = None
        for upper, lower in self._arcs().values():
            shared = _shared(self.path[upper], self.path[lower])
            arc = self._item(upper, shared), self._item(lower, shared)
            levels.setdefault(self.path[upper][:shared], {})[arc] = None
        starts: dict[int, int] = {}
        lengths: dict[int, int] = {}
        for path in sorted(items, key=len, reverse=True):
            here = list(items[path])
            place = {item: number for number, item in enumerate(here)}
            found = _layers(
                [lengths.get(item, 1) for item in here],
                [(place[one], place[other]) for one, other in levels.get(path, ())],
            )
            starts |= dict(zip(here, found, strict=True))
            if path:
                lengths[-1 - path[-1]] = max(
                    start + lengths.get(item, 1) for item, start in zip(here, found, strict=True)
                )
        step = 2 if any(self.graph.edges[place].label[0] for place in self._arcs()) else 1
        self.layer = [
            step * sum(starts[self._item(vertex, depth)] for depth in range(len(path) + 1))
            for vertex, path in enumerate(self.path)
        ]

    def _item(self, vertex: int, depth: int) -> int:
        """What stands for a vertex among the things of one group: a group in it, or itself."""
        path = self.path[vertex]
        return -1 - path[depth] if depth < len(path) else vertex

    def _arcs(self) -> dict[int, tuple[int, int]]:
        """Each edge as a pair of vertices, from the one that should be above the other."""
        return {place: arc for place in self.edges if len(set(arc := self._arc(place))) > 1}

    def _arc(self, place: int) -> tuple[int, int]:
        edge = self.graph.edges[place]
        start, end = self.place[edge.start], self.place[edge.end]
        return (end, start) if edge.up else (start, end)

    def _add_points(self) -> None:
        """A vertex for each layer that an edge passes, one of them with its label."""
        for vertex, path in enumerate(self.path):
            for group in path:
                first, last = self.span.get(group, (self.layer[vertex],) * 2)
                self.span[group] = min(first, self.layer[vertex]), max(last, self.layer[vertex])
        for place, pair in self._arcs().items():
            upper, lower = sorted(pair, key=self.layer.__getitem__)
            inner = range(self.layer[upper] + 1, self.layer[lower])
            wide, high = self.graph.edges[place].label
            middle = self._label_layer(upper, lower) if wide else -1
            chain = [upper]
            for layer in inner:
                chain.append(len(self.layer))
                if layer == middle:
                    self.label_at[place] = chain[-1]
                path = self._path_between(upper, lower, layer)
                self._add_vertex(layer, path, (wide, high) if layer == middle else (0.0, 0.0))
            self.chains[place] = [*chain, lower]
        self.above = [[] for _ in self.layer]
        self.below = [[] for _ in self.layer]
        for place, chain in self.chains.items():
            for upper, lower in pairwise(chain):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
                if self._is_turned(place):
                    self.turned.add((upper, lower))

    def _is_turned(self, place: int) -> bool:
        """Whether an edge goes back up, against the order of the layers."""
        return self.chains[place][0] != self._arc(place)[0]

    def _path_between(self, upper: int, lower: int, layer: int) -> tuple[int, ...]:
        """The groups of a point of an edge: it stays in the frames of its ends if it can."""
        leaves = [g for g in self.path[upper] if self.span[g][1] >= layer]
        enters = [g for g in self.path[lower] if self.span[g][0] <= layer]
        shared = _shared(self.path[upper], self.path[lower])
        return tuple(max(leaves, enters, self.path[upper][:shared], key=len))

    def _label_layer(self, upper: int, lower: int) -> int:
        """A layer without nodes, near the middle of an edge."""
        middle = (self.layer[upper] + self.layer[lower]) // 2
        return middle if middle % 2 else middle - 1

    def _add_vertex(self, layer: int, path: tuple[int, ...], size: Extent) -> None:
        self.layer.append(layer)
        self.path.append(path)
        self.left.append(size[0] / 2)
        self.right.append(size[0] / 2)
        self.high.append(size[1])

    def _add_fillers(self) -> None:
        """A group gets a vertex in each layer of its frame, so that others stay out of it."""
        present: dict[int, set[int]] = {}
        for vertex, path in enumerate(self.path):
            for group in path:
                present.setdefault(group, set()).add(self.layer[vertex])
        for group, layers in present.items():
            path = next(path[: path.index(group) + 1] for path in self.path if group in path)
            for layer in range(*self.span[group]):
                if layer not in layers:
                    self._add_vertex(layer, path, (0.0, 0.0))
                    self.above.append([])
                    self.below.append([])
        self.layers = [[] for _ in range(max(self.layer) + 1)]
        for group in present:
            self.inside[group] = frozenset(
                vertex for vertex, path in enumerate(self.path) if group in path
            )
        depth = {group: path.index(group) for path in self.path for group in path}
        self.deepest_first = sorted(present, key=lambda group: (-depth[group], group))

    # Order within the layers

    def _order(self) -> None:
        seen = [False] * len(self.layer)
        for first in sorted(range(len(self.layer)), key=self.layer.__getitem__):
            stack = [first]
            while stack:
                vertex = stack.pop()
                if not seen[vertex]:
                    seen[vertex] = True
                    self.layers[self.layer[vertex]].append(vertex)
                    stack += reversed(self.below[vertex])
        work = max(sum(len(lower) for lower in self.below), 1)
        sweeps = max(2, min(_MAX_SWEEPS, _MAX_WORK // work))
        position = self._positions()
        best, fewest, stale = None, math.inf, 0
        for sweep in range(sweeps):
            self._sweep(position, down=sweep % 2 == 0)
            if work < _MAX_WORK // 20:
                self._exchange(position)
            crossings = self._crossings(position)
            stale += 1
            if crossings < fewest:
                best, fewest, stale = [list(layer) for layer in self.layers], crossings, 0
            if not fewest or stale > 5:
                break
        self.layers = best or self.layers

    def _positions(self) -> list[float]:
        position = [0.0] * len(self.layer)
        for layer in self.layers:
            for place, vertex in enumerate(layer):
                position[vertex] = (place + 0.5) / len(layer)
        return position

    def _sweep(self, position: list[float], *, down: bool) -> None:
        """Order each layer by the mean of the neighbours; groups keep one order in all layers."""
        pull = self._group_pull(position)
        neighbours = self.above if down else self.below
        for layer in self.layers if down else reversed(self.layers):
            wish = {
                vertex: sum(position[other] for other in near) / len(near)
                if (near := neighbours[vertex])
                else position[vertex]
                for vertex in layer
            }
            layer.sort(
                key=lambda vertex: (
                    *((pull[group], -1 - group) for group in self.path[vertex]),
                    (wish[vertex], vertex),
                )
            )
            for place, vertex in enumerate(layer):
                position[vertex] = (place + 0.5) / len(layer)

    def _group_pull(self, position: list[float]) -> dict[int, float]:
        """Where the neighbours outside of each group are, on average."""
        sums: dict[int, list[float]] = {group: [] for group in self.span}
        own: dict[int, list[float]] = {group: [] for group in self.span}
        for vertex, path in enumerate(self.path):
            for group in path:
                own[group].append(position[vertex])
                sums[group] += [
                    position[other]
                    for other in (*self.above[vertex], *self.below[vertex])
                    if group not in self.path[other]
                ]
        return {group: sum(near := sums[group] or own[group]) / len(near) for group in self.span}

    def _exchange(self, position: list[float]) -> None:
        """Swap neighbours in a layer if that avoids crossings."""
        for layer in self.layers:
            for place in range(len(layer) - 1):
                one, other = layer[place], layer[place + 1]
                if self.path[one] != self.path[other]:
                    continue
                gain = 0
                for near in (self.above, self.below):
                    left = sorted(position[vertex] for vertex in near[one])
                    right = sorted(position[vertex] for vertex in near[other])
                    gain += sum(len(left) - bisect_right(left, at) for at in right)
                    gain -= sum(len(right) - bisect_right(right, at) for at in left)
                if gain > 0:
                    layer[place], layer[place + 1] = other, one
                    position[one], position[other] = position[other], position[one]

    def _crossings(self, position: list[float]) -> int:
        total = 0
        for layer in self.layers:
            ends: list[float] = []
            for vertex in layer:
                lower = sorted(position[other] for other in self.below[vertex])
                total += sum(len(ends) - bisect_right(ends, at) for at in lower)
                for at in lower:
                    insort(ends, at)
        return total

    # Coordinates across

    def _place_across(self) -> None:
        self._find_leans()
        self._find_links()
        rules, gaps = self._rules()
        self.x = [0.0] * len(rules.into)
        for layer, gap in zip(self.layers, gaps, strict=True):
            places = list(accumulate(gap, initial=0.0))
            for vertex, at in zip(layer, places, strict=True):
                self.x[vertex] = at - places[-1] / 2
        work = max(sum(len(lower) for lower in self.below), 1)
        for sweep in range(max(2, min(2 * _MAX_SWEEPS, _MAX_WORK // work))):
            order = range(len(self.layers))
            for place in order if sweep % 2 == 0 else reversed(order):
                self._relax(self.layers[place], gaps[place])
            if self.inside:
                self._tighten(rules)
                self.x = rules.solve(self.x)
        self._tighten(rules)
        self.x = rules.solve(self.x)
        for _ in range(min(_MAX_SWEEPS // 2, _MAX_WORK // work // 2)):
            if work < _MAX_WORK // 20:
                self._compress(rules)
            for group in self.inside:
                self._shift(group, rules)
            self._loosen(rules)
            self._settle(rules)
            self._straighten(rules)
            self._tighten(rules)
        if work >= _MAX_WORK // 2:
            self._straighten(rules)

    def _gap(self, one: int, other: int) -> float:
        both = one < len(self.members) and other < len(self.members)
        return self.graph.node_gap if both else _EDGE_GAP

    def _relax(self, layer: Sequence[int], gaps: Sequence[float]) -> None:
        """Move a layer to the mean of its neighbours, as near as its order and gaps allow."""
        wishes = [self._wish(vertex) for vertex in layer]
        weights = [self.strength[vertex] or 0.1 for vertex in layer]
        for vertex, at in zip(layer, _spread(wishes, weights, gaps), strict=True):
            self.x[vertex] = at

    def _wish(self, vertex: int) -> float:
        """Where the neighbours of a vertex want it to be, on average."""
        if not self.links[vertex]:
            return self.x[vertex]
        x = self.x
        total = sum([weight * (x[other] + lean) for other, weight, lean in self.links[vertex]])
        return total / self.strength[vertex]

    def _find_links(self) -> None:
        """How strongly each vertex is pulled by its neighbours, and how far aside of them."""
        for vertex in range(len(self.layer)):
            links: list[tuple[int, float, float]] = []
            for side in (self.above[vertex], self.below[vertex]):
                for other in side:
                    weight = _WEIGHTS[(vertex >= len(self.members)) + (other >= len(self.members))]
                    if (vertex, other) in self.turned or (other, vertex) in self.turned:
                        weight *= _TURNED_WEIGHT
                    # The side with more lines counts more: parents are amid their children.
                    links.append(
                        (other, weight * len(side) ** 2, self.lean.get((other, vertex), 0.0))
                    )
            self.links.append(links)
            self.strength.append(sum(weight for _, weight, _ in links))

    def _target(self, vertex: int, other: int) -> float:
        """Where a neighbour wants a vertex to be."""
        return self.x[other] + self.lean.get((other, vertex), 0.0)

    def _find_leans(self) -> None:
        """A line back up keeps aside of those that go down from the same node."""
        rank = {vertex: place for layer in self.layers for place, vertex in enumerate(layer)}
        for upper, lower in self.turned:
            for node, point, side in ((upper, lower, self.below), (lower, upper, self.above)):
                down = [
                    other
                    for other in side[node]
                    if (node, other) not in self.turned and (other, node) not in self.turned
                ]
                if node < len(self.members) and down:
                    wide = _EDGE_GAP + max(self.left[other] for other in down)
                    aside = max(_PORT_GAP, min(wide, self._reach(node)))
                    if rank[point] < sum(rank[other] for other in down) / len(down):
                        aside = -aside
                    self.lean[node, point], self.lean[point, node] = aside, -aside

    def _rules(self) -> tuple[_Rules, list[list[float]]]:
        """Each distance that must be kept across, and those between neighbours in each layer.

        A group has two variables of its own, for the borders of its frame.
        """
        rules = _Rules(len(self.layer) + 2 * len(self.graph.groups))
        gaps: list[list[float]] = []
        for layer in self.layers:
            gaps.append([])
            reach = 0.0
            for one, other in pairwise(self._tokens(layer)):
                apart = self._apart(one, other)
                rules.add(one, other, apart)
                reach += apart
                if other < len(self.layer):
                    gaps[-1].append(reach)
                    reach = 0.0
            if self.path[layer[0]]:
                del gaps[-1][0]
        for group in self.span:
            rules.add(*self._border(group), self._least_width(group))
        rules.sort()
        return rules, gaps

    def _border(self, group: int) -> tuple[int, int]:
        return len(self.layer) + 2 * group, len(self.layer) + 2 * group + 1

    def _tokens(self, layer: Sequence[int]) -> list[int]:
        """The vertices of a layer with the borders of frames between them."""
        tokens: list[int] = []
        before: tuple[int, ...] = ()
        for vertex in (*layer, -1):
            path = self.path[vertex] if vertex >= 0 else ()
            shared = _shared(before, path)
            tokens += [self._border(group)[1] for group in reversed(before[shared:])]
            tokens += [self._border(group)[0] for group in path[shared:]]
            tokens += [vertex] if vertex >= 0 else []
            before = path
        return tokens

    def _apart(self, one: int, other: int) -> float:
        """The least distance of two neighbours, each a vertex or a border."""
        count = len(self.layer)
        reach = (self.right[one] if one < count else 0) + (self.left[other] if other < count else 0)
        if one < count and other < count:
            return reach + self._gap(one, other)
        if one >= count and (one - count) % 2 == 0:
            label = self.graph.groups[(one - count) // 2].label
            return reach + _FRAME_PAD + (label[0] if self.graph.right else 0)
        inside = other >= count and (other - count) % 2 == 1
        return reach + (_FRAME_PAD if inside else _FRAME_GAP)

    def _tighten(self, rules: _Rules) -> None:
        """Bring the borders of frames close to what is in them."""
        for group in self.deepest_first:
            low, high = self._border(group)
            self.x[low] = min(self.x[at] - apart for at, apart in rules.out[low] if at != high)
            self.x[high] = max(self.x[at] + apart for at, apart in rules.into[high] if at != low)
            lack = max(self._least_width(group) - (self.x[high] - self.x[low]), 0.0)
            room = max(rules.bounds(high, self.x)[1] - self.x[high], 0.0)
            self.x[high] += min(lack, room)
            self.x[low] -= lack - min(lack, room)

    def _least_width(self, group: int) -> float:
        wide = self.graph.groups[group].label[0] + 2 * _FRAME_PAD
        return 0.0 if self.graph.right else wide

    def _compress(self, rules: _Rules) -> None:
        """Close each gap that goes through all layers."""
        order = sorted(range(len(self.x)), key=self.x.__getitem__)
        place = {variable: number for number, variable in enumerate(order)}
        # How far what comes next may move, and the variable up to which that holds.
        limits: list[tuple[float, int]] = []
        moved, before = 0.0, self.x[order[0]]
        for variable in order:
            at = self.x[variable]
            while limits and limits[0][1] < place[variable]:
                heappop(limits)
            moved = max(min(moved + at - before, limits[0][0] if limits else _FAR), moved)
            self.x[variable], before = at - moved, at
            for higher, apart in rules.out[variable]:
                room = max(self.x[higher] - at - apart, 0.0)
                heappush(limits, (moved + room, place[higher]))

    def _loosen(self, rules: _Rules) -> None:
        """Let the borders of frames go as far as their neighbours allow."""
        for group in reversed(self.deepest_first):
            low, high = self._border(group)
            self.x[low] = max(rules.bounds(low, self.x)[0], self.x[low] - _FAR)
            self.x[high] = min(rules.bounds(high, self.x)[1], self.x[high] + _FAR)

    def _shift(self, group: int, rules: _Rules) -> None:
        """Move a whole group to where its neighbours pull it, as far as there is room."""
        vertices = self.inside[group]
        variables = vertices | {
            border
            for other in self.inside
            if self.inside[other] <= vertices
            for border in self._border(other)
        }
        pulls = [
            (weight, self.x[other] + lean - self.x[vertex])
            for vertex in sorted(vertices)
            for other, weight, lean in self.links[vertex]
            if other not in vertices
        ]
        if not pulls:
            return
        wish = sum(weight * shift for weight, shift in pulls) / sum(weight for weight, _ in pulls)
        least, most = -_FAR, _FAR
        for variable in variables:
            for other, apart in rules.into[variable]:
                if other not in variables:
                    least = max(least, self.x[other] + apart - self.x[variable])
            for other, apart in rules.out[variable]:
                if other not in variables:
                    most = min(most, self.x[other] - apart - self.x[variable])
        if least <= most:
            for variable in variables:
                self.x[variable] += min(max(wish, least), most)

    def _settle(self, rules: _Rules) -> None:
        """Move each vertex to where its neighbours pull it, as far as there is room."""
        order = sorted(range(len(self.layer)), key=self.x.__getitem__)
        for sign, vertices in ((-1, order), (1, order[::-1])):
            for vertex in vertices:
                wish = self._wish(vertex)
                if (wish - self.x[vertex]) * sign > 0:
                    low, high = rules.bounds(vertex, self.x)
                    if low <= high:
                        self.x[vertex] = min(max(wish, low), high)

    def _columns(self) -> list[list[int]]:
        """Vertices that should stand below each other: each has one line down to the next."""
        above = self._without_turned(self.above, lambda one, other: (other, one))
        below = self._without_turned(self.below, lambda one, other: (one, other))
        columns: list[list[int]] = []
        for layer in self.layers:
            for vertex in layer:
                if len(above[vertex]) == 1 and below[above[vertex][0]] == [vertex]:
                    continue
                column = [vertex]
                while len(lower := below[column[-1]]) == 1 and above[lower[0]] == column[-1:]:
                    column += lower
                columns.append(column)
        return columns

    def _without_turned(
        self, sides: Sequence[list[int]], pair: Callable[[int, int], tuple[int, int]]
    ) -> list[list[int]]:
        """The neighbours of each vertex; a node has none by edges that go back up."""
        return [
            side
            if vertex >= len(self.members)
            else [other for other in side if pair(vertex, other) not in self.turned]
            for vertex, side in enumerate(sides)
        ]

    def _straighten(self, rules: _Rules) -> None:
        """Give a column one place, as far as there is room."""
        for column in self._columns():
            rest = column
            while rest:
                low, high, count = -math.inf, math.inf, 0
                for vertex in rest:
                    least, most = rules.bounds(vertex, self.x)
                    if count and max(low, least) > min(high, most) + _TINY:
                        break
                    low, high, count = max(low, least), min(high, most), count + 1
                run, rest = rest[:count], rest[count:]
                if low <= high + _TINY:
                    wish = self._column_wish(run)
                    for vertex in run:
                        self.x[vertex] = min(max(wish, low), high)

    def _column_wish(self, run: Sequence[int]) -> float:
        mean = sum(self.x[vertex] for vertex in run) / len(run)
        if min(run) < len(self.members):
            return mean
        ends = [self._target(run[0], other) for other in self.above[run[0]]]
        ends += [self._target(run[-1], other) for other in self.below[run[-1]]]
        return min(ends, key=lambda end: abs(end - mean))

    # Coordinates down

    def _place_down(self) -> None:
        starts, ends = self._insets()
        half = 2.0 if self.label_at else 1.0
        at = 0.0
        for place, layer in enumerate(self.layers):
            if place:
                widest = max(
                    (
                        abs(self.x[one] - self.x[other])
                        for one in layer
                        for other in self.above[one]
                    ),
                    default=0.0,
                )
                least = self.graph.layer_gap / half
                at += max(least, min(widest * 0.12, 3 * least)) + 1.5 * _STUB / half
                at += ends[place - 1] + starts[place]
            else:
                at = starts[0]
            self.tops.append(at)
            at += max(self.high[vertex] for vertex in layer)
            self.bottoms.append(at)
        self.starts, self.ends = starts, ends

    def _insets(self) -> tuple[list[float], list[float]]:
        """The room that frames need above and below each layer."""
        starts, ends = [0.0] * len(self.layers), [0.0] * len(self.layers)
        for group in self.deepest_first:
            first, last = self.span[group]
            label = self.graph.groups[group].label
            inner = [other for other in self.inset if self.inside[other] <= self.inside[group]]
            above = max((self.inset[g][0] for g in inner if self.span[g][0] == first), default=0.0)
            below = max((self.inset[g][1] for g in inner if self.span[g][1] == last), default=0.0)
            above += _FRAME_PAD + (0 if self.graph.right else label[1])
            below += _FRAME_PAD
            self.inset[group] = above, below
            starts[first], ends[last] = max(starts[first], above), max(ends[last], below)
        return starts, ends

    # What comes out

    def size(self) -> Extent:
        """Width and height; everything is moved so that it starts at the origin."""
        count = len(self.layer)
        lows = [self.x[vertex] - self.left[vertex] for vertex in range(count)]
        highs = [self.x[vertex] + self.right[vertex] for vertex in range(count)]
        lows += [self.x[self._border(group)[0]] for group in self.inside]
        highs += [self.x[self._border(group)[1]] for group in self.inside]
        start = min(lows)
        self.x = [at - start for at in self.x]
        return max(highs) - start, self.bottoms[-1] + self.ends[-1]

    def boxes(self) -> dict[int, Rect]:
        """The box of each node."""
        found: dict[int, Rect] = {}
        for vertex, node in enumerate(self.members):
            wide, high = self.graph.nodes[node].width, self.graph.nodes[node].height
            found[node] = Rect(
                self.x[vertex] - wide / 2, self._middle(vertex) - high / 2, wide, high
            )
        return found

    def frames(self) -> dict[int, Rect]:
        """The frame of each group."""
        found: dict[int, Rect] = {}
        for group in self.inside:
            low, high = (self.x[border] for border in self._border(group))
            first, last = self.span[group]
            above, below = self.inset[group]
            top = self.tops[first] - above
            found[group] = Rect(low, top, high - low, self.bottoms[last] + below - top)
        return found

    def lines(self) -> dict[int, tuple[list[Point], Point | None]]:
        """The curve of each edge, from its start to its end, and the middle of its label."""
        ports = self._ports()
        found: dict[int, tuple[list[Point], Point | None]] = {}
        for place in self.edges:
            edge = self.graph.edges[place]
            if edge.start == edge.end:
                found[place] = self._loop(self.place[edge.start], edge.label)
                continue
            chain = self.chains[place]
            points = self._curve(chain, ports[place, 0], ports[place, 1])
            if chain[0] != self.place[edge.start]:
                points.reverse()
            label = self.label_at.get(place)
            found[place] = points, (self.x[label], self._middle(label)) if label else None
        return found

    def _middle(self, vertex: int) -> float:
        layer = self.layer[vertex]
        return (self.tops[layer] + self.bottoms[layer]) / 2

    def _loop(self, vertex: int, label: Extent) -> tuple[list[Point], Point | None]:
        node = self.graph.nodes[self.members[vertex]]
        rise = min(node.height * 0.25, 0.8)
        middle = self._middle(vertex)
        turned = GraphNode(width=node.height, height=node.width, power=node.power)
        x = self.x[vertex] + turned.depth(rise)
        out = (
            self.x[vertex]
            + node.width / 2
            + _LOOP * 4 / 3
            - (node.width / 2 - turned.depth(rise)) / 3
        )
        points = [
            (x, middle - rise),
            (out, middle - 2 * rise),
            (out, middle + 2 * rise),
            (x, middle + rise),
        ]
        at = self.x[vertex] + node.width / 2 + _LOOP + 0.2 + label[0] / 2
        return points, (at, middle) if label[0] else None

    def _ports(self) -> dict[tuple[int, int], float]:
        """Where each edge leaves (0) and enters (1) its nodes, across; the middle if it can."""
        sides: dict[tuple[int, int], list[tuple[float, int, bool]]] = {}
        for place, chain in self.chains.items():
            forward = chain[0] == self.place[self.graph.edges[place].start]
            sides.setdefault((chain[0], 0), []).append((self.x[chain[1]], place, forward))
            sides.setdefault((chain[-1], 1), []).append((self.x[chain[-2]], place, forward))
        ports: dict[tuple[int, int], float] = {}
        for (vertex, end), ways in sides.items():
            bundles: list[list[tuple[float, int, bool]]] = []
            for way in sorted(ways):
                last = bundles[-1][-1] if bundles else None
                if last and last[2] == way[2] and last[0] != way[0]:
                    bundles[-1].append(way)
                else:
                    bundles.append([way])
            reach = self._reach(vertex)
            gap = min(_PORT_GAP, 2 * reach / max(len(bundles) - 1, 1))
            wishes = [
                min(
                    max(sum(way[0] for way in bundle) / len(bundle) - self.x[vertex], -reach), reach
                )
                for bundle in bundles
            ]
            weights = [1.0 if bundle[0][2] else 0.05 for bundle in bundles]
            offsets = _spread(wishes, weights, [gap] * (len(wishes) - 1))
            if len(bundles) == 1:
                offsets = [0.0]
            for number in range(len(offsets)):
                least, most = number * gap - reach, reach - (len(offsets) - 1 - number) * gap
                offsets[number] = min(max(offsets[number], least), most)
            for bundle, offset in zip(bundles, offsets, strict=True):
                for _, place, _ in bundle:
                    ports[place, end] = self.x[vertex] + offset
        return ports

    def _reach(self, vertex: int) -> float:
        """How far from the middle of a node a line may leave it."""
        node = self.graph.nodes[self.members[vertex]]
        return node.width * (0.36 if node.power == math.inf else 0.22)

    def _curve(self, chain: Sequence[int], leave: float, enter: float) -> list[Point]:
        first, last = chain[0], chain[-1]
        depth = self.graph.nodes[self.members[first]].depth(leave - self.x[first])
        points = [(leave, self._middle(first) + depth)]
        for one, other in pairwise(chain):
            upper, lower = self.layer[one], self.layer[other]
            x0 = leave if one == first else self.x[one]
            x1 = enter if other == last else self.x[other]
            y0 = self.bottoms[upper] + self.ends[upper] + (_STUB / 2 if one == first else 0)
            y1 = self.tops[lower] - self.starts[lower] - (_STUB if other == last else 0)
            _extend(points, (x0, y0))
            _extend(points, (x1, y1))
        depth = self.graph.nodes[self.members[last]].depth(enter - self.x[last])
        _extend(points, (enter, self._middle(last) - depth))
        return points


def _layers(lengths: Sequence[int], arcs: Sequence[tuple[int, int]]) -> list[int]:
    """The first layer of each item: as high as the longest way to it allows, near what follows."""
    found = _longest_ways(lengths, _acyclic(len(lengths), arcs))
    # Many long edges cost time and cannot be read: then few layers matter more than the order.
    if sum(abs(found[one] - found[other]) for one, other in arcs) > _MAX_POINTS:
        found = _longest_ways(lengths, _by_distance(len(lengths), arcs))
    return found


def _by_distance(count: int, arcs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The arcs, each away from the item from which most items are reached in few steps."""
    near: list[list[int]] = [[] for _ in range(count)]
    for one, other in arcs:
        near[one].append(other)
        near[other].append(one)
    order: dict[int, int] = {}
    for first in sorted(range(count), key=lambda item: -len(near[item])):
        queue = [first]
        for item in queue:
            if item not in order:
                order[item] = len(order)
                queue += near[item]
    return [(one, other) if order[one] < order[other] else (other, one) for one, other in arcs]


def _longest_ways(lengths: Sequence[int], arcs: Sequence[tuple[int, int]]) -> list[int]:
    count = len(lengths)
    out: list[list[int]] = [[] for _ in range(count)]
    into: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in arcs:
        out[upper].append(lower)
        into[lower].append(upper)
    waiting = [len(uppers) for uppers in into]
    order = [item for item in range(count) if not waiting[item]]
    layer = [0] * count
    for item in order:
        for lower in out[item]:
            layer[lower] = max(layer[lower], layer[item] + lengths[item])
            waiting[lower] -= 1
            if not waiting[lower]:
                order.append(lower)
    for item in reversed(order):
        if len(out[item]) > len(into[item]):
            layer[item] = min(layer[lower] for lower in out[item]) - lengths[item]
    lowest = min(layer, default=0)
    return [place - lowest for place in layer]


def _acyclic(count: int, arcs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The arcs, with those turned around that close a cycle."""
    found = list(arcs)
    out: list[list[int]] = [[] for _ in range(count)]
    has_upper = [False] * count
    for place, (upper, lower) in enumerate(arcs):
        out[upper].append(place)
        has_upper[lower] = True
    state = [0] * count
    for first in sorted(range(count), key=has_upper.__getitem__):
        stack = [] if state[first] else [(first, 0)]
        while stack:
            item, done = stack.pop()
            state[item] = 1 if done < len(out[item]) else 2
            if state[item] == 2:
                continue
            stack.append((item, done + 1))
            target = arcs[out[item][done]][1]
            if state[target] == 0:
                stack.append((target, 0))
            elif state[target] == 1:
                found[out[item][done]] = (target, item)
    return found


class _Rules:
    """Least distances between variables, from smaller to larger ones."""

    def __init__(self, count: int) -> None:
        self.into: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self.out: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self.order: list[int] = []

    def add(self, low: int, high: int, apart: float) -> None:
        self.into[high].append((low, apart))
        self.out[low].append((high, apart))

    def sort(self) -> None:
        """Find an order in which each variable comes after those that are below it."""
        waiting = [len(lower) for lower in self.into]
        self.order = [variable for variable, count in enumerate(waiting) if not count]
        for variable in self.order:
            for higher, _ in self.out[variable]:
                waiting[higher] -= 1
                if not waiting[higher]:
                    self.order.append(higher)

    def solve(self, values: Sequence[float]) -> list[float]:
        """Values near the given ones that keep every distance.

        Pushing all to the right keeps them, and so does pushing all to the left: hence also the
        mean of both.
        """
        right, left = list(values), list(values)
        for variable in self.order:
            for lower, apart in self.into[variable]:
                right[variable] = max(right[variable], right[lower] + apart)
        for variable in reversed(self.order):
            for higher, apart in self.out[variable]:
                left[variable] = min(left[variable], left[higher] - apart)
        return [(one + other) / 2 for one, other in zip(left, right, strict=True)]

    def bounds(self, variable: int, values: Sequence[float]) -> tuple[float, float]:
        """Between what a variable may move if all others stay."""
        low, high = -math.inf, math.inf
        for other, apart in self.into[variable]:
            low = max(low, values[other] + apart)
        for other, apart in self.out[variable]:
            high = min(high, values[other] - apart)
        return low, high


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many groups two paths have in common."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _extend(points: list[Point], end: Point) -> None:
    """Add a curve that leaves and arrives along the layers' direction."""
    x0, y0 = points[-1]
    x1, y1 = end
    if abs(y1 - y0) < 1e-9 and abs(x1 - x0) < 1e-9:
        return
    points += [(x0, y0 + (y1 - y0) * 0.5), (x1, y1 - (y1 - y0) * 0.5), end]


def _spread(
    wishes: Sequence[float], weights: Sequence[float], gaps: Sequence[float]
) -> list[float]:
    """Places in order with these gaps, nearest to what is wished (weighted least squares)."""
    offsets = list(accumulate(gaps, initial=0.0))
    blocks: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, count = wish - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, many = blocks.pop()
            mean = (mean * total + before * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        blocks.append((mean, total, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
