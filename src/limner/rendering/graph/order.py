"""The layers of a graph -> an order of each, in which few edges cross and groups stay together."""

from __future__ import annotations

import math
from bisect import bisect_right, insort

from limner.rendering.graph.layers import LayeredGraph

# How often the layers are swept: less often if there are many edges.
MAX_WORK = 60_000
MAX_SWEEPS = 16


def order_layers(part: LayeredGraph) -> None:
    """Order the vertices of each layer so that few edges cross."""
    seen = [False] * len(part.layer)
    for first in sorted(range(len(part.layer)), key=part.layer.__getitem__):
        stack = [first]
        while stack:
            vertex = stack.pop()
            if not seen[vertex]:
                seen[vertex] = True
                part.layers[part.layer[vertex]].append(vertex)
                stack += reversed(part.below[vertex])
    work = max(sum(len(lower) for lower in part.below), 1)
    sweeps = max(2, min(MAX_SWEEPS, MAX_WORK // work))
    position = _positions(part)
    best, fewest, stale = None, math.inf, 0
    for sweep in range(sweeps):
        _sweep(part, position, down=sweep % 2 == 0)
        if work < MAX_WORK // 20:
            _exchange(part, position)
        crossings = _crossings(part, position)
        stale += 1
        if crossings < fewest:
            best, fewest, stale = [list(layer) for layer in part.layers], crossings, 0
        if not fewest or stale > 5:
            break
    part.layers = best or part.layers


def _positions(part: LayeredGraph) -> list[float]:
    position = [0.0] * len(part.layer)
    for layer in part.layers:
        for place, vertex in enumerate(layer):
            position[vertex] = (place + 0.5) / len(layer)
    return position


def _sweep(part: LayeredGraph, position: list[float], *, down: bool) -> None:
    """Order each layer by the mean of the neighbours; groups keep one order in all layers."""
    pull = _group_pull(part, position)
    neighbours = part.above if down else part.below
    for layer in part.layers if down else reversed(part.layers):
        wish = {
            vertex: sum(position[other] for other in near) / len(near)
            if (near := neighbours[vertex])
            else position[vertex]
            for vertex in layer
        }
        for row in {id(row): row for vertex in layer if (row := part.rows.get(vertex))}.values():
            pulled = [wish[vertex] for vertex in row if neighbours[vertex]] or [wish[row[0]]]
            wish |= dict.fromkeys(row, sum(pulled) / len(pulled))
        layer.sort(
            key=lambda vertex: (
                *((pull[group], -1 - group) for group in part.path[vertex]),
                (wish[vertex], min(row := part.rows.get(vertex, [vertex])), row.index(vertex)),
            )
        )
        for place, vertex in enumerate(layer):
            position[vertex] = (place + 0.5) / len(layer)


def _group_pull(part: LayeredGraph, position: list[float]) -> dict[int, float]:
    """Where the neighbours outside of each group are, on average."""
    sums: dict[int, list[float]] = {group: [] for group in part.span}
    own: dict[int, list[float]] = {group: [] for group in part.span}
    for vertex, path in enumerate(part.path):
        for group in path:
            own[group].append(position[vertex])
            sums[group] += [
                position[other]
                for other in (*part.above[vertex], *part.below[vertex])
                if group not in part.path[other]
            ]
    return {group: sum(near := sums[group] or own[group]) / len(near) for group in part.span}


def _exchange(part: LayeredGraph, position: list[float]) -> None:
    """Swap neighbours in a layer if that avoids crossings."""
    for layer in part.layers:
        for place in range(len(layer) - 1):
            one, other = layer[place], layer[place + 1]
            if part.path[one] != part.path[other] or one in part.rows or other in part.rows:
                continue
            gain = 0
            for near in (part.above, part.below):
                left = sorted(position[vertex] for vertex in near[one])
                right = sorted(position[vertex] for vertex in near[other])
                gain += sum(len(left) - bisect_right(left, at) for at in right)
                gain -= sum(len(right) - bisect_right(right, at) for at in left)
            if gain > 0:
                layer[place], layer[place + 1] = other, one
                position[one], position[other] = position[other], position[one]


def _crossings(part: LayeredGraph, position: list[float]) -> int:
    total = 0
    for layer in part.layers:
        ends: list[float] = []
        for vertex in layer:
            lower = sorted(position[other] for other in part.below[vertex])
            total += sum(len(ends) - bisect_right(ends, at) for at in lower)
            for at in lower:
                insort(ends, at)
    return total
