"""Boxes, edges and groups -> where they go: a layered layout, as Sugiyama and others describe it.

``layers`` gives each node a layer, ``order`` avoids crossings, ``across`` and ``geometry`` find the
coordinates. All calculate with layers from top to bottom; for the other direction this module
swaps the axes. No line touches a box or a foreign frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from limner.rendering.brush import Rect
from limner.rendering.graph.coordinates import CoordinateAssignment
from limner.rendering.graph.geometry import PartGeometry
from limner.rendering.graph.layers import LayeredGraph
from limner.rendering.graph.model import (
    Extent,
    Graph,
    GraphLayout,
    GraphNode,
    Point,
)
from limner.rendering.graph.order import order_layers

_COMPONENT_GAP = 2.6
# How wide rows of parts should be, in parts of their height, and how many widths are tried.
_ASPECT = 1.5
_MAX_LIMITS = 60


def lay_out(graph: Graph) -> GraphLayout:
    """Lay out a graph with nodes; parts that are not connected stand side by side."""
    turned = _swapped(graph) if graph.right else graph
    paths = _group_paths(turned)
    parts = [_lay_out_part(turned, members, paths) for members in _components(turned, paths)]
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


def _lay_out_part(graph: Graph, members: list[int], paths: list[tuple[int, ...]]) -> PartGeometry:
    part = LayeredGraph(graph, members, paths)
    order_layers(part)
    return PartGeometry(part, CoordinateAssignment(part).x)


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
    pairs += [pair for rank in graph.ranks for pair in pairwise(rank)]
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
