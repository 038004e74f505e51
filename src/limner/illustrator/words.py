"""A prompt -> its words in lower case, and its quoted texts; a plural -> its singular."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import msgspec

MAX_WORDS = 400
_MAX_WORD_CHARS = 40
_QUOTED = re.compile(r"[\"“«]([^\"”»]{1,80})[\"”»]|(?<!\w)'([^']{1,80})'(?!\w)")
# How a text is set, as "in big red letters": these letters are no post.
_LETTERING = re.compile(
    r"\bin\s+(?:(?!(?:at|by|for|from|full|of|on|to|with)\b)[\w-]+,?\s+){0,4}letter(?:s|ing)\b"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[.,;:!?()]")
_CURLY_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

IRREGULAR_PLURALS = {
    "calves": "calf",
    "children": "child",
    "feet": "foot",
    "firemen": "fireman",
    "fungi": "fungus",
    "geese": "goose",
    "halves": "half",
    "knives": "knife",
    "leaves": "leaf",
    "lice": "louse",
    "loaves": "loaf",
    "men": "man",
    "mice": "mouse",
    "oxen": "ox",
    "people": "person",
    "policemen": "policeman",
    "scarves": "scarf",
    "shelves": "shelf",
    "snowmen": "snowman",
    "teeth": "tooth",
    "thieves": "thief",
    "wolves": "wolf",
    "women": "woman",
    "cacti": "cactus",
    "octopi": "octopus",
    "elves": "elf",
}
_IN_IE = frozenset(
    {
        "brownie",
        "cookie",
        "genie",
        "hoodie",
        "movie",
        "pie",
        "pixie",
        "prairie",
        "selfie",
        "smoothie",
        "tie",
        "zombie",
    }
)
_UNCHANGED = frozenset(
    {"bus", "glass", "grass", "moss", "chess", "dress", "gas", "cactus", "octopus"}
)


class PromptWords(msgspec.Struct, frozen=True):
    """The words of a prompt in order, and the texts it quotes."""

    words: tuple[str, ...]
    quoted: tuple[str, ...]


def split(prompt: str) -> PromptWords:
    """Split a prompt into lower-case words and punctuation, and quoted texts."""
    valid = prompt.encode(errors="ignore").decode()
    text = unicodedata.normalize("NFKC", valid).replace(_CURLY_APOSTROPHE, "'")
    quoted = tuple(" ".join((a or b).split()) for a, b in _QUOTED.findall(text))
    plain = _LETTERING.sub(" ", _QUOTED.sub(" ", text).lower())
    return PromptWords(words=tuple(_words(plain)), quoted=tuple(q for q in quoted if q))


def _words(text: str) -> Iterator[str]:
    for number, match in enumerate(_WORD.finditer(text)):
        if number >= MAX_WORDS:
            return
        yield match[0].removesuffix("'s")[:_MAX_WORD_CHARS]


def word_set(text: str, *, separator: str | None = None) -> frozenset[str]:
    """The words of a text as a set, or its phrases if ``separator`` is given."""
    return frozenset(" ".join(part.split()) for part in text.split(separator))


def singular(word: str) -> str:
    """The singular of an English noun; a word that looks singular stays as it is."""
    if word in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[word]
    if len(word) < 4 or not word.endswith("s") or word in _UNCHANGED or word.endswith(("ss", "us")):
        return word
    if word[:-1] in _IN_IE:
        return word[:-1]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
        return word[:-2]
    return word[:-1]
