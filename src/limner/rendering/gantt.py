"""Tasks with their dates -> bars on an axis of time, one row for each task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

import msgspec

from limner.errors import InputInvalid
from limner.rendering.brush import Brush, Rect, format_number
from limner.rendering.canvas import closed, mix, number
from limner.rendering.charts import nice_scale
from limner.rendering.colours import parse_colour
from limner.rendering.diagrams import draw_title, title_height
from limner.rendering.elements import GanttChart, GanttTask

# Sizes in parts of the text size.
_ROW, _HEAD_ROW, _AXIS = 1.9, 1.7, 2.0
_MAX_NAMES, _MIN_TICK = 0.36, 3.6
_DATE_FORMATS = ("%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y")
_MONTH_FORMATS = ("%Y-%m", "%b %Y", "%B %Y")
_COUNTED = re.compile(r"[A-Za-z]{0,12}\s{0,3}(\d{1,6}(?:\.\d{1,6})?)")
_DAY_STEPS, _MONTH_STEPS = (1, 2, 7, 14), (1, 2, 3, 6, 12, 24, 60, 120)
_LAST_DAY = date(9000, 1, 1).toordinal()
_HINT = 'Write tasks as {"name": "Design", "start": "2026-03-02", "end": "2026-03-13"}.'


class GanttRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its start and end as numbers, or the heading of a section."""

    name: str
    task: GanttTask | None = None
    start: float = 0.0
    end: float = 0.0
    color: str = ""


def measure_gantt(chart: GanttChart, brush: Brush, max_width: float) -> tuple[float, float]:
    """The least room: one row for each task and each section."""
    sections = len({task.section for task in chart.tasks if task.section})
    rows = len(chart.tasks) * _ROW + sections * _HEAD_ROW
    return max_width, title_height(chart, brush, max_width) + brush.style.base * (rows + _AXIS)


def draw_gantt(chart: GanttChart, brush: Brush, box: Rect) -> None:
    """Draw the axis of time, then the rows from top to bottom."""
    box = draw_title(chart, brush, box)
    base, theme = brush.style.base, brush.style.theme
    dated = [_is_date(task.start) for task in chart.tasks]
    if any(dated) != all(dated):
        raise InputInvalid("some tasks have dates and some have numbers", field="tasks", hint=_HINT)
    rows = _rows(chart, brush, dated=all(dated))
    names = max(brush.width(row.name, "small", bold=not row.task) for row in rows) + base * 1.2
    left = min(names, box.width * _MAX_NAMES)
    heights = [_ROW if row.task else _HEAD_ROW for row in rows]
    unit = min((box.height - base * _AXIS) / sum(heights), base * 1.5)
    plot = Rect(box.x + left, box.y, box.width - left - base * 0.8, unit * sum(heights))
    spans = [row for row in rows if row.task]
    low, high = min(row.start for row in spans), max(row.end for row in spans)

    def across(value: float) -> float:
        return plot.x + plot.width * (value - low) / ((high - low) or 1.0)

    ticks = _date_ticks if all(dated) else _number_ticks
    for at, text in ticks(low, high, max(int(plot.width / (base * _MIN_TICK)), 2)):
        x = number(across(at))
        brush.canvas.line(f"M{x} {number(plot.y)}V{number(plot.bottom)}", theme.line, 1)
        middle = plot.bottom + base * 1.0
        brush.line(across(at), middle, text, "small", color=theme.muted)
    y = plot.y
    for row, high_ in zip(rows, heights, strict=True):
        line = Rect(box.x, y, left, unit * high_)
        _draw_row(brush, row, line, across)
        y += unit * high_


def _draw_row(brush: Brush, row: GanttRow, line: Rect, across: Callable[[float], float]) -> None:
    base, theme = brush.style.base, brush.style.theme
    middle = line.middle[1]
    room = line.width - base * 0.4
    if row.task is None:
        ink = mix(row.color, brush.style.ink, 0.35)
        brush.line(
            line.x, middle, row.name, "small", align="start", bold=True, color=ink, max_width=room
        )
        return
    indent = base * 0.7 if row.task.section else 0.0
    brush.line(line.x + indent, middle, row.name, "small", align="start", max_width=room - indent)
    x0, x1 = across(row.start), across(row.end)
    half = min(line.height * 0.34, base * 0.8)
    if row.task.milestone:
        corners = [
            (x0, middle - half),
            (x0 + half, middle),
            (x0, middle + half),
            (x0 - half, middle),
        ]
        brush.canvas.path(closed(corners), row.color)
        return
    fill = mix(theme.background, row.color, 0.45) if row.task.state == "done" else row.color
    bar = Rect(x0, middle - half, max(x1 - x0, base * 0.2), 2 * half)
    brush.panel(bar, fill, radius=base * 0.25)


def _rows(chart: GanttChart, brush: Brush, *, dated: bool) -> list[GanttRow]:
    """The tasks in their order, with a heading before each section."""
    series = brush.style.theme.series
    sections = list(dict.fromkeys(task.section for task in chart.tasks))
    found: list[GanttRow] = []
    last = ""
    for task in chart.tasks:
        own = series[sections.index(task.section) % len(series)]
        if task.section and task.section != last:
            found.append(GanttRow(name=task.section, color=own))
        last = task.section
        own = "#d9363e" if task.state == "critical" else own
        own = parse_colour(task.color) if task.color else own
        start = _position(task.start)
        end = start + (task.days or 0) if task.end is None else _position(task.end)
        if not task.milestone and end <= start:
            end = start + 1.0 if dated else start
        if dated and end > _LAST_DAY:
            raise InputInvalid(f"{task.name[:40]!r} ends too late", field="tasks", hint=_HINT)
        found.append(GanttRow(name=task.name, task=task, start=start, end=end, color=own))
    return found


def _is_date(value: str | float) -> bool:
    return isinstance(value, str) and _date(value) is not None


def _position(value: str | float) -> float:
    """A date in days, or a number; "Week 3" is 3."""
    if not isinstance(value, str):
        return float(value)
    if (found := _date(value)) is not None:
        return found
    if counted := _COUNTED.fullmatch(value.strip()):
        return float(counted[1])
    raise InputInvalid(f"{value[:40]!r} is not a date", field="tasks", hint=_HINT)


def _date(text: str) -> float | None:
    """A date in days since the year 1, or None."""
    try:
        return _days(datetime.fromisoformat(text.strip().removesuffix("Z")))
    except ValueError:
        pass
    for form in (*_DATE_FORMATS, *_MONTH_FORMATS):
        try:
            return _days(datetime.strptime(text.strip(), form))
        except ValueError:
            continue
    return None


def _days(moment: datetime) -> float:
    return moment.toordinal() + (moment.hour * 60 + moment.minute) / 1440


def _number_ticks(low: float, high: float, count: int) -> Iterator[tuple[float, str]]:
    for tick in nice_scale(low, high, count=min(count, 8)).ticks:
        if low <= tick <= high:
            yield tick, format_number(tick)


def _date_ticks(low: float, high: float, count: int) -> Iterator[tuple[float, str]]:
    """Days, weeks or months, as few as there is room for."""
    if high - low <= 2:
        yield from _hour_ticks(low, high, count)
        return
    first = date.fromordinal(max(int(low), 1))
    for step in _DAY_STEPS:
        if (high - low) / step <= min(count, 12):
            day = first
            while day.toordinal() <= high:
                yield float(day.toordinal()), f"{day.day} {day:%b}"
                day += timedelta(days=step)
            return
    months = (high - low) / 30.4
    step = next((one for one in _MONTH_STEPS if months / one <= min(count, 12)), _MONTH_STEPS[-1])
    place = first.year * 12 + first.month - 1
    place = -(-place // step) * step
    while (at := date(place // 12, place % 12 + 1, 1).toordinal()) <= high:
        if at >= low:
            year = f" {place // 12}" if step > 1 or place % 12 == 0 or at - low < 31 else ""
            yield float(at), f"{date.fromordinal(at):%b}{year}" if step < 12 else str(place // 12)
        place += step


def _hour_ticks(low: float, high: float, count: int) -> Iterator[tuple[float, str]]:
    hours = (high - low) * 24
    step = next((one for one in (0.5, 1, 2, 3, 6, 12) if hours / one <= min(count, 12)), 12)
    first = int(low * 24 / step + 0.999)
    for place in range(first, int(high * 24 / step + 0.001) + 1):
        minutes = round(place * step * 60) % 1440
        yield place * step / 24, f"{minutes // 60:02d}:{minutes % 60:02d}"
