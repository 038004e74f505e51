"""Placed vertices -> boxes, frames and curves. Lines bend only between the layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from limner.rendering.brush import Rect
from limner.rendering.graph.coordinates import FRAME_PAD, PORT_GAP, spread
from limner.rendering.graph.layers import LOOP, LayeredGraph
from limner.rendering.graph.model import Extent, GraphNode, Point

_STUB = 0.9
# A number of an edge, and 0 for its start or 1 for its end.
Port = tuple[int, int]


class PartGeometry:
    """Where the nodes, groups and edges of one part are."""

    def __init__(self, part: LayeredGraph, x: list[float]) -> None:
        self.part = part
        self.x = x
        self.inset: dict[int, tuple[float, float]] = {}
        self.tops: list[float] = []
        self.bottoms: list[float] = []
        self.starts, self.ends = self._insets()
        self._place_down()

    def _place_down(self) -> None:
        starts, ends = self.starts, self.ends
        half = 2.0 if self.part.label_at else 1.0
        at = 0.0
        for place, layer in enumerate(self.part.layers):
            if place:
                widest = max(
                    (
                        abs(self.x[one] - self.x[other])
                        for one in layer
                        for other in self.part.above[one]
                    ),
                    default=0.0,
                )
                least = self.part.graph.layer_gap / half
                at += max(least, min(widest * 0.12, 3 * least)) + 1.5 * _STUB / half
                at += ends[place - 1] + starts[place]
            else:
                at = starts[0]
            self.tops.append(at)
            at += max(self.part.high[vertex] for vertex in layer)
            self.bottoms.append(at)

    def _insets(self) -> tuple[list[float], list[float]]:
        """The room that frames need above and below each layer."""
        starts, ends = [0.0] * len(self.part.layers), [0.0] * len(self.part.layers)
        for group in self.part.deepest_first:
            first, last = self.part.span[group]
            label = self.part.graph.groups[group].label
            inner = [
                other for other in self.inset if self.part.inside[other] <= self.part.inside[group]
            ]
            above = max(
                (self.inset[g][0] for g in inner if self.part.span[g][0] == first), default=0.0
            )
            below = max(
                (self.inset[g][1] for g in inner if self.part.span[g][1] == last), default=0.0
            )
            above += FRAME_PAD + (0 if self.part.graph.right else label[1])
            below += FRAME_PAD
            self.inset[group] = above, below
            starts[first], ends[last] = max(starts[first], above), max(ends[last], below)
        return starts, ends

    def size(self) -> Extent:
        """Width and height; everything is moved so that it starts at the origin."""
        count = len(self.part.layer)
        lows = [self.x[vertex] - self.part.left[vertex] for vertex in range(count)]
        highs = [self.x[vertex] + self.part.right[vertex] for vertex in range(count)]
        lows += [self.x[self.part.border(group)[0]] for group in self.part.inside]
        highs += [self.x[self.part.border(group)[1]] for group in self.part.inside]
        start = min(lows)
        self.x = [at - start for at in self.x]
        return max(highs) - start, self.bottoms[-1] + self.ends[-1]

    def boxes(self) -> dict[int, Rect]:
        """The box of each node."""
        found: dict[int, Rect] = {}
        for vertex, node in enumerate(self.part.members):
            wide, high = self.part.graph.nodes[node].width, self.part.graph.nodes[node].height
            found[node] = Rect(
                self.x[vertex] - wide / 2, self._middle(vertex) - high / 2, wide, high
            )
        return found

    def frames(self) -> dict[int, Rect]:
        """The frame of each group."""
        found: dict[int, Rect] = {}
        for group in self.part.inside:
            low, high = (self.x[border] for border in self.part.border(group))
            first, last = self.part.span[group]
            above, below = self.inset[group]
            top = self.tops[first] - above
            found[group] = Rect(low, top, high - low, self.bottoms[last] + below - top)
        return found

    def lines(self) -> dict[int, tuple[list[Point], Point | None]]:
        """The curve of each edge, from its start to its end, and the middle of its label."""
        ports = self._ports()
        found: dict[int, tuple[list[Point], Point | None]] = {}
        for place in self.part.edges:
            edge = self.part.graph.edges[place]
            if edge.start == edge.end:
                found[place] = self._loop(self.part.place[edge.start], edge.label)
                continue
            if place in self.part.flat:
                found[place] = self._flat_line(*self.part.flat[place], edge.label)
                if edge.up:
                    found[place][0].reverse()
                continue
            if place in self.part.bows:
                found[place] = self._bow(place, ports)
                if edge.up:
                    found[place][0].reverse()
                continue
            chain = self.part.chains[place]
            points = self._curve(chain, ports[place, 0], ports[place, 1])
            if chain[0] != self.part.place[edge.start]:
                points.reverse()
            label = self.part.label_at.get(place)
            found[place] = points, (self.x[label], self._middle(label)) if label else None
        return found

    def _middle(self, vertex: int) -> float:
        layer = self.part.layer[vertex]
        return (self.tops[layer] + self.bottoms[layer]) / 2

    def _loop(self, vertex: int, label: Extent) -> tuple[list[Point], Point | None]:
        node = self.part.graph.nodes[self.part.members[vertex]]
        rise = min(node.height * 0.25, 0.8)
        middle = self._middle(vertex)
        turned = GraphNode(width=node.height, height=node.width, power=node.power)
        x = self.x[vertex] + turned.depth(rise)
        out = (
            self.x[vertex]
            + node.width / 2
            + LOOP * 4 / 3
            - (node.width / 2 - turned.depth(rise)) / 3
        )
        points = [
            (x, middle - rise),
            (out, middle - 2 * rise),
            (out, middle + 2 * rise),
            (x, middle + rise),
        ]
        at = self.x[vertex] + node.width / 2 + LOOP + 0.2 + label[0] / 2
        return points, (at, middle) if label[0] else None

    def _flat_line(
        self, start: int, point: int, end: int, label: Extent
    ) -> tuple[list[Point], Point | None]:
        """A straight line between two neighbours in a layer."""
        y, way = self._middle(start), 1 if self.x[end] > self.x[start] else -1
        half = [self.part.graph.nodes[self.part.members[one]].width / 2 for one in (start, end)]
        x0, x1 = self.x[start] + way * half[0], self.x[end] - way * half[1]
        points = [(x0 + (x1 - x0) * part / 3, y) for part in range(4)]
        return points, (self.x[point], y) if label[0] else None

    def _bow(self, place: int, ports: dict[Port, float]) -> tuple[list[Point], Point | None]:
        """A line up into the gap above a layer, below a point there, and down again."""
        start, point, end = self.part.bows[place]
        above, layer = self.part.layer[point], self.part.layer[start]
        top = self.bottoms[above] + self.ends[above]
        foot = self.tops[layer] - self.starts[layer] - _STUB
        halves: list[list[Point]] = []
        for vertex, x in ((start, ports[place, 0]), (end, ports[place, 1])):
            depth = self.part.graph.nodes[self.part.members[vertex]].depth(x - self.x[vertex])
            half = [(x, self._middle(vertex) - depth)]
            _extend(half, (x, foot))
            half += [(x, top), ((x + self.x[point]) / 2, top), (self.x[point], top)]
            halves.append(half)
        label = self.part.graph.edges[place].label
        points = [*halves[0], *halves[1][-2::-1]]
        return points, (self.x[point], self._middle(point)) if label[0] else None

    def _ports(self) -> dict[Port, float]:
        """Where each edge leaves (0) and enters (1) its nodes, across; the middle if it can."""
        sides: dict[tuple[int, bool], list[tuple[float, Port, bool]]] = {}
        for place, chain in self.part.chains.items():
            forward = chain[0] == self.part.place[self.part.graph.edges[place].start]
            sides.setdefault((chain[0], False), []).append((self.x[chain[1]], (place, 0), forward))
            sides.setdefault((chain[-1], True), []).append((self.x[chain[-2]], (place, 1), forward))
        for place, (start, point, end) in self.part.bows.items():
            sides.setdefault((start, True), []).append((self.x[point], (place, 0), False))
            sides.setdefault((end, True), []).append((self.x[point], (place, 1), True))
        ports: dict[Port, float] = {}
        for (vertex, _), ways in sides.items():
            bundles: list[list[tuple[float, Port, bool]]] = []
            for way in sorted(ways):
                last = bundles[-1][-1] if bundles else None
                if last and last[2] == way[2] and last[0] != way[0]:
                    bundles[-1].append(way)
                else:
                    bundles.append([way])
            reach = self.part.reach(vertex)
            gap = min(PORT_GAP, 2 * reach / max(len(bundles) - 1, 1))
            wishes = [
                min(
                    max(sum(way[0] for way in bundle) / len(bundle) - self.x[vertex], -reach), reach
                )
                for bundle in bundles
            ]
            weights = [1.0 if bundle[0][2] else 0.05 for bundle in bundles]
            offsets = spread(wishes, weights, [gap] * (len(wishes) - 1))
            if len(bundles) == 1:
                offsets = [0.0]
            for number in range(len(offsets)):
                least, most = number * gap - reach, reach - (len(offsets) - 1 - number) * gap
                offsets[number] = min(max(offsets[number], least), most)
            for bundle, offset in zip(bundles, offsets, strict=True):
                for _, port, _ in bundle:
                    ports[port] = self.x[vertex] + offset
        return ports

    def _curve(self, chain: Sequence[int], leave: float, enter: float) -> list[Point]:
        first, last = chain[0], chain[-1]
        depth = self.part.graph.nodes[self.part.members[first]].depth(leave - self.x[first])
        points = [(leave, self._middle(first) + depth)]
        for one, other in pairwise(chain):
            upper, lower = self.part.layer[one], self.part.layer[other]
            x0 = leave if one == first else self.x[one]
            x1 = enter if other == last else self.x[other]
            y0 = self.bottoms[upper] + self.ends[upper] + (_STUB / 2 if one == first else 0)
            y1 = self.tops[lower] - self.starts[lower] - (_STUB if other == last else 0)
            _extend(points, (x0, y0))
            _extend(points, (x1, y1))
        depth = self.part.graph.nodes[self.part.members[last]].depth(enter - self.x[last])
        _extend(points, (enter, self._middle(last) - depth))
        return points


def _extend(points: list[Point], end: Point) -> None:
    """Add a curve that leaves and arrives along the layers' direction."""
    x0, y0 = points[-1]
    x1, y1 = end
    if abs(y1 - y0) < 1e-9 and abs(x1 - x0) < 1e-9:
        return
    points += [(x0, y0 + (y1 - y0) * 0.5), (x1, y1 - (y1 - y0) * 0.5), end]
