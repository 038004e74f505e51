"""Events in their order -> a line with a card for each, across a wide picture, down a tall one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from limner.rendering.brush import Brush, Rect, format_number
from limner.rendering.canvas import mix, number
from limner.rendering.diagrams import draw_title, title_height
from limner.rendering.elements import Timeline
from limner.rendering.text import TextLines

# Sizes in parts of the text size.
_PAD, _GAP, _STEM, _DOT = 0.7, 0.8, 1.3, 0.38
_MAX_CARD, _MAX_ENLARGED = 14.0, 1.5
_MANY = 8
_LEAST_BAND = 3.6
_SHRINK, _LEAST = 0.93, 0.25


class EventCard(msgspec.Struct, frozen=True, kw_only=True):
    """An event: its card, its place on the line, and its words."""

    box: Rect
    at: tuple[float, float]
    time: TextLines
    text: TextLines


Placement = tuple[float, list[EventCard]]


def measure_timeline(timeline: Timeline, brush: Brush, max_width: float) -> tuple[float, float]:
    """The least room of a timeline: a band for few events, a column for many or in little room."""
    title, base = title_height(timeline, brush, max_width), brush.style.base
    is_wide = max_width >= base * _LEAST_BAND * len(timeline.events)
    if len(timeline.events) <= _MANY and is_wide:
        return max_width, title + base * 12
    way = _down if _fits(timeline, brush, _half_width(brush, max_width)) else _beside
    return max_width, title + way(timeline, brush, Rect(0, 0, max_width, 10_000.0))[0]


def draw_timeline(timeline: Timeline, brush: Brush, box: Rect) -> None:
    """Draw a timeline so that it fills a box, with the text as large as it can be."""
    box = draw_title(timeline, brush, box)
    ways = (_across, _down, _beside) if box.width >= box.height else (_down, _across, _beside)
    found = [_largest(timeline, brush, box, way) for way in ways]
    # Another way only if the text would be much larger.
    sizes = [sized.style.base for sized, _ in found]
    chosen = 0 if max(sizes) <= 1.6 * sizes[0] else sizes.index(max(sizes))
    sized, (used, cards) = found[chosen]
    across = ways[chosen] is _across
    base, theme = sized.style.base, sized.style.theme
    shift = max(box.height - used, 0) / 2
    x, y = cards[0].at
    axis = (
        f"M{number(box.x)} {number(y + shift)}H{number(box.right)}"
        if across
        else f"M{number(x)} {number(box.y + shift)}V{number(box.y + shift + used)}"
    )
    sized.canvas.line(axis, mix(theme.line, theme.muted, 0.3), base * 0.16)
    for place, card in enumerate(cards):
        _draw_card(sized, card, theme.series[place % len(theme.series)], shift)


def _largest(
    timeline: Timeline, brush: Brush, box: Rect, way: Callable[[Timeline, Brush, Rect], Placement]
) -> tuple[Brush, Placement]:
    """The largest text with which all cards fit."""
    least = brush.style.base * _LEAST
    sized = brush.with_style(base=brush.style.base * _MAX_ENLARGED)
    placed = way(timeline, sized, box)
    while placed[0] > box.height and sized.style.base > least:
        sized = sized.with_style(base=sized.style.base * _SHRINK)
        placed = way(timeline, sized, box)
    return sized, placed


def _words(
    timeline: Timeline, brush: Brush, wide: float
) -> list[tuple[TextLines, TextLines, float]]:
    """The time and the text of each event within a width, and the height of its card."""
    room = wide - 2 * brush.style.base * _PAD
    found: list[tuple[TextLines, TextLines, float]] = []
    for time, text in timeline.events:
        lines = [
            brush.wrap(
                value if isinstance(value, str) else format_number(value), "body", room, bold=bold
            )
            for value, bold in ((time, True), (text, False))
        ]
        high = lines[0].height + lines[1].height + 2 * brush.style.base * _PAD
        found.append((lines[0], lines[1], high))
    return found


def _across(timeline: Timeline, brush: Brush, box: Rect) -> Placement:
    """Cards above and below a line, by turns."""
    base, count = brush.style.base, len(timeline.events)
    # Cards on one side keep a gap: two steps are a card and a gap.
    limit = (2 * box.width - base * _GAP * (count - 1)) / (count + 1)
    wide = min(limit, base * _MAX_CARD, _natural_width(timeline, brush))
    step = (box.width - wide) / max(count - 1, 1)
    words = _words(timeline, brush, wide)
    rooms = [max((high for *_, high in words[side::2]), default=0.0) for side in (0, 1)]
    used = sum(rooms) + 2 * base * _STEM
    axis = box.y + rooms[0] + base * _STEM
    cards: list[EventCard] = []
    for place, (time, text, high) in enumerate(words):
        left = box.x + step * place if count > 1 else box.x + (box.width - wide) / 2
        x = left + wide / 2
        top = axis + base * _STEM if place % 2 else axis - base * _STEM - high
        cards.append(EventCard(box=Rect(left, top, wide, high), at=(x, axis), time=time, text=text))
    return used if _fits(timeline, brush, wide) else box.height + used, cards


def _down(timeline: Timeline, brush: Brush, box: Rect) -> Placement:
    """Cards to the left and the right of a line, by turns."""
    base = brush.style.base
    wide = _half_width(brush, box.width)
    x = box.x + box.width / 2
    free, after = [box.y, box.y], box.y
    cards: list[EventCard] = []
    for place, (time, text, high) in enumerate(_words(timeline, brush, wide)):
        side = place % 2
        middle = max(free[side] + high / 2, after)
        left = x + base * _STEM if side else x - base * _STEM - wide
        card = Rect(left, middle - high / 2, wide, high)
        cards.append(EventCard(box=card, at=(x, middle), time=time, text=text))
        free[side], after = card.bottom + base * _GAP, middle + base * 1.6
    used = max(card.box.bottom for card in cards) - box.y
    return used if _fits(timeline, brush, wide) else box.height + used, cards


def _half_width(brush: Brush, width: float) -> float:
    """The width of a card beside a line in the middle."""
    return min(width / 2 - brush.style.base * _STEM, brush.style.base * _MAX_CARD * 1.3)


def _beside(timeline: Timeline, brush: Brush, box: Rect) -> Placement:
    """Cards to the right of a line."""
    base = brush.style.base
    wide = min(box.width - base * 2 * _STEM, base * _MAX_CARD * 1.6)
    x = box.x + max((box.width - wide - base * 2 * _STEM) / 2, 0.0) + base * _DOT
    y, cards = box.y, list[EventCard]()
    for time, text, high in _words(timeline, brush, wide):
        card = Rect(x + base * _STEM, y, wide, high)
        cards.append(EventCard(box=card, at=(x, y + high / 2), time=time, text=text))
        y += high + base * _GAP
    used = y - base * _GAP - box.y
    return used if _fits(timeline, brush, wide) else box.height + used, cards


def _fits(timeline: Timeline, brush: Brush, wide: float) -> bool:
    """Whether no word is wider than a card."""
    words = [word for event in timeline.events for part in event for word in str(part).split()]
    longest = max((brush.width(word, "body", bold=True) for word in words), default=0.0)
    return longest <= wide - 2 * brush.style.base * _PAD


def _natural_width(timeline: Timeline, brush: Brush) -> float:
    """The width of a card that needs no second line."""
    texts = (str(part) for event in timeline.events for part in event)
    widest = max(brush.width(text, "body", bold=True) for text in texts)
    return widest + 2 * brush.style.base * _PAD + 1


def _draw_card(brush: Brush, card: EventCard, colour: str, shift: float) -> None:
    base, theme = brush.style.base, brush.style.theme
    box = card.box._replace(y=card.box.y + shift)
    x, y = card.at[0], card.at[1] + shift
    edge = mix(colour, theme.ink, 0.12)
    if box.y <= y <= box.bottom:
        data = f"M{number(x)} {number(y)}H{number(box.x if box.x > x else box.right)}"
    else:
        data = f"M{number(x)} {number(y)}V{number(box.y if box.y > y else box.bottom)}"
    brush.canvas.line(data, edge, max(base / 13, 1))
    brush.canvas.ellipse(
        x,
        y,
        base * _DOT,
        base * _DOT,
        colour,
        stroke=theme.background,
        stroke_width=number(base / 8),
    )
    brush.panel(box, mix(theme.background, colour, 0.14), radius=base * 0.4, stroke=edge)
    inner = box.inset(base * _PAD)
    brush.lines(inner, card.time, align="center", bold=True, color=mix(colour, theme.ink, 0.55))
    brush.lines(inner.below(card.time.height), card.text, align="center")
