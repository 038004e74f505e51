"""Flat areas and text -> the values of bars and slices, by labels, axis and legend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from limner.imaging.evidence.layout import surrounding, to_number
from limner.imaging.evidence.record import Box, LabelledValue, TextLine
from limner.imaging.evidence.surfaces import Flat

_PLAIN = re.compile(r"[-\u2212]?[$€£]?\s*\d[\d.,]*\s*(?:%|[kKmM])?")
# The number that a legend repeats after the name.
_LEGEND_NUMBER = re.compile(r"(?<=\w)[\s(:,]+\d[\d.,]*\s*%?\)?$")
_MOST_LABELS = 60


def find_bars(flats: Sequence[Flat], lines: Sequence[TextLine]) -> Iterator[LabelledValue]:
    """The bars of a chart, upright or lying, each with its label and its value."""
    boxes = [flat for flat in flats if flat.kind in {"rectangle", "square"}]
    upright = _group(boxes, [(flat.box.y + flat.box.height, flat.box.width) for flat in boxes])
    lying = _group(boxes, [(flat.box.x, flat.box.height) for flat in boxes])
    bars, is_lying = (lying, True) if len(lying) > len(upright) else (upright, False)
    if is_lying:
        # A lying chart is an upright one with x and y exchanged.
        bars = [_flipped_flat(bar) for bar in bars]
        lines = [_Flip.line(line) for line in lines]
        # After the exchange the bars hang from their base line, so values grow downwards.
    legend = _legend(flats, lines, bars) if not is_lying else {}
    axis = _axis(bars, lines)
    for bar in sorted(bars, key=lambda bar: bar.box.x):
        label = _category(bar, lines, hanging=is_lying)
        value = _written(bar, lines, hanging=is_lying) or _measured(bar, axis, hanging=is_lying)
        if label is None or not value:
            continue
        series = legend.get(bar.shade, "")
        box = _Flip.box(bar.box) if is_lying else bar.box
        name = f"{label.text} {series}".strip()
        yield LabelledValue(label=name, value=value, found="bar", box=box)


class _Flip:
    """Exchanges x and y."""

    @staticmethod
    def box(box: Box) -> Box:
        return Box(x=box.y, y=box.x, width=box.height, height=box.width)

    @staticmethod
    def line(line: TextLine) -> TextLine:
        return TextLine(
            text=line.text, box=_Flip.box(line.box), confidence=line.confidence, row=line.row
        )


def _flipped_flat(flat: Flat) -> Flat:
    return Flat(
        shade=flat.shade, box=_Flip.box(flat.box), area=flat.area, own=flat.own, kind=flat.kind
    )


def _group(boxes: Sequence[Flat], keys: Sequence[tuple[int, int]]) -> list[Flat]:
    """The largest group of areas that stand on one line and are equally thick."""
    best: list[Flat] = []
    for base, thick in keys:
        same = [
            flat
            for flat, (other, width) in zip(boxes, keys, strict=True)
            if abs(base - other) <= 3 and abs(thick - width) <= 0.1 * thick + 1
        ]
        if len(same) > len(best) and _is_chart(same):
            best = same
    return best


def _is_chart(group: Sequence[Flat]) -> bool:
    """Bars differ in length; the cells of a grid and the fields of a form do not."""
    lengths = {(flat.box.width, flat.box.height) for flat in group}
    thick = min(min(flat.box.width, flat.box.height) for flat in group)
    return len(group) >= 2 and len(lengths) > 1 and thick >= 10


def _legend(
    flats: Sequence[Flat], lines: Sequence[TextLine], bars: Sequence[Flat]
) -> dict[tuple[int, int, int], str]:
    """The name of each colour, if the bars have several."""
    shades = {bar.shade for bar in bars}
    names = {shade: _swatch_label(shade, flats, lines) for shade in shades}
    if len(shades) < 2 or any(name is None for name in names.values()):
        return {}
    return {shade: name.text for shade, name in names.items() if name is not None}


def _swatch_label(
    shade: tuple[int, int, int], flats: Sequence[Flat], lines: Sequence[TextLine]
) -> TextLine | None:
    """The text right of a small area of a colour."""
    for flat in reversed(flats):
        if max(abs(a - b) for a, b in zip(flat.shade, shade, strict=True)) > 6:
            continue
        box = flat.box
        beside = [
            line
            for line in lines
            if 0 <= line.box.x - box.x - box.width <= 2 * line.box.height
            and box.height <= 1.6 * line.box.height
            and abs(_middle_y(line.box) - _middle_y(box)) <= 0.5 * line.box.height
        ]
        if beside:
            return min(beside, key=lambda line: line.box.x)
    return None


def _category(bar: Flat, lines: Sequence[TextLine], *, hanging: bool) -> TextLine | None:
    """The text beside the foot of a bar."""
    foot = bar.box.y if hanging else bar.box.y + bar.box.height
    reach = 1.2 * max(bar.box.width, 20)
    near = [
        line
        for line in lines
        if abs(_middle_x(line.box) - _middle_x(bar.box)) <= 0.75 * reach
        and 0 <= (foot - line.box.y - line.box.height if hanging else line.box.y - foot) + 3 <= 90
        and not _PLAIN.fullmatch(line.text.strip())
    ]
    return min(near, key=lambda line: abs(_middle_y(line.box) - foot), default=None)


def _written(bar: Flat, lines: Sequence[TextLine], *, hanging: bool) -> str:
    """The number at the end of a bar, or in it."""
    end = bar.box.y + bar.box.height if hanging else bar.box.y
    for line in lines:
        across = abs(_middle_x(line.box) - _middle_x(bar.box)) <= 0.5 * bar.box.width
        size = line.box.height
        away = (line.box.y - end) if hanging else end - line.box.y - size
        if across and -1.6 * size <= away <= 1.2 * size and _PLAIN.fullmatch(line.text.strip()):
            return line.text.strip()
    return ""


Axis = tuple[float, float, float]


def _axis(bars: Sequence[Flat], lines: Sequence[TextLine]) -> Axis | None:
    """Value = slope * position + start, from the numbers beside the bars, and their step."""
    if not bars:
        return None
    left = min(bar.box.x for bar in bars)
    area = surrounding(bar.box for bar in bars)
    ticks = [
        (_middle_y(line.box), number)
        for line in lines[:_MOST_LABELS]
        if line.box.x + line.box.width <= left + 4
        and (number := _tick(line.text)) is not None
        and area.y - 2 * area.height <= line.box.y <= area.y + 2 * area.height
    ]
    best: Axis | None = None
    most = 2
    for (y1, v1), (y2, v2) in combinations(ticks, 2):
        if y1 == y2 or v1 == v2:
            continue
        slope = (v2 - v1) / (y2 - y1)
        start = v1 - slope * y1
        close = [abs(slope * y + start - value) <= abs(slope) * 4 for y, value in ticks]
        if sum(close) > most:
            values = sorted(value for (_, value), fits in zip(ticks, close, strict=True) if fits)
            best, most = (slope, start, abs(values[1] - values[0])), sum(close)
    return best


def _measured(bar: Flat, axis: Axis | None, *, hanging: bool) -> str:
    """The value at the end of a bar: the roundest number within the error of the pixels."""
    if axis is None:
        return ""
    slope, start, step = axis
    value = slope * (bar.box.y + bar.box.height if hanging else bar.box.y) + start
    for parts in (1, 2, 4, 5, 10, 20, 50, 100):
        rounded = round(value / (step / parts)) * (step / parts)
        if abs(value - rounded) <= 1.5 * abs(slope):
            return f"{rounded:.6g}"
    return f"{value:.3g}"


def find_slices(
    flats: Sequence[Flat], lines: Sequence[TextLine], *, pixels: int
) -> Iterator[LabelledValue]:
    """The slices of a pie with their share of its area in percent."""
    large = [flat for flat in flats if flat.area >= 0.002 * pixels and flat.kind not in {"square"}]
    for pie in _discs(large):
        whole = sum(flat.area for flat in pie)
        for flat in pie:
            label = _swatch_label(flat.shade, flats, lines) or _nearest(flat, lines)
            if label is not None:
                share = f"{round(100 * flat.area / whole)} %"
                name = _LEGEND_NUMBER.sub("", label.text)
                yield LabelledValue(label=name, value=share, found="slice", box=flat.box)


def _discs(flats: Sequence[Flat]) -> Iterator[list[Flat]]:
    """Groups of areas of different colours that fill a circle together."""
    for first in flats[:12]:
        group = [
            flat
            for flat in flats
            if flat.kind != "rectangle" and _touches(flat.box, first.box, slack=6)
        ]
        box = surrounding(flat.box for flat in group) if group else first.box
        filled = sum(flat.area for flat in group) / (box.width * box.height)
        even = 0.95 <= box.width / box.height <= 1.05
        if len(group) >= 2 and even and 0.35 <= filled <= 0.8:
            yield group
            return


def _nearest(flat: Flat, lines: Sequence[TextLine]) -> TextLine | None:
    words = [line for line in lines if not _PLAIN.fullmatch(line.text.strip())]
    inside = [line for line in words if _touches(line.box, flat.box, slack=0)]
    return min(
        inside,
        key=lambda line: math.dist(
            (_middle_x(line.box), _middle_y(line.box)), (_middle_x(flat.box), _middle_y(flat.box))
        ),
        default=None,
    )


def _touches(one: Box, other: Box, *, slack: int) -> bool:
    return (
        one.x <= other.x + other.width + slack
        and other.x <= one.x + one.width + slack
        and one.y <= other.y + other.height + slack
        and other.y <= one.y + one.height + slack
    )


def _tick(text: str) -> float | None:
    """The number that a text is, with its thousands; None if it is none."""
    value = to_number(text) if _PLAIN.fullmatch(text.strip()) else None
    return None if value is None else value * {"k": 1e3, "m": 1e6}.get(text.strip()[-1].lower(), 1)


def _middle_x(box: Box) -> float:
    return box.x + box.width / 2


def _middle_y(box: Box) -> float:
    return box.y + box.height / 2
