"""A prompt -> the things and the scene it asks for, and an account of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, figures, grammar, people, scenes, styles, vocabulary
from limner.illustrator.grammar import Depth, Position
from limner.illustrator.palette import PART_COUNTS, PARTS, WITH_PART
from limner.illustrator.parsed_prompt import ParsedPrompt, Relation, State, Subject, WordUse
from limner.illustrator.people import PEOPLE, Person
from limner.illustrator.scenes import Scene
from limner.illustrator.thing_list import LOOSE_RELATIONS, ThingList
from limner.illustrator.words import singular, split

_PLAIN_WORDS = frozenset({"plain", "simple", "blank", "solid"})
_STACKS = frozenset({"stack", "pile"})
_BOTH = frozenset({"them", "both"})
_BACKGROUND_WORDS = frozenset({"background", "backdrop"})


def parse_prompt(prompt: str) -> ParsedPrompt:
    """Parse a prompt; the same prompt always gives the same result."""
    parts = split(prompt)
    parser = _Parser(words=parts.words)
    parser.run()
    missed = sum(len(use.words.split()) for use in parser.uses if use.state == "left out")
    if missed * 2 > len(parts.words):
        parser = _translated(parts.words, len(parts.words) - missed) or parser
    if not parser.things.items:
        parser = _with_ideas(parser) or parser
    texts = parts.quoted
    quoted = [WordUse(words=text, state="drawn", shown="a sign") for text in texts]
    return ParsedPrompt(
        things=tuple(parser.things.items),
        scene=parser.scene(),
        texts=texts,
        uses=(*parser.uses, *quoted),
        style=parser.drawn_style,
    )


def _translated(words: Sequence[str], known: int) -> _Parser | None:
    """The parser of a prompt in another language; None if it is in none of those we know."""
    from limner.illustrator.languages import to_english  # noqa: PLC0415 - loaded on first use

    english = to_english(words, known=known)
    if english is None:
        return None
    parser = _Parser(words=english)
    parser.run()
    return parser


def _with_ideas(parser: _Parser) -> _Parser | None:
    """The prompt with scenes for the ideas in it; None if it names no idea."""
    missed = {word for use in parser.uses if use.state == "left out" for word in use.words.split()}
    ideas = [word for word in parser.words if word in missed and word in scenes.IDEAS]
    if not ideas:
        return None
    scene = split(", ".join(scenes.IDEAS[idea] for idea in ideas)).words
    shown = _Parser(words=scene)
    shown.run()
    rest = [word for word in parser.words if word not in ideas]
    whole = _Parser(words=(*scene, ",", *rest))
    whole.run()
    whole.uses[: len(shown.uses)] = [
        WordUse(words=idea, state="approximated", shown=scenes.IDEAS[idea]) for idea in ideas
    ]
    return whole


@cache
def _longest() -> int:
    tables: tuple[Mapping[tuple[str, ...], str], ...] = (
        scenes.PLACE_PHRASES,
        scenes.HOUR_PHRASES,
        scenes.WEATHER_PHRASES,
    )
    longest_scene = max(len(words) for table in tables for words in table)
    return max(longest_scene, vocabulary.longest_phrase())


class Placing(msgspec.Struct, frozen=True):
    """Where in the picture a thing is, if the prompt says so."""

    position: Position = ""
    depth: Depth = ""


class _Parser(msgspec.Struct):
    """Walks over the words once, and always takes the longest known phrase."""

    words: Sequence[str]
    at: int = 0
    things: ThingList = msgspec.field(default_factory=ThingList)
    uses: list[WordUse] = msgspec.field(default_factory=list[WordUse])
    places: list[str] = msgspec.field(default_factory=list[str])
    weather: set[str] = msgspec.field(default_factory=set[str])
    hour: str | None = None
    paper: str | None = None
    alone: bool = False
    drawn_style: str = ""
    count: int | None = None
    colour: str | None = None
    scale: float = 1.0
    relation: str | None = None
    relation_words: str = ""
    negated: bool = False
    aloft: bool = False
    # What the next person looks like, and the words that say so.
    look: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    look_words: list[str] = msgspec.field(default_factory=list[str])
    # Whether the picture shows the verb of the relation, and where the last scene word ended.
    verb_shown: bool = False
    burning: bool = False
    scene_end: int = -1
    # The place of the next thing, and the words that say so.
    placing: Placing | None = None
    placing_words: str = ""
    # Numbers, colours and sizes before their noun.
    modifiers: list[str] = msgspec.field(default_factory=list[str])

    def run(self) -> None:
        """Parse all words."""
        while self.at < len(self.words):
            self.at += self._take_phrase() or self._take_word()
        self._drop_modifiers()
        if self.relation == "on" and self.words[-1] == "top" and len(self.things.items) > 1:
            # "a sign with a bird on top"
            self.things.change_last(relation=Relation("on", 0))
        self._settle_verb("left out")
        for word in self.look_words:
            self._note(word, "left out")
        if self.placing is not None:
            self._note(self.placing_words, "left out")
        if self.burning:
            self._note("burning", "left out")

    def scene(self) -> Scene:
        """The scene, as far as the prompt names it."""
        paper = self.paper or ("#ffffff" if self.alone and not self.places else None)
        return Scene(
            places=tuple(dict.fromkeys(self.places)),
            hour=self.hour or "",
            weather=frozenset(self.weather),
            paper=paper,
        )

    def _take_phrase(self) -> int:
        for length in range(min(_longest(), len(self.words) - self.at), 0, -1):
            phrase = tuple(self.words[self.at : self.at + length])
            text = " ".join(phrase)
            if self._take_style(text) or self._take_position(text):
                pass
            elif text in grammar.RELATIONS:
                self._drop_modifiers()
                self._settle_verb("left out")
                self.relation, self.relation_words = grammar.RELATIONS[text], text
                self._show_verb(phrase[0], text)
            elif text in grammar.GROUPS_OF:
                self.count = grammar.GROUPS_OF[text]
                self.modifiers.append(text)
                if text == "field of":
                    self.places.append("meadow")
            elif text in grammar.OTHER_THINGS:
                self._miss(text)
            elif self._take_body_place(text) or self._take_look(text) or self._take_part(text):
                pass
            elif not (self._take_scene(phrase) or self._take_thing(phrase)):
                continue
            return length
        return 0

    def _take_body_place(self, text: str) -> bool:
        """The part of the body that a thing is on: "on a pirate's shoulder", "on its head"."""
        kind = grammar.BODY_PLACES.get(text)
        if kind is None:
            return False
        owned = self.words[self.at - 1] in grammar.POSSESSIVES if self.at else False
        if owned and self.relation == "on":
            if not self.things.put_on_body(kind):
                return False
            self.relation = None
        elif not (
            self.things.was_just_named(self.words[self.at - 1]) and self.things.move_to(kind)
        ):
            return False
        self._note(text, "drawn", kind)
        return True

    def _take_style(self, text: str) -> bool:
        """Words for a style or a mood; a picture has one."""
        if text not in styles.STYLE_OF and text not in grammar.STYLE_PHRASES:
            return False
        style = styles.STYLE_OF.get(text, "")
        taken = not style or (self.drawn_style not in ("", style))
        self.drawn_style = self.drawn_style or style
        self._note(text, "left out" if taken else "drawn", "" if taken else style)
        return True

    def _show_verb(self, verb: str, text: str) -> None:
        """Show the verb that a relation starts with: asleep on a rug, flying over the sea."""
        person = self.things.person_before()
        if verb == "sleeping":
            self._sleep(text)
        elif verb in grammar.ALOFT_WORDS and self.relation == "above" and self.things.items:
            self.things.lift_last()
            self.verb_shown = True
        elif verb in people.POSES and person is not None:
            self.things.dress(person, {"pose": people.POSES[verb]})
            self.verb_shown = verb not in people.NEAR_POSES

    def _settle_verb(self, state: State) -> None:
        """Account for a verb that has no thing after it: "chasing" in "chasing through snow"."""
        first = self.relation_words.split(" ", 1)[0]
        if self.relation is not None and first.endswith(("ing", "s")) and first != "inside":
            self._note(first, "drawn" if self.verb_shown else state)
        self.relation, self.verb_shown = None, False

    def _take_position(self, text: str) -> bool:
        """Words for a place in the picture, as "on the left", of the thing before or after them."""
        if text == "between" and set(self.words[self.at + 1 : self.at + 2]) & _BOTH:
            found = Placing("middle")
        elif text in grammar.POSITIONS:
            found = Placing(*grammar.POSITIONS[text])
        else:
            return False
        self._drop_modifiers()
        if self.at == self.scene_end and found.depth:
            self._note(text, "drawn")
        elif self.things.items and self.words[self.at - 1][0].isalnum() and self.at:
            self.things.put(found.position, found.depth)
            self._note(text, "drawn")
        else:
            self.placing, self.placing_words = found, text
        self.relation = None
        return True

    def _take_scene(self, phrase: tuple[str, ...]) -> bool:
        counted = self.count is not None and self._picture(phrase) is not None
        if counted or not _is_scene(phrase):
            return False
        if self._leave_out(phrase):
            return True
        if phrase in scenes.PLACE_PHRASES:
            shown = scenes.PLACE_PHRASES[phrase]
            if self.relation == "on":
                shown = scenes.ON_TOP.get(shown, shown)
            self.places.append(shown)
        elif phrase in scenes.HOUR_PHRASES:
            shown = self.hour = scenes.HOUR_PHRASES[phrase]
        else:
            shown = scenes.WEATHER_PHRASES[phrase]
            self.weather.add(shown)
        self.scene_end = self.at + len(phrase)
        if phrase == ("field",) and self.things.was_just_named(self.words[self.at - 1]):
            self.things.change_last(count=grammar.GROUPS_OF["field of"])
        near = phrase in scenes.NEAR_PHRASES
        self._note(" ".join(phrase), "approximated" if near else "drawn", shown)
        for word in self.modifiers:
            self._note(word, "left out")
        self._clear()
        return True

    def _take_thing(self, phrase: tuple[str, ...]) -> bool:
        name = self._picture(phrase)
        if name is None:
            return False
        if self._leave_out(phrase):
            return True
        words = " ".join(phrase)
        after = tuple(self.words[self.at + len(phrase) : self.at + len(phrase) + 1])
        if words in grammar.MATERIALS and after and self._picture(after) is not None:
            self._note(self._whole(words), "left out")
            return True
        if words == "ball" and any(thing.asset == "tennis" for thing in self.things.items):
            self._settle_verb("approximated")
            self._note("ball", "drawn", "tennis")
        elif self.things.items and assets.info(name).group in vocabulary.BODY_PARTS:
            self._note(self._whole(words), "left out")
        else:
            plural = phrase not in vocabulary.phrases() and singular(phrase[-1]) != phrase[-1]
            if name in vocabulary.STACKS and _STACKS & set(
                self.words[max(self.at - 4, 0) : self.at]
            ):
                name, plural = vocabulary.STACKS[name], False
            usual = grammar.COLLECTIVES.get(words) or (grammar.BARE_PLURAL if plural else 1)
            count = self.count or usual
            self._note_thing(phrase, name)
            self._add(
                Subject(
                    asset=name,
                    words=words,
                    count=min(count, grammar.MAX_COUNT),
                    colour=self.colour,
                    scale=self.scale,
                    aloft=self.aloft,
                    person=self._new_person(name, words),
                )
            )
            self.things.equip(words)
        self._clear()
        return True

    def _new_person(self, name: str, words: str) -> Person | None:
        """The person of a name, with the look of the words before it."""
        person = PEOPLE.get(name)
        state: State = "left out" if person is None else "drawn"
        for word in self.look_words:
            self._note(word, state)
        look = {**people.ROLES.get(singular(words), {}), **self.look}
        if self.colour in people.SKIN_COLOURS:
            look.setdefault("skin", people.SKIN_COLOURS[self.colour])
        elif self.colour in people.HAIR_COLOURS and name != "robot":
            look.setdefault("top_colour", grammar.COLOURS[self.colour])
        self.look.clear()
        self.look_words.clear()
        return None if person is None else replace(person, **look)

    def _take_look(self, text: str) -> bool:
        """Words for hair, beard, glasses, clothes, mood or pose of the person they are about."""
        look = people.look_of(text, self.colour)
        if look is None:
            return False
        place = self.things.person_before()
        if place is None and (text in people.CLOTHES or text in people.SHOES):
            return self._paint_clothes(text)
        wanted = text in people.HAIR_STYLES and self.words[self.at + 1 : self.at + 2] != ("hair",)
        if wanted or (place is None and text not in people.MOODS and "hair" not in look):
            return False
        whole, before = self._whole(text), self.words[self.at - 1] if self.at else ""
        is_noun = text not in people.ADJECTIVES | people.MOODS.keys() | people.HAIR_COLOURS.keys()
        if place is not None and (
            self.relation or self.things.was_just_named(before) or is_noun or "pose" in look
        ):
            self.things.dress(place, {**self.look, **look})
            near = text in people.NEAR_POSES
            for word in (*self.look_words, whole):
                self._note(word, "approximated" if near else "drawn", look.get("pose", ""))
            self.look.clear()
            self.look_words.clear()
        else:
            self.look |= look
            self.look_words.append(whole)
        self.count, self.colour, self.scale = None, None, 1.0
        self.modifiers.clear()
        return True

    def _paint_clothes(self, text: str) -> bool:
        """Clothes of a person whose picture is fixed: their colour can be shown, no more."""
        last = self.things.items[-1] if self.things.items else None
        if last is None or not self.relation or not figures.is_person(assets.info(last.asset)):
            return False
        if self.colour is not None:
            self.things.change_last(colour=self.colour)
        self._note(self._whole(text), "approximated" if self.colour else "left out", last.asset)
        self.relation = None
        self._clear()
        return True

    def _take_part(self, text: str) -> bool:
        """A part of the last thing: the door of a house is painted, not drawn beside it."""
        for at, one in enumerate(self.things.items):
            if (one.asset, singular(text)) in WITH_PART:
                asset = WITH_PART[one.asset, singular(text)]
                self.things.items[at] = replace(one, asset=asset)
        place = next((at for at, one in enumerate(self.things.items) if one.asset in PARTS), None)
        if place is None or singular(text) not in PARTS[self.things.items[place].asset]:
            return False
        thing, part = self.things.items[place], singular(text)
        if self.colour is not None and PARTS[thing.asset][part]:
            painted = (part, grammar.COLOURS[self.colour])
            self.things.items[place] = replace(thing, parts=(*thing.parts, painted))
        if self.relation is not None and self.relation_words != "with":
            # "A ghost in the window": the window is there, but nothing is in it.
            self._note(self.relation_words, "left out")
            self.relation = None
        fixed = self.modifiers and not PARTS[thing.asset][part]
        if self.colour is None and self.count is not None:
            fixed = fixed and self.count != PART_COUNTS.get((thing.asset, part))
        self._note(self._whole(text), "approximated" if fixed else "drawn", thing.asset)
        self._clear()
        return True

    def _picture(self, phrase: tuple[str, ...]) -> str | None:
        known = vocabulary.phrases()
        one = (*phrase[:-1], singular(phrase[-1]))
        if self.count is not None and self.count > 1 and one in known:
            return known[one]
        return known.get(phrase) or known.get(one)

    def _add(self, thing: Subject) -> None:
        if self.things.is_full:
            self.uses.pop()
            self._note(thing.words, "left out")
            return
        words = self.relation_words if self.relation else ""
        after_and = "and" in self.words[max(self.at - 3, 0) : self.at]
        before = self.words[self.at - 2 - len(self.modifiers) : self.at - len(self.modifiers)]
        after_of = len(before) == 2 and before[1] == "of" and self.things.was_just_named(before[0])
        meant = self.things.relation_of(
            thing.asset, words, is_after_and=after_and, is_after_of=after_of
        )
        self.relation = meant or self.relation
        if self.count is None and thing.count > 1:
            thing = replace(thing, count=self.things.usual_count(self.relation, thing.count))
        if self.relation is not None and words not in ("", "with"):
            near = self.things.is_near(self.relation, thing.asset)
            state = "approximated" if near else "drawn"
            self._note(self.relation_words, state if self.things.items else "left out")
        before_it = self.words[max(self.at - 1, 0)]
        if not self.things.merge(thing, self.relation, words=before_it):
            if self.relation is None and self.at and self.things.was_just_named(before_it):
                self._approximate_last()
            self.things.add(thing, self.relation)
        self.relation = None
        if self.burning:
            self._note("burning", "drawn", "fire")
            self.things.set_on_fire()
            self.burning = False
        if self.placing is not None:
            self.things.put(self.placing.position, self.placing.depth)
            self._note(self.placing_words, "drawn")
            self.placing = None

    def _take_word(self) -> int:
        word = self.words[self.at]
        if not word[0].isalnum():
            self._drop_modifiers()
            self._settle_verb("left out")
            self.negated = False
        elif word in grammar.NEGATIONS:
            self.negated = True
        elif word in grammar.ALOFT_WORDS:
            self._lift()
        elif word == "sleeping":
            self._sleep(word)
        elif word == "burning":
            self.burning = True
        elif word in grammar.PRONOUNS and self.relation and self.things.tie_back(self.relation):
            near = self.things.is_near(self.relation, self.things.items[0].asset)
            self._note(self.relation_words, "approximated" if near else "drawn")
            self.relation = None
        elif word in grammar.SHOWN_BY_SCENE and grammar.SHOWN_BY_SCENE[word] & set(self.words):
            self._note(word, "drawn")
        elif not (self._take_modifier(word) or self._take_manner(word)):
            self._miss(word)
        return 1

    def _miss(self, words: str) -> None:
        """Record unmatched words, with the noun before them if they continue its name."""
        before = self.words[self.at - 1] if self.at else ""
        if self.things.was_just_named(before) and not words.endswith(grammar.NOT_A_NOUN):
            words = self._longer_name(words)
        if self.negated:
            self._note(f"no {words}", "drawn", "not there")
        else:
            following = tuple(self.words[self.at + 1 : self.at + 2])
            if self.relation in ("wearing", "holding") and following and self._picture(following):
                # "wearing party hats": the hats are known.
                self._note(words, "left out")
                return
            if self.relation is not None and self.relation not in LOOSE_RELATIONS:
                self._note(self.relation_words, "left out")
                self.relation = None
            self._note(self._whole(words), "left out")
        self._clear()

    def _note(self, words: str, state: State, shown: str = "") -> None:
        self.uses.append(WordUse(words=words, state=state, shown=shown))

    def _note_thing(self, phrase: tuple[str, ...], name: str) -> None:
        near = vocabulary.is_approximate(phrase) or (self.count or 0) > grammar.MAX_COUNT
        self._note(self._whole(" ".join(phrase)), "approximated" if near else "drawn", name)

    def _approximate_last(self) -> None:
        """Report a thing right before another: "a flower shop" is shown as a flower and a shop."""
        name = self.things.items[-1]
        for at, use in enumerate(self.uses[:-1]):
            if use.words.endswith(name.words) and use.state == "drawn":
                self.uses[at] = replace(
                    use, state="approximated", shown=f"a {name.words} beside it"
                )

    def _whole(self, noun: str) -> str:
        """The noun with its number, colour and size."""
        return " ".join((*self.modifiers, noun))

    def _longer_name(self, rest: str) -> str:
        """Remove the last thing if it was only the beginning of a longer name.

        A coffee grinder is not coffee, but a robot barista is a robot.
        """
        group = assets.info(self.things.items[-1].asset).group
        if group.startswith("person") or group == "face-costume":
            return rest
        thing = self.things.remove_last()
        *before, noun = thing.words.split()
        last = max((at for at, use in enumerate(self.uses) if use.words.endswith(noun)), default=0)
        first = last
        for word in reversed(before):  # "man bird" is one thing, and has two uses
            first -= first > 0 and self.uses[first - 1].words.endswith(word)
        # The relation to it comes after it.
        self.uses[first:] = [replace(use, state="left out") for use in self.uses[last + 1 :]]
        return f"{thing.words} {rest}"

    def _lift(self) -> None:
        """Lift the previous thing ("a bird flying") or the next one ("a flying pig")."""
        self._note(self.words[self.at], "drawn")
        if self.things.was_just_named(self.words[max(self.at - 1, 0)]):
            self.things.lift_last()
        else:
            self.aloft = True

    def _sleep(self, text: str) -> None:
        """Show the last thing asleep, if the pack has such a picture."""
        name = f"{self.things.items[-1].asset}-sleeping" if self.things.items else ""
        if name in assets.names():
            self.things.change_last(asset=name)
            if text == "sleeping":
                self._note(text, "drawn")
        else:
            self._note("sleeping", "left out")

    def _take_modifier(self, word: str) -> bool:
        if word in grammar.NUMBERS:
            self.count = grammar.NUMBERS[word]
        elif word.isdecimal():
            self.count = int(word[:4]) or None
        elif word in grammar.COLOURS:
            self.colour = word
        elif word in grammar.SIZES:
            self.scale = grammar.SIZES[word]
        elif word in _BACKGROUND_WORDS and self.colour:
            self.paper = grammar.COLOURS[self.colour]
            self._note(self._whole(word), "drawn")
            self._clear()
            return True
        else:
            return False
        self.modifiers.append(word)
        return True

    def _take_manner(self, word: str) -> bool:
        following = set(self.words[self.at + 1 : self.at + 2])
        plain = word in _PLAIN_WORDS and bool(following & _BACKGROUND_WORDS)
        if plain or word in grammar.ALONE_WORDS:
            self.alone = True
            self._note(word, "drawn")
        elif word in grammar.UNSUPPORTED_WORDS:
            self.alone = True
            self._note(word, "left out")
        elif word in grammar.STYLE_WORDS or word in grammar.LIGHT_VERBS:
            self._note(word, "left out")
        else:
            return word in grammar.STOP_WORDS
        return True

    def _leave_out(self, phrase: tuple[str, ...]) -> bool:
        if not self.negated:
            return False
        self._note(f"no {' '.join(phrase)}", "drawn", "not there")
        self._clear()
        return True

    def _drop_modifiers(self) -> None:
        """Treat a colour without a noun as a thing, or as an unmatched word."""
        colour = self.colour
        if colour in grammar.COLOUR_AS_THING:
            self._note(self._whole("").strip(), "drawn", grammar.COLOUR_AS_THING[colour])
            self._add(
                Subject(
                    asset=grammar.COLOUR_AS_THING[colour],
                    words=colour,
                    count=min(self.count or 1, grammar.MAX_COUNT),
                    scale=self.scale,
                )
            )
        elif colour is not None:
            self._note(colour, "left out")
        self.count, self.colour, self.scale = None, None, 1.0
        self.modifiers.clear()

    def _clear(self) -> None:
        for word in self.look_words:
            self._note(word, "left out")
        self.look.clear()
        self.look_words.clear()
        self._settle_verb("left out")
        self.count, self.colour, self.scale = None, None, 1.0
        self.negated, self.aloft = False, False
        self.modifiers.clear()


def _is_scene(phrase: tuple[str, ...]) -> bool:
    tables = (scenes.PLACE_PHRASES, scenes.HOUR_PHRASES, scenes.WEATHER_PHRASES)
    return any(phrase in table for table in tables)
