"""Dashes in parts of ``pathLength`` -> dashes in units of the drawing; resvg leaves them as is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise

from limner.imaging.svg.parser import Element

Point = tuple[float, float]
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LETTER = re.compile(r"[\s,]*([a-zA-Z])")
_NEXT_NUMBER = re.compile(rf"[\s,]*({_NUMBER.pattern})")
# The two flags of an arc may be written without blanks: "a5 5 0 1110 0".
_FLAG = re.compile(r"[\s,]*([01])")
_DASH_RULE = re.compile(r"(stroke-dash(?:array|offset)\s*:)([^;]*)")
_SIZES = {"m": 2, "l": 2, "h": 1, "v": 1, "c": 6, "s": 4, "q": 4, "t": 2, "a": 7, "z": 0}
_PIECES = 24


def scale_dashes(root: Element) -> None:
    """Rewrite the dashes of every element with a ``pathLength``."""
    for element in root.elements():
        own = element.attributes
        told = _number(own.pop("pathLength", ""))
        length = _length(element) if told else 0.0
        if not (told and math.isfinite(length) and length > 0):
            continue
        scale = length / told
        for name in ("stroke-dasharray", "stroke-dashoffset"):
            if name in own:
                own[name] = _scaled(own[name], scale)
        if "style" in own:
            own["style"] = _DASH_RULE.sub(
                lambda found, scale=scale: found[1] + _scaled(found[2], scale), own["style"]
            )


def _scaled(dashes: str, scale: float) -> str:
    return _NUMBER.sub(lambda found: f"{float(found[0]) * scale:.6g}", dashes)


def _number(text: str) -> float:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[0]) if found else 0.0


def _length(element: Element) -> float:
    """The length of the outline of a shape."""
    at = {name: _number(text) for name, text in element.attributes.items()}
    if element.tag == "circle":
        return math.tau * at.get("r", 0.0)
    if element.tag == "ellipse":
        rx, ry = at.get("rx", 0.0), at.get("ry", 0.0)
        return math.pi * (3 * (rx + ry) - math.sqrt((3 * rx + ry) * (rx + 3 * ry)))
    if element.tag == "rect":
        rx = at.get("rx", at.get("ry", 0.0))
        ry = at.get("ry", rx)
        corners = math.pi * (rx + ry) - 4 * (rx + ry)
        return 2 * (at.get("width", 0.0) + at.get("height", 0.0)) + corners
    if element.tag == "line":
        return math.hypot(at.get("x2", 0.0) - at.get("x1", 0.0), at.get("y2", 0) - at.get("y1", 0))
    if element.tag in ("polyline", "polygon"):
        numbers = [float(one) for one in _NUMBER.findall(element.attributes.get("points", ""))]
        points = list(zip(numbers[::2], numbers[1::2], strict=False))
        closing = points[:1] if element.tag == "polygon" else []
        return _sum(points + closing)
    return sum(map(_sum, _pieces(element.attributes.get("d", ""))))


def _sum(points: list[Point]) -> float:
    return sum(math.dist(one, other) for one, other in pairwise(points))


def _commands(data: str) -> Iterator[tuple[str, list[float]]]:
    """The commands of a path with their numbers; a repeated command is written out."""
    at, letter, numbers = 0, "", list[float]()
    while found := _LETTER.match(data, at) or _number_at(data, at, letter, len(numbers)):
        at = found.end()
        if found[1].isalpha():
            letter, numbers = found[1], []
        else:
            numbers.append(float(found[1]))
        if letter and len(numbers) == _SIZES.get(letter.lower(), -1):
            yield letter, numbers
            letter, numbers = {"m": "l", "M": "L"}.get(letter, letter), []


def _number_at(data: str, at: int, letter: str, place: int) -> re.Match[str] | None:
    is_flag = letter in ("a", "A") and place in (3, 4)
    return (_FLAG if is_flag else _NEXT_NUMBER).match(data, at)


def _pieces(data: str) -> Iterator[list[Point]]:
    """The pieces of a path as short lines."""
    here = start = (0.0, 0.0)
    control, before = here, ""
    for letter, numbers in _commands(data):
        kind = letter.lower()
        base = here if letter.islower() else (0.0, 0.0)
        if kind == "z":
            yield [here, start]
            here = start
        elif kind in "hv":
            across = kind == "h"
            end = (base[0] + numbers[0], here[1]) if across else (here[0], base[1] + numbers[0])
            yield [here, end]
            here = end
        elif kind == "a":
            end = (base[0] + numbers[5], base[1] + numbers[6])
            yield _arc(here, end, numbers)
            here = end
        else:
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            points = [(base[0] + x, base[1] + y) for x, y in pairs]
            if kind in "st":
                mirrored = before in {"s": "cs", "t": "qt"}[kind] and before != ""
                turned = (2 * here[0] - control[0], 2 * here[1] - control[1])
                points = [turned if mirrored else here, *points]
            control = points[-2] if len(points) > 1 else points[-1]
            if kind != "m":
                yield _curve([here, *points])
            here = points[-1]
            start = here if kind == "m" else start
        before = kind


def _curve(points: list[Point]) -> list[Point]:
    """A line, or a quadratic or cubic curve, as short lines."""
    if len(points) == 2:
        return points

    def at(share: float) -> Point:
        left: list[Point] = points
        while len(left) > 1:
            left = [
                (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
                for (x0, y0), (x1, y1) in pairwise(left)
            ]
        return left[0]

    return [at(step / _PIECES) for step in range(_PIECES + 1)]


def _arc(start: Point, end: Point, numbers: list[float]) -> list[Point]:
    """An arc as short lines, by the formulas of the SVG specification."""
    rx, ry, turn = abs(numbers[0]), abs(numbers[1]), math.radians(numbers[2])
    if not (rx and ry) or start == end:
        return [start, end]
    cos, sin = math.cos(turn), math.sin(turn)
    dx, dy = (start[0] - end[0]) / 2, (start[1] - end[1]) / 2
    x, y = cos * dx + sin * dy, cos * dy - sin * dx
    grow = max(1.0, math.hypot(x / rx, y / ry))
    rx, ry = rx * grow, ry * grow
    flat = (rx * y) ** 2 + (ry * x) ** 2
    root = math.sqrt(max((rx * ry) ** 2 / flat - 1, 0.0)) if flat else 0.0
    root = -root if bool(numbers[3]) == bool(numbers[4]) else root
    cx, cy = root * rx * y / ry, -root * ry * x / rx
    first = math.atan2((y - cy) / ry, (x - cx) / rx)
    sweep = math.atan2((-y - cy) / ry, (-x - cx) / rx) - first
    if numbers[4]:
        sweep += math.tau if sweep < 0 else 0.0
    elif sweep > 0:
        sweep -= math.tau
    angles = (first + sweep * step / _PIECES for step in range(_PIECES + 1))
    # The place and the turn of an ellipse do not change its length.
    return [(rx * math.cos(angle), ry * math.sin(angle)) for angle in angles]
