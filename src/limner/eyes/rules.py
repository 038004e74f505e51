"""A question in plain English -> the answers that match it: one table, from top to bottom.

What the picture shows comes first: a control, a shape, a label, a cell or a line that shares words
with the question. Keywords about the file or its pixels answer only what is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from limner.eyes import appearance, lookup, measured, report, text, things
from limner.eyes.evidence import Evidence, EyesQuestion, Finding
from limner.eyes.words import content
from limner.imaging.evidence.colour_names import COLOUR_WORDS

# Only the beginning of a longer question counts.
MAX_QUESTION_CHARS = 2000

_COLOUR_WORDS = "|".join(sorted(COLOUR_WORDS))
# Words about the picture as such; a question with only these asks for nothing in it.
_ABOUT_THE_PICTURE = (
    *("file", "made", "created", "taken", "shot", "drawing", "graphic", "chart", "diagram"),
    *("visual", "there's", "anything", "something", "detail", "details", "whole", "entire"),
    *("page", "document", "window", "app", "website", "dialog", "slide", "poster", "article"),
    *("code", "codes", "dark", "light", "mode", "theme", "line", "lines", "written", "writing"),
    *("main", "dominant", "overall", "mostly", "mainly", "contain", "contains", "exist"),
)

_TO_CHECK = re.compile(
    r"^(?:please )?(?:check|verify|see|tell me|say) (?:that|whether|if) (it|this|there) (is|are)\b"
)
_YES_OR_NO = re.compile(r"(?:is|are|was|were|does|do|did|has|have|can|will)\b")

Answerer = Callable[[EyesQuestion], Finding | None]


class Rule(msgspec.Struct, frozen=True):
    """A pattern for questions, and the function that answers them.

    ``needs_ocr`` means that the answer needs the text of the picture. ``about_all`` means that the
    rule only answers about the picture as a whole, so a word for a thing in it excludes the rule.
    A rule is skipped if one named in ``unless`` matches too.
    """

    name: str
    words: re.Pattern[str]
    answer: Answerer
    needs_ocr: bool = False
    about_all: bool = False
    unless: frozenset[str] = frozenset()


def _rule(
    name: str,
    words: str,
    answer: Answerer,
    *,
    needs_ocr: bool = False,
    about_all: bool = False,
    unless: tuple[str, ...] = (),
) -> Rule:
    pattern = re.compile(rf"\b(?:{words})\b")
    return Rule(name, pattern, answer, needs_ocr, about_all, frozenset(unless))


# Questions about things in the picture. The first rule with an answer wins.
THINGS = (
    _rule("number", r"how many|number of|count", appearance.number_of),
    _rule("state", appearance.STATE.pattern, appearance.state),
    _rule(
        "contrast",
        r"contrast|legib(?:le|ility)|readab(?:le|ility)|accessib\w+",
        appearance.contrast,
    ),
    _rule(
        "colour of a thing",
        rf"colou?rs?|colou?red|^(?:is|are|does)\b.*\b(?:{_COLOUR_WORDS})",
        appearance.colour_of,
    ),
    _rule("buttons", r"buttons?", appearance.buttons),
    _rule(
        "problem",
        r"errors?|wrong|problems?|fail(?:s|ed|ing|ure)?|issues?|warnings?",
        appearance.problem,
    ),
    _rule(
        "code language",
        r"(?:programming|coding|which|what) language|language (?:is|of) (?:the|this) code",
        appearance.code_language,
    ),
)

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
    _rule("background", r"backgrounds?|backdrop", measured.background, about_all=True),
    _rule(
        "brightness",
        r"bright(?:ness)?|(?:dark|light) (?:mode|theme|or)|(?:is|it|picture|image) (?:dark|light)",
        measured.brightness,
        about_all=True,
    ),
    _rule(
        "focus",
        r"blurr?(?:y|ed)?|sharp(?:ness)?|(?:in|out of) focus|focus(?:s?ed)?",
        measured.focus,
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
        about_all=True,
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
            *("transcript", "describe", "focus"),
        ),
    ),
    _rule(
        "size",
        r"dimensions?|resolution|aspect(?: ratio)?|proportions?|width|height|megapixels?|pixels"
        r"|how (?:big|large|wide|tall|high)|(?:what|image|picture|photo) size|size of (?!the file)"
        r"|what(?:'s| is) (?:its|the) size|^(?:the )?size(?=\W*$)"
        r"|is (?:it|this|the (?:picture|image|photo)) (?:landscape|portrait|square)(?=\W*$)",
        measured.size,
        about_all=True,
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
        about_all=True,
    ),
    _rule(
        "orientation",
        r"orientation|rotated?|upside ?down|sideways|portrait or landscape|landscape or portrait"
        r"|upright",
        measured.orientation,
        needs_ocr=True,
    ),
    _rule(
        "heading",
        r"titles?|headings?|headlines?|(?:largest|biggest) (?:text|words?|line)",
        text.heading,
        needs_ocr=True,
        about_all=True,
        unless=("search",),
    ),
    _rule(
        "transcript",
        r"reads?|says?|ocr|transcri(?:be|pt|ption)|written|(?:what|any|the|all) text"
        r"|text (?:in|on|of)",
        text.transcript,
        needs_ocr=True,
        about_all=True,
        unless=("search", "counts", "heading", "codes"),
    ),
    _rule(
        "describe",
        r"what (?:do|can) you see|describe|description|what(?:'s| is) (?:this|it|that)"
        r"|what(?:'s| is) (?:in|on) (?:it|this|the (?:picture|image|photo|screen(?:shot)?))"
        r"|what(?:'s| is) (?:shown|depicted|visible)"
        r"|what does (?:it|this|the (?:picture|image|photo)) show|summar(?:y|i[sz]e)",
        report.summary,
        needs_ocr=True,
        about_all=True,
        unless=("transcript", "kind"),
    ),
)


def matching(question: str) -> list[Rule]:
    """The rules about the picture that match a question, in the order of the table."""
    fitting = [rule for rule in RULES if rule.words.search(question)]
    names = {rule.name for rule in fitting}
    if text.wanted_phrase(question) is not None:
        names.add("search")
    named = _things(question, fitting)
    return [rule for rule in fitting if not rule.unless & names and not (rule.about_all and named)]


def _things(question: str, fitting: list[Rule]) -> list[str]:
    """The words of a question that name something in the picture."""
    for rule in fitting:
        # The pattern of this rule spans the thing between "is" and the colour.
        if rule.name != "named colours":
            question = rule.words.sub(" ", question)
    return content(question, besides=(*_ABOUT_THE_PICTURE, *COLOUR_WORDS))


def needs_text(question: str) -> bool:
    """Whether a question needs OCR, which takes seconds."""
    normal = normalize(question)
    fitting = matching(normal)
    searches = text.wanted_phrase(normal) is not None
    named = _things(normal, [rule for rule in RULES if rule.words.search(normal)])
    return searches or bool(named) or not fitting or any(rule.needs_ocr for rule in fitting)


def findings(evidence: Evidence, question: str) -> list[Finding]:
    """Every answer of the rules; none if nothing in the evidence matches."""
    query = EyesQuestion(picture=evidence, question=normalize(question))
    if (found := text.search(query)) is not None:
        return [found]
    for answer in (_by_appearance, things.answer_things, _from_text):
        if (found := answer(query)) is not None:
            return [found]
    answers = (rule.answer(query) for rule in matching(query.question))
    return [found for found in answers if found is not None]


def _by_appearance(query: EyesQuestion) -> Finding | None:
    """The answer about something that was measured on the page."""
    if query.picture.no_text_reason is not None or _is_about_codes_or_text(query.question):
        return None
    for rule in THINGS:
        if rule.words.search(query.question) and (found := rule.answer(query)) is not None:
            return found
    return None


def _from_text(query: EyesQuestion) -> Finding | None:
    """The answer in a label, a cell or a line; None if the question names nothing."""
    question = query.question
    # A line of text that shares words with a yes-or-no question says neither yes nor no.
    if query.picture.no_text_reason is not None or _YES_OR_NO.match(question):
        return None
    named = _things(question, [rule for rule in RULES if rule.words.search(question)])
    is_asked = named and not _is_about_codes_or_text(question)
    return lookup.answer_from_text(query) if is_asked else None


def _is_about_codes_or_text(question: str) -> bool:
    return any(rule.name in {"codes", "counts"} and rule.words.search(question) for rule in RULES)


def normalize(question: str) -> str:
    """A question in lower case with single spaces, as the patterns expect it.

    "Check that it is red" asks: is it red?
    """
    plain = " ".join(question[:MAX_QUESTION_CHARS].lower().split())
    return _TO_CHECK.sub(r"\2 \1", plain)
