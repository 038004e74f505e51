"""The numbers, rows and relations in the words of a prompt -> the data of a chart or a diagram."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from limner.rendering.elements import (
    AreaChart,
    BarChart,
    ChartSeries,
    DataTable,
    Diagram,
    DiagramEdge,
    DiagramNode,
    LineChart,
    PieChart,
    ScatterPlot,
    SequenceDiagram,
    SequenceMessage,
    StepList,
    Timeline,
)

MIN_ROWS = 2
_NUMBER = r"[-+\N{MINUS SIGN}]?[$€£¥₹]?\d[\d,]*(?:\.\d+)?"
# What may follow a number without being a word of the label: 37.4M, 12 %, 23°C.
_SUFFIX = r"\s?%|\s?°[CF]?|[kKMB]\b|bn\b"
_VALUE = rf"({_NUMBER})({_SUFFIX})?"
# A hyphen separates the label from the number in "Wed - 3" and "Q1-12"; "Wed -3" is below zero.
_SEPARATOR = r"(?:[\s:=\u2013\u2014]|-(?=\s)|(?<=\w)-)*"
_VALUE_LAST = re.compile(rf"^(.*?){_SEPARATOR}\(?\s*{_VALUE}\s*\)?$")
_VALUE_FIRST = re.compile(rf"^{_VALUE}\s+(?:for|in|of|from)?\s*(.+)$")
_NAMED = re.compile(rf"([^\d\s;,][^\d;,]*?)[\s:=]+{_VALUE}(?=\s|$)")
_LIST_OF_VALUES = re.compile(rf"^(.*?[^\d\s,:])[\s:=]+({_NUMBER}(?:[,\s]+{_NUMBER})+)$")
_LABELS_AFTER = re.compile(
    r"[,;]?\s+(?:for|over|in|by)\s+((?:[^\s,;]+(?:,\s*|\s+and\s+))+[^\s,;]+)$"
)
_LEAD_IN = re.compile(
    r"^.*\b(?:of|for|with|showing|comparing|shows?|over|where|in which|that|about)\s+(?:the\s+)?",
    re.IGNORECASE,
)
_ARROW = re.compile(r"\s*(?:-+>|→|=+>|➜|⟶)\s*")
_ANSWER = re.compile(r"^(yes|no|if yes|if no|true|false)\s*(?:->|→|=>|:|,)?\s*(.*)$", re.IGNORECASE)
_IF = re.compile(
    r"^if\s+(?:it is\s+|it's\s+)?(\w[\w' ]*?)\s*"
    r"(?:,|then|(?=\b(?:show|go|do|send|open|return|stop|end|retry|ask|use|start|try|call|wait|continue)\b))\s*(?:then\s+)?(.+)$",
    re.IGNORECASE,
)
_ELSE = re.compile(r"^(?:else|otherwise|if not)[\s,]+(.+)$", re.IGNORECASE)
_LEADS = r"(?:leads|manages|heads|supervises|oversees|directs|is the (?:parent|boss|manager) of)"
_REPORTS = r"(?:reports? to|works? (?:for|under)|is (?:led|managed) by)"
_REPLIES = ("answer", "repl", "respon", "return")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"(?:(?:{_DAY}(?:\s?[-\u2013]\s?{_DAY})?\s+)?{_MONTH}(?:\s+{_DAY}(?!\d)(?:\s?[-\u2013]\s?{_DAY})?)?"
    r"(?:,?\s+\d{4})?"
    r"|\d{1,2}[:.]\d{2}(?:\s?[ap]\.?m\.?)?|\d{1,2}\s?[ap]\.?m\.?"
    r"|(?:c\.\s?|early |mid-?|late )?\d{3,4}s?(?:\s?(?:BCE?|AD|CE))?"
    r"(?:\s?[-\u2013]\s?(?:\d{2,4}|now|today))?"
    r"|Q[1-4](?:\s+\d{4})?|(?:[Ww]eek|[Dd]ay|[Mm]onth|[Yy]ear|[Ss]tep|[Pp]hase)\s+\d+)"
)
_DATE_FIRST = re.compile(rf"^(?:in |on |at )?({DATE})[\s:,\u2013\u2014-]+(.+)$", re.IGNORECASE)
_DATE_LAST = re.compile(
    rf"^(.+?)[\s:,\u2013\u2014-]+(?:in|on|at|by|from)?\s*\(?({DATE})\)?$", re.IGNORECASE
)
_QUOTES = "\"“”«»'"
_COLUMNS = re.compile(
    r"\b(?:columns?|headers?)\b:?\s+(.+?)(?:\s*[;:.]\s*|,?\s+and\s+(?:the\s+)?|\s+)rows?:?\s+(.+)$"
    r"|\b(?:columns?|headers?)\b:?\s+([^:;]+?)\s*[:;]\s*(.+)$",
    re.IGNORECASE,
)
AnyChart = BarChart | LineChart | AreaChart | PieChart | ScatterPlot
_CHARTS: dict[str, type[BarChart | LineChart | AreaChart | PieChart]] = {
    "bar": BarChart,
    "stacked": BarChart,
    "line": LineChart,
    "area": AreaChart,
    "pie": PieChart,
}


def read_chart(kind: str, body: str, title: str, prompt: str) -> AnyChart | None:
    """A chart of the labels and numbers in a text; None if there are too few."""
    if kind == "scatter":
        return _read_scatter(body, title)
    groups = [part for part in re.split(r"[;\n]", body) if part.strip()]
    if len(groups) >= MIN_ROWS and all(len(_NAMED.findall(_rest(part))) > 1 for part in groups):
        return _make_chart(kind, title, prompt, _grouped(groups))
    if made := _lists_of_values(body):
        return _make_chart(kind, title, prompt, made)
    pairs = _pairs(body)
    if len(pairs) < MIN_ROWS:
        return None
    labels = [label for label, _, _ in pairs]
    unit = _unit([word for _, word, _ in pairs], [suffix for _, _, suffix in pairs])
    unit = unit or _unit_in_brackets(prompt)
    values = [to_number(word) for _, word, _ in pairs]
    return _make_chart(kind, title, prompt, (labels, [ChartSeries(values=[*values])], unit))


def _make_chart(
    kind: str, title: str, prompt: str, data: tuple[list[str], list[ChartSeries], str]
) -> AnyChart:
    labels, series, unit = data
    made = _CHARTS[kind](
        title=title,
        labels=[*labels],
        series=series,
        unit=unit,
        thousands=bool(re.search(r"\d,\d{3}\b", prompt)),
    )
    if isinstance(made, PieChart):
        donut = bool(re.search(r"\b(?:donut|doughnut|ring)\b", prompt, re.IGNORECASE))
        return replace(made, donut=donut)
    if isinstance(made, BarChart):
        horizontal = "horizontal" in prompt.lower()
        return replace(made, stacked=kind == "stacked", horizontal=horizontal)
    return made


def _pairs(body: str) -> list[tuple[str, str, str]]:
    """The label, the number and what follows the number, of each part of a list."""
    pairs: list[tuple[str, str, str]] = []
    for part in _parts(re.sub(r"\s*\([^()\d]*\)\s*$", "", body)):
        last, first = _VALUE_LAST.match(part), _VALUE_FIRST.match(part)
        if last and last[1].strip(" :-\u2013\u2014("):
            pairs.append((last[1], last[2], last[3] or ""))
        elif first:
            pairs.append((first[3], first[1], first[2] or ""))
    if pairs and len(pairs[0][0].split()) > 1:
        label, word, suffix = pairs[0]
        # "comparing the populations of Tokyo 37": the words before it are no part of the label.
        pairs[0] = (_LEAD_IN.sub("", label), word, suffix)
    cleaned = [(_clean_label(label), word, suffix.strip()) for label, word, suffix in pairs]
    return [pair for pair in cleaned if pair[0]]


def _clean_label(label: str) -> str:
    return re.sub(
        r"\s+(?:is|are|was|has|at|with|=)$", "", label.strip(f" :-\u2013\u2014(={_QUOTES}")
    )


def _grouped(groups: Sequence[str]) -> tuple[list[str], list[ChartSeries], str]:
    """Rows of "2023 solar 12 wind 30"."""
    labels = [group.strip().split()[0].rstrip(":") for group in groups]
    rows: dict[str, list[float | None]] = {}
    words: list[str] = []
    suffixes: list[str] = []
    for place, group in enumerate(groups):
        for name, word, suffix in _NAMED.findall(_rest(group)):
            row = rows.setdefault(name.strip(" :,"), [None] * len(groups))
            row[place] = to_number(word)
            words.append(word)
            suffixes.append(suffix.strip())
    series = [ChartSeries(name=_capital(name), values=[*row]) for name, row in rows.items()]
    return labels, series, _unit(words, suffixes)


def _lists_of_values(body: str) -> tuple[list[str], list[ChartSeries], str] | None:
    """Series of "A 10, 20, 30 and B 15, 18, 22 for Q1, Q2, Q3"."""
    labels: list[str] = []
    if found := _LABELS_AFTER.search(body):
        labels, body = _parts(found[1]), body[: found.start()]
    series: list[ChartSeries] = []
    for part in re.split(r"\s*;\s*|\n|,?\s+and\s+(?=[^\d])|,\s+(?=[A-Za-z])", body):
        row = _LIST_OF_VALUES.match(part.strip(" ."))
        if row is None:
            return None
        values = [to_number(word) for word in re.findall(_NUMBER, row[2])]
        series.append(ChartSeries(name=_capital(row[1].strip(" :")), values=[*values]))
    lengths = {len(row.values) for row in series}
    if not series or len(lengths) != 1 or lengths.pop() < MIN_ROWS:
        return None
    count = len(series[0].values)
    return (labels if len(labels) == count else [str(n + 1) for n in range(count)]), series, ""


def _read_scatter(body: str, title: str) -> ScatterPlot | None:
    numbers = [re.findall(_NUMBER, part) for part in re.split(r"[;\n]|,\s+|\)\s*,?", body)]
    points = [[*map(to_number, pair)] for pair in numbers if len(pair) == 2]
    axes = re.search(r"(\w+)\s+(?:against|vs\.?|versus|and|by)\s+(\w+)", title, re.IGNORECASE)
    if len(points) < MIN_ROWS:
        return None
    return ScatterPlot(
        title=title,
        points=points,
        x_label=axes[1].capitalize() if axes else "",
        y_label=axes[2].capitalize() if axes else "",
    )


def read_table(body: str, title: str) -> DataTable | None:
    """A table of "the columns A, B, C and the rows a b c; d e f", or of "tea $2, coffee $3"."""
    found = _COLUMNS.search(body)
    if found is None:
        _, colon, listed = body.partition(":")
        pairs = _pairs(listed) if colon else []
        if len(pairs) < MIN_ROWS:
            return None
        cells = [[label, f"{number}{suffix}"] for label, number, suffix in pairs]
        return DataTable(columns=["", title], rows=[[*row] for row in cells])
    columns = _parts(found[1] or found[3])
    rows = [_cells(row, len(columns)) for row in _table_rows(found[2] or found[4], len(columns))]
    return DataTable(title=title, columns=columns, rows=[[*row] for row in rows]) if rows else None


def _table_rows(text: str, count: int) -> list[str]:
    rows = [row for row in re.split(r"[;\n|]", text) if row.strip()]
    if len(rows) > 1:
        return rows
    parts = re.split(r",\s+(?:and\s+)?", text)
    # Commas may separate the rows, or the cells of rows.
    if all(len(part.split()) >= count for part in parts):
        return parts
    return [", ".join(parts[at : at + count]) for at in range(0, len(parts), count)]


def read_schedule(body: str, title: str) -> DataTable | None:
    """A table of times and what happens then."""
    rows = [*_events(body)]
    if len(rows) < MIN_ROWS:
        return None
    return DataTable(title=title, columns=["Time", "What"], rows=[[*row] for row in rows])


def read_flow(body: str, title: str, *, is_state: bool = False) -> Diagram | None:
    """A diagram of steps joined by arrows or listed; "if X A, else B" becomes a decision.

    The states of a state machine may also be joined by "to".
    """
    flow = _Flow()
    is_listed = not _ARROW.search(body)
    if is_listed and is_state:
        body = re.sub(r"\s+(?:to|becomes|goes to|leads to)\s+", " -> ", body)
        is_listed = not _ARROW.search(body)
    text = re.sub(r"\?\s*", "?, ", body)
    for chain in re.split(r"[,;\n]|(?<=\w)\.\s+", text):
        steps = [step.strip(f" .{_QUOTES}") for step in _ARROW.split(chain)]
        flow.take([step for step in steps if step], is_listed=is_listed)
    if not flow.edges:
        return None
    return Diagram(title=title, nodes=list(flow.nodes.values()), edges=[*flow.edges])


class _Flow:
    """Collects the nodes and edges of a flowchart, clause by clause."""

    def __init__(self) -> None:
        self.nodes: dict[str, DiagramNode] = {}
        self.edges: list[DiagramEdge] = []
        self._last: str | None = None
        self._decision: str | None = None

    def take(self, steps: list[str], *, is_listed: bool) -> None:
        """Add one clause, the steps of which are joined by arrows."""
        if len(steps) > 1 and not _is_branch(steps[0]) and steps[0] in self.nodes:
            self._last = None
        for place, step in enumerate(steps):
            step = re.sub(r"^(?:and then|and|then|finally)\s+", "", step)  # noqa: PLW2901
            step = _capital(step) if is_listed else step  # noqa: PLW2901
            if place == 0 and len(steps) > 1 and self._answer(step, steps[1]):
                continue
            if place == 0 and not is_listed and not _is_branch(step) and len(steps) > 1:
                self._last = None if self._last != step else self._last
            self._step(step)

    def _answer(self, word: str, _: str) -> bool:
        """Whether the step is "yes" or "no", which names the line to the next one."""
        found = _ANSWER.match(word)
        if found is None or found[2] or self._decision is None:
            return False
        self._last, self._label = self._decision, found[1].lower().removeprefix("if ")
        return True

    _label = ""

    def _step(self, step: str) -> None:
        if found := _IF.match(step):
            self._ask(f"{_capital(found[1].strip())}?")
            self._label, step = "yes", _capital(found[2])
        elif (found := _ELSE.match(step)) and self._decision is not None:
            self._last, self._label, step = self._decision, "no", _capital(found[1])
        elif (found := _ANSWER.match(step)) and self._decision is not None and found[2]:
            self._last = self._decision
            self._label, step = found[1].lower().removeprefix("if "), _capital(found[2])
        elif step.endswith("?"):
            self._ask(step)
            return
        self._join(step, DiagramNode(id=step, shape=_shape(step)))

    def _ask(self, question: str) -> None:
        self._join(question, DiagramNode(id=question, shape="diamond"))
        self._decision = question

    def _join(self, name: str, node: DiagramNode) -> None:
        self.nodes.setdefault(name, node)
        if self._last is not None:
            self.edges.append(DiagramEdge(start=self._last, end=name, label=self._label))
        self._last, self._label = name, ""


def _is_branch(step: str) -> bool:
    return bool(re.match(r"(?:if|else|otherwise|yes|no)\b", step, re.IGNORECASE))


def read_organisation(body: str, title: str) -> Diagram | None:
    """A diagram of who leads whom, or of the parts of one thing."""
    if _ARROW.search(body):
        return read_flow(body, title)
    pairs = [*_leaders(body)] or [*_by_titles(body)]
    edges = [DiagramEdge(start=one, end=other) for one, other in dict.fromkeys(pairs)]
    return Diagram(title=title, edges=[*edges]) if edges else None


def _leaders(body: str) -> Iterable[tuple[str, str]]:
    start = rf"(?=\w[\w. ]*?\s+(?:{_LEADS}|{_REPORTS})\b)"
    for clause in re.split(rf"(?:[,;.\n]|\band\b)\s*{start}|;", body):
        clause = clause.strip(" .,")  # noqa: PLW2901
        if found := re.match(rf"^(.+?)\s+{_LEADS}\s+(.+)$", clause):
            yield from ((found[1].strip(), other) for other in _parts(found[2]))
        elif found := re.match(rf"^(.+?)\s+{_REPORTS}\s+(.+)$", clause):
            yield from ((found[2].strip(), other) for other in _parts(found[1]))


def _by_titles(body: str) -> Iterable[tuple[str, str]]:
    """The first is the head of the others; "A and B under C" are below C."""
    names: list[str] = []
    for part in re.split(r"[,;\n]\s*(?:and\s+)?", re.sub(r"^.*?\bwith\s+", "", body)):
        head, _, above = part.partition(" under ")
        found = [_without_count(name) for name in _parts(head)]
        above = re.sub(r"^the\s+", "", above.strip(" ."))
        boss = next((name for name in names if above and above.lower() in name.lower()), None)
        if boss is None and names:
            boss = names[0]
        if boss is not None:
            yield from ((boss, name) for name in found)
        names += found
        if boss is None:
            yield from ((found[0], name) for name in found[1:])


def _without_count(name: str) -> str:
    return re.sub(r"^(?:two|three|four|five|six|\d+|a|an|the)\s+(?:[a-z]+\s+)+(?=[A-Z])", "", name)


def read_mind_map(body: str, title: str) -> Diagram | None:
    """A diagram of one idea and its parts; "A (b, c)" has parts of its own."""
    if not title:
        return None
    edges: list[DiagramEdge] = []
    for part in re.split(r"[,;\n]\s*(?:and\s+)?(?![^()]*\))|\s+and\s+(?![^()]*\))", body):
        name, _, below = part.strip(" .").partition("(")
        if name.strip():
            edges.append(DiagramEdge(start=title, end=name.strip()))
            edges += [
                DiagramEdge(start=name.strip(), end=one) for one in _parts(below.rstrip(") "))
            ]
    middle = DiagramNode(id=title, shape="round")
    if len(edges) < MIN_ROWS:
        return None
    return Diagram(nodes=[middle], edges=[*edges], direction="right")


def read_sequence(body: str, title: str) -> SequenceDiagram | None:
    """Messages of "A asks B for rows, B answers", or of "A -> B: rows"."""
    clauses = [part.strip(" .") for part in re.split(r"[,;\n]\s*(?:and |then )*", body)]
    parsed = [found for clause in clauses if (found := _clause(clause)) is not None]
    actors = list(dict.fromkeys(one for one, _, _ in parsed))
    messages: list[SequenceMessage] = []
    for one, verb, rest in parsed:
        other, text = _other_actor(rest, [name for name in actors if name != one])
        is_reply = verb.startswith(_REPLIES)
        other = other or (_asker(messages, one) if is_reply or messages else "")
        if other:
            words = f"{verb} {text}".strip()
            messages.append(SequenceMessage(start=one, end=other, text=words, dashed=is_reply))
            actors += [other] if other not in actors else []
    return SequenceDiagram(title=title, actors=actors, messages=[*messages]) if messages else None


def _clause(clause: str) -> tuple[str, str, str] | None:
    """Who acts, the verb and the rest of a clause."""
    if _ARROW.search(clause):
        one, rest = _ARROW.split(clause, 1)
        other, _, text = rest.partition(":")
        return one.strip(), "", f"to {other.strip()} {text.strip()}"
    found = re.match(r"^(?:the\s+)?(\w+(?:\s+\w+)*?)\s+([a-z]+s)\b\s*(.*)$", clause)
    return (found[1].strip(), found[2], found[3]) if found else None


def _other_actor(rest: str, actors: Sequence[str]) -> tuple[str, str]:
    """Whom a message goes to, and what it says without that name."""
    named = re.search(r"\b(?:to|from|with)\s+(?:the\s+)?([A-Z]\w*(?:\s+[A-Z]\w*)*)", rest)
    known = [name for name in actors if re.search(rf"\b{re.escape(name)}\b", rest)]
    other = named[1] if named else next(iter(known), "")
    if not other and (found := re.search(r"\b[A-Z]\w*(?:\s+[A-Z]\w*)*", rest)):
        other = found[0]
    pattern = rf"\s*\b(?:to\s+)?(?:the\s+)?{re.escape(other)}\b"
    return other, re.sub(pattern, "", rest, count=1).strip() if other else rest


def _asker(messages: Sequence[SequenceMessage], one: str) -> str:
    return next((m.start for m in reversed(messages) if m.end == one and not m.dashed), "")


def read_timeline(body: str, title: str) -> Timeline | None:
    """Events with a year, a date or a time, before or after them."""
    events: list[list[str | float]] = [[when, what] for when, what in _events(body)]
    return Timeline(title=title, events=[*events]) if len(events) >= MIN_ROWS else None


def _events(body: str) -> Iterable[tuple[str, str]]:
    text = re.sub(r"^.*?\bwith\s+(?=\w)", "", body) if not _DATE_FIRST.match(body) else body
    for part in _parts(text):
        if found := _DATE_FIRST.match(part):
            yield found[1], found[2].strip(" :-")
        elif found := _DATE_LAST.match(part):
            yield found[2], _capital(found[1].strip(" :-"))


def read_steps(body: str, title: str) -> StepList | None:
    """Steps of a numbered or plain list."""
    numbered = re.split(r"(?:^|\s)\d{1,2}[.)]\s+", body)
    parts = numbered[1:] if len(numbered) > MIN_ROWS else re.split(r"[,;\n]|->|→", body)
    steps = [re.sub(r"^and\s+", "", part.strip(" .,;")) for part in parts]
    steps = [_capital(step) for step in steps if step]
    return StepList(title=title, steps=[*steps[:12]]) if len(steps) >= MIN_ROWS else None


def to_number(word: str) -> float:
    """A number with currency or separators."""
    value = float(re.sub(r"[$€£¥₹,+]", "", word).replace("\N{MINUS SIGN}", "-"))
    return int(value) if value.is_integer() else value


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _rest(group: str) -> str:
    """A group without its label, the first word."""
    return group.strip().partition(" ")[2]


def _parts(text: str) -> list[str]:
    """The parts of a list; a comma within a number does not separate them."""
    parts = re.split(r",\s+(?:and\s+)?|,(?=[^\s\d])|;|\n|\s+and\s+", text)
    return [part.strip(" .") for part in parts if part.strip(" .")]


def _cells(row: str, count: int) -> list[str]:
    words = row.strip(" .").split()
    for separator in (",", "|", " - ", ":"):
        cells = [cell.strip() for cell in row.strip(" .").split(separator)]
        if len(cells) >= count > 1:
            return cells
    # The first column takes the words that are left over.
    head = max(len(words) - count + 1, 1)
    return [" ".join(words[:head]), *words[head:]]


def _unit(words: Sequence[str], suffixes: Sequence[str]) -> str:
    """What all numbers have in common, as $, % or $ and M."""
    shared = set(suffixes)
    suffix = shared.pop() if len(shared) == 1 else ""
    sign = next((sign for sign in "$€£¥₹" if all(sign in word for word in words)), "")
    return sign + suffix


def _unit_in_brackets(prompt: str) -> str:
    found = re.search(r"\((?:in\s+)?([^()\d]{1,12})\)\s*\.?$", prompt)
    return found[1].strip() if found else ""


def _shape(name: str) -> Literal["box", "round", "diamond"]:
    plain = name.lower()
    if plain in ("start", "end", "stop", "finish", "begin", "done"):
        return "round"
    return "diamond" if name.endswith("?") else "box"
