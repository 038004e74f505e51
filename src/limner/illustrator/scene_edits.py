"""A kept drawing and words about a change -> the changed drawing, and an account of the words.

The words are split into clauses. Each clause has an action, by its verb, and the parser of prompts
reads the rest. Things that no clause names keep their place, colour and size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

import msgspec
from msgspec.structs import replace

from limner.errors import InputInvalid
from limner.illustrator import assets, edit_words, figures, grammar, people, scenes, vocabulary
from limner.illustrator.compose import complete_scene
from limner.illustrator.edit_words import ACTIONS
from limner.illustrator.layout import KeptDrawing, Spot, Wish
from limner.illustrator.palette import PARTS
from limner.illustrator.parsed_prompt import ParsedPrompt, Relation, State, Subject, WordUse
from limner.illustrator.people import PEOPLE
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.scenes import Scene
from limner.illustrator.thing_list import MAX_THINGS
from limner.illustrator.words import IRREGULAR_PLURALS, singular, split

Words = tuple[str, ...]

WHAT_WORKS = (
    'What works: "remove the tree", "add a red balloon on the left", "two more ducks", '
    '"make the house blue", "replace the cat with a dog", "make the tree bigger", "move the bird '
    'to the right", "make it night", "let it snow", "as pixel art", "put it on a beach".'
)
_MAX_SCALE, _MIN_SCALE = 4.0, 0.2
_SHIFT, _SLIGHT_SHIFT = 0.25, 0.12
_BESIDE = 0.24
_QUOTE = "quotedtext"
_SIGN = "signboard"
_ARTICLES = frozenset({"a", "an", "the", "some", "its", "his", "her", "their", "my"})
_AFLOAT = frozenset({"space", "underwater", "sky"})
_WATERS = frozenset({"sea", "lake", "beach", "underwater", "cliff"})


class EditedDrawing(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a changed drawing, what to keep of it, and each change in a few words."""

    parsed: ParsedPrompt
    kept: KeptDrawing
    changes: tuple[str, ...]


def edit_drawing(kept: KeptDrawing, words: str) -> EditedDrawing:
    """Change a drawing that has a layout; the same words always make the same change.

    Without words it stays as it is.

    Raises:
        InputInvalid: a thing is not in the picture, or no part of the words can be done.
    """
    layout = kept.layout
    if layout is None:
        raise InputInvalid(
            "This picture is a card or a symbol that was drawn as a whole. Nothing was changed.",
            field="prompt",
            hint="Draw it again from other words with image_generate.",
        )
    editor = _Editor(
        things=list(layout.things),
        spots=list(layout.spots),
        scene=layout.scene,
        texts=kept.texts,
        style=kept.style,
        focus=layout.focus,
    )
    action = ""
    for clause, quoted in _clauses(words):
        action = editor.edit(clause, quoted, action)
    if words and not editor.changes:
        raise InputInvalid(
            f"The illustrator does not know this change: {words[:80]!r}.",
            field="prompt",
            hint=f"The picture shows {editor.listing()}. {WHAT_WORKS}",
        )
    things, places = editor.numbered()
    changed = replace(
        layout,
        things=things,
        scene=editor.scene,
        room=layout.room if editor.scene.places == layout.scene.places else None,
        spots=tuple(
            replace(spot, thing=places[spot.thing])
            for spot in editor.spots
            if spot.thing in places and spot.nth < editor.things[spot.thing].count
        ),
        wishes={places[at]: wish for at, wish in editor.wishes.items() if at in places},
        focus=places.get(editor.focus, 0),
    )
    parsed = ParsedPrompt(
        things=things,
        scene=editor.scene,
        texts=editor.texts,
        uses=tuple(editor.uses),
        style=editor.style,
    )
    return EditedDrawing(
        parsed=parsed, kept=replace(kept, layout=changed), changes=tuple(editor.changes)
    )


# --- words ---


def _clauses(text: str) -> Iterator[tuple[Words, Words]]:
    """The clauses of an edit in English words, each with its quoted texts."""
    quoted = split(text).quoted
    bare = text
    for one in quoted:
        # One word, so that the text stays in its clause.
        bare = re.sub(rf"[\"“«']{re.escape(one)}[\"”»']", f" {_QUOTE} ", bare, count=1)
    left = iter(quoted)
    for clause in _split(_in_english(split(bare).words)):
        yield clause, tuple(next(left, "") for word in clause if word == _QUOTE)


def _in_english(words: Sequence[str]) -> Words:
    """The words, translated if most of them are no English words."""
    known = sum(_is_english(word) for word in words)
    english = tuple(words)
    if known * 2 <= len(words):
        from limner.illustrator.languages import to_english  # noqa: PLC0415 - loaded on first use

        english = to_english(words, known=known) or english
    return english


def _is_english(word: str) -> bool:
    return (
        not word[0].isalnum()
        or word in _edit_vocabulary()
        or word in grammar.STOP_WORDS | grammar.STYLE_WORDS | grammar.LIGHT_VERBS
        or word in grammar.COLOURS
        or word in grammar.NUMBERS
        or word in grammar.RELATIONS
        or word.isdecimal()
        or (word,) in vocabulary.phrases()
        or (singular(word),) in vocabulary.phrases()
        or any((word,) in table for table in _SCENE_TABLES)
    )


_PLURALS = {
    **{one: several for several, one in IRREGULAR_PLURALS.items()},
    **{one: one for one in ("sheep", "fish", "deer")},
}
_SCENE_TABLES = (scenes.PLACE_PHRASES, scenes.HOUR_PHRASES, scenes.WEATHER_PHRASES)


@cache
def _edit_vocabulary() -> frozenset[str]:
    phrases = {word for phrase in ACTIONS for word in phrase.split()}
    return frozenset(
        phrases
        | edit_words.FILLERS
        | edit_words.IT
        | edit_words.MORE
        | edit_words.TEXT_WORDS
        | edit_words.SHOULD
        | {word for phrase in edit_words.SCALES for word in phrase}
        | {*edit_words.STEPS, *edit_words.CONNECTIVES, *edit_words.EXCEPT, _QUOTE}
    )


def _split(words: Words) -> Iterator[Words]:
    """The clauses of an edit; "replace the cat and the dog by a fox" is one."""
    clause: list[str] = []
    for word in _as_parsed(words):
        whole = clause and ACTIONS.get(clause[0]) == "replace"
        open_ = whole and not set(clause) & {*edit_words.CONNECTIVES}
        excepting = word == "but" and clause and clause[-1] in edit_words.EVERYTHING
        if word in edit_words.CLAUSE_ENDS and not open_ and not excepting:
            if clause:
                yield tuple(clause)
            clause = []
        elif clause or word not in edit_words.FILLERS:
            clause.append(word)
    if clause:
        yield tuple(clause)


def _as_parsed(words: Words) -> Words:
    """The words, with some phrases as the parser of prompts knows them."""
    text = f" {' '.join(words)} "
    for said, known in edit_words.SAID.items():
        text = text.replace(f" {said} ", f" {known} ")
    return tuple(text.split())


def _action_of(words: Words) -> tuple[str, Words]:
    """The action of a clause by its first words, and the rest; empty if there is no verb."""
    for length in range(min(edit_words.LONGEST_ACTION, len(words)), 0, -1):
        phrase = " ".join(words[:length])
        if phrase in ACTIONS:
            return ACTIONS[phrase], words[length:]
    return "", words


def _cut(words: Words, phrases: Iterable[Words]) -> tuple[Words, Words | None]:
    """The words without the first of these phrases that is in them, and that phrase."""
    for phrase in phrases:
        for at in range(len(words) - len(phrase) + 1):
            if words[at : at + len(phrase)] == phrase:
                return words[:at] + words[at + len(phrase) :], phrase
    return words, None


def _cut_scale(words: Words) -> tuple[Words, float | None]:
    """The words without those for a change of size, and the factor."""
    rest, found = _cut(words, edit_words.SCALES)
    if found is None:
        return words, None
    factor = edit_words.SCALES[found]
    rest, much = _cut(rest, edit_words.MUCH)
    rest, slightly = _cut(rest, edit_words.SLIGHTLY)
    if much:
        factor = factor**2
    return rest, factor**0.5 if slightly else factor


def _cut_position(words: Words) -> tuple[Words, Wish | None]:
    """The words without those for a place on the canvas, and that place."""
    text = " ".join(words)
    if edit_words.BESIDE.search(text) or not (found := edit_words.POSITION.search(text)):
        return words, None
    rest = f"{text[: found.start()]} {text[found.end() :]}".split()
    return tuple(rest), edit_words.POSITIONS[found["place"]]


def _cut_tail(words: Words, table: Iterable[str]) -> tuple[Words, str | None]:
    """The words without the last one, if a table has it."""
    return (words[:-1], words[-1]) if words and words[-1] in set(table) else (words, None)


def _without_articles(words: Words) -> Words:
    return tuple(word for word in words if word not in _ARTICLES)


# --- the editor ---


class _Editor(msgspec.Struct, kw_only=True):
    """The parts of a drawing while its clauses are done one after the other."""

    things: list[Subject]
    spots: list[Spot]
    scene: Scene
    texts: tuple[str, ...]
    style: str
    focus: int = 0
    gone: set[int] = msgspec.field(default_factory=set[int])
    wishes: dict[int, Wish] = msgspec.field(default_factory=dict[int, Wish])
    uses: list[WordUse] = msgspec.field(default_factory=list[WordUse])
    changes: list[str] = msgspec.field(default_factory=list[str])

    def edit(self, words: Words, quoted: Words, previous: str) -> str:
        """Do one clause; without a verb it continues the action of the one before."""
        action, rest = _action_of(words)
        if not action and edit_words.SHOULD & set(words):
            action = "change"
        if not action:
            action = "add" if edit_words.MORE & set(words[:2]) else previous or "change"
        before = len(self.changes)
        if action in ("add", "change") and self._write(words, quoted, action):
            return action
        if not rest and action in ("remove", "put", "move", "give"):
            pass
        elif words[0] in edit_words.SCALING_VERBS:
            self._resize(self._named(rest), edit_words.SCALING_VERBS[words[0]])
        else:
            self._doer(action)(rest)
        if len(self.changes) == before:
            self._note(" ".join(words), "left out")
        return action

    def _doer(self, action: str) -> Callable[[Words], None]:
        return {
            "remove": self._remove,
            "add": self._add,
            "replace": self._replace,
            "move": self._move,
            "put": self._put,
            "give": self._give,
            "change": self._change,
        }[action]

    def listing(self) -> str:
        """What is in the picture, for the user."""
        names = [_described(self.things[at]) for at in self._there()]
        return ", ".join([*names, f"scene: {self.scene.name}"])

    def numbered(self) -> tuple[tuple[Subject, ...], dict[int, int]]:
        """The things that are left, with their relations, and the new number of each old one."""
        places = {old: new for new, old in enumerate(self._there())}
        things = tuple(
            replace(thing, relation=Relation(thing.relation.kind, places[thing.relation.to]))
            if thing.relation is not None and thing.relation.to in places
            else replace(thing, relation=None)
            for thing in (self.things[at] for at in places)
        )
        return things, places

    def _there(self) -> list[int]:
        return [at for at in range(len(self.things)) if at not in self.gone]

    def _note(self, words: str, state: State, shown: str = "") -> None:
        if words:
            self.uses.append(WordUse(words=words, state=state, shown=shown))

    def _done(self, change: str, *touched: int) -> None:
        self.changes.append(change)
        if touched:
            self.focus = touched[-1]

    def _parse(self, words: Words) -> ParsedPrompt:
        parsed = parse_prompt(" ".join(words))
        self.uses += parsed.uses
        return parsed

    # --- which things are meant ---

    def _named(self, words: Words) -> list[int]:
        """The things that words name.

        Raises:
            InputInvalid: one of them is not in the picture.
        """
        bare = _without_articles(words)
        if not bare or set(bare) <= edit_words.IT:
            found = [self.focus] if self.focus in self._there() else self._there()[:1]
        elif set(bare) <= edit_words.EVERYTHING:
            found = self._there()
        else:
            found = self._find(bare)
        if not found:
            what = f"no {' '.join(bare)}" if bare and not set(bare) <= edit_words.IT else "nothing"
            raise InputInvalid(
                f"There is {what} in this picture. Nothing was changed.",
                field="prompt",
                hint=f"The picture shows {self.listing()}.",
            )
        return found

    def _find(self, words: Words) -> list[int]:
        """The things that words may mean: by picture, by its words, or by its kind."""
        wanted = [thing.asset for thing in parse_prompt(" ".join(words)).things]
        colours = [word for word in words if word in grammar.COLOURS]
        nouns = {singular(word) for word in words}
        there = self._there()
        by_name = [at for at in there if self.things[at].asset in wanted]
        by_words = [at for at in there if singular(self.things[at].words.split()[-1]) in nouns]
        kinds = tuple(kind for noun, kind in edit_words.KINDS.items() if noun in nouns)
        by_kind = [at for at in there if kinds and _group(self.things[at]).startswith(kinds)]
        for found in (by_name, by_words, by_kind):
            coloured = [at for at in found if self.things[at].colour in colours]
            if found:
                return coloured or found
        return []

    # --- actions ---

    def _remove(self, words: Words) -> None:
        rest, excepting = _cut(words, ((one,) for one in edit_words.EXCEPT))
        if excepting:
            at = words.index(excepting[0])
            kept = set(self._named(words[at + 1 :]))
            self._drop([one for one in self._there() if one not in kept])
            return
        bare = _without_articles(rest)
        if set(bare) & edit_words.TEXT_WORDS or bare == ("sign",):
            self._drop([at for at in self._there() if self.things[at].asset == _SIGN])
            self.texts = ()
            return
        if bare in (("background",), ("backdrop",)):
            self._set_scene(Scene(paper="#ffffff"))
            return
        if not self._find(bare) and self._remove_scene(rest):
            return
        if not self._find(bare) and self._remove_look(bare):
            return
        parsed = parse_prompt(" ".join(rest))
        for at in self._named(bare):
            thing = self.things[at]
            some = [one for one in parsed.things if one.asset == thing.asset]
            fewer = some[0].count if some and _has_number(words) else thing.count
            if words[:1] in (("a",), ("an",), ("one",)):
                fewer = 1
            if fewer < thing.count:
                self.things[at] = replace(thing, count=thing.count - fewer)
                self._done(f"{fewer} of {thing.count} {thing.words} removed", at)
            else:
                self._drop([at])
        self._note(" ".join(bare), "drawn", "not there")

    def _drop(self, places: Sequence[int]) -> None:
        for at in places:
            # What was on it stays, if it can stand alone; what it wore or held goes with it.
            self.gone.add(at)
            self.changes.append(f"{_described(self.things[at])} removed")
            self._hand_over(at)
            worn = [
                one
                for one in self._there()
                if (held := self.things[one].relation) is not None
                and held.to == at
                and held.kind in ("wearing", "holding")
            ]
            self._drop(worn)
        if self.focus in self.gone:
            self.focus = next(iter(self._there()), 0)

    def _hand_over(self, at: int) -> None:
        """What was on a thing that is removed stands where that stood."""
        tied = [
            one
            for one in self._there()
            if (relation := self.things[one].relation) is not None and relation.to == at
        ]
        left = [spot for spot in self.spots if spot.thing == at][:1]
        self.spots += [replace(spot, thing=one, nth=0) for one in tied[:1] for spot in left]

    def _remove_scene(self, words: Words) -> bool:
        named = parse_prompt(" ".join(words)).scene
        scene = self.scene
        weather = scene.weather - named.weather
        places = tuple(one for one in scene.places if one not in named.places)
        if "snow" in named.places or "snowfall" in named.weather:
            weather -= {"snowfall"}
            places = tuple(one for one in places if one != "snow")
        hour = "day" if named.hour and named.hour == scene.hour else scene.hour
        there = [self.things[at] for at in self._there()]
        changed = complete_scene(replace(scene, weather=weather, places=places, hour=hour), there)
        if not named.is_named or (scene.places and changed == scene):
            return False
        self.scene = changed
        self._note(" ".join(words), "drawn", "not there")
        self._done(f"{' '.join(_without_articles(words))} removed")
        return True

    def _remove_look(self, words: Words) -> bool:
        """Take glasses, a beard or a hat from the people who have them."""
        looks: dict[str, object] = {}
        for word in words:
            if word in people.GLASSES:
                looks["glasses"] = False
            elif word in people.BEARDS:
                looks["beard"] = None
            elif word in ("hat", "cap", "helmet", "crown"):
                looks["hat"] = None
        changed = False
        for at in self._there():
            person = self.things[at].person
            if looks and person is not None and replace(person, **looks) != person:
                self.things[at] = replace(self.things[at], person=replace(person, **looks))
                self._done(f"{' '.join(words)} removed", at)
                changed = True
        return changed

    def _add(self, words: Words) -> None:
        words, wish = _cut_position(words)
        words, side = _cut_side(words)
        more = bool(edit_words.MORE & set(words))
        words = tuple(word for word in words if word not in edit_words.MORE)
        if self._is_look(words):
            self._give(("it", *words))
            return
        parsed = self._parse(words)
        if parsed.scene.is_named or parsed.style:
            self._set_scene(parsed.scene, keep_places=True)
            self._set_style(parsed.style)
        if parsed.things:
            self._join(parsed.things, words, wish=wish, side=side, more=more)

    def _join(
        self, added: Sequence[Subject], words: Words, *, wish: Wish | None, side: int, more: bool
    ) -> None:
        """Add parsed things; those with an article that are there already are only named."""
        places: dict[int, int] = {}
        for number, thing in enumerate(added):
            alike = [
                at
                for at in self._there()
                if self.things[at].asset == thing.asset and number not in places
            ]
            definite = number > 0 and not _is_indefinite(thing.words, words)
            if alike and definite:
                places[number] = alike[0]
                continue
            same = [at for at in alike if _is_same_look(self.things[at], thing)]
            if same and (more or (thing.relation is None and wish is None)):
                places[number] = self._increase(same[0], _count_in(words, thing))
            elif len(self._there()) < MAX_THINGS:
                single = more and not _has_number(words)
                places[number] = len(self.things)
                self.things.append(replace(thing, count=1) if single else thing)
                self._done(f"{_described(self.things[-1])} added", places[number])
        self._relate(added, places)
        first = places.get(0)
        if first is not None and wish is not None:
            self.wishes[first] = wish
        elif first is not None and side and 1 in places:
            self.wishes[first] = self._beside(places[1], side)

    def _relate(self, added: Sequence[Subject], places: Mapping[int, int]) -> None:
        for number, at in places.items():
            relation = added[number].relation
            if relation is None or relation.to not in places or at == places[relation.to]:
                continue
            to = places[relation.to]
            if not self._leads_to(to, at):
                self.things[at] = replace(self.things[at], relation=Relation(relation.kind, to))

    def _leads_to(self, start: int, end: int) -> bool:
        """Whether a thing is attached to another, directly or not."""
        seen: set[int] = set()
        relation = self.things[start].relation
        while relation is not None and relation.to not in seen:
            if relation.to == end:
                return True
            seen.add(relation.to)
            relation = self.things[relation.to].relation
        return False

    def _increase(self, at: int, count: int) -> int:
        thing = self.things[at]
        total = min(thing.count + count, grammar.MAX_COUNT)
        self.things[at] = replace(thing, count=total)
        self._done(_described(self.things[at]), at)
        return at

    def _beside(self, at: int, side: int) -> Wish:
        spots = [spot.x for spot in self.spots if spot.thing == at]
        middle = sum(spots) / len(spots) if spots else 0.5
        return middle + side * _BESIDE, None

    def _replace(self, words: Words) -> None:
        old, new = _halves(words, edit_words.CONNECTIVES)
        if not new:
            self._change(words)
            return
        self._swap(self._named(old), new)

    def _swap(self, places: Sequence[int], words: Words) -> None:
        """Put another thing in the place of some."""
        parsed = self._parse(words)
        if not parsed.things or not places:
            return
        new, at = parsed.things[0], places[0]
        old = self.things[at]
        count = new.count if _has_number(words) or words[:1] in (("a",), ("an",)) else old.count
        self.things[at] = replace(
            new,
            count=count,
            scale=new.scale if new.scale != 1.0 else old.scale,
            relation=old.relation,
        )
        self.wishes.setdefault(at, (None, None))
        if count > old.count or _element(old) != _element(new):
            self.spots = [spot for spot in self.spots if spot.thing != at]
        self._done(f"{_described(old)} became {_described(self.things[at])}", at)
        for other in places[1:]:
            self._drop([other])

    def _move(self, words: Words) -> None:
        slight = bool({"bit", "little", "slightly", "further"} & set(words))
        words, _ = _cut(words, (*edit_words.SLIGHTLY, ("further",), ("over",)))
        bare, position = _cut_position(words)
        rest, side = _cut_side(words)
        steps = [edit_words.STEPS[word] for word in words if word in edit_words.STEPS]
        if side:
            at = next(place for place, word in enumerate(rest) if word == "beside")
            wish = self._beside(self._named(rest[at + 1 :])[0], side)
            names = rest[:at]
        elif position is not None and not (slight and steps):
            wish, names = position, bare
        elif steps:
            names = tuple(w for w in bare if w not in edit_words.STEPS and w != "to")
            wish = None
        else:
            self._put(words)
            return
        for at in self._named(names):
            self._detach(at)
            root = self._root(at)
            state: State = "drawn" if root == at else "approximated"
            self.wishes[root] = wish or self._stepped(root, steps[0], slight=slight)
            self._note(" ".join(words), state, self.things[root].words)
            self._done(f"{_described(self.things[root])} moved", root)

    def _detach(self, at: int) -> None:
        """A thing above, behind or in front of another can move alone."""
        relation = self.things[at].relation
        if relation is not None and relation.kind in ("above", "behind", "front", "under"):
            aloft = self.things[at].aloft or relation.kind == "above"
            self.things[at] = replace(self.things[at], relation=None, aloft=aloft)

    def _root(self, at: int) -> int:
        """The thing that another one is attached to, since both move together."""
        for _ in range(MAX_THINGS):
            relation = self.things[at].relation
            if relation is None or relation.kind == "between":
                break
            at = relation.to
        return at

    def _stepped(self, at: int, step: tuple[int, int], *, slight: bool) -> Wish:
        spots = [spot for spot in self.spots if spot.thing == at]
        size = _SLIGHT_SHIFT if slight else _SHIFT
        across, down = step
        if not spots:
            return None, None
        x = sum(spot.x for spot in spots) / len(spots)
        # A spot is the foot of a thing, a wish its middle: they differ by about this.
        y = sum(spot.y for spot in spots) / len(spots) - 0.15
        return (x + across * size if across else None, y + down * size if down else None)

    def _put(self, words: Words) -> None:
        """Put a thing that is there to another place, or a new thing into the picture."""
        if not words:
            return
        bare = _without_articles(words)
        named, wish = _cut_position(words)
        if wish is not None and not edit_words.BESIDE.search(" ".join(words)):
            if words[0] not in ("a", "an") and self._find(_without_articles(named)):
                self._move(words)
                return
        elif bare and bare[0] in edit_words.IT:
            self._change(bare)
            return
        elif words[0] not in ("a", "an", "another") and self._reattach(words):
            return
        self._add(words)

    def _reattach(self, words: Words) -> bool:
        """Set the relation between two things that are there: "put the cat on the sofa"."""
        parsed = parse_prompt(" ".join(words))
        if not parsed.things:
            return False
        first = [at for at in self._there() if self.things[at].asset == parsed.things[0].asset]
        if first and parsed.scene.is_named:
            self._set_scene(self._parse(words).scene)
            return True
        if not first or len(parsed.things) < 2:
            return False
        other = self._named((parsed.things[1].words,))[0]
        relation = parsed.things[0].relation
        if relation is None:
            self.wishes[first[0]] = self._beside(other, 1)
        elif not self._leads_to(other, first[0]):
            self.things[first[0]] = replace(
                self.things[first[0]], relation=Relation(relation.kind, other)
            )
        self._parse(words)
        self._done(f"{_described(self.things[first[0]])} moved", first[0])
        return True

    def _is_look(self, words: Words) -> bool:
        """Whether words are about the look of the only person of the picture."""
        bare = _without_articles(words)
        looks = {*people.GLASSES, *people.BEARDS, *people.HAIR_WORDS}
        has_person = any(self.things[at].person for at in self._there())
        return has_person and bool(bare) and bare[-1] in looks

    def _give(self, words: Words) -> None:
        """Give a person or an animal something to wear or hold, or another look."""
        at, rest = self._receiver(words)
        thing = self.things[at]
        parsed = parse_prompt(f"a {thing.words} with {' '.join(rest)}")
        if not parsed.things or parsed.things[0].asset != thing.asset:
            return
        self.uses += parsed.uses[1:]
        person, base = parsed.things[0].person, PEOPLE.get(thing.asset)
        if person is not None and base is not None and thing.person is not None:
            fields = type(person).__struct_fields__
            look = {name: getattr(person, name) for name in fields}
            new = {name: look[name] for name in fields if look[name] != getattr(base, name)}
            if new:
                self.things[at] = replace(thing, person=replace(thing.person, **new))
                self._done(f"{thing.words} with {' '.join(_without_articles(rest))}", at)
        for other in parsed.things[1:]:
            wears = other.asset in figures.HATS | figures.EYEWEAR
            relation = Relation("wearing" if wears else "holding", at)
            self.things.append(replace(other, relation=relation))
            self._done(f"{_described(other)} added", at)

    def _receiver(self, words: Words) -> tuple[int, Words]:
        """The thing that gets something, and the words for what it gets."""
        if words and words[0] in edit_words.IT:
            persons = [at for at in self._there() if self.things[at].person is not None]
            return persons[0] if persons else self._named(words[:1])[0], words[1:]
        for length in range(min(4, len(words)), 0, -1):
            if found := self._find(_without_articles(words[:length])):
                last = singular(self.things[found[0]].words.split()[-1])
                ends = [at for at, word in enumerate(words) if singular(word) == last]
                return found[0], words[ends[0] + 1 if ends else 1 :]
        return self._named(())[0], words

    # --- changes of what is there ---

    def _change(self, words: Words) -> None:
        if edit_words.SHOULD & set(words):
            words = tuple(w for w in words if w not in edit_words.SHOULD and w not in ("be", "to"))
        old, new = _halves(words, edit_words.CONNECTIVES)
        if new and old and self._turn(old, new):
            return
        words, _ = _cut_tail(words, ("one",))
        words, factor = _cut_scale(words)
        words, colour = _cut_tail(words, grammar.COLOURS)
        words, size = _cut_tail(words, grammar.SIZES)
        if colour is not None and set(words) & {"background", "backdrop"}:
            self._set_scene(Scene(paper=grammar.COLOURS[colour]))
        elif colour is not None:
            self._paint(words, colour)
        elif factor is not None:
            self._resize(self._named(words), factor)
        elif size is not None:
            for at in self._named(words):
                self._scale(at, grammar.SIZES[size])
        else:
            self._become(words)

    def _turn(self, old: Words, new: Words) -> bool:
        """Change one thing to another, or one property: "the umbrella to red"."""
        bare = _without_articles(new)
        is_scene = set(old) & {"background", "place", "weather", "time", "sky", "season", "scene"}
        if len(bare) == 1 and bare[0] in grammar.COLOURS and not is_scene:
            self._change((*old, *bare))
            return True
        parsed = parse_prompt(" ".join(new))
        is_whole = set(old) <= edit_words.IT | {"style"} or is_scene or not self._find(old)
        if is_whole and (parsed.style or parsed.scene.is_named):
            self._become(new)
            return True
        if not parsed.things:
            return False
        self._swap(self._named(old), new)
        return True

    def _become(self, words: Words) -> None:
        """What the parser finds in the words is now so: the scene, the style, counts and looks."""
        bare = _without_articles(words)
        if bare and bare[0] in edit_words.IT:
            words = tuple(word for word in words if word not in edit_words.IT)
        if set(words) and set(words) <= edit_words.NO_STYLE | {"in", "full", "style"}:
            self._set_style("", named=True)
            return
        parsed = self._parse(words)
        if parsed.scene.is_named:
            self._set_scene(parsed.scene)
        self._set_style(parsed.style)
        for thing in parsed.things:
            found = self._find((thing.words,))
            if found:
                self._update(found[0], thing, words)
            elif bare and bare[0] in edit_words.IT:
                self._swap(self._named(()), words)
            else:
                self._named((thing.words,))

    def _update(self, at: int, said: Subject, words: Words) -> None:
        thing = self.things[at]
        new = replace(
            thing,
            count=said.count if _has_number(words) else thing.count,
            colour=said.colour or thing.colour,
            scale=said.scale if said.scale != 1.0 else thing.scale,
            parts=(*thing.parts, *said.parts),
        )
        if new != thing:
            self.things[at] = new
            self._done(_described(new), at)

    def _paint(self, words: Words, colour: str) -> None:
        bare = _without_articles(words)
        for at in self._there():
            part = next(
                (w for w in bare if singular(w) in PARTS.get(self.things[at].asset, {})), ""
            )
            if part and not self._find((part,)):
                self._paint_part(at, singular(part), colour)
                return
        for at in self._named(bare):
            thing = self.things[at]
            paint = grammar.COLOURS[colour]
            if thing.person is not None:
                thing = replace(thing, person=replace(thing.person, top_colour=paint))
                self._note(colour, "approximated", "the clothes")
            else:
                self._note(f"{colour} {thing.words}", "drawn", thing.asset)
            self.things[at] = replace(thing, colour=colour)
            self._done(f"{thing.words}: {colour}", at)

    def _paint_part(self, at: int, part: str, colour: str) -> None:
        thing = self.things[at]
        if not PARTS[thing.asset][part]:
            self._note(f"{colour} {part}", "left out")
            return
        others = tuple(pair for pair in thing.parts if pair[0] != part)
        self.things[at] = replace(thing, parts=(*others, (part, grammar.COLOURS[colour])))
        self._note(f"{colour} {part}", "drawn", thing.asset)
        self._done(f"{part}: {colour}", at)

    def _resize(self, places: Sequence[int], factor: float) -> None:
        for at in places:
            self._scale(at, self.things[at].scale * factor)

    def _scale(self, at: int, scale: float) -> None:
        thing = self.things[at]
        scale = round(min(max(scale, _MIN_SCALE), _MAX_SCALE), 3)
        grown = "bigger" if scale > thing.scale else "smaller"
        self.things[at] = replace(thing, scale=scale)
        self.wishes.setdefault(self._root(at), (None, None))
        self._note(f"{grown} {thing.words}", "drawn", thing.asset)
        self._done(f"{thing.words}: {grown}", at)

    def _set_scene(self, named: Scene, *, keep_places: bool = False) -> None:
        if not named.is_named:
            return
        old, weather = self.scene, self.scene.weather
        for group in edit_words.WEATHER_GROUPS:
            if group & named.weather:
                weather -= group
        if named.hour == "day" and not named.weather:
            weather -= edit_words.WEATHER_GROUPS[0]
        places = named.places or old.places
        if keep_places or set(named.places) == {"snow"}:
            places = tuple(dict.fromkeys((*old.places, *named.places)))
        if "snowfall" not in weather | named.weather and "snowfall" in old.weather:
            places = tuple(one for one in places if one != "snow")
        new = Scene(places=places, hour=named.hour or old.hour, weather=weather | named.weather)
        there = [self.things[at] for at in self._there()]
        # A picture without a place gets the usual one of its things, to have an hour or a weather.
        self.scene = named if named.paper is not None else complete_scene(new, there)
        if not self._has_room_as_before(old):
            self.spots = []
        self._done(f"scene: {self.scene.name}")

    def _has_room_as_before(self, old: Scene) -> bool:
        """Whether things can stay where they are: not if they swam, floated or stand in water."""
        if old.places == self.scene.places:
            return True
        before, after = set(old.places), set(self.scene.places)
        if (before & _AFLOAT) != (after & _AFLOAT) or any(spot.wet for spot in self.spots):
            return False
        indoors = bool(before & scenes.INDOORS) != bool(after & scenes.INDOORS)
        swimmers = any(figures.swims(assets.info(thing.asset)) for thing in self.things)
        return not indoors and not (swimmers and after & _WATERS)

    def _set_style(self, style: str, *, named: bool = False) -> None:
        if style or named:
            self.style = style
            self._done(f"style: {style or 'as drawn'}")

    def _write(self, words: Words, quoted: Words, action: str) -> bool:
        """Change or add the text of a sign."""
        texts = quoted
        if not texts and action == "change" and edit_words.TEXT_WORDS & set(words):
            _, new = _halves(words, ("to", "into", "says", "say", "reads"))
            texts = (" ".join(new).upper(),) if new else ()
        if not texts:
            return False
        self.texts = texts if action == "change" or not self.texts else (*self.texts, *texts)
        self.uses += [WordUse(words=text, state="drawn", shown="a sign") for text in texts]
        self._done(f"text: {', '.join(self.texts)}")
        return True


def _cut_side(words: Words) -> tuple[Words, int]:
    """The words with "beside" for "to the left of", and the side: -1, 1, or 0."""
    text = " ".join(words)
    found = edit_words.BESIDE.search(text)
    if found is None:
        return words, 0
    rest = f"{text[: found.start()]} beside {text[found.end() :]}".split()
    return tuple(rest), -1 if found["side"] == "left" else 1


def _halves(words: Words, connectives: Sequence[str]) -> tuple[Words, Words]:
    """The words before and after the first of some connectives; the second part may be empty."""
    for word in connectives:
        if word in words[1:]:
            at = words.index(word, 1)
            return words[:at], words[at + 1 :]
    return words, ()


def _has_number(words: Words) -> bool:
    return any(word in grammar.NUMBERS or word.isdecimal() for word in words)


def _count_in(words: Words, thing: Subject) -> int:
    """How many more: "more ducks" without a number is one more."""
    return thing.count if _has_number(words) else 1


def _is_indefinite(noun: str, words: Words) -> bool:
    first = noun.split(maxsplit=1)[0]
    at = next((place for place, word in enumerate(words) if word == first), 0)
    return bool({"a", "an", "another"} & set(words[max(at - 3, 0) : at]))


def _is_same_look(one: Subject, other: Subject) -> bool:
    return (one.colour, one.scale, one.parts) == (other.colour, other.scale, other.parts) or (
        other.colour is None and other.scale == 1.0
    )


def _group(thing: Subject) -> str:
    return "person" if thing.person is not None else assets.info(thing.asset).group


def _element(thing: Subject) -> tuple[bool, bool]:
    """Whether a thing flies, and whether it swims."""
    info = assets.info(thing.asset)
    return thing.aloft or figures.flies(info), figures.swims(info)


def _described(thing: Subject) -> str:
    colour = f"{thing.colour} " if thing.colour and thing.person is None else ""
    if thing.count == 1:
        return f"{colour}{thing.words}"
    *first, last = thing.words.split()
    plural = last if singular(last) != last else _PLURALS.get(last, f"{last}s")
    return f"{thing.count} {colour}{' '.join((*first, plural))}"
