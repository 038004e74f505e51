"""A connected part of a graph -> vertices in layers.

Edges that close a cycle are turned around. An edge over several layers gets a point in each of
them, and its label has a layer of its own, so that it takes room like a node. An edge within a
layer is a straight line between neighbours; if its nodes cannot be neighbours, it is a bow over a
point in the layer above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from limner.rendering.graph.model import Extent, Graph

LOOP = 1.7
_MAX_POINTS = 5_000


class LayeredGraph:
    """A connected part of a graph, in layers. A vertex is a node or a point of an edge.

    The nodes are the first vertices, in the order of ``members``.
    """

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
        self.label_layers = 1
        self.above: list[list[int]] = []
        self.below: list[list[int]] = []
        self.turned: set[tuple[int, int]] = set()
        # The lines within a layer with the point between their nodes, and the rows of such nodes.
        self.flat: dict[int, tuple[int, int, int]] = {}
        self.bows: dict[int, tuple[int, int, int]] = {}
        self.rows: dict[int, list[int]] = {}
        self.span: dict[int, tuple[int, int]] = {}
        self.inside: dict[int, frozenset[int]] = {}
        self.deepest_first: list[int] = []
        self._room_for_loops()
        self._assign_layers()
        self._add_points()
        self._add_fillers()

    def border(self, group: int) -> tuple[int, int]:
        """The variables of the two borders of a frame; they come after those of the vertices."""
        return len(self.layer) + 2 * group, len(self.layer) + 2 * group + 1

    def reach(self, vertex: int) -> float:
        """How far from the middle of a node a line may leave it."""
        node = self.graph.nodes[self.members[vertex]]
        return node.width * (0.36 if node.power == math.inf else 0.22)

    def _room_for_loops(self) -> None:
        for place in self.edges:
            edge = self.graph.edges[place]
            if edge.start == edge.end:
                vertex = self.place[edge.start]
                wide, high = edge.label
                more = LOOP + (wide + 0.4 if wide else 0)
                self.right[vertex] = max(self.right[vertex], self.left[vertex] + more)
                self.high[vertex] = max(self.high[vertex], high)

    def _assign_layers(self) -> None:
        """A layer for each node; all nodes of a group follow those of a group that points to it."""
        levels: dict[tuple[int, ...], dict[tuple[int, int], None]] = {}
        items: dict[tuple[int, ...], dict[int, None]] = {}
        for vertex, path in enumerate(self.path):
            for depth in range(len(path) + 1):
                items.setdefault(path[:depth], {})[self._item(vertex, depth)] = None
        arcs = self._arcs()
        for place, arc in arcs.items():
            if not self.graph.edges[place].free:
                path, items_of_arc = self._at_one_level(*arc)
                levels.setdefault(path, {})[items_of_arc] = None
        same = self._same_ranks()
        starts: dict[int, int] = {}
        lengths: dict[int, int] = {}
        for path in sorted(items, key=len, reverse=True):
            here = list(items[path])
            place = _numbered(here, same.get(path, ()))
            longest = [0] * (max(place.values()) + 1)
            for item in here:
                longest[place[item]] = max(longest[place[item]], lengths.get(item, 1))
            pairs = [(place[one], place[other]) for one, other in levels.get(path, ())]
            found = _layers(longest, [pair for pair in pairs if pair[0] != pair[1]])
            starts |= {item: found[place[item]] for item in here}
            if path:
                lengths[-1 - path[-1]] = max(starts[item] + lengths.get(item, 1) for item in here)
        step = 2 if any(self.graph.edges[place].label[0] for place in arcs) else 1
        self.layer = [
            step * sum(starts[self._item(vertex, depth)] for depth in range(len(path) + 1))
            for vertex, path in enumerate(self.path)
        ]

    def _at_one_level(self, one: int, other: int) -> tuple[tuple[int, ...], tuple[int, int]]:
        """The groups that two vertices share, and what stands for each of them there."""
        shared = shared_groups(self.path[one], self.path[other])
        return self.path[one][:shared], (self._item(one, shared), self._item(other, shared))

    def _same_ranks(self) -> dict[tuple[int, ...], list[tuple[int, int]]]:
        """The pairs of items that belong into one layer, by the groups that they share."""
        found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for rank in self.graph.ranks:
            vertices = [self.place[node] for node in rank if node in self.place]
            for pair in pairwise(vertices):
                path, items = self._at_one_level(*pair)
                found.setdefault(path, []).append(items)
        return found

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
        self._add_flat()
        for place, pair in self._arcs().items():
            if place in self.flat or place in self.bows:
                continue
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
        self._find_neighbours()

    def _find_neighbours(self) -> None:
        self.above = [[] for _ in self.layer]
        self.below = [[] for _ in self.layer]
        for one, point, other in self.bows.values():
            self.below[point] += [one, other]
            self.above[one].append(point)
            self.above[other].append(point)
        for place, chain in self.chains.items():
            for upper, lower in pairwise(chain):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
                if self._is_turned(place):
                    self.turned.add((upper, lower))

    def _add_flat(self) -> None:
        """A point for each edge within a layer: between its nodes, or above them."""
        flat = {place: arc for place, arc in self._arcs().items() if self._is_flat(arc)}
        joined = [place for place, arc in flat.items() if self._join(*arc)]
        bowed = [place for place in flat if place not in joined]
        if any(self.layer[flat[place][0]] == 0 for place in bowed):
            self.layer = [layer + 1 for layer in self.layer]
            self.span = {group: (one + 1, other + 1) for group, (one, other) in self.span.items()}
            self.label_layers = 0
        for place in joined:
            one, other = flat[place]
            wide, high = self.graph.edges[place].label
            row = self.rows[one]
            row.insert(max(row.index(one), row.index(other)), len(self.layer))
            self.flat[place] = one, len(self.layer), other
            self.rows[len(self.layer)] = row
            self._add_vertex(self.layer[one], self.path[one], (max(wide, 1.0), high))
        for place in bowed:
            one, other = flat[place]
            layer = self.layer[one] - 1
            shared = self.path[one][: shared_groups(self.path[one], self.path[other])]
            path = tuple(group for group in shared if self.span[group][0] <= layer)
            self.bows[place] = one, len(self.layer), other
            self._add_vertex(layer, path, self.graph.edges[place].label)

    def _is_flat(self, arc: tuple[int, int]) -> bool:
        return self.layer[arc[0]] == self.layer[arc[1]]

    def _join(self, one: int, other: int) -> bool:
        """Make two vertices neighbours in one row, if neither has neighbours on both sides.

        A node with a loop stays outside: a straight line beside it would pass through the loop.
        """
        before, after = self.rows.get(one, [one]), self.rows.get(other, [other])
        outer = one in (before[0], before[-1]) and other in (after[0], after[-1])
        has_loop = any(self.right[vertex] > self.left[vertex] for vertex in (one, other))
        if before is after or has_loop or not outer or self.path[one] != self.path[other]:
            return False
        before = before if before[-1] == one else before[::-1]
        after = after if after[0] == other else after[::-1]
        row = [*before, *after]
        self.rows |= dict.fromkeys(row, row)
        return True

    def _is_turned(self, place: int) -> bool:
        """Whether an edge goes back up, against the order of the layers."""
        return self.chains[place][0] != self._arc(place)[0]

    def _path_between(self, upper: int, lower: int, layer: int) -> tuple[int, ...]:
        """The groups of a point of an edge: it stays in the frames of its ends if it can."""
        leaves = [g for g in self.path[upper] if self.span[g][1] >= layer]
        enters = [g for g in self.path[lower] if self.span[g][0] <= layer]
        shared = shared_groups(self.path[upper], self.path[lower])
        return tuple(max(leaves, enters, self.path[upper][:shared], key=len))

    def _label_layer(self, upper: int, lower: int) -> int:
        """A layer without nodes, near the middle of an edge."""
        middle = (self.layer[upper] + self.layer[lower]) // 2
        return middle if middle % 2 == self.label_layers else middle - 1

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


def _numbered(items: Sequence[int], same: Sequence[tuple[int, int]]) -> dict[int, int]:
    """A number for each item; items of one rank have the same number."""
    leader = {item: item for item in items}
    for one, other in same:
        left, right = leader[one], leader[other]
        leader = {item: left if first == right else first for item, first in leader.items()}
    numbers = {first: number for number, first in enumerate(dict.fromkeys(leader.values()))}
    return {item: numbers[first] for item, first in leader.items()}


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


def shared_groups(one: Sequence[int], other: Sequence[int]) -> int:
    """How many groups two paths have in common."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
