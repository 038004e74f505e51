"""A prompt for a page -> the texts to set on it, the pictures it names, and its colour."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from limner.illustrator.grammar import COLOURS
from limner.illustrator.parsed_prompt import Subject
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.words import split

MAX_PICTURES = 5
# Colours of a ground that no thing has.
_GROUNDS: Mapping[str, str] = {
    **COLOURS,
    "mint": "#cdeedd",
    "lavender": "#d9ccf2",
    "peach": "#ffd9c2",
    "cream": "#fff6e3",
    "maroon": "#6d1a2d",
    "olive": "#6f7a35",
    "coral": "#ff7f66",
    "lime": "#a9d943",
    "indigo": "#3d3a9c",
    "charcoal": "#2b3038",
}
_QUOTED = re.compile(r"[\"“«][^\"”»]*[\"”»]|(?<!\w)'[^']*'(?!\w)")
_NAMED = re.compile(
    r"\b(?:called|named|titled|entitled)\s+((?:[A-Z0-9][\w'.-]*|&|and|of|the)(?:\s+|$|(?=[,;])))+"
)
_TITLED = re.compile(r"\btitle[:d]?\s*[\"“]([^\"”]*)[\"”]", re.IGNORECASE)
# Words before a text that are no part of it.
_LEAD_IN = re.compile(
    r"^(?:(?:for|about|of|on|at|in|by|from|and|or|the|a|an|my|our|your|to|that|which|says?|saying"
    r"|reads?|reading|words?|text|caption|titled?|headline|tagline|subtitle|called|named|with|it"
    r"|date|also|please|create|make|draw|design|generate|me|as)\b\s*)+",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"\s*[,;\n]\s*|\s*:\s+|\s+-\s+|(?<=[a-z\d]{3})[.!]\s+"
    r"|\s+\b(?:with|saying|that says|which says)\b\s*"
)
_CAPITAL = re.compile(r"\b[A-Z][\w'\u2019&.-]*")


class PagePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt in the parts that pages use.

    ``texts`` are all texts in their order, the title first; ``name`` is what the prompt says that
    the thing is called. ``body`` is what follows the genre, or the colon after it.
    """

    text: str
    body: str
    title: str
    name: str
    quoted: tuple[str, ...]
    texts: tuple[str, ...]
    things: tuple[Subject, ...]
    colour: str | None
    width: int
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether the picture is much wider than high."""
        return self.width > self.height * 1.3

    @property
    def edge(self) -> float:
        """The shorter side."""
        return float(min(self.width, self.height))

    def has(self, words: str) -> bool:
        """Whether the prompt has one of the words, which ``|`` separates."""
        return bool(re.search(rf"\b(?:{words})\b", self.text, re.IGNORECASE))


def read_prompt(prompt: str, found: re.Match[str], *, width: int, height: int) -> PagePrompt:
    """Take a prompt apart; ``found`` is where it names its genre."""
    head, colon, body = _at_colon(prompt[found.start() :])
    if not colon:
        body = prompt[found.end() :]
    quoted = split(prompt).quoted
    name = _name(prompt)
    plain = _QUOTED.sub(" , ", prompt[: found.start()] + " , " + prompt[found.end() :])
    facts = [fact for fact in _facts(plain) if fact not in quoted]
    texts = [*quoted, *facts]
    if titled := _TITLED.search(prompt):
        texts.sort(key=lambda text: text != titled[1])
    # Names are texts, not things: "Villa Rosa" is no rose.
    described = " ".join([_CAPITAL.sub(" ", plain[1:])])
    things = parse_prompt(f"{prompt[:1]} {described}").things
    return PagePrompt(
        text=prompt,
        body=_without_title(body),
        title=titled[1] if titled else _title(head, found, quoted),
        name=name,
        quoted=quoted,
        texts=tuple(dict.fromkeys(texts)),
        things=things,
        colour=_colour(plain, things),
        width=width,
        height=height,
    )


def _at_colon(text: str) -> tuple[str, str, str]:
    """A text before and after its first colon or dash that is no part of a word."""
    parts = re.split(r"(:\s|:$|\s[-\N{EN DASH}\N{EM DASH}]\s)", text, maxsplit=1)
    return (parts[0], parts[1], parts[2]) if len(parts) > 1 else (text, "", "")


def pictures(things: tuple[Subject, ...]) -> list[str]:
    """The names of the pictures, each as often as it is counted."""
    names = [thing.asset for thing in things for _ in range(min(thing.count or 1, MAX_PICTURES))]
    return names[:MAX_PICTURES]


def _name(prompt: str) -> str:
    found = _NAMED.search(prompt)
    words = found[0].partition(" ")[2] if found else ""
    return re.sub(r"\s+(?:and|of|the)$", "", words.strip(" ,;."))


def _facts(plain: str) -> list[str]:
    """The parts of a prompt that are texts: those with a number, an address or a name in them."""
    facts: list[str] = []
    for place, part in enumerate(_SPLIT.split(plain)):
        words = _LEAD_IN.sub("", part.strip(" ."))
        # The first word of a sentence has a capital anyway.
        named = _CAPITAL.search(words if place else words[1:])
        if words and (named or re.search(r"\d|@", words)):
            facts.append(words if "@" in words or "//" in words else words[:1].upper() + words[1:])
    return facts


def _without_title(body: str) -> str:
    return re.sub(
        r"[;,]?\s*(?:with )?(?:the )?title[:d]?\s*[\"“][^\"”]*[\"”]", "", body, flags=re.IGNORECASE
    ).strip()


def _title(head: str, found: re.Match[str], quoted: tuple[str, ...]) -> str:
    after = head[found.end() - found.start() :]
    named = re.search(r"\b(?:of|showing|about|for|comparing)\s+([^:\"“]+)", after)
    words = (
        re.split(r"\s+-\s+|[:;(]|,\s|\s+(?:with|where|in which)\s", named[1])[0] if named else ""
    )
    words = re.sub(
        r"\s+(?:with|and|of|from|is|are)\s.*$" if re.search(r"\d", words) else r"$^", "", words
    )
    words = re.sub(r"^(?:the|a|an|my|our|your)\s+", "", words.strip(" ,."))
    if not words and quoted:
        return quoted[0]
    return (words[:1].upper() + words[1:60]).strip()


def _colour(plain: str, things: tuple[Subject, ...]) -> str | None:
    worn = {thing.colour for thing in things}
    named = [word for word in split(plain).words if word in _GROUNDS]
    free = [word for word in named if word not in worn]
    if found := re.search(
        r"\b(\w+)\s+(?:gradient\s+)?(?:background|ground|backdrop)\b", plain.lower()
    ):
        free = [found[1], *free] if found[1] in _GROUNDS else free
    return _GROUNDS[free[0]] if free else None
