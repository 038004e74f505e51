"""A seed -> pairs of screens with known changes, as SVG documents: for tests and `differences`.

A screen is a grid of slots, each with one element: a text, a value, a button, a toggle, a checkbox,
a progress bar or a disc. The second screen of a pair has one to five changes. A change of the kind
"antialiasing" moves an element by less than half a pixel, so a comparison must not report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from xml.sax.saxutils import escape

from limner.rendering.text import width

WIDTH, HEIGHT = 960, 640
COLUMNS, ROWS = 4, 9
SLOT_WIDTH, SLOT_HEIGHT = 232, 64
SEED = 20261116
COUNT = 40
ANTIALIASING = "antialiasing"

WORDS = (
    *("Save", "Send", "Cancel", "Delete", "Export", "Invite", "Search", "Reload", "Archive"),
    *("Billing", "Invoices", "Members", "Reports", "Storage", "Network", "Alerts", "Backups"),
    *("Dark mode", "Auto update", "Weekly digest", "Two-factor login", "Public profile"),
)
# The light theme and the dark theme: page, card, letters, faint letters, lines.
THEMES = (
    ("#ffffff", "#f3f4f6", "#111827", "#6b7280", "#9ca3af"),
    ("#0f172a", "#1e293b", "#f8fafc", "#94a3b8", "#475569"),
)
# A colour, a near shade of it, and another hue.
FILLS = (
    ("#2563eb", "#1d4ed8", "#16a34a"),
    ("#16a34a", "#15803d", "#d97706"),
    ("#dc2626", "#b91c1c", "#2563eb"),
    ("#7c3aed", "#6d28d9", "#0891b2"),
)
# One letter for another that is nearly the same.
NEAR_LETTERS = {"l": "i", "e": "c", "n": "h", "o": "a", "S": "5", "1": "7", "0": "8", "3": "9"}

Box = tuple[float, float, float, float]
WHOLE: Box = (0, 0, WIDTH, HEIGHT)


@dataclass(frozen=True)
class Element:
    """One thing on a screen; x and y are the top left corner."""

    kind: str
    x: float
    y: float
    words: str
    size: float
    fill: str
    ink: str
    on: bool = False

    @property
    def box(self) -> Box:
        """The area that it covers."""
        wide = width(self.words, self.size)
        if self.kind == "button":
            return self.x, self.y, wide + 36, self.size + 18
        if self.kind == "toggle":
            return self.x, self.y, 56 + wide, 24
        if self.kind == "checkbox":
            return self.x, self.y, 28 + wide, 20
        if self.kind == "bar":
            return self.x, self.y, 180, 10
        if self.kind == "disc":
            return self.x, self.y, 28, 28
        return self.x, self.y, wide, self.size * 1.3

    @property
    def part(self) -> Box:
        """The area of what a change of state changes."""
        x, y, wide, high = self.box
        return {"toggle": (x, y, 44.0, 24.0), "checkbox": (x, y, 20.0, 20.0)}.get(
            self.kind, (x, y, wide, high)
        )


@dataclass(frozen=True)
class Change:
    """A known change, and the area that it covers in both screens."""

    kind: str
    before: str
    after: str
    box: Box


@dataclass(frozen=True)
class ScreenPair:
    """Two screens as SVG documents, and what differs."""

    name: str
    before: str
    after: str
    changes: tuple[Change, ...]

    @property
    def visible(self) -> tuple[Change, ...]:
        """The changes that have to be reported."""
        return tuple(one for one in self.changes if one.kind != ANTIALIASING)


def make_pairs(count: int = COUNT, seed: int = SEED) -> Iterator[ScreenPair]:
    """The pairs; every fifth differs by anti-aliasing alone."""
    for number in range(count):
        random = Random(f"{seed}-{number}")
        theme = THEMES[random.random() < 0.3]
        elements = _elements(random, theme)
        only_antialiasing = number % 5 == 4
        wanted = random.randint(1, 5)
        changed, changes = list(elements), []
        for at in random.sample(range(len(elements)), len(elements)):
            if len(changes) == wanted:
                break
            kind = ANTIALIASING if only_antialiasing else random.choice(KINDS)
            new = CHANGES[kind](elements[at], random)
            if new is not None:
                changed[at] = new
                changes.append(_change(kind, elements[at], new))
        shift = (0.0, 0.0)
        if only_antialiasing and random.random() < 0.5:
            # The whole screen moves instead of some elements.
            shift = random.choice([-0.3, 0.2, 0.45]), random.choice([-0.4, 0.25, 0.35])
            changed, changes = list(elements), [Change(ANTIALIASING, "", "", WHOLE)]
        yield ScreenPair(
            name=f"pair-{number + 1:02}",
            before=_document(elements, theme),
            after=_document(changed, theme, shift),
            changes=tuple(changes),
        )


def _elements(random: Random, theme: tuple[str, ...]) -> list[Element]:
    _, _, ink, faint, _ = theme
    found: list[Element] = []
    for column in range(COLUMNS):
        for row in range(ROWS):
            if random.random() < 0.25:
                continue
            kind = random.choice(
                ["text", "text", "value", "button", "toggle", "checkbox", "bar", "disc"]
            )
            words = random.choice(WORDS)
            if kind == "value":
                words = f"{random.randint(100, 9_999):,}"
            if kind in ("bar", "disc"):
                words = ""
            fill = random.choice(FILLS)[0]
            size = {"text": random.choice([12.0, 14.0, 16.0]), "value": 26.0}.get(kind, 14.0)
            # The letters of a button are white, as its fill is dark in both themes.
            letters = {"button": "#ffffff", "text": random.choice([ink, faint])}.get(kind, ink)
            found.append(
                Element(
                    kind=kind,
                    x=24 + column * SLOT_WIDTH,
                    y=44 + row * SLOT_HEIGHT,
                    words=words,
                    size=size,
                    fill=fill,
                    ink=letters,
                    on=random.random() < 0.5,
                )
            )
    return found


def _change_text(element: Element, random: Random) -> Element | None:
    if not element.words:
        return None
    near = [at for at, letter in enumerate(element.words) if letter in NEAR_LETTERS]
    if near and random.random() < 0.5:
        at = random.choice(near)
        letter = NEAR_LETTERS[element.words[at]]
        return replace(element, words=element.words[:at] + letter + element.words[at + 1 :])
    if element.kind == "value":
        return replace(element, words=f"{random.randint(10_000, 99_999):,}")
    others = [word for word in WORDS if word != element.words and len(word) < 12]
    return replace(element, words=random.choice(others))


def _change_colour(element: Element, random: Random) -> Element | None:
    if element.kind in ("button", "bar", "disc"):
        _, near, other = next(fills for fills in FILLS if fills[0] == element.fill)
        return replace(element, fill=random.choice([near, other]))
    if element.kind in ("text", "value"):
        return replace(element, ink=random.choice(["#dc2626", "#16a34a", "#8b5cf6"]))
    return None


def _change_position(element: Element, random: Random) -> Element | None:
    across, down = random.choice([(1, 0), (0, 1), (3, 2), (0, 6), (9, 0), (-6, 4), (14, 11)])
    return replace(element, x=element.x + across, y=element.y + down)


def _change_state(element: Element, _: Random) -> Element | None:
    if element.kind not in ("toggle", "checkbox"):
        return None
    return replace(element, on=not element.on)


def _move_a_little(element: Element, random: Random) -> Element | None:
    parts = [-0.4, -0.25, 0.0, 0.2, 0.45]
    across, down = random.choice(parts), random.choice(parts[:2] + parts[3:])
    return replace(element, x=element.x + across, y=element.y + down)


CHANGES: dict[str, Callable[[Element, Random], Element | None]] = {
    "text": _change_text,
    "colour": _change_colour,
    "position": _change_position,
    "state": _change_state,
    ANTIALIASING: _move_a_little,
}
KINDS = ("text", "text", "colour", "position", "position", "state", "state", ANTIALIASING)


def _change(kind: str, before: Element, after: Element) -> Change:
    said = {
        "text": (before.words, after.words),
        "colour": (f"{before.fill} {before.ink}", f"{after.fill} {after.ink}"),
        "position": (f"{before.x:g},{before.y:g}", f"{after.x:g},{after.y:g}"),
        "state": ("on" if before.on else "off", "on" if after.on else "off"),
    }.get(kind, ("", ""))
    one, other = (before.part, after.part) if kind == "state" else (before.box, after.box)
    left, top = min(one[0], other[0]), min(one[1], other[1])
    right = max(one[0] + one[2], other[0] + other[2])
    bottom = max(one[1] + one[3], other[1] + other[3])
    return Change(kind, *said, (left, top, right - left, bottom - top))


def _document(
    elements: list[Element], theme: tuple[str, ...], shift: tuple[float, float] = (0.0, 0.0)
) -> str:
    page, card, _, _, line = theme
    cards = "".join(
        f'<rect x="{14 + column * SLOT_WIDTH}" y="30" width="{SLOT_WIDTH - 14}" height="592" '
        f'rx="8" fill="{card}"/>'
        for column in range(0, COLUMNS, 2)
    )
    things = "".join(_svg(element, line) for element in elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}"><rect width="{WIDTH}" height="{HEIGHT}" fill="{page}"/>'
        f'<g transform="translate({shift[0]} {shift[1]})">{cards}{things}</g></svg>'
    )


def _svg(one: Element, line: str) -> str:
    x, y = one.x, one.y
    if one.kind == "button":
        _, _, wide, high = one.box
        return (
            f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="6" fill="{one.fill}"/>'
            + _text(x + 18, y + high / 2 + one.size * 0.35, one)
        )
    if one.kind == "toggle":
        track, knob = (one.fill, x + 32) if one.on else (line, x + 12)
        return (
            f'<rect x="{x}" y="{y}" width="44" height="24" rx="12" fill="{track}"/>'
            f'<circle cx="{knob}" cy="{y + 12}" r="9" fill="#ffffff"/>' + _text(x + 56, y + 17, one)
        )
    if one.kind == "checkbox":
        tick = (
            f'<path d="M{x + 4} {y + 10}l4 5l8 -10" fill="none" stroke="#ffffff" '
            'stroke-width="2.5"/>'
        )
        fill = one.fill if one.on else "none"
        return (
            f'<rect x="{x + 1}" y="{y + 1}" width="18" height="18" rx="3" fill="{fill}" '
            f'stroke="{one.fill if one.on else line}" stroke-width="2"/>'
            f"{tick if one.on else ''}" + _text(x + 28, y + 15, one)
        )
    if one.kind == "bar":
        return f'<rect x="{x}" y="{y}" width="180" height="10" rx="5" fill="{one.fill}"/>'
    if one.kind == "disc":
        return f'<circle cx="{x + 14}" cy="{y + 14}" r="14" fill="{one.fill}"/>'
    return _text(x, y + one.size, one)


def _text(x: float, y: float, one: Element) -> str:
    return (
        f'<text x="{x}" y="{y}" font-family="Inter" font-size="{one.size}" fill="{one.ink}">'
        f"{escape(one.words)}</text>"
    )
