"""A picture and its parent -> its place on, in, behind or above the parent, held or worn by it.

The unit is the canvas's shorter side and up is negative, as in ``groups``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from limner.illustrator import figures
from limner.illustrator.anchors import anchors_of, coat_of
from limner.illustrator.assets import AssetInfo
from limner.illustrator.person_art import Figure
from limner.imaging.svg import Asset
from limner.rendering.canvas import mix, number

Clip = tuple[float, float, float, float, float]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One picture in a group: its square, and how near to the viewer it is.

    ``angle`` turns it about the middle of its square, in degrees. Only what is within ``clip`` is
    drawn: left, top, right, bottom, and how much lower the middle of the bottom is.
    """

    info: AssetInfo
    left: float
    top: float
    size: float
    nearness: int = 0
    colour: str | None = None
    mirrored: bool = False
    figure: Figure | None = None
    painted: tuple[tuple[str, str], ...] = ()
    angle: float = 0.0
    clip: Clip | None = None

    @property
    def drawn(self) -> tuple[float, float, float, float]:
        """The drawn part of the square: left, top, right, bottom."""
        left, top, right, bottom = self.info.box
        if self.mirrored:
            left, right = 1 - right, 1 - left
        return (
            self.left + left * self.size,
            self.top + top * self.size,
            self.left + right * self.size,
            self.top + bottom * self.size,
        )

    @property
    def width(self) -> float:
        """How wide the drawn part is."""
        return (self.info.box[2] - self.info.box[0]) * self.size

    @property
    def height(self) -> float:
        """How tall the drawn part is."""
        return (self.info.box[3] - self.info.box[1]) * self.size

    def at(self, *kinds: str) -> tuple[float, ...] | None:
        """The first of some anchors that it has: a point or two, and widths; None if none."""
        anchors = anchors_of(self.info) if self.figure is None else self.figure.anchors
        found = next((anchors[kind] for kind in kinds if kind in anchors), None)
        if found is None:
            return None
        x, y, *rest = found
        return self.left + x * self.size, self.top + y * self.size, *(n * self.size for n in rest)

    def point(self, across: float, down: float) -> tuple[float, float]:
        """A point of the drawn part, by fractions of its width and height."""
        left, top, right, bottom = self.drawn
        return left + (right - left) * across, top + (bottom - top) * down


class Slot(msgspec.Struct, frozen=True):
    """The number of this thing among several of the same kind that share a place."""

    nth: int = 0
    of: int = 1

    def across(self, spread: float) -> float:
        """The horizontal position, 0 (left) to 1, if all are spread evenly about the middle."""
        return 0.5 + ((self.nth + 0.5) / self.of - 0.5) * spread


def attach(part: Part, parent: Part, *, kind: str, slot: Slot) -> Part:
    """Put a part at its place on, in, under or behind its parent."""
    return _PLACERS[kind](part, parent, slot)


def joints(parts: Sequence[Part], parent: Part) -> list[Part]:
    """What is drawn over things in the hand: the hand of a person, or an arm of an animal."""
    if not parts:
        return []
    nearness = max(parent.nearness, *(part.nearness for part in parts)) + 1
    strings = [_string(one, parent) for one in parts if one.info.name in figures.ON_A_STRING]
    if parent.figure is not None:
        hands = parent.figure.hands
        over = replace(parent.figure, asset=hands) if hands else None
        return [*strings, *([replace(parent, figure=over, nearness=nearness)] if over else [])]
    coat, shoulder = coat_of(parent.info), anchors_of(parent.info).get("arm")
    if coat is None or shoulder is None:
        return []
    held = [_hold(part) for part in parts[:2]]
    arms = [((x - parent.left) / parent.size, (y - parent.top) / parent.size) for x, y in held]
    if parts[0].info.name in figures.READABLE | figures.INSTRUMENTS:
        left, _, right, _ = ((edge - parent.left) / parent.size for edge in parts[0].drawn)
        arms = [(right - 0.02, arms[0][1]), (left + 0.02, arms[0][1])]
    body = "".join(
        _arm(shoulder if nth == 0 else (2 * 0.5 - shoulder[0], shoulder[1]), hand, coat)
        for nth, hand in enumerate(arms)
    )
    figure = Figure(asset=Asset(view_box="0 0 48 48", body=body), box=parent.info.box, anchors={})
    return [replace(parent, figure=figure, nearness=nearness)]


def _string(part: Part, parent: Part) -> Part:
    """The string from a hand to a kite."""
    x, y = _grip_point(part)
    hand = parent.at("hand") or parent.point(0.9, 0.7)
    size = max(abs(x - hand[0]), abs(y - hand[1]), 0.01)
    left, top = min(x, hand[0]), min(y, hand[1])
    ends = [((at[0] - left) / size * 48, (at[1] - top) / size * 48) for at in (hand, (x, y))]
    (x1, y1), (x2, y2) = ends
    data = f"M{number(x1)} {number(y1)}Q{number((x1 + x2) / 2 + 4)} {number((y1 + y2) / 2 + 6)} "
    body = (
        f'<path d="{data}{number(x2)} {number(y2)}" fill="none" stroke="#5a6072" '
        'stroke-width="0.5"/>'
    )
    drawn = Figure(asset=Asset(view_box="0 0 48 48", body=body), box=(0, 0, 1, 1), anchors={})
    info = replace(part.info, box=drawn.box)
    near = parent.nearness + 1
    return Part(info=info, left=left, top=top, size=size, figure=drawn, nearness=near)


def _arm(shoulder: tuple[float, ...], hand: tuple[float, float], coat: str) -> str:
    """An arm in the colour of the coat, a little darker at its edge so that it can be seen."""
    (x, y), (to_x, to_y) = ((48 * shoulder[0], 48 * shoulder[1]), (48 * hand[0], 48 * hand[1]))
    # The elbow hangs below the line from the shoulder to the hand.
    bend = f"{number((x + to_x) / 2)} {number(max(y, to_y) + 2)}"
    data = f"M{number(x)} {number(y)}Q{bend} {number(to_x)} {number(to_y)}"
    return "".join(
        f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="{width}" '
        'stroke-linecap="round"/>'
        for colour, width in ((mix(coat, "#2a1020", 0.3), 6.2), (mix(coat, "#ffffff", 0.06), 5.4))
    )


def _put(part: Part, parent: Part, *, size: float, foot: tuple[float, float], nearer: int) -> Part:
    """The part at a size, with the middle of its lower edge at ``foot``."""
    left, _, right, bottom = part.info.box
    x, y = foot
    return replace(
        part,
        size=size,
        left=x - (left + right) / 2 * size,
        top=y - bottom * size,
        nearness=parent.nearness + nearer,
    )


def _grip(part: Part) -> tuple[float, float, float]:
    """Where a thing is held, as fractions of its square, and its turn."""
    left, top, right, bottom = part.info.box
    middle = ((left + right) / 2, top + (bottom - top) * 0.7, 0.0)
    x, y, angle = anchors_of(part.info).get("grip", middle)
    if part.figure is not None:
        return middle
    return (1 - x, y, angle) if part.mirrored else (x, y, angle)


def _grip_point(part: Part) -> tuple[float, float]:
    x, y, angle = _grip(part)
    turn = math.radians(angle)
    across, down = x - 0.5, y - 0.5
    return (
        part.left + part.size * (0.5 + across * math.cos(turn) - down * math.sin(turn)),
        part.top + part.size * (0.5 + across * math.sin(turn) + down * math.cos(turn)),
    )


def _hold(part: Part) -> tuple[float, float]:
    """Where a paw is on a thing: at its grip, or beside food, so that it can be seen."""
    if not part.info.group.startswith(("food", "drink")):
        return _grip_point(part)
    _, top, right, bottom = part.drawn
    return right, (top + 3 * bottom) / 4


def _put_in_hand(part: Part, parent: Part, size: float, hand: tuple[float, ...]) -> Part:
    """The part at a size, turned as it is held, with its grip at the hand."""
    part = replace(part, mirrored=part.info.name in figures.FROM_THE_LEFT)
    turned = replace(part, size=size, left=0.0, top=0.0, angle=_grip(part)[2])
    x, y = _grip_point(turned)
    free = parent.figure is not None or not figures.looks_left(parent.info)
    nearer = -1 if part.info.name in figures.BEHIND_THE_HAND and free else 1
    return replace(turned, left=hand[0] - x, top=hand[1] - y, nearness=parent.nearness + nearer)


def _on(part: Part, parent: Part, slot: Slot) -> Part:
    seat = parent.at("seat", "top") or parent.point(0.5, 0.08)
    x = seat[0] + (slot.across(0.75) - 0.5) * parent.width
    if figures.is_ball(parent.info):
        size = min(part.size, parent.width * 2.4)
        return _put(part, parent, size=size, foot=parent.point(0.5, 0.04), nearer=1)
    if part.figure is not None and part.figure.anchors["seat"][1] < part.figure.box[3]:
        share, larger = (0.9, 1.0) if parent.info.group.startswith("transport") else (1.5, 1.0)
        if parent.info.name in figures.TWO_WHEELERS:
            share, larger = 1.4, 1.3
        size = min(part.size * larger, parent.height * share)
        below = (part.figure.box[3] - part.figure.anchors["seat"][1]) * size
        return _put(part, parent, size=size, foot=(x, seat[1] + below), nearer=1)
    astride = figures.carries_astride(parent.info)
    room = parent.width * (0.8 if slot.of > 1 else 1.1)
    tall = math.inf if figures.is_flat(parent.info) else parent.height * (0.85 if astride else 1.3)
    size = min(part.size, room / slot.of, tall)
    # A rider is a little lower, so that seat and saddle meet, and so is a thing on a pointed roof.
    roof = parent.info.group.startswith("place-") and parent.at("seat") is None
    sunk = size * (0.06 * astride + 0.14 * roof)
    return _put(part, parent, size=size, foot=(x, seat[1] + sunk), nearer=1)


def _on_shoulder(part: Part, parent: Part, slot: Slot) -> Part:
    size = min(part.size, parent.height * 0.32)
    shoulder = parent.at("shoulder")
    if part.info.name in figures.LONG and shoulder is not None:
        size = parent.height * 0.75
        low = (shoulder[0] - parent.width * 0.1, shoulder[1] + size * 0.62)
        return replace(_put(part, parent, size=size, foot=low, nearer=1), angle=65.0)
    if shoulder is None:
        head, mouth = parent.at("head"), parent.at("mouth")
        if head is None or mouth is None:
            return _on(part, parent, slot)
        shoulder = (head[0] + head[2] * 0.75, mouth[1] + parent.height * 0.14)
    return _put(part, parent, size=size, foot=(shoulder[0], shoulder[1]), nearer=1)


def _on_head(part: Part, parent: Part, slot: Slot) -> Part:
    head = parent.at("head", "top")
    if head is None:
        return _on(part, parent, slot)
    size = min(part.size, parent.height * 0.4)
    return _put(part, parent, size=size, foot=(head[0], head[1] + size * 0.04), nearer=1)


def _in(part: Part, parent: Part, slot: Slot) -> Part:
    inside = parent.at("inside")
    if inside is None:
        return _in_front(part, parent, slot)
    left, top, right, low, *more = inside
    # The anchor has widths after its first point; its second point needs the corner too.
    right, low = parent.left + right, parent.top + low
    wide, middle = right - left, left + (right - left) * slot.across(0.8)
    part_wide, part_tall = part.width / part.size, part.height / part.size
    if parent.info.name in figures.CAGES:
        size = min(part.size, wide / part_wide / slot.of, (low - top) / part_tall)
        return _put(part, parent, size=size, foot=(middle, low), nearer=-1)
    if parent.info.name in figures.CLOSED:
        # The head fills the window.
        head = part.at("face")
        shown = 0.95 if head is None else (head[1] - part.drawn[1]) / part.size + 0.2
        crowd = math.sqrt(slot.of)
        size = min(wide * 1.5 / part_wide / crowd, (low - top) * 0.95 / shown)
        across = 0.0 if head is None else (part.drawn[0] + part.width / 2 - head[0]) / part.size
        foot = (middle + across * size * 0.8, top + (low - top) * 0.06 + part_tall * size)
        placed = _put(part, parent, size=size, foot=foot, nearer=1)
        return replace(placed, clip=(left, top, right, low, 0.0))
    share = 0.95 if slot.of == 1 else 1.25
    size = min(part.size * 1.15, wide * share / part_wide / slot.of, parent.height / part_tall)
    size = max(size, min(wide * 0.5 / part_wide, wide * share / part_wide / slot.of))
    if parent.info.name in figures.MASTED:
        # The mast is in the middle.
        size = min(size, wide * 0.5 / part_wide)
        middle += wide * (slot.across(1.0) - 0.5 or -0.28) * 0.35 if slot.of > 1 else -wide * 0.28
    # A third of it is below the rim.
    hidden = part_tall * size * (0.2 if parent.info.name in figures.NESTS else 0.32)
    bulge = more[0] if more else 0.0
    placed = _put(part, parent, size=size, foot=(middle, low + hidden), nearer=1)
    clip = (left - wide, top - parent.size * 3, right + wide, low, bulge)
    if bulge:
        clip = (left, clip[1], right, low, bulge)
    return replace(placed, clip=clip)


def _under(part: Part, parent: Part, slot: Slot) -> Part:
    size = min(part.size, parent.height * 0.6)
    return _put(part, parent, size=size, foot=parent.point(slot.across(0.7), 1.03), nearer=1)


def _above(part: Part, parent: Part, slot: Slot) -> Part:
    x, y = parent.point(slot.across(0.9), 0.0)
    return _put(part, parent, size=part.size, foot=(x, y - part.size * 0.12), nearer=0)


def _behind(part: Part, parent: Part, slot: Slot) -> Part:
    # About half of it can be seen beside the thing in front, on the side of its head.
    left = figures.looks_left(part.info)
    x, y = parent.point(0.0 if left else 1.0, 0.97)
    x += part.width * (0.08 + 0.7 * slot.nth) * (-1 if left else 1)
    return _put(part, parent, size=part.size, foot=(x, y), nearer=-1)


def _in_front(part: Part, parent: Part, slot: Slot) -> Part:
    size = min(part.size, parent.height * 0.7, parent.width * 1.1 / slot.of)
    x, y = parent.point(slot.across(1) if slot.of > 1 else 0.12, 1.0)
    return _put(part, parent, size=size, foot=(x, y + size * 0.12), nearer=1)


def _played(part: Part, parent: Part, slot: Slot) -> Part:
    """A ball lies at the feet, an instrument is in the hands or stands in front."""
    if part.info.name in figures.INSTRUMENTS:
        return _held(part, parent, slot)
    between = slot.nth - (slot.of - 1) / 2
    if part.info.group in ("sport", "game"):
        size = min(part.size, parent.height * 0.3)
        side = -0.06 if figures.looks_left(parent.info) else 1.05
        x, y = parent.point(side + 0.3 * between, 1.0)
        return _put(part, parent, size=size, foot=(x, y + size * 0.06), nearer=1)
    # Several stand side by side, so low that the player is seen above and between them.
    size = min(part.size, parent.height * 0.62, parent.width * 1.2 / slot.of)
    x, y = parent.point(0.5, 1.0)
    foot = (x + size * 0.9 * between, y + size * (0.06 if slot.of == 1 else 0.5))
    return _put(part, parent, size=size, foot=foot, nearer=1)


def _held(part: Part, parent: Part, slot: Slot) -> Part:
    hand = parent.at("hand") or parent.point(0.9, 0.7)
    if part.info.name in figures.ON_A_STRING:
        size = min(part.size, parent.height * 0.6)
        foot = (hand[0] + parent.height * 0.3, hand[1] - parent.height * 0.3)
        return _put(part, parent, size=size, foot=foot, nearer=1)
    mouth = parent.at("mouth") or parent.point(0.5, 0.4)
    at_mouth = math.dist(hand[:2], mouth[:2]) < parent.size * 0.06 and parent.figure is None
    if at_mouth and part.info.name in figures.BEHIND_THE_HAND:
        # Above the animal: at the mouth it would hide the face.
        over = _put_in_hand(part, parent, held_size(part, parent), parent.point(0.36, 0.14))
        return replace(over, nearness=parent.nearness - 1)
    if slot.nth % 2:
        middle = parent.point(0.5, 0.5)[0]
        hand = (2 * middle - hand[0], hand[1])
    # A hand that holds several of them has them beside each other.
    outward = parent.width * 0.3 * (slot.nth // 2) * (-1 if slot.nth % 2 else 1)
    hand = (hand[0] + outward, hand[1] - abs(outward) * 0.4)
    size, tall = held_size(part, parent), part.height / part.size
    both = part.info.name in figures.READABLE | figures.INSTRUMENTS
    if parent.at("both hands") and part.info.name not in figures.INSTRUMENTS:
        # Before the chest: the face must be seen above it.
        size = min(size, parent.height * 0.44 / tall)
        chin = mouth[1] + parent.height * 0.07
        foot = (hand[0], max(hand[1] + size * tall / 2, chin + size * tall))
        return _put(part, parent, size=size, foot=foot, nearer=1)
    if both and parent.figure is None and not figures.looks_left(parent.info):
        # Before the chest, in both hands.
        hand = (mouth[0], mouth[1] + size * tall * 0.72)
    return _put_in_hand(part, parent, size, hand)


def held_size(part: Part, parent: Part) -> float:
    """The size of a thing in the hand: its own, within what a hand of that size can hold."""
    tall = part.height / part.size
    if part.info.name in figures.BEHIND_THE_HAND:
        return min(max(part.size, parent.height * 0.5 / tall), parent.height * 0.8 / tall)
    if part.info.name in figures.HELD_HIGH:
        return min(part.size, parent.height * 0.4 / tall)
    low, high = (0.6, 0.95) if part.info.name in figures.LONG else (0.26, 0.5)
    return min(max(part.size, parent.height * low / tall), parent.height * high / tall)


def _eaten(part: Part, parent: Part, slot: Slot) -> Part:
    """Food is at the mouth."""
    mouth = parent.at("mouth") or parent.point(0.5, 0.5)
    share = 0.27 if parent.figure is not None or figures.is_upright(parent.info) else 0.36
    tall = part.height / part.size
    size = min(part.size, parent.height * share / tall)
    x, y = mouth[0] + size * 0.5 * slot.nth, mouth[1]
    if parent.figure is not None:
        x += parent.size * 0.06
    # Its upper edge is at the mouth.
    return _put(part, parent, size=size, foot=(x, y + size * tall * 0.9), nearer=1)


def _worn(part: Part, parent: Part, slot: Slot) -> Part:
    """A hat goes on the head, glasses on the eyes, a scarf around the neck, others on the chest."""
    head, face, mouth = parent.at("head"), parent.at("face"), parent.at("mouth")
    if head is None or face is None or mouth is None:
        return _on_head(part, parent, slot)
    name, box = part.info.name, part.info.box
    wide, tall = box[2] - box[0], box[3] - box[1]
    if name in figures.HATS:
        size = head[2] * (1.3 if figures.looks_left(parent.info) else 1.1) / wide
        foot = (head[0], head[1] + size * tall * 0.12)
    elif name in figures.EYEWEAR:
        size = face[2] * 1.3 / wide
        aside = face[2] * 0.12 * figures.looks_left(parent.info)
        foot = (face[0] + aside, face[1] + size * tall * 0.5)
    elif name == "headphone":
        size = max(head[2] * 1.6, face[2] * 1.7) / wide
        foot = (head[0], face[1] + size * tall * 0.42)
    elif name in figures.NECKWEAR:
        usual = 1.5 if figures.looks_left(parent.info) else 1.15
        size = head[2] * (0.75 if name in ("stethoscope", "necktie") else usual) / wide
        down = (mouth[1] - face[1]) * (1.5 if figures.looks_left(parent.info) else 0.75)
        aside = head[2] * 0.35 * figures.looks_left(parent.info)
        foot = (head[0] + aside, mouth[1] + down + size * tall * 0.8)
    elif name == "backpack":
        size = parent.width * 0.62 / wide
        foot = parent.point(0.76, 0.74)
    elif name in figures.SHOES:
        size = parent.height * 0.2 / tall
        foot = parent.point(slot.across(0.9), 1.02)
    else:
        size = parent.width * 0.45
        x, y = parent.point(0.3 if figures.looks_left(parent.info) else 0.5, 0.78)
        foot = (x, y - 0.2 * slot.nth * size)
    nearer = -1 if name == "backpack" else 1
    return _put(part, parent, size=size, foot=foot, nearer=nearer)


def _hung(part: Part, parent: Part, slot: Slot) -> Part:
    """Fruit and ornaments are spread over the crown of a tree."""
    size = min(part.size, parent.width * 0.17)
    x, y = _CROWN[slot.nth % len(_CROWN)]
    if parent.info.group == "place-other" or parent.info.name in figures.POINTED:
        # A fir is narrow above.
        x = 0.5 + (x - 0.5) * min(y * 1.3, 1)
    return _put(part, parent, size=size, foot=parent.point(x, y), nearer=1)


def _mounted(part: Part, parent: Part, slot: Slot) -> Part:
    """A flag or an ornament stands on the top."""
    x, y, *_ = parent.at("top") or parent.point(0.5, 0.05)
    size = min(part.size, parent.height * 0.5)
    x += (slot.across(0.6) - 0.5) * parent.width
    return _put(part, parent, size=size, foot=(x, y + size * 0.05), nearer=1)


# Places in the crown of a tree, by fractions of its width and height.
_CROWN = (
    (0.3, 0.42),
    (0.62, 0.34),
    (0.78, 0.56),
    (0.46, 0.56),
    (0.45, 0.24),
    (0.2, 0.58),
    (0.66, 0.66),
    (0.34, 0.68),
)
_PLACERS: Mapping[str, Callable[[Part, Part, Slot], Part]] = {
    "on": _on,
    "riding": _on,
    "shoulder": _on_shoulder,
    "head": _on_head,
    "hung": _hung,
    "mounted": _mounted,
    "in": _in,
    "under": _under,
    "above": _above,
    "behind": _behind,
    "front": _in_front,
    "holding": _held,
    "eating": _eaten,
    "playing": _played,
    "wearing": _worn,
}
