"""The words of a prompt -> a picture: the names of the pack, and synonyms.

The name of a picture is a word for it unless it is listed here as misleading. Tags are not words
for it: they serve a search, and would draw a coffee cup for "morning".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from limner.illustrator import assets
from limner.illustrator.grammar import COLOUR_AS_THING
from limner.illustrator.synonyms import SYNONYMS
from limner.illustrator.words import singular, split, word_set

# Names that often mean something else, and pictures with their own sky.
MISLEADING = word_set(
    """
    aquarius aries bank bear biting-lip boy brick bridge-at-night bright-button broken-chain
    cancer capricorn child cityscape cityscape-at-dusk collision construction cooking copyright
    customs desert divide dizzy elevator fireworks fly fog foggy fox free-button frog gemini girl
    hamster hole hot-springs ice infinity information koala label leo libra link lion locked man
    mate memo metro milky-way minus moon-viewing-ceremony motorway mount-fuji mountain
    mountain-cableway mountain-railway multiply national-park night-with-stars om ophiuchus
    orange-circle package panda passport-control person pick pisces plus polar-bear prohibited
    raccoon railway-track record-button registered restroom ring-buoy river robot sagittarius
    scorpio seat selfie shooting-star skyscraper snow-capped-mountain sparkle sparkler sparkles
    station sunrise sunrise-over-mountains sunset suspension-railway taurus tooth unlocked virgo
    warning
    water-closet water-wave wavy-dash wedding white-flower wireless wolf woman zzz
    """
)
# Groups of signs: their one-word names, such as "plus", are ordinary words of a sentence.
SIGN_GROUPS = word_set(
    """
    alphanum arrow av-symbol currency emotion gender geometric hand-fingers-closed
    hand-fingers-open hand-fingers-partial hand-prop hand-single-finger hands keycap math
    other-symbol punctuation religion time transport-sign warning zodiac
    """
)
# Body parts are drawn only if nothing else is: in "a woman with green eyes", she has eyes already.
BODY_PARTS = frozenset({"body-parts", *(g for g in SIGN_GROUPS if g.startswith("hand"))})


# Picture of one thing -> the picture of a pile of them.
STACKS = {"open-book": "book-stack", "books": "book-stack", "closed-book": "book-stack"}
# Country -> further words for it, and for what belongs to it.
COUNTRY_WORDS = {
    "argentina": "argentine argentinian",
    "australia": "australian",
    "austria": "austrian",
    "belgium": "belgian",
    "brazil": "brazilian",
    "canada": "canadian",
    "china": "chinese",
    "czechia": "czech czech-republic",
    "denmark": "danish",
    "egypt": "egyptian",
    "finland": "finnish",
    "france": "french",
    "germany": "german",
    "greece": "greek",
    "india": "indian",
    "ireland": "irish",
    "israel": "israeli",
    "italy": "italian",
    "japan": "japanese",
    "mexico": "mexican",
    "netherlands": "dutch holland",
    "norway": "norwegian",
    "poland": "polish",
    "portugal": "portuguese",
    "south-africa": "south-african",
    "south-korea": "korean south-korean korea",
    "spain": "spanish",
    "sweden": "swedish",
    "switzerland": "swiss",
    "turkiye": "turkish turkey",
    "ukraine": "ukrainian",
    "united-kingdom": "uk british great-britain britain union-jack",
    "united-states": "usa us american america united-states-of-america",
}


@cache
def phrases() -> dict[tuple[str, ...], str]:
    """All known phrases, as lower-case words in the singular, and their pictures."""
    found: dict[tuple[str, ...], str] = {}
    for info in assets.all_infos():
        words = tuple(info.name.split("-"))
        sign = info.group in SIGN_GROUPS and len(words) == 1
        if info.name not in MISLEADING and not sign:
            found[words] = info.name
        if info.group.startswith("country-"):
            found.update(_country_phrases(info.name))
    for name, synonyms in SYNONYMS.items():
        for phrase in synonyms.split(", "):
            found[tuple(phrase.strip("~").replace("-", " ").split())] = name
    return found


def _country_phrases(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Further words for a flag or a map: "map of the Netherlands", "Italian flag"."""
    what, country = name.split("-of-", 1)
    for said in (country, *COUNTRY_WORDS.get(country, "").split()):
        words = said.split("-")
        for phrase in ((what, "of", "the", *words), (what, "of", *words), (*words, what)):
            yield phrase, name


@cache
def _approximate() -> frozenset[tuple[str, ...]]:
    listed = (phrase for synonyms in SYNONYMS.values() for phrase in synonyms.split(", "))
    return frozenset(tuple(one[1:].split()) for one in listed if one.startswith("~"))


def is_approximate(phrase: tuple[str, ...]) -> bool:
    """Whether the picture for a phrase only comes near it: a poodle is drawn as a dog."""
    return phrase in _approximate() or (*phrase[:-1], singular(phrase[-1])) in _approximate()


@cache
def longest_phrase() -> int:
    """The number of words in the longest known phrase."""
    return max(len(words) for words in phrases())


def find_asset(name: str) -> str | None:
    """The picture for a name as people write it: its own name, a word of prompts, or a tag of it.

    A document asks for a picture by a word, so a tag is good enough here: "coffee" is a cup.
    """
    plain = "-".join(name.lower().replace("_", " ").split())
    plain = COLOUR_AS_THING.get(plain, plain)
    if plain in assets.names():
        return plain
    words = split(name.replace("-", " ").replace("_", " ")).words
    if not words:
        return None
    for form in (tuple(words), (*words[:-1], singular(words[-1]))):
        if form in phrases():
            return phrases()[form]
    hits = assets.search(" ".join(words), limit=1)
    if not hits:
        return None
    known = {*hits[0].name.split("-"), *hits[0].tags}
    return hits[0].name if all({word, singular(word)} & known for word in words) else None
