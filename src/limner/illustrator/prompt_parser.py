"""A prompt -> the things and the scene it asks for, and an account of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, grammar, scenes, vocabulary
from limner.illustrator.scenes import Scene
from limner.illustrator.words import singular, split

MAX_THINGS = 12
_PLAIN_WORDS = frozenset({"plain", "simple", "blank", "solid"})
_BACKGROUND_WORDS = frozenset({"background", "backdrop"})
# With these, the thing after the word belongs to the thing before it; with others, vice versa.
_BELONGS_TO_SUBJECT = frozenset({"holding", "wearing"})
_LOOSE = frozenset({"beside"})


class Relation(msgspec.Struct, frozen=True):
    """The relation of a thing to another one, by its index in the list of things."""

    kind: str
    to: int


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A thing to draw: its picture, count, colour and scale, and whether it is in the air."""

    asset: str
    words: str
    count: int = 1
    colour: str | None = None
    scale: float = 1.0
    aloft: bool = False
    relation: Relation | None = None


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
    texts = parts.quoted
    quoted = [WordUse(words=text, state="drawn", shown="a sign") for text in texts]
    return ParsedPrompt(
        things=tuple(parser.things),
        scene=parser.scene(),
        texts=texts,
        uses=(*parser.uses, *quoted),
    )


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
    count: int | None = None
    colour: str | None = None
    scale: float = 1.0
    relation: str | None = None
    relation_words: str = ""
    negated: bool = False
    aloft: bool = False
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
            if text in grammar.STYLE_PHRASES:
                self._note(text, "left out")
            elif text in grammar.RELATIONS:
                self._drop_modifiers()
                self.relation, self.relation_words = grammar.RELATIONS[text], text
            elif text in grammar.OTHER_THINGS:
                self._miss(text)
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
        if self.things and assets.info(name).group in vocabulary.BODY_PARTS:
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
                )
            )
        self._clear()
        return True

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
            self._note(self.relation_words, "drawn" if place else "left out")
        self.things.append(thing)
        if relation is None or relation in _LOOSE or place == 0:
            self.joined.append(place)
            return
        subject = self._subject(place - 1)
        if relation in _BELONGS_TO_SUBJECT:
            self.things[place] = replace(thing, relation=Relation(relation, subject))
            return
        furniture = relation == "on" and assets.info(thing.asset).group == "household"
        for one in {subject, *self.joined} if furniture else {subject}:
            if self.things[one].relation is None:
                self.things[one] = replace(self.things[one], relation=Relation(relation, place))
        self.joined = [place]

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
        self.count, self.colour, self.scale, self.relation = None, None, 1.0, None
        self.negated, self.aloft = False, False
        self.modifiers.clear()


def _is_scene(phrase: tuple[str, ...]) -> bool:
    tables = (scenes.PLACE_PHRASES, scenes.HOUR_PHRASES, scenes.WEATHER_PHRASES)
    return any(phrase in table for table in tables)
