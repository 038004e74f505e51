"""A question in plain English -> the answers that match it: one table, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from limner.eyes import measured, text
from limner.eyes.evidence import Evidence, EyesQuestion, Finding

# Only the beginning of a longer question counts.
MAX_QUESTION_CHARS = 2000

_COLOUR_WORDS = "|".join(sorted(measured.COLOUR_WORDS))


class Rule(msgspec.Struct, frozen=True):
    """A pattern for questions, and the function that answers them.

    ``needs_ocr`` means that the answer needs the text of the picture. A rule is skipped if one
    named in ``unless`` matches too.
    """

    name: str
    words: re.Pattern[str]
    answer: Callable[[EyesQuestion], Finding]
    needs_ocr: bool = False
    unless: frozenset[str] = frozenset()


def _rule(
    name: str,
    words: str,
    answer: Callable[[EyesQuestion], Finding],
    *,
    needs_ocr: bool = False,
    unless: tuple[str, ...] = (),
) -> Rule:
    return Rule(name, re.compile(rf"\b(?:{words})\b"), answer, needs_ocr, frozenset(unless))


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
        needs_ocr=True,
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
        needs_ocr=True,
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
        needs_ocr=True,
        unless=("search",),
    ),
    _rule(
        "transcript",
        r"reads?|says?|ocr|transcri(?:be|pt|ption)|written|(?:what|any|the|all) text"
        r"|text (?:in|on|of)",
        text.transcript,
        needs_ocr=True,
        unless=("search", "counts", "heading", "codes"),
    ),
    # Things with text: a question about their colour does not ask for the text.
    _rule(
        "labels",
        r"texts?|writing|words?|letters?|captions?|messages?|labels?|buttons?|menus?|prices?"
        r"|totals?|errors?|numbers?|sentences?|paragraphs?|document|page|spell(?:ed|ing)?|signs?",
        text.transcript,
        needs_ocr=True,
        unless=(
            *("search", "counts", "heading", "codes", "transcript"),
            *("colours", "named colours", "background"),
        ),
    ),
)


def matching(question: str) -> list[Rule]:
    """The rules that match a question, in the order of the table."""
    fitting = [rule for rule in RULES if rule.words.search(question)]
    names = {rule.name for rule in fitting}
    if text.wanted_phrase(question) is not None:
        names.add("search")
    return [rule for rule in fitting if not rule.unless & names]


def needs_text(question: str) -> bool:
    """Whether a question needs OCR, which takes seconds."""
    normal = normalize(question)
    fitting = matching(normal)
    searches = text.wanted_phrase(normal) is not None
    return searches or not fitting or any(rule.needs_ocr for rule in fitting)


def findings(evidence: Evidence, question: str) -> list[Finding]:
    """Every answer of the rules; none if only a real vision model could answer."""
    query = EyesQuestion(picture=evidence, question=normalize(question))
    found = text.search(query)
    return [found] if found else [rule.answer(query) for rule in matching(query.question)]


def normalize(question: str) -> str:
    """A question in lower case with single spaces, as the patterns expect it."""
    return " ".join(question[:MAX_QUESTION_CHARS].lower().split())
