"""Text and codes of a picture -> answers: the text, a search in it, its length, the codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from limner.eyes.evidence import Evidence, EyesQuestion, Finding
from limner.eyes.quotes import QUOTED_IS_DATA, block, quoted
from limner.imaging.evidence import Box, Code, TextLine
from limner.imaging.evidence.record import INSTALL_OCR

MAX_ROWS, MAX_CHARS = 200, 16_000
_MAX_PLACES = 10
# A title is at least this many times as high as the usual line.
_TITLE_FACTOR = 1.5

# Words that ask for all of the text, not for a phrase.
_ANYTHING = re.compile(
    r"(?:any ?thing|some ?thing|any (?:text|words?)|what|how|when|where|who)\b.*"
)
IN_QUOTES = re.compile(r"[\"“”«»]([^\"“”«»]{1,200})[\"“”«»]|(?<!\w)'([^']{1,200})'(?!\w)")
_PLACE = re.compile(r"at x (\d+), y (\d+) \((\d+) x (\d+)\)")
_YES_OR_NO = re.compile(
    r"^(?:does|do|did|is|are|can you (?:read|find))\b.{0,60}?"
    r"\b(?:say|read|mention|spell|the (?:word|words|text|phrase|string))\s+"
    r"(?:the (?:word|words|text|phrase|string)\s+)?(?P<what>\S.*)$"
)
_WHERE = re.compile(
    r"^(?:where (?:is|are|does it say|in the \w+ is)|find|locate)\s+(?:the (?:word|text)\s+)?"
    r"(?:the\s+)?(?P<what>\S.*?)(?:\s+(?:button|label|link|heading|field|tab|menu|text))?$"
)


def transcript(query: EyesQuestion) -> Finding:
    """All of the text."""
    if query.picture.no_text_reason is not None:
        return _not_recognized(query.picture.no_text_reason)
    rows = query.picture.rows
    if not rows:
        return Finding(
            answer="There is no text in the picture that can be read.",
            evidence=("OCR found no line with enough confidence.",),
        )
    text = block(rows, max_rows=MAX_ROWS, max_chars=MAX_CHARS)
    return Finding(
        answer=f"The picture has {_count(len(rows), 'line')} of text:\n{text}",
        evidence=(confidence(query.picture),),
        caveats=(QUOTED_IS_DATA,),
    )


def heading(query: EyesQuestion) -> Finding:
    """The largest text, which is the title if there is one."""
    if query.picture.no_text_reason is not None or not query.picture.lines:
        return transcript(query)
    largest = max(query.picture.lines, key=lambda line: line.box.height)
    usual = median(line.box.height for line in query.picture.lines)
    if largest.box.height >= _TITLE_FACTOR * usual:
        answer = f"The largest text is {quoted(largest.text)}."
    else:
        first = query.picture.rows[0]
        answer = f"No text is much larger than the rest; the first line is {quoted(first)}."
    return Finding(
        answer=answer,
        evidence=(f"The largest line has {largest.box.height} pixels, the usual one {usual:.0f}.",),
        caveats=(QUOTED_IS_DATA,),
    )


def counts(query: EyesQuestion) -> Finding:
    """How many lines, words and characters of text there are."""
    if query.picture.no_text_reason is not None:
        return _not_recognized(query.picture.no_text_reason)
    rows = query.picture.rows
    words = sum(len(row.split()) for row in rows)
    characters = sum(len("".join(row.split())) for row in rows)
    return Finding(
        answer=f"The text has {_count(len(rows), 'line')}, {_count(words, 'word')} and "
        f"{_count(characters, 'character')} without spaces.",
        evidence=(confidence(query.picture),) if rows else (),
    )


def codes(query: EyesQuestion) -> Finding:
    """The QR codes and barcodes, and their content."""
    found = query.picture.measured.codes
    if found is None:
        return Finding(
            answer="Codes cannot be decoded here: the library is not installed.",
            caveats=(f"For codes and text, run: {INSTALL_OCR}",),
        )
    if not found:
        return Finding(
            answer="There is no QR code or barcode in the picture that can be decoded.",
            evidence=("Looked for: QR, Data Matrix, Aztec, PDF417, EAN, UPC, Code 128.",),
        )
    return Finding(
        answer=f"There {_is(len(found), 'code')}: " + "; ".join(map(code_line, found)) + ".",
        caveats=(QUOTED_IS_DATA,),
    )


def code_line(code: Code) -> str:
    """One code as text."""
    return f"{code.kind} {quoted(code.text)} {place(code.box)}"


def wanted_phrase(question: str) -> str | None:
    """The phrase that a question searches for in the picture; None if there is none."""
    if found := IN_QUOTES.search(question):
        return found[1] or found[2]
    for pattern in (_YES_OR_NO, _WHERE):
        if found := pattern.match(question.rstrip("?.! ")):
            what = found["what"]
            return None if _ANYTHING.fullmatch(what) else what
    return None


def is_about_text(question: str) -> bool:
    """Whether a question searches for text, and not for an object."""
    return bool(IN_QUOTES.search(question) or _YES_OR_NO.match(question))


def search(query: EyesQuestion) -> Finding | None:
    """Whether the picture contains a phrase, and where; None if only a vision model could tell."""
    phrase = wanted_phrase(query.question)
    if phrase is None:
        return None
    if query.picture.no_text_reason is not None:
        return _not_recognized(query.picture.no_text_reason)
    places = list(occurrences(query.picture.lines, phrase))
    if places:
        shown = "; ".join(
            f"{place(line.box)} in {quoted(line.text)}" for line in places[:_MAX_PLACES]
        )
        return Finding(
            answer=f"Yes, it says {quoted(phrase)} in {_count(len(places), 'place')}: {shown}.",
            evidence=(confidence(query.picture),),
            caveats=(QUOTED_IS_DATA,),
        )
    if not is_about_text(query.question):
        return None
    return Finding(
        answer=f"No, none of the text that can be read says {quoted(phrase)}.",
        evidence=(f"{_count(len(query.picture.rows), 'line')} of text searched.",),
    )


def occurrences(lines: tuple[TextLine, ...], phrase: str) -> Iterator[TextLine]:
    """The pieces of text that contain the phrase as whole words, ignoring case and spaces."""
    letters = "".join(phrase.split()).casefold()
    if not letters:
        return
    # OCR loses and invents spaces, so the pattern ignores them.
    pattern = r"\s*".join(map(re.escape, letters))
    before = r"(?<!\w)" if letters[0].isalnum() else ""
    after = r"(?!\w)" if letters[-1].isalnum() else ""
    matcher = re.compile(before + pattern + after)
    # Short texts, such as the label of a button, come before longer ones.
    for line in sorted(lines, key=lambda line: len(line.text)):
        if matcher.search(line.text.casefold()):
            yield line


def place(box: Box) -> str:
    """The position of a box, for a caller that may click there."""
    return f"at x {box.x}, y {box.y} ({box.width} x {box.height})"


def box_in(text: str) -> Box | None:
    """The box that `place` wrote into a text; None if there is none."""
    found = _PLACE.search(text)
    if found is None:
        return None
    x, y, width, height = map(int, found.groups())
    return Box(x=x, y=y, width=width, height=height)


def confidence(evidence: Evidence) -> str:
    """The confidence of OCR, in one line."""
    found = [line.confidence for line in evidence.lines]
    least, most = min(found, default=0), max(found, default=0)
    sure = f"{least} %" if least == most else f"{least} to {most} %"
    return f"Read with a confidence of {sure} a line."


def _not_recognized(reason: str) -> Finding:
    return Finding(answer=f"The text cannot be read here: {reason}.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def _is(number: int, noun: str) -> str:
    return f"{'is' if number == 1 else 'are'} {_count(number, noun)}"
