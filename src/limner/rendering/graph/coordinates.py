"""Ordered layers -> coordinates of their vertices: straight lines, and no box touches another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from limner.rendering.graph.layers import LayeredGraph, shared_groups
from limner.rendering.graph.order import MAX_SWEEPS, MAX_WORK

# Distances, in parts of the text size.
_EDGE_GAP = 1.1
FRAME_PAD = 1.0
_FRAME_GAP = 1.2
PORT_GAP = 1.3
_FAR, _TINY = 1_000.0, 1e-6
# How much a straight line matters: between nodes, at an end of a long edge, within a long edge.
_WEIGHTS = (1.0, 2.0, 6.0)
_TURNED_WEIGHT = 0.1


class CoordinateAssignment:
    """The place of each vertex and of each border of a frame, across the layers.

    A vertex is pulled to its neighbours in the layers above and below. The rules keep the
    distances; the borders of frames are variables like vertices.
    """

    def __init__(self, part: LayeredGraph) -> None:
        self.part = part
        self.lean: dict[tuple[int, int], float] = {}
        self.links: list[list[tuple[int, float, float]]] = []
        self.strength: list[float] = []
        self._find_leans()
        self._find_links()
        rules, gaps = self._rules()
        self.x = [0.0] * len(rules.into)
        for layer, gap in zip(self.part.layers, gaps, strict=True):
            places = list(accumulate(gap, initial=0.0))
            for vertex, at in zip(layer, places, strict=True):
                self.x[vertex] = at - places[-1] / 2
        work = max(sum(len(lower) for lower in self.part.below), 1)
        for sweep in range(max(2, min(2 * MAX_SWEEPS, MAX_WORK // work))):
            order = range(len(self.part.layers))
            for place in order if sweep % 2 == 0 else reversed(order):
                self._relax(self.part.layers[place], gaps[place])
            if self.part.inside:
                self._tighten(rules)
                self.x = rules.solve(self.x)
        self._tighten(rules)
        self.x = rules.solve(self.x)
        for _ in range(min(MAX_SWEEPS // 2, MAX_WORK // work // 2)):
            if work < MAX_WORK // 20:
                self._compress(rules)
            for group in self.part.inside:
                self._shift(group, rules)
            self._loosen(rules)
            self._settle(rules)
            self._straighten(rules)
            self._tighten(rules)
        if work >= MAX_WORK // 2:
            self._straighten(rules)

    def _gap(self, one: int, other: int) -> float:
        both = one < len(self.part.members) and other < len(self.part.members)
        return self.part.graph.node_gap if both else _EDGE_GAP

    def _relax(self, layer: Sequence[int], gaps: Sequence[float]) -> None:
        """Move a layer to the mean of its neighbours, as near as its order and gaps allow."""
        wishes = [self._wish(vertex) for vertex in layer]
        weights = [self.strength[vertex] or 0.1 for vertex in layer]
        for vertex, at in zip(layer, spread(wishes, weights, gaps), strict=True):
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
        for vertex in range(len(self.part.layer)):
            links: list[tuple[int, float, float]] = []
            for side in (self.part.above[vertex], self.part.below[vertex]):
                for other in side:
                    weight = _WEIGHTS[
                        (vertex >= len(self.part.members)) + (other >= len(self.part.members))
                    ]
                    if (vertex, other) in self.part.turned or (other, vertex) in self.part.turned:
                        weight *= _TURNED_WEIGHT
                    # The side with more lines counts more: parents are amid their children.
                    links.append(
                        (other, weight * len(side) ** 2, self.lean.get((other, vertex), 0.0))
                    )
            self.links.append(links)
        place = {vertex: at for layer in self.part.layers for at, vertex in enumerate(layer)}
        for line in self.part.flat.values():
            for low, high in pairwise(sorted(line, key=place.__getitem__)):
                apart = self.part.right[low] + _EDGE_GAP + self.part.left[high]
                self.links[high].append((low, 1.0, apart))
                self.links[low].append((high, 1.0, -apart))
        self.strength = [sum(weight for _, weight, _ in links) for links in self.links]

    def _target(self, vertex: int, other: int) -> float:
        """Where a neighbour wants a vertex to be."""
        return self.x[other] + self.lean.get((other, vertex), 0.0)

    def _find_leans(self) -> None:
        """A line back up keeps aside of those that go down from the same node."""
        rank = {vertex: place for layer in self.part.layers for place, vertex in enumerate(layer)}
        for upper, lower in self.part.turned:
            for node, point, side in (
                (upper, lower, self.part.below),
                (lower, upper, self.part.above),
            ):
                down = [
                    other
                    for other in side[node]
                    if (node, other) not in self.part.turned
                    and (other, node) not in self.part.turned
                ]
                if node < len(self.part.members) and down:
                    wide = _EDGE_GAP + max(self.part.left[other] for other in down)
                    aside = max(PORT_GAP, min(wide, self.part.reach(node)))
                    if rank[point] < sum(rank[other] for other in down) / len(down):
                        aside = -aside
                    self.lean[node, point], self.lean[point, node] = aside, -aside

    def _rules(self) -> tuple[_Rules, list[list[float]]]:
        """Each distance that must be kept across, and those between neighbours in each layer.

        A group has two variables of its own, for the borders of its frame.
        """
        rules = _Rules(len(self.part.layer) + 2 * len(self.part.graph.groups))
        gaps: list[list[float]] = []
        for layer in self.part.layers:
            gaps.append([])
            reach = 0.0
            for one, other in pairwise(self._tokens(layer)):
                apart = self._apart(one, other)
                rules.add(one, other, apart)
                reach += apart
                if other < len(self.part.layer):
                    gaps[-1].append(reach)
                    reach = 0.0
            if self.part.path[layer[0]]:
                del gaps[-1][0]
        for group in self.part.span:
            rules.add(*self.part.border(group), self._least_width(group))
        rules.sort()
        return rules, gaps

    def _tokens(self, layer: Sequence[int]) -> list[int]:
        """The vertices of a layer with the borders of frames between them."""
        tokens: list[int] = []
        before: tuple[int, ...] = ()
        for vertex in (*layer, -1):
            path = self.part.path[vertex] if vertex >= 0 else ()
            shared = shared_groups(before, path)
            tokens += [self.part.border(group)[1] for group in reversed(before[shared:])]
            tokens += [self.part.border(group)[0] for group in path[shared:]]
            tokens += [vertex] if vertex >= 0 else []
            before = path
        return tokens

    def _apart(self, one: int, other: int) -> float:
        """The least distance of two neighbours, each a vertex or a border."""
        count = len(self.part.layer)
        reach = (self.part.right[one] if one < count else 0) + (
            self.part.left[other] if other < count else 0
        )
        if one < count and other < count:
            return reach + self._gap(one, other)
        if one >= count and (one - count) % 2 == 0:
            label = self.part.graph.groups[(one - count) // 2].label
            return reach + FRAME_PAD + (label[0] if self.part.graph.right else 0)
        inside = other >= count and (other - count) % 2 == 1
        return reach + (FRAME_PAD if inside else _FRAME_GAP)

    def _tighten(self, rules: _Rules) -> None:
        """Bring the borders of frames close to what is in them."""
        for group in self.part.deepest_first:
            low, high = self.part.border(group)
            self.x[low] = min(self.x[at] - apart for at, apart in rules.out[low] if at != high)
            self.x[high] = max(self.x[at] + apart for at, apart in rules.into[high] if at != low)
            lack = max(self._least_width(group) - (self.x[high] - self.x[low]), 0.0)
            room = max(rules.bounds(high, self.x)[1] - self.x[high], 0.0)
            self.x[high] += min(lack, room)
            self.x[low] -= lack - min(lack, room)

    def _least_width(self, group: int) -> float:
        wide = self.part.graph.groups[group].label[0] + 2 * FRAME_PAD
        return 0.0 if self.part.graph.right else wide

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
        for group in reversed(self.part.deepest_first):
            low, high = self.part.border(group)
            self.x[low] = max(rules.bounds(low, self.x)[0], self.x[low] - _FAR)
            self.x[high] = min(rules.bounds(high, self.x)[1], self.x[high] + _FAR)

    def _shift(self, group: int, rules: _Rules) -> None:
        """Move a whole group to where its neighbours pull it, as far as there is room."""
        vertices = self.part.inside[group]
        variables = vertices | {
            border
            for other in self.part.inside
            if self.part.inside[other] <= vertices
            for border in self.part.border(other)
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
        order = sorted(range(len(self.part.layer)), key=self.x.__getitem__)
        for sign, vertices in ((-1, order), (1, order[::-1])):
            for vertex in vertices:
                wish = self._wish(vertex)
                if (wish - self.x[vertex]) * sign > 0:
                    low, high = rules.bounds(vertex, self.x)
                    if low <= high:
                        self.x[vertex] = min(max(wish, low), high)

    def _columns(self) -> list[list[int]]:
        """Vertices that should stand below each other: each has one line down to the next."""
        above = self._without_turned(self.part.above, lambda one, other: (other, one))
        below = self._without_turned(self.part.below, lambda one, other: (one, other))
        columns: list[list[int]] = []
        for layer in self.part.layers:
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
            if vertex >= len(self.part.members)
            else [other for other in side if pair(vertex, other) not in self.part.turned]
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
        if min(run) < len(self.part.members):
            return mean
        ends = [self._target(run[0], other) for other in self.part.above[run[0]]]
        ends += [self._target(run[-1], other) for other in self.part.below[run[-1]]]
        return min(ends, key=lambda end: abs(end - mean), default=mean)


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


def spread(wishes: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
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
