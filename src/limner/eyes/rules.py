"""A question in plain English -> the answers that fit it: one table, read from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from limner.eyes import measured, text
from limner.eyes.evidence import Evidence, EyesQuestion, Finding

# Longer questions are not plain; what comes first decides.
MAX_QUESTION_CHARS = 2000

_COLOUR_WORDS = "|".join(sorted(measured.COLOUR_WORDS))


class Rule(msgspec.Struct, frozen=True):
    """Words that show what is asked, and who answers it; ``reads`` says that text is needed.

    A rule is left out where one named in ``unless`` fits as well.
    """

    name: str
    words: re.Pattern[str]
    answer: Callable[[EyesQuestion], Finding]
    reads: bool = False
    unless: frozenset[str] = frozenset()


def _rule(
    name: str,
    words: str,
    answer: Callable[[EyesQuestion], Finding],
    *,
    reads: bool = False,
    unless: tuple[str, ...] = (),
) -> Rule:
    return Rule(name, re.compile(rf"\b(?:{words})\b"), answer, reads, frozenset(unless))


RULES = (
    _rule(
        "codes",
        r"qr|qr-?codes?|bar ?codes?|data ?matrix|aztec|pdf417|ean|upc|scan (?:the )?code",
        text.codes,
    ),
    _rule(
        "counts",
        r"how many (?:\w+ ){0,2}(?:lines|words|characters|letters)|word count|line count"
        r"|number of (?:lines|words|characters|letters)",
        text.counts,
        reads=True,
    ),
    _rule("background", r"backgrounds?|backdrop", measured.background),
    _rule(
        "brightness",
        r"bright(?:ness)?|(?:dark|light) (?:mode|theme|or)|(?:is|it|picture|image) (?:dark|light)",
        measured.brightness,
    ),
    _rule(
        "colours",
        r"colou?rs?|colou?red|palette|hues?|shades?",
        measured.colours,
        unless=("background", "named colours"),
    ),
    _rule(
        "named colours",
        rf"^(?:is|are|was|does|do|has|have|can|any|how much)\b.*\b(?:{_COLOUR_WORDS})",
        measured.named_colours,
        unless=("background", "transcript", "codes"),
    ),
    _rule(
        "kind",
        r"photos?|photographs?|screen ?shots?|line ?art|(?:what|which) (?:kind|sort|type) of "
        r"(?:picture|image|file|graphic)|drawing|illustration|drawn",
        measured.what_kind,
        reads=True,
        unless=(
            *("camera", "size", "file", "colours", "named colours", "background"),
            *("orientation", "counts", "search", "codes", "brightness", "heading"),
            *("transcript", "labels"),
        ),
    ),
    _rule(
        "size",
        r"dimensions?|resolution|aspect(?: ratio)?|proportions?|width|height|megapixels?|pixels"
        r"|how (?:big|large|wide|tall|high)|(?:what|image|picture|photo) size|size of (?!the file)",
        measured.size,
    ),
    _rule(
        "file",
        r"format|file ?type|mime|file ?size|size of the file|bytes|kilobytes|megabytes|kb|mb"
        r"|animated|animation|frames|transparen(?:t|cy)|alpha",
        measured.file,
    ),
    _rule(
        "camera",
        r"camera|exif|metadata|gps|coordinates?|lens|taken|when was|where was|what software",
        measured.camera,
    ),
    _rule(
        "orientation",
        r"orientation|rotated?|upside ?down|sideways|portrait or landscape|landscape or portrait"
        r"|upright",
        measured.orientation,
    ),
    _rule(
        "heading",
        r"titles?|headings?|headlines?|(?:largest|biggest) (?:text|words?|line)",
        text.heading,
        reads=True,
        unless=("search",),
    ),
    _rule(
        "transcript",
        r"reads?|says?|ocr|transcri(?:be|pt|ption)|written|(?:what|any|the|all) text"
        r"|text (?:in|on|of)",
        text.transcript,
        reads=True,
        unless=("search", "counts", "heading", "codes"),
    ),
    # Things that carry text: asked for their colour, nobody wants to hear what they say.
    _rule(
        "labels",
        r"texts?|writing|words?|letters?|captions?|messages?|labels?|buttons?|menus?|prices?"
        r"|totals?|errors?|numbers?|sentences?|paragraphs?|document|page|spell(?:ed|ing)?|signs?",
        text.transcript,
        reads=True,
        unless=(
            *("search", "counts", "heading", "codes", "transcript"),
            *("colours", "named colours", "background"),
        ),
    ),
)


def matching(question: str) -> list[Rule]:
    """The rules that fit a question, in the order of the table."""
    fitting = [rule for rule in RULES if rule.words.search(question)]
    names = {rule.name for rule in fitting}
    if text.wanted_phrase(question) is not None:
        names.add("search")
    return [rule for rule in fitting if not rule.unless & names]


def needs_text(question: str) -> bool:
    """Whether text has to be read before a question can be answered; reading takes seconds."""
    asked = plain(question)
    fitting = matching(asked)
    looks = text.wanted_phrase(asked) is not None
    return looks or not fitting or any(rule.reads for rule in fitting)


def findings(evidence: Evidence, question: str) -> list[Finding]:
    """Every answer the rules have; none where only a model that sees could answer."""
    asked = EyesQuestion(picture=evidence, question=plain(question))
    found = text.search(asked)
    return [found] if found else [rule.answer(asked) for rule in matching(asked.question)]


def plain(question: str) -> str:
    """A question in small letters and single spaces, as the patterns expect it."""
    return " ".join(question[:MAX_QUESTION_CHARS].lower().split())
