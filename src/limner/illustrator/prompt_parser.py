"""A prompt -> the things and the scene it asks for, and an account of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, figures, grammar, people, scenes, styles, vocabulary
from limner.illustrator.palette import PARTS
from limner.illustrator.people import PEOPLE, Person
from limner.illustrator.scenes import Scene
from limner.illustrator.words import singular, split

MAX_THINGS = 12
_PLAIN_WORDS = frozenset({"plain", "simple", "blank", "solid"})
_BACKGROUND_WORDS = frozenset({"background", "backdrop"})
# With these, the thing after the word belongs to the thing before it; with others, vice versa.
_BELONGS_TO_SUBJECT = frozenset({"holding", "wearing", "playing"})
_LOOSE = frozenset({"beside", "facing"})


class Relation(msgspec.Struct, frozen=True, array_like=True):
    """The relation of a thing to another one, by its index in the list of things."""

    kind: str
    to: int


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thing to draw: its picture, count, colour and scale, and whether it is in the air."""

    asset: str
    words: str
    count: int = 1
    colour: str | None = None
    scale: float = 1.0
    aloft: bool = False
    relation: Relation | None = None
    person: Person | None = None
    parts: tuple[tuple[str, str], ...] = ()


State = Literal["drawn", "approximated", "left out"]
STATES: tuple[State, ...] = get_args(State)
_NOTHING_KNOWN = "The illustrator knows none of these words, so the picture is a card with them."
_MAX_LISTED_WORDS = 12


class WordUse(msgspec.Struct, frozen=True, kw_only=True):
    """Some words of a prompt, what became of them, and what the picture shows for them."""

    words: str
    state: State
    shown: str = ""

    @property
    def text(self) -> str:
        """The words, and what is shown for them if it is only similar."""
        near = self.state == "approximated" and self.shown
        return f"{self.words} ({self.shown.replace('-', ' ')})" if near else self.words


class ParsedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a prompt that can be drawn, and an account of all its words.

    ``scene`` is the scene that the prompt names; ``texts`` go on a sign. Words without a meaning
    of their own, such as articles, are not part of ``uses``.
    """

    things: tuple[Subject, ...]
    scene: Scene
    texts: tuple[str, ...]
    uses: tuple[WordUse, ...]
    style: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.things or self.texts or self.scene.is_named)

    def words(self, state: State) -> list[str]:
        """The words of the prompt in a state, in order."""
        return list(dict.fromkeys(use.text for use in self.uses if use.state == state))

    @property
    def account(self) -> str:
        """What the picture does not show as requested, in one line; empty if it shows all of it."""
        if not self.is_known:
            return _NOTHING_KNOWN
        return " ".join(
            f"{state.capitalize()}: {_join(words)}."
            for state in STATES[1:]
            if (words := self.words(state))
        )


def _join(words: list[str]) -> str:
    more = len(words) - _MAX_LISTED_WORDS
    return ", ".join(words[:_MAX_LISTED_WORDS]) + (f" and {more} more" if more > 0 else "")


def parse_prompt(prompt: str) -> ParsedPrompt:
    """Parse a prompt; the same prompt always gives the same result."""
    parts = split(prompt)
    parser = _Parser(words=parts.words)
    parser.run()
    missed = sum(len(use.words.split()) for use in parser.uses if use.state == "left out")
    if missed * 2 > len(parts.words):
        parser = _translated(parts.words, len(parts.words) - missed) or parser
    if not parser.things:
        parser = _with_ideas(parser) or parser
    texts = parts.quoted
    quoted = [WordUse(words=text, state="drawn", shown="a sign") for text in texts]
    return ParsedPrompt(
        things=tuple(parser.things),
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


class _Parser(msgspec.Struct):
    """Walks over the words once, and always takes the longest known phrase."""

    words: Sequence[str]
    at: int = 0
    things: list[Subject] = msgspec.field(default_factory=list[Subject])
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
    # Numbers, colours and sizes before their noun.
    modifiers: list[str] = msgspec.field(default_factory=list[str])
    # Things named one after another: all of "a dog and a cat on a sofa" are on it.
    joined: list[int] = msgspec.field(default_factory=list[int])

    def run(self) -> None:
        """Parse all words."""
        while self.at < len(self.words):
            self.at += self._take_phrase() or self._take_word()
        self._drop_modifiers()
        if self.relation == "on" and self.words[-1] == "top" and len(self.things) > 1:
            # "a sign with a bird on top"
            self.things[-1] = replace(self.things[-1], relation=Relation("on", 0))

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
            if text in styles.STYLE_OF:
                self.drawn_style = styles.STYLE_OF[text]
                self._note(text, "drawn", self.drawn_style)
            elif text in grammar.STYLE_PHRASES:
                self._note(text, "left out")
            elif text in grammar.RELATIONS:
                self._drop_modifiers()
                self.relation, self.relation_words = grammar.RELATIONS[text], text
                if phrase[0] == "sleeping":
                    self._sleep(text)
                elif phrase[0] in grammar.ALOFT_WORDS and self.relation == "above" and self.things:
                    self.things[-1] = replace(self.things[-1], aloft=True)
            elif text in grammar.OTHER_THINGS:
                self._miss(text)
            elif self._take_look(text) or self._take_part(text):
                pass
            elif not (self._take_scene(phrase) or self._take_thing(phrase)):
                continue
            return length
        return 0

    def _take_scene(self, phrase: tuple[str, ...]) -> bool:
        counted = self.count is not None and self._picture(phrase) is not None
        if counted or not _is_scene(phrase):
            return False
        if self._leave_out(phrase):
            return True
        if phrase in scenes.PLACE_PHRASES:
            shown = scenes.PLACE_PHRASES[phrase]
            self.places.append(shown)
        elif phrase in scenes.HOUR_PHRASES:
            shown = self.hour = scenes.HOUR_PHRASES[phrase]
        else:
            shown = scenes.WEATHER_PHRASES[phrase]
            self.weather.add(shown)
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
        if words == "ball" and any(thing.asset == "tennis" for thing in self.things):
            self._note("ball", "drawn", "tennis")
        elif self.things and assets.info(name).group in vocabulary.BODY_PARTS:
            self._note(self._whole(words), "left out")
        else:
            plural = phrase not in vocabulary.phrases() and singular(phrase[-1]) != phrase[-1]
            count = self.count or (grammar.BARE_PLURAL if plural else 1)
            self._note_thing(phrase, name)
            self._add(
                Subject(
                    asset=name,
                    words=words,
                    count=min(count, grammar.MAX_COUNT),
                    colour=self.colour,
                    scale=self.scale,
                    aloft=self.aloft,
                    person=self._new_person(name),
                )
            )
            self._equip(words)
        self._clear()
        return True

    def _equip(self, words: str) -> None:
        """Give a person what belongs to the role: a player has a racket."""
        tool = people.EQUIPMENT.get(singular(words))
        if tool and len(self.things) < MAX_THINGS and self.things[-1].count == 1:
            held = Relation("holding", len(self.things) - 1)
            self.things.append(Subject(asset=tool, words=tool, relation=held))

    def _new_person(self, name: str) -> Person | None:
        """The person of a name, with the look of the words before it."""
        person = PEOPLE.get(name)
        state: State = "left out" if person is None else "drawn"
        for word in self.look_words:
            self._note(word, state)
        look = dict(self.look)
        if self.colour in people.HAIR_COLOURS and name != "robot":
            look.setdefault("top_colour", grammar.COLOURS[self.colour])
        self.look.clear()
        self.look_words.clear()
        return None if person is None else replace(person, **look)

    def _take_look(self, text: str) -> bool:
        """Words for hair, beard, glasses, clothes, mood or pose of the person they are about."""
        look = _look(text, self.colour)
        if look is None:
            return False
        place = self._person_before()
        wanted = text in people.HAIR_STYLES and self.words[self.at + 1 : self.at + 2] != ("hair",)
        if wanted or (place is None and text not in people.MOODS and "hair" not in look):
            return False
        whole, before = self._whole(text), self.words[self.at - 1] if self.at else ""
        if place is not None and (self.relation or self._just_named(before) or "pose" in look):
            self.things[place] = self._with_look(place, {**self.look, **look})
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

    def _take_part(self, text: str) -> bool:
        """A part of the last thing: the door of a house is painted, not drawn beside it."""
        place = next((at for at, one in enumerate(self.things) if one.asset in PARTS), None)
        if place is None or singular(text) not in PARTS[self.things[place].asset]:
            return False
        thing, part = self.things[place], singular(text)
        if self.colour is not None and PARTS[thing.asset][part]:
            painted = (part, grammar.COLOURS[self.colour])
            self.things[place] = replace(thing, parts=(*thing.parts, painted))
        fixed = self.modifiers and not PARTS[thing.asset][part]
        self._note(self._whole(text), "approximated" if fixed else "drawn", thing.asset)
        self._clear()
        return True

    def _with_look(self, place: int, look: Mapping[str, Any]) -> Subject:
        thing = self.things[place]
        person = thing.person or Person()
        return replace(thing, person=replace(person, **look))

    def _person_before(self) -> int | None:
        """The person that words after a noun are about."""
        last = len(self.things) - 1
        for place in (last, self._subject(last)) if self.things else ():
            if self.things[place].person is not None:
                return place
        return None

    def _picture(self, phrase: tuple[str, ...]) -> str | None:
        known = vocabulary.phrases()
        one = (*phrase[:-1], singular(phrase[-1]))
        if self.count is not None and self.count > 1 and one in known:
            return known[one]
        return known.get(phrase) or known.get(one)

    def _add(self, thing: Subject) -> None:
        place, relation = len(self.things), self.relation
        if place >= MAX_THINGS:
            self.uses.pop()
            self._note(thing.words, "left out")
            return
        if relation is not None and self.relation_words != "with":
            near = "approximated" if relation == "facing" else "drawn"
            self._note(self.relation_words, near if place else "left out")
        self.things.append(thing)
        if relation is None or relation in _LOOSE or place == 0:
            self.joined.append(place)
            return
        subject = self._subject(place - 1)
        if relation in _BELONGS_TO_SUBJECT:
            self.things[place] = replace(thing, relation=Relation(relation, subject))
            return
        shared = relation == "on" and figures.carries_all(assets.info(thing.asset))
        for one in {subject, *self._movable()} if shared else {subject}:
            if self.things[one].relation is None:
                self.things[one] = replace(self.things[one], relation=Relation(relation, place))
        self.joined = [place]

    def _movable(self) -> list[int]:
        """The things named one after another that are no furniture themselves."""
        infos = {one: assets.info(self.things[one].asset) for one in self.joined}
        return [one for one, info in infos.items() if not figures.stands_behind(info)]

    def _subject(self, last: int) -> int:
        """The thing that a further phrase is about: the holder, not the held thing."""
        held = self.things[last].relation
        return held.to if held is not None and held.kind in _BELONGS_TO_SUBJECT else last

    def _take_word(self) -> int:
        word = self.words[self.at]
        if not word[0].isalnum():
            self._drop_modifiers()
            self.relation, self.negated = None, False
        elif word in grammar.NEGATIONS:
            self.negated = True
        elif word in grammar.ALOFT_WORDS:
            self._lift()
        elif word == "sleeping":
            self._sleep(word)
        elif word in grammar.SHOWN_BY_SCENE and grammar.SHOWN_BY_SCENE[word] & set(self.words):
            self._note(word, "drawn")
        elif not (self._take_modifier(word) or self._take_manner(word)):
            self._miss(word)
        return 1

    def _miss(self, words: str) -> None:
        """Record unmatched words, with the noun before them if they continue its name."""
        before = self.words[self.at - 1] if self.at else ""
        if self._just_named(before) and not words.endswith(grammar.NOT_A_NOUN):
            words = self._longer_name(words)
        if self.negated:
            self._note(f"no {words}", "drawn", "not there")
        else:
            if self.relation is not None and self.relation not in _LOOSE:
                self._note(self.relation_words, "left out")
            self._note(self._whole(words), "left out")
        self._clear()

    def _note(self, words: str, state: State, shown: str = "") -> None:
        self.uses.append(WordUse(words=words, state=state, shown=shown))

    def _note_thing(self, phrase: tuple[str, ...], name: str) -> None:
        near = vocabulary.is_approximate(phrase) or (self.count or 0) > grammar.MAX_COUNT
        self._note(self._whole(" ".join(phrase)), "approximated" if near else "drawn", name)

    def _whole(self, noun: str) -> str:
        """The noun with its number, colour and size."""
        return " ".join((*self.modifiers, noun))

    def _just_named(self, before: str) -> bool:
        return bool(self.things) and self.things[-1].words.split()[-1] == before

    def _longer_name(self, rest: str) -> str:
        """Remove the last thing if it was only the beginning of a longer name.

        A coffee grinder is not coffee, but a robot barista is a robot.
        """
        group = assets.info(self.things[-1].asset).group
        if group.startswith("person") or group == "face-costume":
            return rest
        thing = self.things.pop()
        place = len(self.things)
        self.joined = [one for one in self.joined if one != place]
        self.things = [
            replace(one, relation=None)
            if one.relation is not None and one.relation.to == place
            else one
            for one in self.things
        ]
        last = max(at for at, use in enumerate(self.uses) if use.words.endswith(thing.words))
        # The relation to it comes after it.
        self.uses[last:] = [replace(use, state="left out") for use in self.uses[last + 1 :]]
        return f"{thing.words} {rest}"

    def _lift(self) -> None:
        """Lift the previous thing ("a bird flying") or the next one ("a flying pig")."""
        self._note(self.words[self.at], "drawn")
        if self._just_named(self.words[max(self.at - 1, 0)]):
            self.things[-1] = replace(self.things[-1], aloft=True)
        else:
            self.aloft = True

    def _sleep(self, text: str) -> None:
        """Show the last thing asleep, if the pack has such a picture."""
        name = f"{self.things[-1].asset}-sleeping" if self.things else ""
        if name in assets.names():
            self.things[-1] = replace(self.things[-1], asset=name)
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
        self.count, self.colour, self.scale, self.relation = None, None, 1.0, None
        self.negated, self.aloft = False, False
        self.modifiers.clear()


def _look(text: str, colour: str | None) -> dict[str, Any] | None:
    """What a word says about the look of a person; None if it says nothing."""
    look: dict[str, Any] | None = None
    paint = grammar.COLOURS[colour] if colour else None
    if text in people.HAIR_WORDS or text in people.HAIR_STYLES:
        hair = people.HAIR_WORDS.get(text) or people.HAIR_STYLES.get(text)
        look = {"hair": hair} if hair else {}
        if colour:
            look["hair_colour"] = people.HAIR_COLOURS.get(colour, paint)
    elif text in people.HAIR_COLOURS and text not in grammar.COLOURS:
        look = {"hair_colour": people.HAIR_COLOURS[text]}
    elif text in people.BEARDS:
        look = {"beard": people.HAIR_COLOURS.get(colour or "", paint or "#6b4226")}
    elif text in people.GLASSES:
        look = {"glasses": True}
    elif text in people.CLOTHES:
        top = people.CLOTHES[text]
        look = {"top": top} if top else {}
        if paint:
            look["top_colour" if top else "legs_colour"] = paint
    elif text in people.POSES:
        look = {"pose": people.POSES[text]}
    elif text in people.MOODS:
        look = {"sad": people.MOODS[text]}
    return look


def _is_scene(phrase: tuple[str, ...]) -> bool:
    tables = (scenes.PLACE_PHRASES, scenes.HOUR_PHRASES, scenes.WEATHER_PHRASES)
    return any(phrase in table for table in tables)
