"""Shapes and colours -> SVG text: the canvas that all drawings use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import msgspec

from limner.imaging.fonts import FONTS, FontStyle

Point = tuple[float, float]


def number(value: float) -> str:
    """Format a coordinate, short and never in exponent form."""
    return f"{value:.1f}".removesuffix(".0")


def mix(one: str, other: str, share: float) -> str:
    """A colour between two, as ``#rrggbb``; ``share`` is the part of the second."""
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def closed(points: Iterable[Point]) -> str:
    """Path data of a closed outline with straight sides."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + "Z"


def flowing(points: Sequence[Point]) -> str:
    """Path data of a smooth line from left to right through the points."""
    start = points[0]
    parts = [f"M{number(start[0])} {number(start[1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = number((x0 + x1) / 2)
        parts.append(f"C{middle} {number(y0)} {middle} {number(y1)} {number(x1)} {number(y1)}")
    return "".join(parts)


class RenderedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An SVG document, its size, and what its author should know."""

    svg: str
    width: int
    height: int
    notes: tuple[str, ...] = ()


class Canvas(msgspec.Struct):
    """A picture being drawn, from back to front.

    ``unit`` is the shorter side: sizes are shares of it, so that a drawing looks the same at
    every size.
    """

    width: int
    height: int
    random: Random = msgspec.field(default_factory=lambda: Random(0))  # noqa: S311 - arranges shapes
    shapes: list[str] = msgspec.field(default_factory=list[str])
    definitions: list[str] = msgspec.field(default_factory=list[str])

    @property
    def unit(self) -> float:
        """The shorter side."""
        return float(min(self.width, self.height))

    def add(self, shape: str) -> None:
        """Draw a shape on top."""
        self.shapes.append(shape)

    def define(self, template: str) -> str:
        """Add a definition whose id is written ``{id}``; returns ``url(#id)``."""
        name = f"d{len(self.definitions)}"
        self.definitions.append(template.replace("{id}", name))
        return f"url(#{name})"

    def fade(self, *colours: str, opacities: Sequence[float] | None = None) -> str:
        """A gradient through the colours from top to bottom."""
        return self.define(
            '<linearGradient id="{id}" x1="0" y1="0" x2="0" y2="1">'
            f"{_stops(colours, opacities)}</linearGradient>"
        )

    def glow(self, *colours: str, opacities: Sequence[float] | None = None) -> str:
        """A gradient through the colours from the middle outwards."""
        return self.define(
            f'<radialGradient id="{{id}}">{_stops(colours, opacities)}</radialGradient>'
        )

    def rect(self, x: float, y: float, width: float, height: float, fill: str, **more: str) -> None:
        """A rectangle."""
        self.add(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
            f'height="{number(max(height, 0))}" fill="{fill}"{_attributes(more)}/>'
        )

    def ellipse(self, x: float, y: float, rx: float, ry: float, fill: str, **more: str) -> None:
        """An ellipse by its middle and its two radii."""
        self.add(
            f'<ellipse cx="{number(x)}" cy="{number(y)}" rx="{number(rx)}" ry="{number(ry)}" '
            f'fill="{fill}"{_attributes(more)}/>'
        )

    def path(self, data: str, fill: str, **more: str) -> None:
        """A filled outline."""
        self.add(f'<path d="{data}" fill="{fill}"{_attributes(more)}/>')

    def line(self, data: str, stroke: str, width: float, **more: str) -> None:
        """A stroke along a path."""
        self.add(
            f'<path d="{data}" fill="none" stroke="{stroke}" stroke-width="{number(width)}" '
            f'stroke-linecap="round"{_attributes(more)}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        size: float,
        fill: str,
        words: str,
        *,
        anchor: Literal["start", "middle", "end"] = "middle",
        bold: bool = True,
        italic: bool = False,
        style: FontStyle = "sans",
        **more: str,
    ) -> None:
        """One line of text with its baseline at y; the words may be untrusted."""
        if italic:
            more["font_style"] = "italic"
        self.add(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{fill}" '
            f'font-family="{FONTS[style].family}" font-weight="{"bold" if bold else "normal"}" '
            f'text-anchor="{anchor}"{_attributes(more)}>{escape(_printable(words))}</text>'
        )

    def asset(self, name: str, x: float, y: float, width: float, height: float) -> None:
        """A ready-made picture, in proportion within a box."""
        self.add(
            f'<asset name={quoteattr(_printable(name))} x="{number(x)}" y="{number(y)}" '
            f'width="{number(width)}" height="{number(height)}"/>'
        )

    def document(self) -> str:
        """The whole picture as an SVG document."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}"><defs>{"".join(self.definitions)}</defs>'
            f"{''.join(self.shapes)}</svg>"
        )


def _stops(colours: Sequence[str], opacities: Sequence[float] | None) -> str:
    last = max(len(colours) - 1, 1)
    stops: list[str] = []
    for place, colour in enumerate(colours):
        opacity = f' stop-opacity="{opacities[place]:g}"' if opacities else ""
        stops.append(f'<stop offset="{place / last:g}" stop-color="{colour}"{opacity}/>')
    return "".join(stops)


def _attributes(more: dict[str, str]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())


def _printable(text: str) -> str:
    """Text without the characters that XML does not allow; what joins two emoji stays."""
    return "".join(char for char in text if char.isprintable() or char == "\u200d")
