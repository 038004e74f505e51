"""A diagram in the language of Mermaid -> an element, and notes on what was left out."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from limner.rendering.diagram_source import (
    check_element,
    check_length,
    known_colour,
)
from limner.rendering.elements import (
    Document,
    NodeGroup,
    SequenceActivation,
    SequenceDiagram,
    SequenceFrame,
    SequenceMessage,
)
from limner.rendering.mermaid_charts import (
    parse_gantt,
    parse_journey,
    parse_kanban,
    parse_pie,
    parse_quadrants,
    parse_timeline,
    parse_xy_chart,
)
from limner.rendering.mermaid_git import parse_git_graph
from limner.rendering.mermaid_graphs import parse_class_diagram, parse_flowchart, parse_states
from limner.rendering.mermaid_lines import MermaidSource, plain_text
from limner.rendering.mermaid_models import (
    parse_c4,
    parse_er_diagram,
    parse_mindmap,
    parse_sankey,
)

_ARROWS = re.compile(r"<<-->>|<<->>|-->>|->>|--x|-x|--\)|-\)|-->|->")
_BLOCKS = ("loop", "alt", "opt", "par", "critical", "break", "rect", "box")
_PARTS = ("else", "and", "option")
_SKIPPED = ("destroy", "link", "links", "accTitle", "accDescr")
_MESSAGE_HINT = "Write messages as 'Alice->>Bob: Hello', or 'Note over Alice,Bob: text'."


def parse_mermaid(source: str) -> tuple[Document, list[str]]:
    """Parse a diagram in Mermaid.

    Raises:
        InputInvalid: it is not Mermaid, or of a form that is not drawn; the message names the line.
    """
    check_length(source)
    lines = MermaidSource(source)
    kind = lines.header.split(" ")[0].rstrip(":;").lower()
    parse = _FORMS.get(kind)
    if parse is None:
        lines.refuse(
            f"{kind[:40]!r} is not a form of Mermaid that is drawn" if kind else "nothing to draw",
            _INSTEAD.get(kind.removesuffix("-beta"), f"Start with one of: {', '.join(_NAMES)}."),
        )
    element = parse(lines)
    return element, lines.notes()


def _rgb(text: str) -> str | None:
    """A colour as Mermaid writes it, rgb(1, 2, 3) included; None if it is not known."""
    numbers = [int(one) for one in re.findall(r"\d{1,3}", text)] if "(" in text else []
    if len(numbers) >= 3 and max(numbers[:3]) < 256:
        return f"#{numbers[0]:02x}{numbers[1]:02x}{numbers[2]:02x}"
    return known_colour(text.strip())


def _parse_sequence(lines: MermaidSource) -> SequenceDiagram:
    parser = _Sequence(lines)
    for line in lines:
        parser.take(line)
    return parser.build()


class _Sequence:
    def __init__(self, lines: MermaidSource) -> None:
        self.lines = lines
        self.labels: dict[str, str] = {}
        self.people: dict[str, None] = {}
        self.messages: list[SequenceMessage] = []
        self.blocks: list[SequenceFrame | None] = []
        self.frames: list[SequenceFrame] = []
        self.numbered = False
        self.groups: list[NodeGroup] = []
        self.working: list[tuple[str, int]] = []
        self.activations: list[SequenceActivation] = []

    def take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "create":
            word, _, rest = rest.partition(" ")
        if word in ("participant", "actor"):
            name, _, label = rest.partition(" as ")
            self.labels[name.strip()] = plain_text(label or name)
            if self.blocks and self.blocks[-1] is None:
                self.groups[-1].nodes.append(self.labels[name.strip()])
            if word == "actor":
                self.people[self.labels[name.strip()]] = None
        elif word in ("autonumber", "title", "activate", "deactivate"):
            self._setting(word, rest)
        elif word.lower() == "note":
            self._note(rest)
        elif word in _SKIPPED or word == "title:":
            self.lines.ignored[word] = None
        elif word in _BLOCKS or word in _PARTS or line == "end":
            self._block(word, rest)
        else:
            self._message(line)

    def _setting(self, word: str, rest: str) -> None:
        if word == "autonumber":
            self.numbered = True
        elif word == "title":
            self.lines.title = plain_text(rest.lstrip(": "))
        else:
            starts = word == "activate"
            self._work(self._actor(rest.strip()), starts=starts, at=len(self.messages) - 1)

    def _actor(self, name: str) -> str:
        return self.labels.setdefault(name, plain_text(name))

    def _note(self, rest: str) -> None:
        head, colon, text = rest.partition(":")
        words = head.split(maxsplit=2 if head.lower().startswith(("left", "right")) else 1)
        if not colon or len(words) < 2:
            self.lines.refuse("the note is not complete", _MESSAGE_HINT)
        names = [self._actor(name.strip()) for name in words[-1].split(",")]
        self._add(names[0], names[-1], plain_text(text), note=True)

    def _block(self, word: str, rest: str) -> None:
        """A block is a frame around its messages; a box is a ground behind its actors."""
        count = len(self.messages)
        text = f"{word} [{plain_text(rest)}]" if rest.strip() else word
        if word in _BLOCKS:
            frame = SequenceFrame(label=text, first=count, last=count)
            if word == "rect":
                frame = SequenceFrame(first=count, last=count, color=_rgb(rest))
            elif word == "box":
                first, _, label = rest.strip().partition(" ")
                colour = _rgb(first) if not first.startswith("rgb") else None
                text = label if colour or first == "transparent" else rest
                self.groups.append(NodeGroup(label=plain_text(text), nodes=[], color=colour))
            self.blocks.append(None if word == "box" else frame)
        elif not self.blocks:
            self.lines.refuse("there is no block here", "Remove this line.")
        elif (frame := self.blocks.pop()) is not None:
            if word != "end":
                parts = [*frame.parts, (count, text)]
                self.blocks.append(msgspec.structs.replace(frame, parts=parts))
            elif count > frame.first:
                self.frames.append(msgspec.structs.replace(frame, last=count - 1))

    def _message(self, line: str) -> None:
        head, _, text = line.partition(":")
        found = _ARROWS.search(head)
        start = head[: found.start()].strip() if found else ""
        end = head[found.end() :].strip() if found else ""
        sign, end = (end[0], end[1:].strip()) if end[:1] in ("+", "-") else ("", end)
        if not found or not start or not end:
            self.lines.refuse("this is not a message", _MESSAGE_HINT)
        self._add(
            self._actor(start),
            self._actor(end),
            plain_text(text),
            dashed=found[0].startswith(("--", "<<--")),
            lost=found[0].endswith("x"),
        )
        if sign:
            actor = self._actor(end if sign == "+" else start)
            self._work(actor, starts=sign == "+", at=len(self.messages) - 1)

    def _work(self, actor: str, *, starts: bool, at: int) -> None:
        """Remember that an actor starts to work, or that it stops."""
        if starts:
            self.working.append((actor, max(at, 0)))
            return
        found = next((one for one in reversed(self.working) if one[0] == actor), None)
        if found is not None:
            self.working.remove(found)
            done = SequenceActivation(actor=actor, first=found[1], last=max(at, found[1]))
            self.activations.append(done)

    def _add(self, start: str, end: str, text: str, *, note: bool = False, **fields: bool) -> None:
        if self.numbered and not note:
            text = f"{1 + sum(not message.note for message in self.messages)}. {text}"
        self.messages.append(SequenceMessage(start=start, end=end, text=text, note=note, **fields))
        if len(self.messages) > _MAX_MESSAGES:
            self.lines.refuse(f"more than {_MAX_MESSAGES} messages", "Draw the part that matters.")

    def build(self) -> SequenceDiagram:
        """The diagram."""
        if not self.messages:
            self.lines.refuse("the sequence has no messages", _MESSAGE_HINT)
        for actor, _ in list(self.working):
            self._work(actor, starts=False, at=len(self.messages) - 1)
        actors = list(dict.fromkeys(self.labels.values()))
        return check_element(
            SequenceDiagram(
                actors=actors,
                people=list(self.people),
                messages=[*self.messages],
                frames=self.frames,
                groups=[group for group in self.groups if group.nodes],
                activations=self.activations,
                title=self.lines.title,
            )
        )


_MAX_MESSAGES = 200
_FORMS: dict[str, Callable[[MermaidSource], Document]] = {
    "graph": parse_flowchart,
    "flowchart": parse_flowchart,
    "flowchart-elk": parse_flowchart,
    "sequencediagram": _parse_sequence,
    "classdiagram": parse_class_diagram,
    "classdiagram-v2": parse_class_diagram,
    "statediagram": parse_states,
    "statediagram-v2": parse_states,
    "erdiagram": parse_er_diagram,
    "gantt": parse_gantt,
    "pie": parse_pie,
    "xychart": parse_xy_chart,
    "xychart-beta": parse_xy_chart,
    "quadrantchart": parse_quadrants,
    "timeline": parse_timeline,
    "mindmap": parse_mindmap,
    "gitgraph": parse_git_graph,
    "journey": parse_journey,
    "kanban": parse_kanban,
    "sankey": parse_sankey,
    "sankey-beta": parse_sankey,
    **dict.fromkeys(
        ("c4context", "c4container", "c4component", "c4dynamic", "c4deployment"), parse_c4
    ),
}
_NAMES = (
    *("flowchart TD", "sequenceDiagram", "classDiagram", "stateDiagram-v2", "erDiagram", "gantt"),
    *("pie", "xychart-beta", "quadrantChart", "timeline", "mindmap", "gitGraph", "journey"),
    *("kanban", "sankey-beta", "C4Context"),
)
# What to write for the forms that are not drawn.
_INSTEAD = {
    "block": "Write flowchart with a subgraph for each row, or rows of cards in JSON.",
    "architecture": "Write flowchart with a subgraph for each group.",
    "requirementdiagram": "Write classDiagram, with the text of a requirement as a member.",
    "packet": 'Write a table in JSON: {"type": "table", "columns": [...], "rows": [...]}.',
    "radar": 'Write bars in JSON: {"type": "bar", "labels": [...], "series": [...]}.',
    "treemap": 'Write a pie in JSON: {"type": "pie", "labels": [...], "values": [...]}.',
    "zenuml": "Write sequenceDiagram.",
}
