"""A picture and its parent -> its place on, in, behind or above the parent, held or worn by it.

The unit is the canvas's shorter side and up is negative, as in ``groups``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from limner.illustrator import figures
from limner.illustrator.assets import AssetInfo
from limner.illustrator.person_art import Figure


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One picture in a group: its square, and how near to the viewer it is."""

    info: AssetInfo
    left: float
    top: float
    size: float
    nearness: int = 0
    colour: str | None = None
    mirrored: bool = False
    figure: Figure | None = None
    painted: tuple[tuple[str, str], ...] = ()

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

    def on_square(self, point: tuple[float, float]) -> tuple[float, float]:
        """A point of the square, by fractions of it."""
        return self.left + point[0] * self.size, self.top + point[1] * self.size

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


def _on(part: Part, parent: Part, slot: Slot) -> Part:
    down, across = figures.surface(parent.info)
    astride = figures.carries_astride(parent.info)
    room = parent.width * (0.8 if slot.of > 1 else 1.1)
    if figures.is_ball(parent.info):
        return _put(
            part,
            parent,
            size=min(part.size, parent.width * 2.4),
            foot=parent.point(0.5, 0.04),
            nearer=1,
        )
    tall = math.inf if figures.is_flat(parent.info) else parent.height * (0.85 if astride else 1.3)
    size = min(part.size, room / slot.of, tall)
    x, y = parent.point(across - 0.5 + slot.across(0.75), down)
    if part.figure is not None and part.figure.seat < part.figure.box[3]:
        size = min(
            part.size, parent.height * (0.9 if parent.info.group.startswith("transport") else 1.5)
        )
        below = (part.figure.box[3] - part.figure.seat) * size
        nearer = -1 if astride else 1
        return _put(part, parent, size=size, foot=(x, y + below), nearer=nearer)
    if astride:
        # A rider is a little lower, so that seat and saddle meet.
        return _put(part, parent, size=size, foot=(x, y + size * 0.1), nearer=-1)
    return _put(part, parent, size=size, foot=(x, y), nearer=1)


def _on_shoulder(part: Part, parent: Part, slot: Slot) -> Part:
    if parent.figure is None:
        return _on(part, parent, slot)
    size = min(part.size, parent.height * 0.34)
    return _put(part, parent, size=size, foot=parent.point(0.98, 0.5), nearer=1)


def _in(part: Part, parent: Part, slot: Slot) -> Part:
    if parent.info.name not in figures.CONTAINERS:
        return _in_front(part, parent, slot)
    down = figures.INSIDES.get(parent.info.name, 0.55)
    size = min(part.size, parent.width * 0.75, parent.height * 0.9)
    if slot.of > 1:
        size = min(max(part.size, parent.width * 0.36), parent.width * 0.45)
    x, y = parent.point(slot.across(0.8), down)
    return _put(part, parent, size=size, foot=(x, y + part.height * 0.1), nearer=-1)


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
    """A ball lies at the feet, an instrument stands in front."""
    ball = part.info.group in ("sport", "game")
    size = min(part.size, parent.height * (0.3 if ball else 0.62))
    side = -0.06 if figures.looks_left(parent.info) else 1.05
    x, y = parent.point((side if ball else 0.5) + 0.3 * (slot.nth - (slot.of - 1) / 2), 1.0)
    return _put(part, parent, size=size, foot=(x, y + size * 0.06), nearer=1)


def _held(part: Part, parent: Part, slot: Slot) -> Part:
    if parent.figure is not None:
        return _in_hand(part, parent, parent.figure, slot)
    sideways = figures.looks_left(parent.info)
    if part.info.name in figures.HELD_HIGH:
        size = min(part.size, parent.height * 0.8)
        return _put(part, parent, size=size, foot=parent.point(0.95, 0.62), nearer=-1)
    size = min(part.size, parent.height * 0.42)
    if part.info.name in figures.READABLE and not sideways:
        return _put(part, parent, size=size, foot=parent.point(0.5, 0.9), nearer=1)
    across, down = figures.HANDS.get(parent.info.name, (0.0, 0.68) if sideways else (0.9, 0.9))
    foot = parent.point(across, down - 0.2 * slot.nth / slot.of)
    return _put(part, parent, size=size, foot=foot, nearer=1)


def _in_hand(part: Part, parent: Part, figure: Figure, slot: Slot) -> Part:
    x, y = parent.on_square(figure.hand)
    if part.info.name in figures.HELD_HIGH:
        size = min(part.size, parent.height * 0.75)
        return _put(part, parent, size=size, foot=(x + size * 0.1, y), nearer=-1)
    size = min(part.size, parent.height * 0.42)
    if part.info.name in figures.WIELDED:
        return _put(part, parent, size=size, foot=(x + size * 0.3, y + size * 0.15), nearer=1)
    middle = (part.info.box[3] - part.info.box[1]) * size / 2
    foot = (x + size * 0.5 * slot.nth, y + middle)
    return _put(part, parent, size=size, foot=foot, nearer=1)


def _eaten(part: Part, parent: Part, slot: Slot) -> Part:
    """Food is in front of the mouth."""
    if parent.figure is not None:
        x, y = parent.on_square(parent.figure.face)
        size = min(part.size, parent.height * 0.26)
        foot = (x + parent.size * (0.06 + 0.15 * slot.nth), y + parent.size * 0.15 + size * 0.5)
        return _put(part, parent, size=size, foot=foot, nearer=1)
    across, down = figures.mouth(parent.info)
    size = min(part.size, parent.height * 0.4)
    x, y = parent.point(across + 0.2 * slot.nth, down)
    return _put(part, parent, size=size, foot=(x, y + size * 0.62), nearer=1)


def _worn(part: Part, parent: Part, slot: Slot) -> Part:
    """A hat goes on the head, glasses on the eyes, other things on the chest, one above another."""
    if parent.figure is not None and part.info.name in figures.HATS:
        top = parent.on_square(parent.figure.head)
        return _put(
            part,
            parent,
            size=parent.width * 0.85,
            foot=(top[0], top[1] + parent.height * 0.07),
            nearer=1,
        )
    sideways = figures.looks_left(parent.info)
    head = 0.2 if sideways else 0.42 if parent.info.name.endswith("-sitting") else 0.5
    if part.info.name in figures.HATS:
        across, down, share = head, 0.2 if sideways else 0.13, 0.42 if sideways else 0.6
    elif part.info.name in figures.EYEWEAR:
        across, down, share = head, 0.36 if sideways else 0.34, 0.34 if sideways else 0.5
    else:
        across, down, share = 0.3 if sideways else head, 0.75, 0.45
    stacked = part.info.name not in figures.HATS | figures.EYEWEAR
    foot = parent.point(across, down - 0.2 * slot.nth * stacked)
    return _put(part, parent, size=parent.width * share, foot=foot, nearer=1)


_PLACERS: Mapping[str, Callable[[Part, Part, Slot], Part]] = {
    "on": _on,
    "riding": _on,
    "shoulder": _on_shoulder,
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
