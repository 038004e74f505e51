"""A criterion in words and the evidence of a picture -> pass or fail, if that can be measured.

The rules are tried from top to bottom, and each returns None for a criterion that it cannot decide.
A rule for text, layout or objects decides nothing if OCR did not run. What no rule decides is left
to a model that sees.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Literal

import msgspec

from limner.eyes import appearance, lookup, measured
from limner.eyes.evidence import Evidence, EyesQuestion, Finding
from limner.eyes.quotes import quoted
from limner.eyes.text import IN_QUOTES, box_in, occurrences
from limner.eyes.words import content, hits, tokens
from limner.imaging.evidence import Box, TextLine
from limner.imaging.evidence.colour_names import COLOUR_WORDS, matches_word
from limner.imaging.evidence.layout import to_number

_NEGATIVE = re.compile(
    r"\b(?:no|not|never|without|nothing|none|nowhere|absent|missing|hidden|cannot|free of)\b|n't\b"
)
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    r"at least|no (?:less|fewer) than|not (?:less|fewer) than|minimum(?: of)?|>=|≥": operator.ge,
    r"at most|no more than|not more than|up to|maximum(?: of)?|<=|≤|no (?:larger|bigger|wider"
    r"|higher|taller) than": operator.le,
    r"more than|over|above|larger than|bigger than|wider than|higher than|taller than|greater "
    r"than|>": operator.gt,
    r"less than|fewer than|under|below|smaller than|narrower than|lower than|<": operator.lt,
    r"about|around|roughly|approximately|~": lambda one, other: abs(one - other) <= 0.05 * other,
    r"exactly|only|precisely|just|=": operator.eq,
}
_COMPARISON = re.compile("|".join(f"({words})" for words in _COMPARISONS))
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_NUMBER = rf"(?P<number>\d[\d,.]*|{'|'.join(_NUMBER_WORDS)})"
_BY = re.compile(r"\b(\d{1,5})\s*(?:x|\u00d7|by)\s*(\d{1,5})\b")
_EDGE = re.compile(
    rf"{_NUMBER}\s*(?:px|pixels?)?\s*(?P<edge>wide|high|tall|in width|in height)\b"
    rf"|(?P<compared>wider|narrower|taller|higher) than\s+(?P<than>\d[\d,]*)"
    rf"|(?P<named>width|height)\D{{0,40}}?(?P<of>\d[\d,]*)"
)
_BYTES = re.compile(rf"{_NUMBER}\s*(?P<unit>kb|mb|kib|mib|bytes|kilobytes|megabytes)\b")
_UNITS = {"kb": 1e3, "mb": 1e6, "kib": 1024, "mib": 1 << 20, "bytes": 1, "kilobytes": 1e3}
_COUNT = re.compile(
    rf"(?:there (?:is|are)|has|have|shows?|contains?|with|includes?|^)\s+(?:{_COMPARISON.pattern})?"
    rf"\s*{_NUMBER}\s+(?P<things>[a-z][a-z -]+)$"
)
_VALUE = re.compile(
    r"^(?:the\s+)?(?P<label>.+?)(?:\s+(?:is|are|equals|reads|shows|has)\s+|\s*[:=]\s*)"
    rf"(?P<compared>(?:{_COMPARISON.pattern})?)\s*(?P<value>[-+]?[$€£¥]?\s?\d[\d.,]*\s?[%$€£¥kKmM]?)$"
)
_SAYS = re.compile(r"\b(?:says?|reads?|is written|spells?)\s+(?P<words>\S.*)$")
_SHOWS = re.compile(
    r"\b(?:shows?|contains?|displays?|includes?|there (?:is|are)|has|have|with)\s+"
    r"(?:an?\s+|the\s+|some\s+|any\s+|no\s+|at least one\s+)?(?P<words>\S.*)$"
)
_BLANK = re.compile(r"\b(?:blank|empty|one colou?r|uniform)\b")
_SHARP = re.compile(r"\b(?:sharp|crisp|in focus)\b|\b(?P<soft>blurr?(?:y|ed)|out of focus)\b")
_READABLE = re.compile(r"\b(?:readable|legible|contrast|wcag|accessible)\b")
_CUT_OFF = re.compile(r"\b(?:cut off|truncated|clipped|cropped)\b")
_LIKENESS = str.maketrans("l|!1o0s5", "iiiioo55")
_AAA = 7.0
_LEAST_FOCUS = 65


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that measurements support, with them in words and their place."""

    verdict: Literal["pass", "fail"]
    evidence: str
    box: Box | None = None


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion, and the picture that it is about.

    ``text`` is in lower case, without the part in quotes; ``phrase`` is that part, as written.
    """

    original: str
    text: str
    phrase: str | None
    picture: Evidence

    @property
    def is_negative(self) -> bool:
        """Whether it asks for something that is not the case."""
        return _NEGATIVE.search(self.text) is not None

    @property
    def plain(self) -> str:
        """The whole criterion in lower case, without quotation marks."""
        return " ".join(re.sub(r"[\"“”«»']", " ", self.original.lower()).split())

    def question(self, words: str) -> EyesQuestion:
        """A question about the picture."""
        return EyesQuestion(picture=self.picture, question=words)


def judge(criterion: str, picture: Evidence) -> Judgement | None:
    """Decide a criterion by what was measured and read; None if that does not decide it."""
    original = " ".join(criterion.strip().rstrip(".!").split())
    quote = IN_QUOTES.search(original)
    phrase = None if quote is None else quote[1] or quote[2]
    text = IN_QUOTES.sub(" ", original).lower()
    asked = Criterion(
        original=original, text=" ".join(text.split()), phrase=phrase, picture=picture
    )
    rules = MEASURED if picture.no_text_reason is not None else (*MEASURED, *READ)
    return next((found for rule in rules if (found := rule(asked)) is not None), None)


def _judged(is_so: bool, evidence: str, box: Box | None = None) -> Judgement:
    return Judgement(verdict="pass" if is_so else "fail", evidence=evidence, box=box)


def _answered(found: Finding | None, *, yes: str = "Yes") -> Judgement | None:
    """The verdict in an answer that begins with yes or no."""
    if found is None or not found.answer.startswith(("Yes", "No")):
        return None
    where = next((box for line in found.evidence if (box := box_in(line)) is not None), None)
    says = re.sub(r"^(?:Yes|No), ", "", found.answer).rstrip(".")
    return _judged(found.answer.startswith(yes), says, where)


# --- rules that need only pixels and header ---


def _blank(asked: Criterion) -> Judgement | None:
    if not _BLANK.search(asked.text) or asked.phrase is not None:
        return None
    seen = asked.picture.measured
    if _things(asked.text, ("blank", "empty", "colour", "color", "uniform")):
        return None  # a field or a page may be empty, too
    names = f"the colours are {measured.list_colours(seen.colours)}"
    if len(seen.colours) > 1 or seen.texture.sharp:
        return _judged(asked.is_negative, names)
    if asked.picture.no_text_reason is not None:
        return None  # a small thing may be left out of the colours
    page = asked.picture.page
    is_blank = not (page.lines or page.controls or page.shapes or page.panels)
    return _judged(is_blank != asked.is_negative, names)


def _sharp(asked: Criterion) -> Judgement | None:
    found, focus = _SHARP.search(asked.text), asked.picture.measured.texture.focus
    if (
        found is None
        or not focus
        or _things(asked.text, ("sharp", "crisp", "focus", "blurry", "blurred", "blury"))
    ):
        return None
    wants_sharp = (found["soft"] is None) != asked.is_negative
    return _judged(
        (focus >= _LEAST_FOCUS) == wants_sharp,
        f"sharpness {focus}; a sharp picture has {_LEAST_FOCUS} or more",
    )


def _size(asked: Criterion) -> Judgement | None:
    seen, text = asked.picture.measured, asked.text
    evidence = f"it is {seen.width} x {seen.height} pixels"
    if (both := _BY.search(text)) is not None:
        wanted = int(both[1]), int(both[2])
        compared = _compare_with(text)
        is_so = all(compared(*pair) for pair in zip((seen.width, seen.height), wanted, strict=True))
        return _judged(is_so != _denies(text), evidence)
    if (found := _EDGE.search(text)) is not None:
        edge = found["edge"] or found["compared"] or found["named"]
        wide = edge in {"wide", "in width", "width", "wider", "narrower"}
        length = seen.width if wide else seen.height
        wanted = _number(found["number"] or found["than"] or found["of"])
        return _judged(_compare_with(text)(length, wanted) != _denies(text), evidence)
    shapes = [word for word in tokens(text) if word in {"square", "landscape", "portrait"}]
    if shapes and not _things(text, ("square", "landscape", "portrait", "format")):
        found = measured.shape(asked.picture)
        return _judged((shapes[0] in found) != asked.is_negative, f"{evidence}, {found}")
    return None


def _file_size(asked: Criterion) -> Judgement | None:
    found = _BYTES.search(asked.text)
    if found is None:
        return None
    most = _number(found["number"]) * _UNITS.get(found["unit"], 1e6)
    size = asked.picture.measured.size_bytes
    is_so = _compare_with(asked.text)(size, most)
    return _judged(is_so != _denies(asked.text), f"the file has {size:,} bytes")


def _colours(asked: Criterion) -> Judgement | None:
    """The background, or a colour anywhere in the picture."""
    named = [word for word in tokens(asked.text) if word in COLOUR_WORDS]
    seen = asked.picture.measured
    if not named or asked.phrase is not None:
        return None
    rest = _things(asked.text, (*COLOUR_WORDS, *_COLOUR_PHRASES))
    if rest == ["background"] and seen.background is not None:
        is_so = matches_word(seen.background.name, " ".join(named)) or any(
            matches_word(seen.background.name, word) for word in named
        )
        return _judged(is_so != asked.is_negative, f"the background is {seen.background.name}")
    if rest:
        return None
    found = [one for one in seen.colours if any(matches_word(one.name, word) for word in named)]
    is_so = bool(found)
    if re.search(r"\b(?:mostly|mainly)\b", asked.text):
        is_so = bool(found) and found[0] == seen.colours[0]
    evidence = f"the colours are {measured.list_colours(seen.colours)}"
    return _judged(is_so != asked.is_negative, evidence)


_COLOUR_PHRASES = (
    *("colour", "color", "mostly", "mainly", "contain", "contains", "include", "includes"),
    *("some", "something"),
)


# --- rules that need the text and the layout ---


def _cut_off(asked: Criterion) -> Judgement | None:
    lines = asked.picture.lines
    if not _CUT_OFF.search(asked.text) or not lines or not _about_text(asked):
        return None
    seen = asked.picture.measured
    cut = [line for line in lines if _is_cut(line, seen.width, seen.height)]
    says = f"{quoted(cut[0].text)} is cut off" if cut else f"none of {len(lines)} lines is cut off"
    return _judged(bool(cut) != asked.is_negative, says, cut[0].box if cut else None)


def _is_cut(line: TextLine, width: int, height: int) -> bool:
    box = line.box
    at_edge = box.x <= 0 or box.x + box.width >= width
    return at_edge or box.y + box.height > height or line.text.rstrip().endswith(("…", "..."))


def _readable(asked: Criterion) -> Judgement | None:
    if not _READABLE.search(asked.text) or not asked.picture.lines or not _about_text(asked):
        return None
    if re.search(r"\baaa\b", asked.text):
        weak = min(asked.picture.lines, key=lambda line: line.contrast)
        says = f"the least contrast is {weak.contrast:.2f}, of {quoted(weak.text)}; AAA needs 7"
        return _judged(weak.contrast >= _AAA, says, weak.box)
    return _answered(appearance.contrast(asked.question(asked.text)), yes="No")


def _about_text(asked: Criterion) -> bool:
    return not _things(
        asked.text,
        (
            *("text", "texts", "line", "lines", "label", "labels", "word", "words", "letters"),
            *("readable", "legible", "contrast", "wcag", "aa", "aaa", "accessible", "enough"),
            *("good", "sufficient", "high", "cut", "off", "truncated", "clipped", "cropped"),
            *("all", "has", "every", "meets", "some", "any"),
        ),
    )


def _state(asked: Criterion) -> Judgement | None:
    if not appearance.STATE.search(asked.text):
        return None
    question = "is " + re.sub(r"\b(?:is|are)\b\s*", "", asked.plain, count=1)
    # Its pattern wants the verb before the state.
    return _answered(appearance.state(asked.question(question)))


def _colour_of_thing(asked: Criterion) -> Judgement | None:
    if not any(word in COLOUR_WORDS for word in tokens(asked.text)):
        return None
    plain = re.sub(r"\b(?:is|are|not|isn't)\b\s*", "", asked.plain)
    found = _answered(appearance.colour_of(asked.question(f"is {plain}")))
    if found is None or not asked.is_negative:
        return found
    return _judged(found.verdict == "fail", found.evidence, found.box)


def _count(asked: Criterion) -> Judgement | None:
    found = _COUNT.search(asked.text)
    if found is None or asked.phrase is not None:
        return None
    things, wanted = found["things"], _number(found["number"])
    number, evidence, box = _number_of(asked, things)
    if number is None:
        return None
    is_so = _compare_with(asked.text)(number, wanted)
    return _judged(is_so, f"{number} {things}{evidence}", box)


def _number_of(asked: Criterion, things: str) -> tuple[int | None, str, Box | None]:
    words = content(things)
    objects = [
        one for one in asked.picture.page.objects if len(hits(words, one.name)) == len(words)
    ]
    if objects:
        return len(objects), " were detected", objects[0].box
    answer = appearance.number_of(asked.question(f"how many {things}"))
    if answer is None or not answer.answer.isdecimal():
        return None, "", None
    shown = "; ".join(answer.evidence[:3])
    box = next((box for line in answer.evidence if (box := box_in(line)) is not None), None)
    return int(answer.answer), f": {shown}" if shown else "", box


def _value(asked: Criterion) -> Judgement | None:
    """The number that belongs to a label, a cell, a bar or a slice."""
    found = _VALUE.match(asked.plain)
    wanted = None if found is None else to_number(found["value"])
    if found is None or wanted is None:
        return None
    match = lookup.find(asked.question(f"what is the {found['label']}"))
    number = None if match is None else to_number(match.value)
    if match is None or number is None:
        return None
    is_so = _compare_with(found["compared"])(number, wanted)
    return _judged(is_so, f"{match.why}: {quoted(match.value)}", match.box)


def _text(asked: Criterion) -> Judgement | None:
    """A text in quotes, or after "says"."""
    phrase = asked.phrase
    if phrase is None:
        if (said := _SAYS.search(asked.original)) is None:
            return None
        # What is said may have a "not" of its own.
        before = asked.original[: said.start()].lower()
        return _says(msgspec.structs.replace(asked, text=before), said["words"])
    if _things(asked.text, _TEXT_WORDS):
        return None
    return _says(asked, phrase)


_TEXT_WORDS = (
    *("shows", "show", "says", "say", "contains", "contain", "reads", "read", "displays"),
    *("display", "includes", "include", "text", "word", "words", "label", "title", "heading"),
    *("headline", "button", "link", "visible", "appears", "appear", "present", "mentions"),
    *("line", "phrase", "caption", "message", "not", "without", "screen", "page", "absent"),
    *("missing", "hidden", "anywhere", "somewhere", "labelled", "labeled", "called", "named"),
)


def _says(asked: Criterion, phrase: str) -> Judgement | None:
    lines = asked.picture.lines
    # A label and its value may stand in different lines: "Total" above "$42.00".
    pairs = [
        TextLine(
            text=f"{pair.label.rstrip(':')}{mark} {pair.value}", box=pair.box, confidence=99, row=0
        )
        for pair in asked.picture.page.values
        for mark in ("", ":")
    ]
    pieces = (*lines, *pairs)
    found = next(occurrences(pieces, phrase), None)
    if found is None:
        # OCR takes some letters for others that look the same.
        alike = [msgspec.structs.replace(line, text=_alike(line.text)) for line in pieces]
        found = next(occurrences(tuple(alike), _alike(phrase)), None)
    if found is not None:
        return _judged(not asked.is_negative, f"it says {quoted(found.text)}", found.box)
    evidence = f"none of {len(lines)} lines of text says {quoted(phrase)}"
    near = get_close_matches(phrase, [line.text for line in lines], n=1, cutoff=0.5)
    if near and not asked.is_negative:
        line = next(line for line in lines if line.text == near[0])
        return _judged(False, f"{evidence}; the nearest is {quoted(line.text)}", line.box)
    return _judged(asked.is_negative, evidence)


def _alike(text: str) -> str:
    return text.casefold().translate(_LIKENESS)


def _shown(asked: Criterion) -> Judgement | None:
    """Words without quotes: a text that is there, a detected object, or what limner drew."""
    found = _SHOWS.search(asked.original)
    words = content(found["words"].lower()) if found is not None else []
    if found is None or not words or asked.phrase is not None:
        return None
    picture = asked.picture
    for one in picture.page.objects:
        if len(hits(words, one.name)) == len(words):
            evidence = f"a detector found {one.name} ({one.confidence} %)"
            return _judged(not asked.is_negative, evidence, one.box)
    if picture.record is not None:
        for thing in picture.record.things:
            if len(hits(words, thing.name)) == len(words):
                evidence = f"limner's record of the drawing names {thing.count} {thing.name}"
                return _judged(not asked.is_negative, evidence)
    line = next(occurrences(picture.lines, found["words"]), None)
    if line is None:
        return None
    return _judged(not asked.is_negative, f"it says {quoted(line.text)}", line.box)


Rule = Callable[[Criterion], Judgement | None]
MEASURED: Sequence[Rule] = (_blank, _sharp, _file_size, _size, _colours)
READ: Sequence[Rule] = (
    *(_cut_off, _readable, _state, _colour_of_thing, _text, _count, _value, _shown),
)


def _compare_with(text: str) -> Callable[[float, float], bool]:
    """The comparison that a criterion names; without one the numbers have to be equal."""
    found = _COMPARISON.search(text)
    if found is None:
        return operator.eq
    return list(_COMPARISONS.values())[(found.lastindex or 1) - 1]


def _denies(text: str) -> bool:
    """Whether a criterion is negative besides a comparison such as "no more than"."""
    return _NEGATIVE.search(_COMPARISON.sub(" ", text)) is not None


def _things(text: str, besides: Iterable[str]) -> list[str]:
    """The words of a criterion that name something in the picture."""
    return content(_NEGATIVE.sub(" ", text), besides=besides)


def _number(text: str) -> float:
    if text in _NUMBER_WORDS:
        return float(_NUMBER_WORDS.index(text))
    return to_number(text) or 0.0
