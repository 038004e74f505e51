"""A graph to lay out, and where everything goes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from limner.rendering.brush import Rect

Point = tuple[float, float]
Extent = tuple[float, float]


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
    """A line between two nodes; an edge that points ``up`` has its end above its start.

    A ``free`` edge does not decide which of its nodes is above the other.
    """

    start: int
    end: int
    label: Extent = (0.0, 0.0)
    up: bool = False
    free: bool = False


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
    """What is to be laid out, and the distances between nodes and between layers.

    The nodes of each of the ``ranks`` are in one layer.
    """

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge] = ()
    groups: Sequence[GraphGroup] = ()
    ranks: Sequence[tuple[int, ...]] = ()
    right: bool = False
    mirrored: bool = False
    node_gap: float = 1.5
    layer_gap: float = 1.8
