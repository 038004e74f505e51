"""A chart -> bars, lines, slices or points with their labels and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from limner.errors import InputInvalid
from limner.rendering.brush import Brush, Rect, format_number, is_attached
from limner.rendering.canvas import Point, closed, mix, number
from limner.rendering.colours import parse_colour, readable_on
from limner.rendering.elements import (
    AreaChart,
    BarChart,
    Chart,
    ChartSeries,
    LineChart,
    PieChart,
    ScatterPlot,
)
from limner.rendering.text import TextLines

_MAX_LABELLED_POINTS = 40
# The least size of a number in a part of a bar, in parts of the usual size.
_LEAST_LABEL = 0.55
_STEPS = (1, 2, 2.5, 5, 10)
# Smaller differences have no digits left to count steps with.
_LEAST_SPREAD = 1e-300


class DataRow(msgspec.Struct, frozen=True, kw_only=True):
    """One series, ready to draw."""

    name: str
    values: Sequence[float | None]
    points: Sequence[Sequence[float]]
    color: str
    dashed: bool = False
    line: bool = False


class ChartData(msgspec.Struct, frozen=True, kw_only=True):
    """The labels and rows of a chart, whichever way they were written."""

    labels: Sequence[str]
    rows: Sequence[DataRow]

    @property
    def values(self) -> list[float]:
        """All numbers that are there."""
        return [value for row in self.rows for value in row.values if value is not None]


class Scale(msgspec.Struct, frozen=True):
    """Round numbers from low to high, and where a value is among them, from 0 to 1."""

    ticks: Sequence[float]

    def share(self, value: float) -> float:
        """How far a value is from the first tick to the last."""
        low, high = self.ticks[0], self.ticks[-1]
        return (value - low) / (high - low)


def nice_scale(low: float, high: float, *, count: int = 5) -> Scale:
    """About ``count`` steps of round numbers that cover low to high."""
    # Numbers that differ by less than a float can count steps of are one number.
    if high - low <= max(abs(low), abs(high), _LEAST_SPREAD) * 1e-9:
        low, high = min(low, 0.0), max(high, 0.0)
        high = high if high - low > _LEAST_SPREAD else low + 1.0
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale([float(f"{place * step:.12g}") for place in range(first, last + 1)])


def read_data(chart: Chart, palette: Sequence[str]) -> ChartData:
    """The data of a chart.

    Raises:
        InputInvalid: there are no numbers, or too few labels for them.
    """
    labels = [_label(label) for label in chart.labels]
    values = chart.values
    if isinstance(values, dict):
        labels, values = labels or list(values), list(values.values())
    given = _series(chart)
    if values:
        given = [ChartSeries(values=values), *given]
    if isinstance(chart, ScatterPlot) and chart.points:
        given = [ChartSeries(points=chart.points), *given]
    if not any(one.values or one.points for one in given):
        wanted = "points" if isinstance(chart, ScatterPlot) else "values"
        raise InputInvalid(
            f"the chart has no {wanted}",
            field=wanted,
            hint='Write "labels": ["Q1", "Q2"], "values": [12, 18], or "series": '
            '[{"name": "Solar", "values": [12, 18]}].',
        )
    longest = max(len(one.values) for one in given)
    if labels and longest > len(labels) and not isinstance(chart, ScatterPlot):
        raise InputInvalid(
            f"the chart has {longest} values and {len(labels)} labels",
            field="labels",
            hint="Give each value a label; use null for a missing value.",
        )
    colors = [parse_colour(color, field="colors") for color in chart.colors] or list(palette)
    rows = [
        DataRow(
            name=one.name,
            values=one.values,
            points=one.points,
            dashed=one.dashed,
            line=one.line,
            color=parse_colour(one.color) if one.color else colors[place % len(colors)],
        )
        for place, one in enumerate(given)
    ]
    return ChartData(labels=labels or [str(place + 1) for place in range(longest)], rows=rows)


def draw_chart(chart: Chart, brush: Brush, box: Rect) -> None:
    """Draw a chart into a box."""
    data = read_data(chart, brush.style.theme.series)
    if isinstance(chart, BarChart) and chart.percent:
        chart = msgspec.structs.replace(chart, stacked=True, unit=chart.unit or "%")
        data = _as_shares(data)
    box = _draw_footer(chart, brush, brush.title(box, chart))
    if isinstance(chart, PieChart):
        _draw_pie(chart, data, brush, box)
        return
    box = _draw_legend(data, brush, box)
    if isinstance(chart, ScatterPlot):
        _draw_scatter(chart, data, brush, box)
    elif isinstance(chart, BarChart) and chart.horizontal:
        _draw_horizontal(chart, data, brush, box)
    else:
        _draw_vertical(chart, data, brush, box)


def _as_shares(data: ChartData) -> ChartData:
    """The same rows, with each value as its share of the sum over all rows, in percent."""
    sums = [
        sum(abs(row.values[place] or 0) for row in data.rows if place < len(row.values)) or 1
        for place in range(len(data.labels))
    ]
    rows = [
        msgspec.structs.replace(
            row,
            values=[
                None if value is None else round(value / sums[place] * 100, 1)
                for place, value in enumerate(row.values)
            ],
        )
        for row in data.rows
    ]
    return msgspec.structs.replace(data, rows=rows)


def _draw_footer(chart: Chart, brush: Brush, box: Rect) -> Rect:
    """Write the last line of a chart, such as the source of its numbers; returns what is left."""
    if not chart.footer:
        return box
    lines = brush.wrap(chart.footer, "small", box.width)
    left = Rect(box.x, box.y, box.width, box.height - lines.height - brush.style.base * 0.4)
    below = Rect(box.x, box.bottom - lines.height, box.width, lines.height)
    brush.lines(below, lines, color=brush.style.theme.muted)
    return left


def _series(chart: Chart) -> list[ChartSeries]:
    if isinstance(chart.series, dict):
        return [ChartSeries(name=name, values=values) for name, values in chart.series.items()]
    return chart.series


def _label(label: str | float) -> str:
    return label if isinstance(label, str) else format_number(label)


def _draw_legend(data: ChartData, brush: Brush, box: Rect) -> Rect:
    named = [(row.name, row.color) for row in data.rows if row.name]
    if not named:
        return box
    base = brush.style.base
    y = box.y + base * 0.6
    widths = [brush.width(name, "small") + base * 2.2 for name, _ in named]
    x = box.x + max((box.width - sum(widths)) / 2, 0.0)
    for (name, color), wide in zip(named, widths, strict=True):
        if x + wide > box.right + 1 and x > box.x:
            x, y = box.x, y + base * 1.3
        brush.panel(Rect(x, y - base * 0.4, base * 0.8, base * 0.8), color, radius=base * 0.15)
        brush.line(x + base * 1.1, y, name, "small", align="start")
        x += wide
    return box.below(y - box.y + base * 1.0)


def _draw_vertical(chart: Chart, data: ChartData, brush: Brush, box: Rect) -> None:
    base = brush.style.base
    stacked = isinstance(chart, BarChart | AreaChart) and chart.stacked
    scale = _value_scale(chart, data, stacked=stacked)
    plot = _plot_area(chart, data, brush, box, scale)
    _draw_y_grid(chart, brush, plot, scale)
    _draw_categories(data.labels, brush, plot)
    if isinstance(chart, BarChart):
        bars, lines = _split_rows(data)
        for bar, text, color in _bars(chart, bars, plot, scale, stacked=stacked):
            brush.panel(bar, color, radius=0 if stacked else min(bar.width * 0.08, base * 0.3))
            if chart.show_values and lines.rows and not stacked:
                # The numbers of the lines stand above the bars.
                foot = Rect(bar.x, bar.bottom - base * 1.3, bar.width, base * 1.1)
                _label_bar(brush, foot, text, color, inside=True)
            elif chart.show_values:
                _label_bar(brush, bar, text, color, inside=stacked)
        if lines.rows:
            _draw_lines(chart, lines, brush, plot, scale)
    elif isinstance(chart, (LineChart, AreaChart)):
        _draw_lines(chart, data, brush, plot, scale)
    brush.canvas.line(
        f"M{number(plot.x)} {number(_y(plot, scale, 0))}H{number(plot.right)}"
        if scale.ticks[0] <= 0 <= scale.ticks[-1]
        else f"M{number(plot.x)} {number(plot.bottom)}H{number(plot.right)}",
        brush.style.theme.muted,
        max(base / 10, 1),
    )


def _split_rows(data: ChartData) -> tuple[ChartData, ChartData]:
    """The rows that are bars, and those that are lines over them."""
    bars = [row for row in data.rows if not row.line]
    lines = [row for row in data.rows if row.line]
    return ChartData(labels=data.labels, rows=bars), ChartData(labels=data.labels, rows=lines)


def _value_scale(chart: Chart, data: ChartData, *, stacked: bool) -> Scale:
    if stacked:
        bars, lines = _split_rows(data)
        columns = [
            [row.values[place] or 0 for row in bars.rows if place < len(row.values)]
            for place in range(len(data.labels))
        ]
        columns += [[value] for value in lines.values]
        sums = [sum(value for value in column if value > 0) for column in columns]
        lows = [sum(value for value in column if value < 0) for column in columns]
        # Shares are rounded, so that their sum may be a little more than 100.
        is_percent = isinstance(chart, BarChart) and chart.percent
        return nice_scale(min(lows, default=0), 100 if is_percent else max(sums, default=1))
    values = data.values
    low, high = min(values), max(values)
    # Bars start at zero, or their lengths would not compare. Lines may start elsewhere.
    is_far_from_zero = low > 0 and (high - low) < low * 0.5
    if isinstance(chart, LineChart) and is_far_from_zero:
        least, most = low - (high - low) * 0.15, high + (high - low) * 0.1
    else:
        least, most = min(low, 0), max(high * 1.05, 0)
        if chart.unit == "%" and high <= 100:
            most = min(most, 100)
    if chart.y_min is not None and not isinstance(chart, BarChart):
        least = min(chart.y_min, low)
    if chart.y_max is not None:
        most = max(chart.y_max, high)
    return nice_scale(least, most)


def _plot_area(chart: Chart, data: ChartData, brush: Brush, box: Rect, scale: Scale) -> Rect:
    base = brush.style.base
    ticks = [_text(chart, tick) for tick in scale.ticks]
    left = max(brush.width(tick, "small") for tick in ticks) + base * 0.8
    left += base * 1.4 if _y_title(chart) else 0
    band = (box.width - left) / max(len(data.labels), 1)
    bottom = _category_height(data.labels, brush, band) + base * 0.6
    bottom += base * 1.4 if chart.x_label else 0
    top = base * 1.3
    plot = Rect(
        box.x + left,
        box.y + top,
        max(box.width - left - base * 0.5, 1),
        max(box.height - top - bottom, base),
    )
    if title := _y_title(chart):
        x, y = box.x + base * 0.7, plot.y + plot.height / 2
        brush.line(
            x,
            y,
            title,
            "small",
            color=brush.style.theme.muted,
            transform=f"rotate(-90 {number(x)} {number(y)})",
        )
    if chart.x_label:
        x = plot.x + plot.width / 2
        color = brush.style.theme.muted
        brush.line(x, box.bottom - base * 0.6, chart.x_label, "small", color=color)
    return plot


def _y_title(chart: Chart) -> str:
    if not chart.unit or is_attached(chart.unit):
        return chart.y_label
    return f"{chart.y_label} ({chart.unit})" if chart.y_label else chart.unit


def _text(chart: Chart, value: float | None) -> str:
    return format_number(value, chart.unit, thousands=chart.thousands)


def _with_unit(chart: Chart, value: float) -> str:
    """A number with its unit, which stands beside the axis in charts that have one."""
    text = _text(chart, value)
    return text if not chart.unit or is_attached(chart.unit) else f"{text} {chart.unit}"


def _is_sketch(chart: Chart) -> bool:
    """Whether a chart shows no numbers: it only stands for a chart, as on the draft of a screen."""
    return not chart.show_values and bool(chart.labels) and not any(chart.labels)


def _draw_y_grid(chart: Chart, brush: Brush, plot: Rect, scale: Scale) -> None:
    for tick in scale.ticks:
        y = _y(plot, scale, tick)
        brush.canvas.line(
            f"M{number(plot.x)} {number(y)}H{number(plot.right)}", brush.style.theme.line, 1
        )
        if not _is_sketch(chart):
            brush.line(
                plot.x - brush.style.base * 0.5,
                y,
                _text(chart, tick),
                "small",
                align="end",
                color=brush.style.theme.muted,
            )


def _category_height(labels: Sequence[str], brush: Brush, band: float) -> float:
    if _is_crowded(labels, brush, band):
        widest = max(brush.width(label, "small") for label in labels)
        return min(widest, brush.style.base * 9) * 0.72 + brush.style.base
    heights = [brush.wrap(label, "small", band * 0.94).height for label in labels]
    return max(heights, default=0) + brush.style.base * 0.3


def _is_crowded(labels: Sequence[str], brush: Brush, band: float) -> bool:
    """Whether a word of a label is wider than the room below its bar."""
    words = (word for label in labels for word in label.split())
    return any(brush.width(word, "small") > band * 0.94 for word in words)


def _draw_categories(labels: Sequence[str], brush: Brush, plot: Rect) -> None:
    base = brush.style.base
    band = plot.width / max(len(labels), 1)
    crowded = _is_crowded(labels, brush, band)
    # Of very many labels some are left out, evenly.
    step = max(1, math.ceil(base * 1.1 / band)) if crowded else 1
    for place, label in enumerate(labels):
        x = plot.x + band * (place + 0.5)
        if not crowded:
            lines = brush.wrap(label, "small", band * 0.94)
            box = Rect(plot.x + band * place, plot.bottom + base * 0.35, band, lines.height)
            brush.lines(box, lines, align="center")
        elif place % step == 0:
            y = plot.bottom + base * 0.8
            turn = f"rotate(-45 {number(x)} {number(y)})"
            brush.line(x, y, label, "small", align="end", max_width=base * 9, transform=turn)


def _bar_colours(chart: BarChart, data: ChartData) -> list[str]:
    """The colours of single bars: several series have one colour each instead."""
    if len(data.rows) > 1:
        return []
    return [parse_colour(color, field="colors") for color in chart.colors]


def _bars(
    chart: BarChart, data: ChartData, plot: Rect, scale: Scale, *, stacked: bool
) -> Iterator[tuple[Rect, str, str]]:
    band = plot.width / len(data.labels)
    colors = _bar_colours(chart, data)
    share = band * 0.72 / (1 if stacked else max(len(data.rows), 1))
    for place in range(len(data.labels)):
        up = down = 0.0
        for row_place, row in enumerate(data.rows):
            value = row.values[place] if place < len(row.values) else None
            if value is None:
                continue
            start = (up if value >= 0 else down) if stacked else 0.0
            end = start + value
            up, down = (end, down) if value >= 0 else (up, end)
            x = plot.x + band * (place + 0.14) + (0 if stacked else share * row_place)
            top, bottom = sorted((_y(plot, scale, start), _y(plot, scale, end)))
            color = colors[place % len(colors)] if colors else row.color
            wide = share if stacked else share * 0.92
            yield Rect(x, top, wide, bottom - top), _text(chart, value), color


def _label_bar(brush: Brush, bar: Rect, text: str, color: str, *, inside: bool) -> None:
    base = brush.style.base
    size = min(base * 0.85, base * 0.85 * bar.width * 1.3 / max(brush.width(text, base * 0.85), 1))
    x, middle = bar.middle
    if not inside:
        brush.line(x, bar.y - base * 0.65, text, size, bold=True)
        return
    size = min(size, max(bar.height * 0.9, base * 0.5))
    brush.line(x, middle, text, size, bold=True, color=readable_on(color))


def _draw_lines(chart: Chart, data: ChartData, brush: Brush, plot: Rect, scale: Scale) -> None:
    base = brush.style.base
    band = plot.width / max(len(data.labels), 1)
    labelled = chart.show_values and len(data.values) <= _MAX_LABELLED_POINTS
    labels: list[LinePoint] = []
    stacked = isinstance(chart, AreaChart) and chart.stacked
    sums = [0.0] * len(data.labels)
    for row in data.rows:
        below = [(plot.x + band * (at + 0.5), _y(plot, scale, low)) for at, low in enumerate(sums)]
        if stacked:
            given = [*row.values, *[None] * (len(sums) - len(row.values))]
            sums = [low + (value or 0) for low, value in zip(sums, given, strict=False)]
        points = [
            (
                plot.x + band * (place + 0.5),
                _y(plot, scale, sums[place] if stacked else value),
                value,
            )
            for place, value in enumerate(row.values)
            if value is not None
        ]
        if isinstance(chart, AreaChart) and points:
            floor = _y(plot, scale, max(scale.ticks[0], 0))
            outline = [(x, y) for x, y, _ in points]
            around = [(points[0][0], floor), *outline, (points[-1][0], floor)]
            if stacked:
                around = [*outline, *reversed(below)]
            opacity = "0.55" if stacked else "0.28"
            brush.canvas.path(closed(around), row.color, fill_opacity=opacity)
        data_path = _path(row.values, points)
        dash = {"stroke_dasharray": f"{base * 0.6:.1f} {base * 0.4:.1f}"} if row.dashed else {}
        brush.canvas.line(data_path, row.color, base * 0.2, stroke_linejoin="round", **dash)
        for x, y, _ in points:
            brush.canvas.ellipse(x, y, base * 0.3, base * 0.3, row.color)
        ink = brush.style.ink
        color = mix(row.color, ink, 0.5) if len(data.rows) > 1 else ink
        labels += _line_points(chart, points, brush, color)
    if labelled:
        _label_lines(chart, labels, brush, plot)


def _line_points(
    chart: Chart, points: Sequence[tuple[float, float, float]], brush: Brush, color: str
) -> Iterator[LinePoint]:
    """The points of one line with their labels."""
    for place, (x, y, value) in enumerate(points):
        # Below a point that is lower than its neighbours, the line does not cross the text.
        near = [points[one][1] for one in (place - 1, place + 1) if 0 <= one < len(points)]
        is_low = bool(near) and all(y > other + brush.style.base * 0.2 for other in near)
        text = _text(chart, value)
        wide = brush.width(text, "small", bold=True)
        yield LinePoint(x=x, y=y, text=text, wide=wide, color=color, is_low=is_low)


def _path(values: Sequence[float | None], points: Sequence[tuple[float, float, float]]) -> str:
    """The line through the points of a row, with a gap at each value that is missing."""
    rest = iter(points)
    drawn, path = False, ""
    for value in values:
        if value is None:
            drawn = False
            continue
        x, y, _ = next(rest)
        path += f"{'L' if drawn else 'M'}{number(x)} {number(y)}"
        drawn = True
    return path


class LinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a line; ``is_low`` if the line goes up on both sides of it."""

    x: float
    y: float
    text: str
    wide: float
    color: str
    is_low: bool


def _label_lines(chart: Chart, points: Sequence[LinePoint], brush: Brush, plot: Rect) -> None:
    """Write the value of each point above or below it; values that have no room are left out."""
    base = brush.style.base
    taken = [Rect(one.x - 1, one.y - base * 0.3, 2, base * 0.6) for one in points]
    # On the white around a line, an edge in white keeps the line out of the text.
    edge = 0.0 if isinstance(chart, AreaChart) else base * 0.2
    left_out = 0
    for near in _near_points(points, base):
        placed = _place_labels(near, base, plot, taken)
        left_out += len(near) - len(placed)
        taken += [label for _, label in placed]
        for point, label in placed:
            brush.line(
                *label.middle,
                point.text,
                "small",
                bold=True,
                color=point.color,
                paint_order="stroke",
                stroke=brush.style.theme.background,
                stroke_width=number(edge),
                stroke_linejoin="round",
            )
    _note_left_out(brush, left_out)


def _note_left_out(brush: Brush, count: int) -> None:
    if count:
        brush.notes.append(f"{count} values of the chart are not written: no room.")


def _near_points(points: Sequence[LinePoint], base: float) -> list[list[LinePoint]]:
    """The points, with those together whose labels would touch: from top to bottom."""
    found: list[list[LinePoint]] = []
    for point in sorted(points, key=lambda one: (one.x, one.y)):
        last = found[-1][-1] if found else None
        if last and last.x == point.x and point.y - last.y < base * 1.9:
            found[-1].append(point)
        else:
            found.append([point])
    return found


def _place_labels(
    near: Sequence[LinePoint], base: float, plot: Rect, taken: Sequence[Rect]
) -> list[tuple[LinePoint, Rect]]:
    """A place for each label: the upper ones above all points, the lower ones below them."""
    count = len(near)
    half = 0 if count == 1 and near[0].is_low else (count + 1) // 2
    best: list[tuple[LinePoint, Rect]] = []
    for above in dict.fromkeys((half, count - half, count, 0)):
        placed: list[tuple[LinePoint, Rect]] = []
        for place, point in enumerate(near):
            steps = above - place if place < above else place - above + 1
            away = base * (0.95 + 0.85 * (steps - 1))
            y = near[0].y - away if place < above else near[-1].y + away
            label = Rect(point.x - point.wide / 2, y - base * 0.35, point.wide, base * 0.7)
            inside = plot.y - base * 1.3 < label.y and label.bottom < plot.bottom
            if inside and not any(_overlap(label, other) for other in taken):
                placed.append((point, label))
        if len(placed) > len(best):
            best = placed
    return best


def _fitting_labels(
    labels: Sequence[str], brush: Brush, wide: float, high: float
) -> list[TextLines]:
    """The labels of an axis in lines: smaller text, of one size, is better than cut words."""
    size = brush.style.pixels("small")
    lines = [brush.wrap(label, size, wide) for label in labels]
    while max(label.height for label in lines) > high and size > brush.style.base * 0.45:
        size *= 0.92
        lines = [brush.wrap(label, size, wide) for label in labels]
    return lines


def _label_part(brush: Brush, bar: Rect, text: str, color: str) -> bool:
    """Write a number into a part of a bar, smaller if need be; False if it has no room."""
    size = min(1.0, bar.width / max(brush.width(text, "small", bold=True), 1))
    if size < _LEAST_LABEL:
        return False
    pixels = size * brush.style.pixels("small")
    brush.line(*bar.middle, text, pixels, bold=True, color=readable_on(color))
    return True


def _draw_x_grid(chart: Chart, brush: Brush, plot: Rect, scale: Scale) -> None:
    """The lines and numbers of a horizontal axis."""
    for tick in scale.ticks:
        x = number(plot.x + plot.width * scale.share(tick))
        brush.canvas.line(f"M{x} {number(plot.y)}V{number(plot.bottom)}", brush.style.theme.line, 1)
    _draw_axis_numbers([_text(chart, tick) for tick in scale.ticks], brush, plot, scale)


def _draw_axis_numbers(texts: Sequence[str], brush: Brush, plot: Rect, scale: Scale) -> None:
    """The numbers below a horizontal axis; in a narrow plot each second, third or so."""
    widest = max(brush.width(text, "small") for text in texts) + brush.style.base * 0.5
    step = math.ceil(widest / (plot.width / max(len(texts) - 1, 1)))
    for text, tick in [*zip(texts, scale.ticks, strict=True)][::step]:
        x = plot.x + plot.width * scale.share(tick)
        y = plot.bottom + brush.style.base * 0.9
        brush.line(x, y, text, "small", color=brush.style.theme.muted)


def _draw_horizontal(chart: BarChart, data: ChartData, brush: Brush, box: Rect) -> None:
    base = brush.style.base
    scale = _value_scale(chart, data, stacked=chart.stacked)
    names = min(max(brush.width(label, "small") for label in data.labels), box.width * 0.4) + base
    left = names
    if min(data.values, default=0) < 0 and not chart.stacked:
        left += base * 1.8  # for the numbers to the left of the bars
    below = chart.x_label or _y_title(chart)
    if below:
        middle = box.x + left + (box.width - left) / 2
        color = brush.style.theme.muted
        brush.line(middle, box.bottom - base * 0.6, below, "small", color=color)
        box = Rect(box.x, box.y, box.width, box.height - base * 1.3)
    plot = Rect(
        box.x + left,
        box.y + base * 0.3,
        max(box.width - left - base * 3, 1),
        max(box.height - base * 1.8, base),
    )
    _draw_x_grid(chart, brush, plot, scale)
    band = plot.height / len(data.labels)
    colors = _bar_colours(chart, data)
    share = band * 0.72 / (1 if chart.stacked else len(data.rows))
    left_out = 0
    labels = _fitting_labels(data.labels, brush, names - base * 0.9, band * 0.96)
    for place, lines in enumerate(labels):
        y = plot.y + band * (place + 0.5)
        beside = Rect(box.x, y - band / 2, names - base * 0.5, band)
        brush.lines(beside, lines, align="end", centred=True)
        total = 0.0
        for row_place, row in enumerate(data.rows):
            value = row.values[place] if place < len(row.values) else None
            if value is None:
                continue
            start = total if chart.stacked else 0.0
            total = start + value
            ends = sorted((scale.share(start), scale.share(total)))
            top = plot.y + band * (place + 0.14) + (0 if chart.stacked else share * row_place)
            bar = Rect(
                plot.x + plot.width * ends[0],
                top,
                plot.width * (ends[1] - ends[0]),
                share if chart.stacked else share * 0.92,
            )
            color = colors[place % len(colors)] if colors else row.color
            brush.panel(bar, color, radius=0 if chart.stacked else base * 0.15)
            text = _text(chart, value)
            if chart.show_values and chart.stacked:
                left_out += not _label_part(brush, bar, text, color) and bool(value)
            elif chart.show_values:
                before = value < 0
                x = bar.x - base * 0.4 if before else bar.right + base * 0.4
                align = "end" if before else "start"
                brush.line(x, bar.middle[1], text, "small", align=align, bold=True)
    _note_left_out(brush, left_out)


def _draw_scatter(chart: ScatterPlot, data: ChartData, brush: Brush, box: Rect) -> None:
    base = brush.style.base
    points = [(row, point) for row in data.rows for point in row.points]
    if not points:
        raise InputInvalid(
            "a scatter plot needs points", field="points", hint='Write "points": [[160, 55]].'
        )
    across = nice_scale(
        *_spread([point[0] for _, point in points], chart.x_min, chart.x_max), count=6
    )
    scale = nice_scale(*_spread([point[1] for _, point in points], chart.y_min, chart.y_max))
    ticks = ChartData(labels=[format_number(tick) for tick in across.ticks], rows=[])
    plot = _plot_area(chart, ticks, brush, box, scale)
    if chart.quadrants:
        _draw_quadrants(chart, brush, plot)
    else:
        _draw_y_grid(chart, brush, plot, scale)
        _draw_axis_numbers([format_number(tick) for tick in across.ticks], brush, plot, across)
    named = len(chart.labels) == len(points)
    labelled = (named or chart.show_values) and len(points) <= _MAX_LABELLED_POINTS
    radius = _radius([point for _, point in points], base)
    places = [
        (plot.x + plot.width * across.share(point[0]), _y(plot, scale, point[1]), radius(point))
        for _, point in points
    ]
    taken = [Rect(x - r, y - r, 2 * r, 2 * r) for x, y, r in places]
    for (row, point), (x, y, r) in zip(points, places, strict=True):
        opacity = "0.85" if len(point) == 2 else "0.6"
        brush.canvas.ellipse(x, y, r, r, row.color, fill_opacity=opacity)
    for place, ((_, point), (x, y, r)) in enumerate(zip(points, places, strict=True)):
        if labelled:
            text = f"{format_number(point[0])}, {_text(chart, point[1])}"
            text = data.labels[place] if named else text
            wide = brush.width(text, "small")
            label = _free_place((x, y), wide, base, box=box, taken=taken, gap=r + base * 0.13)
            taken.append(label)
            brush.line(*label.middle, text, "small")


def _radius(points: Sequence[Sequence[float]], base: float) -> Callable[[Sequence[float]], float]:
    """The radius of a point: its area is in proportion to its size, if it has one."""
    largest = max((point[2] for point in points if len(point) > 2), default=0.0)

    def radius(point: Sequence[float]) -> float:
        if len(point) < 3 or largest <= 0:
            return base * 0.42
        return max(base * 2.0 * math.sqrt(max(point[2], 0.0) / largest), base * 0.25)

    return radius


def _draw_quadrants(chart: ScatterPlot, brush: Brush, plot: Rect) -> None:
    """Four quarters with their texts, instead of a grid."""
    theme, base = brush.style.theme, brush.style.base
    wide, high = plot.width / 2, plot.height / 2
    for place, (right, down) in enumerate(((1, 0), (0, 0), (0, 1), (1, 1))):
        quarter = Rect(plot.x + right * wide, plot.y + down * high, wide, high)
        fill = mix(theme.background, theme.series[place % len(theme.series)], 0.1)
        brush.panel(quarter, fill, stroke=theme.line)
        if place < len(chart.quadrants):
            lines = brush.wrap(chart.quadrants[place], "body", wide - base, bold=True)
            brush.lines(
                quarter.inset(base * 0.5), lines, align="center", bold=True, color=theme.muted
            )


def _free_place(
    point: Point, wide: float, base: float, *, box: Rect, taken: Sequence[Rect], gap: float
) -> Rect:
    """The first place around a point where its label covers nothing else, or else the first."""
    (x, y), high = point, base * 0.95
    lefts = (x + gap, x - gap - wide)
    tops = (y - gap - high * 0.7, y - high / 2, y + gap - high * 0.3)
    middle = (x - wide / 2, y - gap - high), (x - wide / 2, y + gap)
    corners = [(left, top) for left in lefts for top in tops]
    places = [Rect(left, top, wide, high) for left, top in (*corners, *middle)]
    inside = [one for one in places if box.x <= one.x and one.right <= box.right] or places
    free = (one for one in inside if not any(_overlap(one, other) for other in taken))
    return next(free, inside[0])


def _overlap(one: Rect, other: Rect) -> bool:
    return (
        one.x < other.right
        and other.x < one.right
        and one.y < other.bottom
        and other.y < one.bottom
    )


def _spread(
    values: Sequence[float], least: float | None, most: float | None
) -> tuple[float, float]:
    """The ends of an axis: a little more than the values, or what the author asks for."""
    room = (max(values) - min(values)) * 0.08
    low = min(values) - room
    # An axis of amounts does not start below zero.
    low = max(low, 0.0) if min(values) >= 0 else low
    high = max(values) + room
    low = low if least is None else min(least, *values)
    return low, high if most is None else max(most, *values)


def _draw_pie(chart: PieChart, data: ChartData, brush: Brush, box: Rect) -> None:
    values = [value or 0 for value in data.rows[0].values]
    total = sum(values)
    if total <= 0 or min(values) < 0:
        raise InputInvalid("the shares of a pie must be positive numbers", field="values")
    base = brush.style.base
    colors = [parse_colour(color, field="colors") for color in chart.colors]
    colors = colors or list(brush.style.theme.series)
    texts = [
        f"{label}  {_with_unit(chart, value)}"
        for label, value in zip(data.labels, values, strict=False)
    ]
    widest = max(brush.width(text, "body") for text in texts)
    legend = min(widest + base * 2.2, box.width * 0.55)
    # Smaller text is better than a number that is cut off.
    text_size = base * min(1.0, max((legend - base * 1.9) / max(widest, 1), 0.45))
    radius = max(min((box.width - legend) / 2, box.height / 2) - base * 0.5, base)
    x, y = box.x + (box.width - legend) / 2, box.y + box.height / 2
    angle = -math.pi / 2
    for place, value in enumerate(values):
        color = colors[place % len(colors)]
        if place >= len(colors):
            color = mix(color, "#ffffff", 0.35)
        end = angle + value / total * math.tau
        brush.canvas.path(
            _slice(x, y, radius, angle, end),
            color,
            stroke=brush.style.theme.background,
            stroke_width=f"{base * 0.12:.1f}",
        )
        middle = (angle + end) / 2
        if chart.show_values and value / total >= 0.04:
            far = radius * (0.78 if chart.donut else 0.66)
            share = f"{format_number(round(value / total * 100, 1))}%"
            brush.line(
                x + far * math.cos(middle),
                y + far * math.sin(middle),
                share,
                "small",
                bold=True,
                color=readable_on(color),
            )
        angle = end
        down = (place - (len(values) - 1) / 2) * base * 1.9
        row = Rect(
            box.right - legend + base * 0.6, box.y + box.height / 2 + down, legend, text_size
        )
        _draw_legend_row(brush, row, texts[place], color)
    if chart.donut:
        brush.canvas.ellipse(x, y, radius * 0.56, radius * 0.56, brush.style.theme.background)
        words = brush.wrap(chart.center, "heading", radius * 0.95, bold=True)
        middle = Rect(x - radius * 0.5, y - radius * 0.5, radius, radius)
        brush.lines(middle, words, align="center", bold=True, centred=True)


def _draw_legend_row(brush: Brush, row: Rect, text: str, color: str) -> None:
    """A square and a text; the height of the row is the size of the text."""
    base = brush.style.base
    square = Rect(row.x, row.y - base * 0.45, base * 0.9, base * 0.9)
    brush.panel(square, color, radius=base * 0.2)
    room = row.width - base * 1.9
    brush.line(row.x + base * 1.3, row.y, text, row.height, align="start", max_width=room)


def _slice(x: float, y: float, radius: float, start: float, end: float) -> str:
    if end - start > math.tau * 0.9999:
        r = number(radius)
        half = f"a{r} {r} 0 1 1 "
        across = number(2 * radius)
        return f"M{number(x - radius)} {number(y)}{half}{across} 0{half}-{across} 0Z"
    first = x + radius * math.cos(start), y + radius * math.sin(start)
    last = x + radius * math.cos(end), y + radius * math.sin(end)
    large = int(end - start > math.pi)
    return (
        f"M{number(x)} {number(y)}L{number(first[0])} {number(first[1])}"
        f"A{number(radius)} {number(radius)} 0 {large} 1 {number(last[0])} {number(last[1])}Z"
    )


def _y(plot: Rect, scale: Scale, value: float) -> float:
    return plot.bottom - plot.height * scale.share(value)
