"""A prompt -> the things, the scene and the style it asks for, and the unmatched words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

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


class ParsedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The matched and unmatched parts of a prompt.

    ``scene`` is the scene that the prompt names; ``texts`` go on a sign. ``known`` counts the
    matched things and scene words; ``begins_known`` means that the first one was matched.
    """

    things: tuple[Subject, ...]
    scene: Scene
    texts: tuple[str, ...]
    style: tuple[str, ...]
    unmatched: tuple[str, ...]
    left_out: tuple[str, ...]
    known: int
    begins_known: bool

    @property
    def is_enough(self) -> bool:
        """Whether a drawing of the matched parts is a drawing of the prompt.

        More parts must be matched than not, or as many if the first is among them: a bicycle is
        not a drawing of a pelican on a bicycle.
        """
        missing = len(self.unmatched)
        return self.known > missing or (self.known == missing and self.begins_known)


def parse_prompt(prompt: str) -> ParsedPrompt:
    """Parse a prompt; the same prompt always gives the same result."""
    parts = split(prompt)
    parser = _Parser(words=parts.words)
    parser.run()
    texts = parts.quoted
    return ParsedPrompt(
        things=tuple(parser.things),
        scene=parser.scene(),
        texts=texts,
        style=tuple(dict.fromkeys(parser.style)),
        unmatched=tuple(dict.fromkeys(parser.unmatched)),
        left_out=tuple(dict.fromkeys(parser.left_out)),
        known=len(parser.things) + len(set(parser.scene_words)) + len(texts),
        begins_known=parser.begins_known or False,
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
    style: list[str] = msgspec.field(default_factory=list[str])
    unmatched: list[str] = msgspec.field(default_factory=list[str])
    left_out: list[str] = msgspec.field(default_factory=list[str])
    scene_words: list[str] = msgspec.field(default_factory=list[str])
    places: list[str] = msgspec.field(default_factory=list[str])
    weather: set[str] = msgspec.field(default_factory=set[str])
    hour: str | None = None
    paper: str | None = None
    alone: bool = False
    count: int | None = None
    colour: str | None = None
    scale: float = 1.0
    relation: str | None = None
    negated: bool = False
    aloft: bool = False
    begins_known: bool | None = None
    # Things named one after another: all of "a dog and a cat on a sofa" are on it.
    joined: list[int] = msgspec.field(default_factory=list[int])

    def run(self) -> None:
        """Parse all words."""
        while self.at < len(self.words):
            self.at += self._take_phrase() or self._take_word()
            if self.begins_known is None and (self.things or self.scene_words or self.unmatched):
                self.begins_known = not self.unmatched
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
                self.style.append(text)
            elif text in grammar.RELATIONS:
                self._drop_modifiers()
                self.relation = grammar.RELATIONS[text]
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
            self.places.append(scenes.PLACE_PHRASES[phrase])
        elif phrase in scenes.HOUR_PHRASES:
            self.hour = scenes.HOUR_PHRASES[phrase]
        else:
            self.weather.add(scenes.WEATHER_PHRASES[phrase])
        self.scene_words.append(" ".join(phrase))
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
            self.unmatched.append(words)
        else:
            plural = phrase not in vocabulary.phrases() and singular(phrase[-1]) != phrase[-1]
            count = self.count or (grammar.BARE_PLURAL if plural else 1)
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
            self.left_out.append(thing.words)
            return
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
        (self.left_out if self.negated else self.unmatched).append(words)
        self._clear()

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
        if not (self.things or self.scene_words or self.unmatched):
            self.begins_known = None
        return f"{thing.words} {rest}"

    def _lift(self) -> None:
        """Lift the previous thing ("a bird flying") or the next one ("a flying pig")."""
        if self._just_named(self.words[max(self.at - 1, 0)]):
            self.things[-1] = replace(self.things[-1], aloft=True)
        else:
            self.aloft = True

    def _take_modifier(self, word: str) -> bool:
        if word in grammar.NUMBERS:
            self.count = grammar.NUMBERS[word]
        elif word.isdecimal():
            self.count = min(int(word[:4]), grammar.MAX_COUNT) or None
        elif word in grammar.COLOURS:
            self.colour = word
        elif word in grammar.SIZES:
            self.scale = grammar.SIZES[word]
        elif word in _BACKGROUND_WORDS and self.colour:
            self.paper = grammar.COLOURS[self.colour]
            self._clear()
        else:
            return False
        return True

    def _take_manner(self, word: str) -> bool:
        following = set(self.words[self.at + 1 : self.at + 2])
        plain = word in _PLAIN_WORDS and bool(following & _BACKGROUND_WORDS)
        if plain or word in grammar.ALONE_WORDS:
            self.alone = True
        elif word in grammar.UNSUPPORTED_WORDS:
            self.alone = True
            self.unmatched.append(word)
        elif word in grammar.STYLE_WORDS:
            self.style.append(word)
        else:
            return word in grammar.STOP_WORDS or word in grammar.LIGHT_VERBS
        return True

    def _leave_out(self, phrase: tuple[str, ...]) -> bool:
        if not self.negated:
            return False
        self.left_out.append(" ".join(phrase))
        self._clear()
        return True

    def _drop_modifiers(self) -> None:
        """Treat a colour without a noun as a thing, or as an unmatched word."""
        colour = self.colour
        if colour in grammar.COLOUR_AS_THING:
            self._add(
                Subject(
                    asset=grammar.COLOUR_AS_THING[colour],
                    words=colour,
                    count=self.count or 1,
                    scale=self.scale,
                )
            )
        elif colour is not None:
            self.unmatched.append(colour)
        self.count, self.colour, self.scale = None, None, 1.0

    def _clear(self) -> None:
        self.count, self.colour, self.scale, self.relation = None, None, 1.0, None
        self.negated, self.aloft = False, False


def _is_scene(phrase: tuple[str, ...]) -> bool:
    tables = (scenes.PLACE_PHRASES, scenes.HOUR_PHRASES, scenes.WEATHER_PHRASES)
    return any(phrase in table for table in tables)
