"""Things and their relations -> groups of pictures, each around its own foot point.

Inside a group the unit is the canvas's shorter side, x = 0 is the middle of the first thing and
y = 0 is the ground under it; up is negative, as in SVG.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, figures, people, sizes
from limner.illustrator.attachments import Part, Slot, attach, held_size, joints
from limner.illustrator.grammar import Depth, Position
from limner.illustrator.parsed_prompt import Relation, Subject
from limner.illustrator.people import Person
from limner.illustrator.person_art import draw_person

MAX_FIGURES = 24
# The sizes of several animals or plants of a kind.
_GROWN = (1.0, 0.86, 1.08, 0.93, 0.8)
# The width of a thing for one hand, in 48ths of a person.
_ONE_HAND = 9.0


class Group(msgspec.Struct, frozen=True):
    """Pictures with fixed places relative to each other; the first one stands or flies.

    It is the copy ``nth`` of the thing with the index ``thing``.
    """

    parts: tuple[Part, ...]
    aloft: bool = False
    position: Position = ""
    depth: Depth = ""
    thing: int = 0
    nth: int = 0
    is_mirrored: bool = False

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The smallest box around all drawn parts."""
        boxes = [part.drawn for part in self.parts]
        return (
            min(box[0] for box in boxes),
            min(box[1] for box in boxes),
            max(box[2] for box in boxes),
            max(box[3] for box in boxes),
        )

    def mirrored(self) -> Group:
        """The mirrored group; only pictures that look to the left are mirrored themselves."""
        parts = tuple(
            replace(
                part,
                left=-part.left - part.size,
                mirrored=part.mirrored != _turns(part),
                angle=-part.angle,
                clip=part.clip and (-part.clip[2], part.clip[1], -part.clip[0], *part.clip[3:]),
            )
            for part in self.parts
        )
        return replace(self, parts=parts, is_mirrored=True)


def _turns(part: Part) -> bool:
    """Whether a picture is mirrored with its group; others may have letters."""
    sideways = part.figure is not None or figures.looks_left(part.info)
    return sideways or part.angle != 0 or figures.can_be_held(part.info)


def group(things: Sequence[Subject]) -> list[Group]:
    """Groups in the order of the prompt, one for each thing that is attached to no other."""
    counts = _fair_counts(things)
    groups: list[Group] = []
    for place in _roots(things):
        thing = things[place]
        empty = Group((), _is_aloft(thing), thing.position, thing.depth)
        copies = [
            replace(empty, parts=(_stand(things, place, nth=nth),), thing=place, nth=nth)
            for nth in range(counts[place])
        ]
        groups += _with_attached(copies, things, place, counts)
    return groups


T = TypeVar("T")


def order_by_position(items: Sequence[T], positions: Sequence[Position]) -> list[T]:
    """Things from left to right; what is between others is in the middle."""
    at = {
        side: [one for one, position in zip(items, positions, strict=True) if position == side]
        for side in ("left", "middle", "right", "")
    }
    rest = at[""]
    half = -(-len(rest) // 2)
    return [*at["left"], *rest[:half], *at["middle"], *rest[half:], *at["right"]]


def _roots(things: Sequence[Subject]) -> list[int]:
    return [place for place in range(len(things)) if _effective_relation(things, place) is None]


def _effective_relation(things: Sequence[Subject], place: int) -> Relation | None:
    """The relation that attaches a thing to another; None if it has its own place."""
    relation = things[place].relation
    if relation is None:
        return None
    parent = assets.info(things[relation.to].asset)
    # The sun and clouds are above everything anyway.
    apart = relation.kind in {"under", "behind", "front"} and figures.flies(parent)
    if relation.kind == "in" and parent.name not in figures.CONTAINERS:
        # A mill in tulips: both stand on the ground.
        apart = sizes.size(assets.info(things[place].asset)) > sizes.size(parent)
    return None if apart else relation


def _attached_to(things: Sequence[Subject], place: int) -> list[tuple[int, str]]:
    """The things that are attached to a thing, and the kinds of relation."""
    relations = enumerate(_effective_relation(things, other) for other in range(len(things)))
    return [(other, found.kind) for other, found in relations if found and found.to == place]


def _is_aloft(thing: Subject) -> bool:
    return thing.aloft or figures.flies(assets.info(thing.asset))


def _fair_counts(things: Sequence[Subject]) -> list[int]:
    """The count of each thing; the largest counts are reduced if the sum is too large."""
    counts = [thing.count for thing in things]
    while sum(counts) > MAX_FIGURES and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    return counts


def _stand(things: Sequence[Subject], place: int, *, nth: int = 0) -> Part:
    thing = things[place]
    info, figure = assets.info(thing.asset), None
    size = sizes.size(info) * thing.scale
    if thing.person is not None:
        base = people.PEOPLE.get(thing.asset, thing.person)
        person = people.vary(_posed(things, place, thing.person), base, thing.words, nth)
        figure = draw_person(person)
        info = replace(info, box=figure.box)
        size = person.size * thing.scale
    elif figures.grows(info):
        size *= _GROWN[nth % len(_GROWN)]
    left, _, right, bottom = info.box
    return Part(
        info=info,
        left=-(left + right) / 2 * size,
        top=-bottom * size,
        size=size,
        colour=None if figure else thing.colour,
        figure=figure,
        painted=thing.parts,
        angle=180.0 if info.name in figures.UPSIDE_DOWN and _holds(things, place) else 0.0,
    )


def _holds(things: Sequence[Subject], place: int) -> bool:
    return any(kind == "in" for _, kind in _attached_to(things, place))


def _posed(things: Sequence[Subject], place: int, person: Person) -> Person:
    """A person in the pose that their relations need: seated on a bench, with bent arms."""
    relation = _effective_relation(things, place)
    if relation is not None:
        under = assets.info(things[relation.to].asset)
        if relation.kind in ("riding", "on") and figures.carries_astride(under):
            person = replace(person, pose="riding")
        elif relation.kind == "on" and under.name in figures.SEATS:
            person = replace(person, pose="sitting")
    tied_to = _attached_to(things, place)
    kinds = {kind: tied for tied, kind in tied_to}
    held = [things[tied] for tied, kind in tied_to if kind == "holding"]
    if sum(thing.count for thing in held) > things[place].count:
        return replace(person, grip="each")
    for kind in ("holding", "playing", "eating"):
        if kind in kinds:
            grip, span = _grip(things, kinds[kind], person, kind=kind)
            if grip:
                return replace(person, grip=grip, span=span)
    ball = "playing" in kinds and person.pose == "standing"
    return replace(person, pose="running") if ball else person


def _grip(things: Sequence[Subject], held: int, person: Person, *, kind: str) -> tuple[str, float]:
    """How a person holds a thing, and how far the hands are from the middle if both hold it."""
    thing = things[held]
    info = assets.info(thing.asset)
    if kind == "eating":
        return "mouth", 0.0
    if kind == "playing" and info.name not in figures.INSTRUMENTS:
        return "", 0.0
    if info.name in figures.HELD_HIGH | figures.WIELDED:
        return "high", 0.0
    if info.name in figures.LONG or thing.count > 1:
        return "side", 0.0
    part, whole = _stand(things, held), person.size * 0.92
    size = held_size(part, replace(part, size=whole, info=replace(part.info, box=(0, 0, 1, 1))))
    wide = part.width / part.size * size / person.size * 48
    small = wide < _ONE_HAND and info.name not in figures.READABLE | figures.INSTRUMENTS
    return ("side", 0.0) if small else ("both", min(max(wide / 2 - 1.5, 2.4), 11.0))


def _with_attached(
    copies: list[Group], things: Sequence[Subject], place: int, counts: Sequence[int]
) -> list[Group]:
    """The copies of a thing, each with its share of the things attached to it."""
    kinds: dict[str, list[int]] = {}
    for tied, kind in _attached_to(things, place):
        kinds.setdefault(kind, []).extend([tied] * counts[tied])
    hung: list[list[Part]] = [[] for _ in copies]
    held: list[list[Part]] = [[] for _ in copies]
    for kind, tied_in_order in kinds.items():
        all_tied = order_by_position(tied_in_order, [things[at].position for at in tied_in_order])
        share = -(-len(all_tied) // len(copies))
        for number, tied in enumerate(all_tied):
            target = number % len(copies)
            slot = Slot(number // len(copies), share)
            first = copies[target].parts[0]
            made = list(_attached(things, tied, first, kind=kind, slot=slot))
            hung[target] += made
            held[target] += made[:1] if _is_in_hand(kind, made[0]) else []
    return [
        replace(copy, parts=(*copy.parts, *parts, *joints(in_hand, copy.parts[0])))
        for copy, parts, in_hand in zip(copies, hung, held, strict=True)
    ]


def _attached(
    things: Sequence[Subject], place: int, parent: Part, *, kind: str, slot: Slot
) -> Iterator[Part]:
    """A thing on its parent, and the things attached to it."""
    part = attach(_stand(things, place, nth=slot.nth), parent, kind=kind, slot=slot)
    yield part
    held: list[Part] = []
    for tied, how in _attached_to(things, place):
        copies = things[tied].count
        if things[place].count > 1:
            # One ball is for one of the children.
            copies = int(slot.nth < copies or how == "wearing")
        for nth in range(copies):
            made = list(_attached(things, tied, part, kind=how, slot=Slot(nth, copies)))
            yield from made
            held += made[:1] if _is_in_hand(how, made[0]) else []
    yield from joints(held, part)


def _is_in_hand(kind: str, part: Part) -> bool:
    instrument = kind == "playing" and part.info.name in figures.INSTRUMENTS
    return kind in ("holding", "eating") or instrument
