"""Charts, plans and boards in Mermaid -> elements: pies, bars, points, tasks, tables, cards."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import msgspec

from limner.rendering.diagram_source import check_element
from limner.rendering.elements import (
    BarChart,
    Card,
    ChartSeries,
    DataTable,
    GanttChart,
    GanttTask,
    LineChart,
    PieChart,
    RowBox,
    ScatterPlot,
    TextBlock,
    Timeline,
)
from limner.rendering.mermaid_lines import MermaidSource, plain_text

_LIST = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(-?[\d.]{1,20})\s*-->\s*(-?[\d.]{1,20})\s*$")
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|w|M|y)")
_DAYS = {"h": 1 / 24, "m": 1 / 1440, "d": 1.0, "w": 7.0, "M": 30.4, "y": 365.0}
_STATES = {"done": "done", "active": "active", "crit": "critical"}
# The letters of a date format in Mermaid and in Python.
_DATE_WORDS = (
    ("YYYY", "%Y"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("DD", "%d"),
    ("HH", "%H"),
    ("mm", "%M"),
)
_SLICE_HINT = 'Write: "Apples" : 12'
_EVENT_HINT = "Write: 1969 : Moon landing"
_XY_HINT = "Write: x-axis [Jan, Feb], y-axis Sales 0 --> 100, bar [12, 18], or line [12, 18]."
_POINT_HINT = "Write: x-axis Low --> High, quadrant-1 Do first, or Task A: [0.3, 0.6]."
_TASK_HINT = "Write: Design :done, d1, 2026-03-02, 5d, or: Build :after d1, 10d."
_JOURNEY_HINT = "Write: Make tea: 5: Me, Cat."


def parse_pie(lines: MermaidSource) -> PieChart:
    """Parse a pie."""
    head = lines.header.partition(" ")[2].strip().removeprefix("showData").strip()
    title = plain_text(head.removeprefix("title ")) if head else lines.title
    values: dict[str, float] = {}
    for line in lines:
        if line.startswith("title "):
            title = plain_text(line[6:])
            continue
        label, colon, number = line.rpartition(":")
        plain = number.strip()
        if not colon or not plain.replace(".", "", 1).isdecimal():
            lines.refuse("this is not a slice", _SLICE_HINT)
        values[plain_text(label)] = float(plain)
    if not values:
        lines.refuse("the pie has no slices", _SLICE_HINT)
    return check_element(PieChart(title=title, values={**values}))


def _heading(lines: MermaidSource, line: str) -> str | None:
    """The name of a section; empty for a title, which is kept; None for every other line."""
    word, _, rest = line.partition(" ")
    if word == "title":
        lines.title = plain_text(rest)
        return ""
    return plain_text(rest) if word == "section" else None


def parse_timeline(lines: MermaidSource) -> Timeline:
    """Parse a timeline."""
    events: list[list[str | int | float]] = []
    section = ""
    for line in lines:
        if (heading := _heading(lines, line)) is not None:
            section = heading or section
        else:
            time, colon, text = line.partition(":")
            if not colon or (not time.strip() and not events):
                lines.refuse("this is not an event", _EVENT_HINT)
            words = "\n".join(plain_text(part) for part in text.split(" : "))
            if time.strip():
                # The first event of a section has its name.
                events.append(["\n".join(filter(None, (section, plain_text(time)))), words])
                section = ""
            else:
                events[-1][1] = f"{events[-1][1]}\n{words}"
    if not events:
        lines.refuse("the timeline has no events", _EVENT_HINT)
    return check_element(Timeline(events=[*events], title=lines.title))


def parse_xy_chart(lines: MermaidSource) -> BarChart | LineChart:
    """Parse a chart of bars and lines."""
    labels: list[str | int | float] = []
    names = {"x-axis": "", "y-axis": ""}
    limits: dict[str, tuple[float, float]] = {}
    series: list[ChartSeries] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        found, span = _LIST.search(rest), _RANGE.search(rest)
        if word == "title":
            lines.title = plain_text(rest)
        elif word in names:
            cut = found or span
            names[word] = plain_text(rest[: cut.start()] if cut else rest)
            if found:
                labels = [plain_text(part) for part in found[1].split(",")]
            elif span:
                limits[word] = float(span[1]), float(span[2])
        elif word in ("bar", "line") and found:
            name = plain_text(rest[: found.start()])
            values = [_number(part, lines) for part in found[1].split(",")]
            series.append(ChartSeries(name=name, values=[*values], line=word == "line"))
        else:
            lines.refuse("this is not a line of a chart", _XY_HINT)
    if not series:
        lines.refuse("the chart has no values", _XY_HINT)
    count = max(len(one.values) for one in series)
    if not labels and "x-axis" in limits and count > 1:
        low, high = limits["x-axis"]
        labels = [low + (high - low) * place / (count - 1) for place in range(count)]
    low, high = limits.get("y-axis", (None, None))
    kind = LineChart if all(one.line for one in series) else BarChart
    chart = kind(
        title=lines.title,
        labels=labels,
        series=series,
        x_label=names["x-axis"],
        y_label=names["y-axis"],
        y_min=low,
        y_max=high,
    )
    if isinstance(chart, BarChart) and "horizontal" in lines.header:
        chart = msgspec.structs.replace(chart, horizontal=True)
    return check_element(chart)


def _number(text: str, lines: MermaidSource) -> float:
    try:
        return float(text)
    except ValueError:
        lines.refuse(f"{text.strip()[:40]!r} is not a number", _XY_HINT)


def parse_quadrants(lines: MermaidSource) -> ScatterPlot:
    """Parse points in four quarters."""
    texts = [""] * 4
    axes = {"x-axis": "", "y-axis": ""}
    points: list[list[float | int]] = []
    labels: list[str | int | float] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        name, _, after = line.rpartition(":")
        found = _LIST.search(after)
        if word == "title":
            lines.title = plain_text(rest)
        elif word in axes:
            axes[word] = " → ".join(plain_text(part) for part in rest.split("-->") if part.strip())
        elif re.fullmatch(r"quadrant-[1-4]", word):
            texts[int(word[-1]) - 1] = plain_text(rest)
        elif found and found[1].count(",") == 1:
            points.append([_number(part, lines) for part in found[1].split(",")])
            labels.append(plain_text(name.partition(":::")[0]))
        elif word != "classDef":
            lines.refuse("this is not a point", _POINT_HINT)
    if not points:
        lines.refuse("the chart has no points", _POINT_HINT)
    return check_element(
        ScatterPlot(
            title=lines.title,
            points=points,
            labels=labels,
            quadrants=texts,
            x_min=0,
            x_max=1,
            y_min=0,
            y_max=1,
            x_label=axes["x-axis"],
            y_label=axes["y-axis"],
        )
    )


def parse_gantt(lines: MermaidSource) -> GanttChart:
    """Parse a plan of tasks."""
    plan = _Plan(lines)
    for line in lines:
        plan.take(line)
    if not plan.tasks:
        lines.refuse("the plan has no tasks", _TASK_HINT)
    return check_element(GanttChart(title=lines.title, tasks=plan.tasks))


class _Plan:
    """The tasks so far, the ends of those that have a name, and the format of dates."""

    def __init__(self, lines: MermaidSource) -> None:
        self.lines = lines
        self.tasks: list[GanttTask] = []
        self.spans: dict[str, tuple[datetime, datetime]] = {}
        self.last: datetime | None = None
        self.section = ""
        self.form = "%Y-%m-%d"

    def take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "title":
            self.lines.title = plain_text(rest)
        elif word == "dateFormat":
            self.form = rest.strip()
            for theirs, ours in _DATE_WORDS:
                self.form = self.form.replace(theirs, ours)
        elif word == "section":
            self.section = plain_text(rest)
        elif word in ("excludes", "includes", "weekday", "weekend"):
            self.lines.ignored[word] = None
        elif word not in (
            "axisFormat",
            "tickInterval",
            "todayMarker",
            "inclusiveEndDates",
            "click",
        ):
            self._task(line)

    def _task(self, line: str) -> None:
        name, colon, rest = line.partition(":")
        parts = [part.strip() for part in rest.split(",")]
        states = [part for part in parts if part in (*_STATES, "milestone", "vert")]
        parts = [part for part in parts if part not in states]
        if not colon or not parts or len(parts) > 3:
            self.lines.refuse("this is not a task", _TASK_HINT)
        key = (
            parts.pop(0) if len(parts) == 3 or (len(parts) == 2 and self._is_name(parts[0])) else ""
        )
        start = self._start(parts.pop(0)) if len(parts) == 2 else self.last
        if start is None:
            start = self._start(parts[0])
        end = self._end(start, parts[0])
        self.last = end
        self.spans[key] = start, end
        state = next((_STATES[one] for one in states[::-1] if one in _STATES), "")
        self.tasks.append(
            GanttTask(
                name=plain_text(name),
                start=start.isoformat(),
                end=end.isoformat(),
                section=self.section,
                state=state,  # pyright: ignore[reportArgumentType]
                milestone="milestone" in states,
            )
        )

    def _is_name(self, text: str) -> bool:
        """Whether a part is the name of a task: it is not a time."""
        return not text.startswith("after ") and self._date(text) is None

    def _start(self, text: str) -> datetime:
        if text.startswith("after "):
            ends = [self.spans[name][1] for name in text.split()[1:] if name in self.spans]
            if not ends:
                self.lines.refuse("no task before this one has that name", _TASK_HINT)
            return max(ends)
        found = self._date(text)
        if found is None:
            self.lines.refuse(f"{text[:40]!r} is not a date", _TASK_HINT)
        return found

    def _end(self, start: datetime, text: str) -> datetime:
        if duration := _DURATION.fullmatch(text):
            days = float(duration[1]) * _DAYS.get(duration[2], 1 / 86_400)
            try:
                return start + timedelta(days=days)
            except OverflowError:
                self.lines.refuse("the task is too long", _TASK_HINT)
        if text.startswith("until ") and (name := text[6:].strip()) in self.spans:
            return self.spans[name][0]
        return self._start(text)

    def _date(self, text: str) -> datetime | None:
        for form in (self.form, "%Y-%m-%d"):
            try:
                return datetime.strptime(text, form)
            except (ValueError, re.error):
                continue
        return None


def parse_journey(lines: MermaidSource) -> DataTable:
    """Parse a journey: a table with a row for each task."""
    rows: list[list[str | int | float | bool | None]] = []
    section = ""
    for line in lines:
        if (heading := _heading(lines, line)) is not None:
            section = heading or section
        else:
            name, score, *actors = [part.strip() for part in line.split(":")] + [""]
            if not score.isdecimal():
                lines.refuse("this is not a task", _JOURNEY_HINT)
            rows.append([section, plain_text(name), f"{score}/5", plain_text(actors[0])])
            section = ""
    if not rows:
        lines.refuse("the journey has no tasks", _JOURNEY_HINT)
    lines.remark("The journey is drawn as a table.")
    return check_element(
        DataTable(title=lines.title, columns=["Part", "Task", "Score", "Who"], rows=rows)
    )


def parse_kanban(lines: MermaidSource) -> RowBox:
    """Parse a board: a card for each column, and one in it for each task."""
    columns: list[tuple[str, list[str]]] = []
    first = -1
    for line in lines:
        first = lines.indent if first < 0 else first
        plain = line.partition("@{")[0]
        label = plain.partition("[")[2].rpartition("]")[0] or plain
        if lines.indent <= first:
            columns.append((plain_text(label), []))
        else:
            columns[-1][1].append(plain_text(label))
    if not columns:
        lines.refuse("the board has no columns", "Write: kanban, then todo[To do], then its tasks.")
    return check_element(
        RowBox(
            children=[
                Card(
                    title=title,
                    children=[
                        Card(children=[TextBlock(text=task)], background="#ffffff")
                        for task in tasks
                    ],
                )
                for title, tasks in columns
            ]
        )
    )
