"""The words of an edit for actions, places, sizes and kinds of things, as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from limner.illustrator.words import word_set

_VERBS = {
    "remove": "remove, delete, erase, drop, take away, take out, take off, without, no, hide, "
    "lose, cut out, clear",
    "add": "add, insert, include, draw, with, plus, there should be, there must be, show, put in",
    "replace": "replace, swap, exchange, substitute, switch",
    "move": "move, shift, push, slide, bring, drag, position",
    "put": "put, place, set, stick, hang",
    "give": "give, let wear, dress",
    "change": "make, turn, change, let, paint, colour, color, recolour, recolor, have, as, at, in, "
    "render, redraw, draw it, convert, transform, use, set it, put it, show it, it should be, do, "
    "set the time to, keep, tint, style, enlarge, shrink, scale, resize, increase, reduce",
}
# Phrase -> action.
ACTIONS: Mapping[str, str] = {
    phrase: action for action, listed in _VERBS.items() for phrase in listed.split(", ")
}
LONGEST_ACTION = max(len(phrase.split()) for phrase in ACTIONS)
# Verbs that say themselves how the size changes.
SCALING_VERBS = {"enlarge": 1.4, "increase": 1.4, "shrink": 0.7, "reduce": 0.7}

FILLERS = word_set(
    "please can could would will you now then also just kindly i want like to need maybe ok okay "
    "and but so let's lets we actually what how about"
)
CLAUSE_ENDS = frozenset({",", ";", ".", "!", "?", "and", "then", "but"})
IT = word_set("it this that them him her he she they everything picture image scene drawing")
EVERYTHING = word_set("everything all things everyone anything")
EXCEPT = frozenset({"except", "but", "besides"})
MORE = word_set("more another extra additional further")
TEXT_WORDS = word_set(
    "text texts words wording title caption lettering inscription says say reads read label writing"
)
SHOULD = frozenset({"should", "must", "shall", "could", "is", "are", "needs", "has"})
CONNECTIVES = ("into", "to", "with", "by", "for", "as", "through")
NO_STYLE = word_set("colour color colours colors coloured colored normal")

# Words after a thing -> how its size changes.
SCALES: Mapping[tuple[str, ...], float] = {
    ("twice", "as", "big"): 2.0,
    ("twice", "as", "large"): 2.0,
    ("double", "the", "size"): 2.0,
    ("double", "size"): 2.0,
    ("half", "as", "big"): 0.5,
    ("half", "the", "size"): 0.5,
    ("half", "size"): 0.5,
    **dict.fromkeys((("bigger",), ("larger",), ("greater",), ("closer",)), 1.4),
    **dict.fromkeys((("taller",), ("higher",)), 1.3),
    **dict.fromkeys((("smaller",), ("tinier",), ("shorter",)), 0.7),
}
MUCH = (("a", "lot"), ("much",), ("far",), ("way",), ("very",), ("really",))
SLIGHTLY = (("a", "bit"), ("a", "little"), ("slightly",), ("somewhat",), ("a", "touch"))

_LEFT, _MIDDLE, _RIGHT, _TOP, _BOTTOM = 0.18, 0.5, 0.82, 0.2, 0.78
# The middle of a thing that is there, in parts of the canvas.
POSITIONS: Mapping[str, tuple[float | None, float | None]] = {
    "left": (_LEFT, None),
    "right": (_RIGHT, None),
    "middle": (_MIDDLE, None),
    "centre": (_MIDDLE, None),
    "center": (_MIDDLE, None),
    "top": (None, _TOP),
    "bottom": (None, _BOTTOM),
    "corner": (_RIGHT, _BOTTOM),
    **{
        f"{row} {side}": (across, down)
        for row, down in (
            ("top", _TOP),
            ("upper", _TOP),
            ("bottom", _BOTTOM),
            ("lower", _BOTTOM),
        )
        for side, across in (("left", _LEFT), ("right", _RIGHT))
    },
}
POSITION = re.compile(
    r"\b(?:(?:in|on|at|to|into|towards?|over to)\s+)?(?:the\s+)?(?:far\s+|very\s+)?"
    rf"(?P<place>{'|'.join(sorted(POSITIONS, key=len, reverse=True))})\b"
    r"(?:\s+(?:hand|side|corner|edge|half)\b)*"
    r"(?:\s+(?:of|in)\s+(?:the\s+)?(?:picture|image|scene|sky|it)\b)?(?!\s+of\b)"
)
BESIDE = re.compile(r"\b(?:(?:to|on|at) the )?(?P<side>left|right) of\b")
# Words of a move -> the direction.
STEPS: Mapping[str, tuple[int, int]] = {
    "up": (0, -1),
    "upwards": (0, -1),
    "higher": (0, -1),
    "down": (0, 1),
    "downwards": (0, 1),
    "lower": (0, 1),
    "left": (-1, 0),
    "right": (1, 0),
}

# Words for a kind of thing -> how the groups of the index that belong to it begin.
KINDS: Mapping[str, str] = {
    "animal": "animal-",
    "bird": "animal-bird",
    "fish": "animal-marine",
    "person": "person",
    "man": "person",
    "woman": "person",
    "child": "person",
    "kid": "person",
    "girl": "person",
    "boy": "person",
    "flower": "plant-flower",
    "plant": "plant-",
    "tree": "plant-other",
    "fruit": "food-fruit",
    "food": "food-",
    "building": "place-",
    "vehicle": "transport-",
    "ship": "transport-water",
    "boat": "transport-water",
    "car": "transport-ground",
}
# Only one weather of each group is shown at a time.
WEATHER_GROUPS = (
    frozenset({"rain", "storm", "snowfall", "fog", "clouds"}),
    frozenset({"autumn", "spring", "summer"}),
)
# What people say -> what the parser of prompts knows.
SAID: Mapping[str, str] = {
    "day": "daytime",
    "it snow": "it snowing",
    "black and white": "monochrome",
    "get rid of": "remove",
}
