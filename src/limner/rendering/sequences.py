"""Messages between actors, in their order -> a sequence diagram."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from limner.errors import InputInvalid
from limner.rendering.brush import Brush, Rect
from limner.rendering.canvas import closed, mix, number
from limner.rendering.colours import parse_colour, readable_on
from limner.rendering.diagrams import draw_person, draw_title, title_height
from limner.rendering.elements import SequenceDiagram, SequenceFrame, SequenceMessage
from limner.rendering.text import TextLines

# Sizes in parts of the text size.
_ACTOR_WIDTH, _TEXT_WIDTH, _NOTE_WIDTH = 9.0, 15.0, 14.0
_PAD, _GAP, _LOOP = 0.8, 2.2, 1.6
_ROW_GAP, _HEAD = 1.1, 0.7
_PERSON, _BUSY, _GROUP_HEAD = 2.4, 0.55, 1.5
_FRAME_HEAD, _FRAME_FOOT = 1.7, 0.8
_MAX_ENLARGED, _MAX_SPREAD = 1.4, 1.7


class SequenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message with its text in lines, from one column to another, and its height.

    ``above`` and ``below`` are the room for the frames that start, go on and end at it.
    """

    message: SequenceMessage
    text: TextLines
    start: int
    end: int
    height: float
    above: float = 0.0
    below: float = 0.0

    @property
    def room(self) -> float:
        """The height with the room for frames."""
        return self.above + self.height + self.below


class SequencePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the columns and rows go, in pixels from the upper left corner."""

    actors: tuple[TextLines, ...]
    people: tuple[bool, ...]
    columns: tuple[float, ...]
    rows: tuple[SequenceRow, ...]
    head: float
    width: float
    height: float


def measure_sequence(
    sequence: SequenceDiagram, brush: Brush, max_width: float
) -> tuple[float, float]:
    """Width and height of a sequence, scaled if it is too wide."""
    plan = _plan(sequence, brush)
    scale = min(1.0, max_width / plan.width)
    title = title_height(sequence, brush, max_width)
    return plan.width * scale, plan.height * scale + title


def draw_sequence(sequence: SequenceDiagram, brush: Brush, box: Rect) -> None:
    """Draw a sequence in the middle of a box."""
    box = draw_title(sequence, brush, box)
    plan = _plan(sequence, brush)
    scale = min(_MAX_ENLARGED, box.width / plan.width, box.height / plan.height)
    brush = brush.with_style(base=brush.style.base * scale)
    plan = _plan(sequence, brush)
    across = min(max(box.width / plan.width, 1.0), _MAX_SPREAD)
    down = min(max(box.height / plan.height, 1.0), _MAX_SPREAD)
    wide, high = plan.width * across, plan.height * down
    if sequence.groups:
        box = box.below(brush.style.base * _GROUP_HEAD)
        high = min(high, box.height)
    corner = Rect(box.x + (box.width - wide) / 2, box.y + (box.height - high) / 2, wide, high)
    columns = [corner.x + x * across for x in plan.columns]
    bottom = corner.bottom
    theme, base = brush.style.theme, brush.style.base
    tops = [corner.y + plan.head + base * _ROW_GAP * down / 2]
    for row in plan.rows:
        tops.append(tops[-1] + row.room * down)
    _draw_groups(brush, sequence, columns, plan, corner)
    _draw_frames(brush, sequence.frames, tops, corner)
    for x in columns:
        brush.canvas.line(
            f"M{number(x)} {number(corner.y + plan.head)}V{number(bottom)}",
            mix(theme.line, theme.muted, 0.3),
            max(base / 16, 1),
            stroke_dasharray=f"{base * 0.3:.1f} {base * 0.3:.1f}",
        )
    names = _names(sequence)
    for one in sequence.activations:
        if one.actor in names and one.first <= one.last < len(plan.rows):
            x, half = columns[names[one.actor]], base * _BUSY / 2
            top, low = tops[one.first], tops[one.last + 1]
            bar = Rect(x - half, top + base * 0.9, 2 * half, max(low - top - base * 0.7, base))
            colour = mix(theme.background, theme.muted, 0.25)
            brush.panel(bar, colour, radius=base * 0.1, stroke=theme.muted)
    for place, (text, x) in enumerate(zip(plan.actors, columns, strict=True)):
        at = Rect(x, corner.y, 0, plan.head)
        _draw_actor(brush, text, at, place, person=plan.people[place])
    for row, top in zip(plan.rows, tops, strict=False):
        more = (down - 1) * row.room
        _draw_row(brush, row, columns, top + row.above + more / 2)


def _draw_groups(
    brush: Brush, sequence: SequenceDiagram, columns: list[float], plan: SequencePlan, box: Rect
) -> None:
    """Draw a ground behind the actors of each group, with its name above them."""
    base, theme = brush.style.base, brush.style.theme
    names = _names(sequence)
    for group in sequence.groups:
        places = [names[name] for name in group.nodes if name in names]
        if not places:
            continue
        low, high = min(places), max(places)
        left = columns[low] - plan.actors[low].width / 2 - base * 1.3
        right = columns[high] + plan.actors[high].width / 2 + base * 1.3
        ground = Rect(
            left, box.y - base * _GROUP_HEAD, right - left, box.height + base * _GROUP_HEAD
        )
        colour = parse_colour(group.color) if group.color else theme.muted
        brush.panel(ground, mix(theme.background, colour, 0.12), radius=base * 0.3)
        x, y = ground.middle[0], ground.y + base * 0.7
        brush.line(x, y, group.label, "small", bold=True, color=theme.muted, max_width=ground.width)


def _names(sequence: SequenceDiagram) -> dict[str, int]:
    """The number of each actor, from left to right."""
    found = list(sequence.actors)
    for message in sequence.messages:
        given = isinstance(message, SequenceMessage)
        found += [message.start, message.end] if given else message[:2]
    return {name: number for number, name in enumerate(dict.fromkeys(found))}


def _draw_frames(
    brush: Brush, frames: Sequence[SequenceFrame], tops: Sequence[float], across: Rect
) -> None:
    """Draw the frames behind the messages, each inside those that started before it."""
    base, theme = brush.style.base, brush.style.theme
    edge = mix(theme.line, theme.muted, 0.5)
    for frame, depth in _inside(frames, len(tops) - 1):
        outside = [other for other, _ in _inside(frames, len(tops) - 1) if other is not frame]
        above = sum(other.first == frame.first and _holds(other, frame) for other in outside)
        below = sum(other.last == frame.last and _holds(other, frame) for other in outside)
        top = tops[frame.first] + above * base * _FRAME_HEAD
        bottom = tops[frame.last + 1] - (below + 0.4) * base * _FRAME_FOOT
        room = base * 0.45 * depth
        box = Rect(across.x + room, top, across.width - 2 * room, bottom - top)
        fill = mix(theme.background, parse_colour(frame.color), 0.25) if frame.color else "none"
        brush.panel(box, fill, radius=base * 0.3, stroke=edge)
        x, line = box.x + base * 0.5, top + base * 0.7
        brush.line(x, line, frame.label, "small", align="start", bold=True, max_width=box.width)
        for place, text in frame.parts:
            if frame.first < place <= frame.last:
                y = tops[place]
                dash = f"{base * 0.35:.1f} {base * 0.35:.1f}"
                brush.canvas.line(
                    f"M{number(box.x)} {number(y)}H{number(box.right)}",
                    edge,
                    max(base / 16, 1),
                    stroke_dasharray=dash,
                )
                brush.line(
                    x, y + base * 0.7, text, "small", align="start", bold=True, max_width=box.width
                )


def _inside(frames: Sequence[SequenceFrame], count: int) -> list[tuple[SequenceFrame, int]]:
    """The frames around messages that exist, and how many others each is in; outer ones first."""
    real = [frame for frame in frames if frame.first <= frame.last < count]
    depths = [sum(_holds(other, frame) for other in real if other is not frame) for frame in real]
    return sorted(zip(real, depths, strict=True), key=lambda pair: pair[1])


def _holds(outer: SequenceFrame, inner: SequenceFrame) -> bool:
    """Whether a frame is around another one."""
    if (outer.first, outer.last) == (inner.first, inner.last):
        return False
    return outer.first <= inner.first and inner.last <= outer.last


def _plan(sequence: SequenceDiagram, brush: Brush) -> SequencePlan:
    base = brush.style.base
    messages = [
        message
        if isinstance(message, SequenceMessage)
        else SequenceMessage(start=message[0], end=message[1], text="".join(message[2:]))
        for message in sequence.messages
    ]
    place = _names(sequence)
    if not place:
        raise InputInvalid(
            "a sequence needs actors",
            field="source",
            hint='Write "messages": [["Browser", "API", "asks for the page"]].',
        )
    rows = _with_room([_row(message, place, brush) for message in messages], sequence.frames, base)
    actors = tuple(brush.wrap(name, "body", _actor_width(name, brush), bold=True) for name in place)
    gaps, margins = _gaps(actors, rows, base)
    columns = [margins[0]]
    for gap in gaps:
        columns.append(columns[-1] + gap)
    people = tuple(name in sequence.people for name in place)
    head = max(actor.height for actor in actors) + base * _PAD * 1.5
    if any(people):
        head = max(head, max(actor.height for actor in actors) + base * (_PERSON + 0.5))
    return SequencePlan(
        actors=actors,
        people=people,
        columns=tuple(columns),
        rows=tuple(rows),
        head=head,
        width=columns[-1] + margins[1],
        height=head
        + sum(row.room for row in rows)
        + base * (_ROW_GAP + (_GROUP_HEAD if sequence.groups else 0.0)),
    )


def _actor_width(name: str, brush: Brush) -> float:
    """The width of an actor's lines: a word is broken only if it is very long."""
    base = brush.style.base
    widest = max((brush.width(word, "body", bold=True) for word in name.split()), default=0.0)
    return min(max(base * _ACTOR_WIDTH, widest + 1), base * 2 * _ACTOR_WIDTH)


def _with_room(
    rows: list[SequenceRow], frames: Sequence[SequenceFrame], base: float
) -> list[SequenceRow]:
    """Add the room that frames need above and below their messages."""
    heads, feet = [0] * len(rows), [0] * len(rows)
    for frame, _ in _inside(frames, len(rows)):
        heads[frame.first] += 1
        feet[frame.last] += 1
        for place, _ in frame.parts:
            if frame.first < place <= frame.last:
                heads[place] += 1
    return [
        msgspec.structs.replace(
            row, above=head * base * _FRAME_HEAD, below=foot * base * _FRAME_FOOT
        )
        for row, head, foot in zip(rows, heads, feet, strict=True)
    ]


def _row(message: SequenceMessage, place: dict[str, int], brush: Brush) -> SequenceRow:
    base = brush.style.base
    start, end = place[message.start], place[message.end]
    size = "small" if message.note else 0.9 * base
    limit = base * (_NOTE_WIDTH if message.note else _TEXT_WIDTH) * max(abs(end - start), 1)
    text = brush.wrap(message.text, size, limit)
    high = text.height if message.text else 0.0
    if message.note:
        high += base * _PAD + base * 0.6
    elif start == end:
        high = max(high, base * _LOOP) + base * 0.7
    else:
        high += base * _ROW_GAP
    return SequenceRow(message=message, text=text, start=start, end=end, height=high)


def _gaps(
    actors: tuple[TextLines, ...], rows: list[SequenceRow], base: float
) -> tuple[list[float], tuple[float, float]]:
    """The distances of the columns, and the margins beside them, so that every text has room."""
    half = [actor.width / 2 + base * _PAD for actor in actors]
    gaps = [one + other + base * _GAP / 2 for one, other in pairwise(half)]
    left, right = half[0], half[-1]
    for row in sorted(rows, key=lambda row: abs(row.end - row.start)):
        low, high = sorted((row.start, row.end))
        if low < high:
            more = base * (_PAD if row.message.note else 2.0)
            lack = row.text.width + more - sum(gaps[low:high])
            for gap in range(low, high):
                gaps[gap] += max(lack, 0.0) / (high - low)
        elif row.message.note:
            reach = row.text.width / 2 + base * (_PAD + 0.4)
            left = max(left, reach) if low == 0 else left
            right = max(right, reach) if low == len(gaps) else right
            for gap in range(max(low - 1, 0), min(low + 1, len(gaps))):
                gaps[gap] = max(gaps[gap], reach + base * 0.4)
        else:
            reach = row.text.width + base * (_LOOP + 1.0)
            if low == len(gaps):
                right = max(right, reach)
            else:
                gaps[low] = max(gaps[low], reach)
    return gaps, (left, right)


def _draw_actor(brush: Brush, text: TextLines, at: Rect, place: int, *, person: bool) -> None:
    theme, base = brush.style.theme, brush.style.base
    wide = text.width + 2 * base * _PAD
    # The boxes beside a person have the height of their words, and stand on the same line.
    high = at.height if person else min(at.height, text.height + base * _PAD * 1.5)
    box = Rect(at.x - wide / 2, at.bottom - high, wide, high)
    colour = theme.series[place % len(theme.series)]
    if person:
        edge = mix(colour, theme.ink, 0.12)
        draw_person(brush, box._replace(height=base * _PERSON), edge)
        below = box.below(base * _PERSON)
        brush.lines(below, text, align="center", bold=True, centred=True)
        return
    fill = mix(theme.background, colour, 0.16)
    brush.panel(box, fill, radius=base * 0.4, stroke=mix(colour, theme.ink, 0.12))
    ink = readable_on(fill, dark=theme.ink, light=theme.background)
    brush.lines(box, text, align="center", bold=True, color=ink, centred=True)


def _draw_row(brush: Brush, row: SequenceRow, columns: list[float], y: float) -> None:
    base, theme = brush.style.base, brush.style.theme
    start, end = columns[row.start], columns[row.end]
    text = row.text
    if row.message.note:
        wide = max(text.width + base * _PAD, abs(end - start) + base * _PAD * 1.5)
        box = Rect((start + end - wide) / 2, y, wide, text.height + base * _PAD)
        colour = theme.series[5 % len(theme.series)]
        brush.panel(box, mix(theme.background, colour, 0.22), radius=base * 0.2, stroke=colour)
        brush.lines(box, text, align="center", centred=True)
        return
    if row.start == row.end:
        out, high = start + base * _LOOP, max(text.height, base * _LOOP)
        middle = y + high / 2
        top, low = middle - base * 0.45, middle + base * 0.45
        radius = base * 0.3
        data = (
            f"M{number(start)} {number(top)}H{number(out - radius)}"
            f"Q{number(out)} {number(top)} {number(out)} {number(top + radius)}"
            f"V{number(low - radius)}"
            f"Q{number(out)} {number(low)} {number(out - radius)} {number(low)}"
            f"H{number(start + base * _HEAD)}"
        )
        _draw_arrow(brush, row, data, (start, low), 1)
        box = Rect(out + base * 0.4, middle - text.height / 2, text.width, text.height)
        brush.panel(box, theme.background)
        brush.lines(box, text)
        return
    line = y + (text.height if row.message.text else 0.0) + base * 0.2
    way = 1 if end < start else -1
    data = f"M{number(start)} {number(line)}H{number(end + way * base * _HEAD)}"
    if row.message.text:
        box = Rect((start + end - text.width) / 2, y, text.width, text.height)
        brush.panel(box.inset(-base * 0.2, 0), theme.background)
        brush.lines(box, text, align="center")
    _draw_arrow(brush, row, data, (end, line), way)


def _draw_arrow(
    brush: Brush, row: SequenceRow, data: str, tip: tuple[float, float], way: int
) -> None:
    """A line, and its head, which lies to the left (-1) or the right (1) of the tip."""
    base = brush.style.base
    colour = mix(brush.style.ink, brush.style.theme.background, 0.25)
    dash = base * 0.35
    more = {"stroke_dasharray": f"{dash:.1f} {dash * 1.1:.1f}"} if row.message.dashed else {}
    brush.canvas.line(data, colour, max(base / 13, 1), **more)
    x, y = tip
    back = x + way * base * _HEAD
    if row.message.lost:
        arm, middle = base * 0.35, x + way * base * _HEAD
        for slope in (1, -1):
            cross = f"M{number(middle - arm)} {number(y - arm * slope)}"
            cross += f"L{number(middle + arm)} {number(y + arm * slope)}"
            brush.canvas.line(cross, colour, max(base / 9, 1.5))
        return
    brush.canvas.path(closed([(x, y), (back, y - base * 0.27), (back, y + base * 0.27)]), colour)
