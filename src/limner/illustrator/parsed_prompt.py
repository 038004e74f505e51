"""The result of parsing a prompt: things, scene and texts, and an account of every word."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from limner.illustrator.grammar import Depth, Position
from limner.illustrator.people import Person
from limner.illustrator.scenes import Scene


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
    position: Position = ""
    depth: Depth = ""


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
