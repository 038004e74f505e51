"""Nouns and the words between them -> the things of a picture and how they relate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, figures, grammar, people
from limner.illustrator.grammar import Depth, Position
from limner.illustrator.parsed_prompt import Relation, Subject
from limner.illustrator.people import Person
from limner.illustrator.words import singular

MAX_THINGS = 12
_FISH = frozenset({"fish", "tropical-fish"})
_PLAIN_PEOPLE = frozenset(
    {"boy-standing", "girl-standing", "man-standing", "woman-standing", "child-standing"}
)
_KIN = frozenset({"baby", "woman-standing", "man-standing"})
# With these, the thing after the word belongs to the thing before it; with others, vice versa.
_BELONGS_TO_SUBJECT = frozenset({"holding", "wearing", "playing", "eating", "hung", "mounted"})
# What a thing with another, or of another, is to it.
_OF_OWNER = {"carrying": "on", "filling": "in", "shoulder with": "shoulder"}
# With these, both things keep their own places, on these sides.
_SIDES: Mapping[str, tuple[Position, Position]] = {
    "between": ("middle", ""),
    "left of": ("left", "right"),
    "right of": ("right", "left"),
}
# With these, both things keep their own places.
LOOSE_RELATIONS = frozenset({"beside", "facing"})


class ThingList(msgspec.Struct):
    """The things that a prompt has named so far, in order."""

    items: list[Subject] = msgspec.field(default_factory=list[Subject])
    # Things named one after another: all of "a dog and a cat on a sofa" are on it.
    joined: list[int] = msgspec.field(default_factory=list[int])

    @property
    def is_full(self) -> bool:
        """Whether a picture has no room for another thing."""
        return len(self.items) >= MAX_THINGS

    def relation_of(
        self, name: str, words: str, *, is_after_and: bool, is_after_of: bool
    ) -> str | None:
        """What "with", "and" or "of" before a thing means: a cat with a hat wears it."""
        if not self.items:
            return None
        info, last = assets.info(name), self.items[-1]
        before = last.relation.kind if last.relation is not None else ""
        owner = assets.info(self.items[self._subject(len(self.items) - 1)].asset)
        alive = words == "with" and figures.is_alive(owner)
        found = {
            "filling": is_after_of and last.asset in figures.CONTAINERS,
            "carrying": words == "with" and figures.carries(owner, info),
            "shoulder with": figures.is_person(owner)
            and info.name in figures.ON_SHOULDERS
            and (words == "with" or is_after_and),
            "wearing": figures.is_worn(info) and (alive or (is_after_and and before == "wearing")),
            "holding": (alive or (is_after_and and before == "holding"))
            and figures.can_be_held(info),
            "hung": words == "with" and figures.is_hung(owner, info),
            "mounted": words == "with" and figures.is_mounted(owner, info),
        }
        return next((kind for kind, fits in found.items() if fits), None)

    def usual_count(self, relation: str | None, plural: int) -> int:
        """How many things a plural means: one for each of several owners, many for a tree."""
        if relation == "hung":
            return grammar.FRUIT_OF_A_TREE
        owner = self.items[self._subject(len(self.items) - 1)] if self.items else None
        if owner is not None and relation in ("holding", "wearing") and owner.count > 1:
            return owner.count
        return plural

    def add(self, thing: Subject, relation: str | None) -> None:
        """Add a thing, and tie the thing before it to it, or it to the thing before it."""
        place = len(self.items)
        self.items.append(thing)
        if relation is None or relation in LOOSE_RELATIONS or place == 0:
            self.joined.append(place)
            return
        subject = self._subject(place - 1)
        if relation in _SIDES:
            before, after = _SIDES[relation]
            self.items[subject] = replace(self.items[subject], position=before)
            self.items[place] = replace(thing, position=after)
            self.joined.append(place)
            return
        if relation in _OF_OWNER:
            self._give(place, place - 1 if relation == "filling" else subject, relation)
            return
        relation = self._use(place, subject, relation)
        if relation is None:
            self.joined.append(place)
            return
        thing = self.items[place]
        if relation in _BELONGS_TO_SUBJECT:
            self.items[place] = replace(thing, relation=Relation(relation, subject))
            return
        shared = relation == "on" and figures.carries_all(assets.info(thing.asset))
        for one in {subject, *self._movable()} if shared else {subject}:
            if self.items[one].relation is None:
                self.items[one] = replace(self.items[one], relation=Relation(relation, place))
        self.joined = [place]

    def _give(self, place: int, owner: int, relation: str) -> None:
        """Tie a thing to the thing that has it: apples of a basket, a table with a vase."""
        thing = self.items[place]
        self.items[place] = replace(thing, relation=Relation(_OF_OWNER[relation], owner))
        if self.items[owner].asset == "desert-island" and thing.asset == "palm-tree":
            # The picture of a desert island has a palm already.
            self.items[owner] = replace(self.items[owner], asset="sand-island")

    def _use(self, place: int, subject: int, relation: str) -> str | None:
        """The relation that is drawn; a thing in use may need another picture."""
        thing, owner = self.items[place], self.items[subject]
        if relation == "busy with":
            return "holding" if self._can_hold(subject, thing) else None
        asset = figures.IN_USE.get((relation, thing.asset), thing.asset)
        self.items[place] = replace(thing, asset=asset)
        if relation == "wearing" and asset in figures.HATS and owner.person is not None:
            self.dress(subject, {"hat": None})
        if relation == "in" and asset in figures.SEATS:
            return "on"
        if relation == "riding" and asset in figures.DRIVEN:
            return "in"
        return "in" if relation == "on" and asset in figures.NESTS else relation

    def equip(self, words: str) -> None:
        """Give the last person what belongs to the role: a player has a racket."""
        owner = len(self.items) - 1
        tools = people.EQUIPMENT.get(singular(words), ())
        if len(tools) != self.items[owner].count or len(tools) + owner >= MAX_THINGS:
            return
        held = Relation("holding", owner)
        self.items += [Subject(asset=tool, words=tool, relation=held) for tool in tools]

    def is_near(self, relation: str, asset: str) -> bool:
        """Whether the picture only comes near to a relation with a thing."""
        loose = relation in ("facing", "busy with")
        return loose or (relation == "in" and asset not in figures.CONTAINERS | figures.SEATS)

    def merge(self, thing: Subject, relation: str | None, *, words: str) -> bool:
        """Whether a thing is one with the last: a surfer girl, a goldfish in its bowl."""
        last = self.items[-1] if self.items else None
        if last is None:
            return False
        one: Subject | None = None
        if relation == "in" and thing.asset == "fishbowl" and last.asset in _FISH:
            one = thing
        elif relation is None and last.words.split()[-1] == words:
            one = _compound(last, thing)
        if one is not None:
            self.items[-1] = one
        return one is not None

    def tie_back(self, relation: str) -> bool:
        """Tie the last thing to the first: "with a gull above her"."""
        last = len(self.items) - 1
        if last < 1 or relation in _SIDES or self.items[last].relation is not None:
            return False
        if relation not in LOOSE_RELATIONS | {"busy with"}:
            self.items[last] = replace(self.items[last], relation=Relation(relation, 0))
        return True

    def move_to(self, kind: str) -> bool:
        """Move a thing to a part of the body of the thing it is on: the shoulder of a pirate."""
        last = len(self.items) - 1
        for place, thing in enumerate(self.items):
            relation = thing.relation
            if relation is not None and relation.kind == "on" and relation.to == last:
                self.items[place] = replace(thing, relation=Relation(kind, last))
                return True
        return False

    def put_on_body(self, kind: str) -> bool:
        """Put what the first thing has, or the last thing, on a part of its body: "on her head"."""
        owned = [
            place
            for place, thing in enumerate(self.items[1:], 1)
            if thing.relation is None or thing.relation == Relation("holding", 0)
        ]
        if not owned:
            return False
        place = owned[-1]
        self.items[place] = replace(self.items[place], relation=Relation(kind, 0))
        return True

    def set_on_fire(self) -> None:
        """Add flames to the last thing."""
        if not self.is_full:
            place = Relation("front", len(self.items) - 1)
            self.items.append(Subject(asset="fire", words="burning", relation=place, scale=1.6))

    def remove_last(self) -> Subject:
        """Remove the last thing and the relations to it."""
        thing = self.items.pop()
        place = len(self.items)
        self.joined = [one for one in self.joined if one != place]
        self.items = [
            replace(one, relation=None)
            if one.relation is not None and one.relation.to == place
            else one
            for one in self.items
        ]
        return thing

    def was_just_named(self, word: str) -> bool:
        """Whether a word is the end of the name of the last thing."""
        return bool(self.items) and self.items[-1].words.split()[-1] == word

    def person_before(self) -> int | None:
        """The place of the person that words after a noun are about."""
        last = len(self.items) - 1
        for place in (last, self._subject(last)) if self.items else ():
            if self.items[place].person is not None:
                return place
        return None

    def dress(self, place: int, look: Mapping[str, Any]) -> None:
        """Change the look of a person."""
        thing = self.items[place]
        self.items[place] = replace(thing, person=replace(thing.person or Person(), **look))

    def lift_last(self) -> None:
        """Put the last thing in the air, with open wings if it has any."""
        asset = self.items[-1].asset
        self.change_last(aloft=True, asset=figures.FLYING.get(asset, asset))

    def change_last(self, **changes: Any) -> None:
        """Replace fields of the last thing."""
        self.items[-1] = replace(self.items[-1], **changes)

    def put(self, position: Position, depth: Depth) -> None:
        """Put the thing that carries the last one on a side or at a depth."""
        place = len(self.items) - 1
        for _ in self.items:
            held = self.items[place].relation
            place = place if held is None else held.to
        thing = self.items[place]
        self.items[place] = replace(
            thing, position=position or thing.position, depth=depth or thing.depth
        )

    def _can_hold(self, owner: int, thing: Subject) -> bool:
        info = assets.info(thing.asset)
        small = figures.can_be_held(info) or figures.is_tabletop(info) or figures.is_ball(info)
        return small and thing.count <= 3 and figures.is_alive(assets.info(self.items[owner].asset))

    def _movable(self) -> list[int]:
        """The things named one after another that are no furniture themselves."""
        infos = {one: assets.info(self.items[one].asset) for one in self.joined}
        return [
            one
            for one, info in infos.items()
            if not figures.stands_behind(info)
            and info.group != "household"
            and not self.items[one].position
        ]

    def _subject(self, last: int) -> int:
        """The thing that a further phrase is about: the holder, not the held thing."""
        held = self.items[last].relation
        # The apples of "a basket of apples" are in a thing that was named before them.
        belongs = held is not None and (held.kind in _BELONGS_TO_SUBJECT or held.to < last)
        return held.to if held is not None and belongs else last


def _compound(first: Subject, second: Subject) -> Subject | None:
    """What two nouns in a row mean together; None if they are two things."""
    words = f"{first.words} {second.words}"
    if first.asset == "robot-standing" and second.person is not None:
        return first
    if first.asset in _KIN and assets.info(second.asset).group.startswith("animal"):
        # A mother duck is a duck, and a baby elephant a small elephant.
        scale = second.scale * (0.6 if first.asset == "baby" else 1.0)
        return replace(second, scale=scale, words=words)
    is_role = assets.info(first.asset).group.startswith("person")
    if is_role and second.asset in _PLAIN_PEOPLE:
        return replace(second, person=_in_clothes_of(first, second), words=words)
    return None


def _in_clothes_of(role: Subject, thing: Subject) -> Person | None:
    """The person of the second noun in the clothes of the first: a pirate girl."""
    if role.person is None or thing.person is None:
        return thing.person
    clothes = role.person
    return replace(
        thing.person,
        top=clothes.top,
        top_colour=clothes.top_colour,
        legs_colour=clothes.legs_colour,
        hat=clothes.hat,
    )
