"""Text and codes -> answers: what it says, whether and where it says something, how much."""

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
# How many times as high as the usual line a title is.
_STANDS_OUT = 1.5

# Asked for these, a question wants all of the text.
_ANYTHING = re.compile(
    r"(?:any ?thing|some ?thing|any (?:text|words?)|what|how|when|where|who)\b.*"
)
_IN_QUOTES = re.compile(r"[\"“”«»]([^\"“”«»]{1,200})[\"“”«»]|(?<!\w)'([^']{1,200})'(?!\w)")
_YES_OR_NO = re.compile(
    r"^(?:does|do|did|is|are|can you (?:read|find))\b.{0,60}?"
    r"\b(?:say|read|mention|spell|the (?:word|words|text|phrase|string))\s+"
    r"(?:the (?:word|words|text|phrase|string)\s+)?(?P<what>\S.*)$"
)
_WHERE = re.compile(
    r"^(?:where (?:is|are|does it say|in the \w+ is)|find|locate)\s+(?:the (?:word|text)\s+)?"
    r"(?:the\s+)?(?P<what>\S.*?)(?:\s+(?:button|label|link|heading|field|tab|menu|text))?$"
)


def transcript(asked: EyesQuestion) -> Finding:
    """All of the text, as found."""
    if asked.picture.unread is not None:
        return _unread(asked.picture.unread)
    rows = asked.picture.rows
    if not rows:
        return Finding(
            answer="There is no text in the picture that can be read.",
            evidence=("The text reader found no line it was confident of.",),
        )
    text = block(rows, max_rows=MAX_ROWS, max_chars=MAX_CHARS)
    return Finding(
        answer=f"The picture has {_count(len(rows), 'line')} of text:\n{text}",
        evidence=(confidence(asked.picture),),
        caveats=(QUOTED_IS_DATA,),
    )


def heading(asked: EyesQuestion) -> Finding:
    """The largest text, which is the title where there is one."""
    if asked.picture.unread is not None or not asked.picture.lines:
        return transcript(asked)
    largest = max(asked.picture.lines, key=lambda line: line.box.height)
    usual = median(line.box.height for line in asked.picture.lines)
    if largest.box.height >= _STANDS_OUT * usual:
        answer = f"The largest text is {quoted(largest.text)}."
    else:
        first = asked.picture.rows[0]
        answer = f"No text is much larger than the rest; the first line is {quoted(first)}."
    return Finding(
        answer=answer,
        evidence=(f"The highest line has {largest.box.height} pixels, the usual {usual:.0f}.",),
        caveats=(QUOTED_IS_DATA,),
    )


def counts(asked: EyesQuestion) -> Finding:
    """How many lines, words and characters of text there are."""
    if asked.picture.unread is not None:
        return _unread(asked.picture.unread)
    rows = asked.picture.rows
    words = sum(len(row.split()) for row in rows)
    characters = sum(len("".join(row.split())) for row in rows)
    return Finding(
        answer=f"The text has {_count(len(rows), 'line')}, {_count(words, 'word')} and "
        f"{_count(characters, 'character')} without spaces.",
        evidence=(confidence(asked.picture),) if rows else (),
    )


def codes(asked: EyesQuestion) -> Finding:
    """The QR codes and barcodes, and what they hold."""
    found = asked.picture.measured.codes
    if found is None:
        return Finding(
            answer="Codes cannot be read here: what reads them is not installed.",
            caveats=(f"To read codes and text, run: {INSTALL_OCR}",),
        )
    if not found:
        return Finding(
            answer="There is no QR code or barcode in the picture that can be read.",
            evidence=("Looked for: QR, Data Matrix, Aztec, PDF417, EAN, UPC, Code 128.",),
        )
    return Finding(
        answer=f"There {_is(len(found), 'code')}: " + "; ".join(map(code_line, found)) + ".",
        caveats=(QUOTED_IS_DATA,),
    )


def code_line(code: Code) -> str:
    """One code in words."""
    return f"{code.kind} {quoted(code.text)} {place(code.box)}"


def wanted_phrase(question: str) -> str | None:
    """The words a question looks for in the picture, or None where it looks for none."""
    if found := _IN_QUOTES.search(question):
        return found[1] or found[2]
    for pattern in (_YES_OR_NO, _WHERE):
        if found := pattern.match(question.rstrip("?.! ")):
            what = found["what"]
            return None if _ANYTHING.fullmatch(what) else what
    return None


def is_about_text(question: str) -> bool:
    """Whether a phrase is certainly looked for as text, not as a thing that might be shown."""
    return bool(_IN_QUOTES.search(question) or _YES_OR_NO.match(question))


def search(asked: EyesQuestion) -> Finding | None:
    """Whether the picture says something, and where; None where only eyes could tell."""
    phrase = wanted_phrase(asked.question)
    if phrase is None:
        return None
    if asked.picture.unread is not None:
        return _unread(asked.picture.unread)
    places = list(occurrences(asked.picture.lines, phrase))
    if places:
        shown = "; ".join(
            f"{place(line.box)} in {quoted(line.text)}" for line in places[:_MAX_PLACES]
        )
        return Finding(
            answer=f"Yes, it says {quoted(phrase)} in {_count(len(places), 'place')}: {shown}.",
            evidence=(confidence(asked.picture),),
            caveats=(QUOTED_IS_DATA,),
        )
    if not is_about_text(asked.question):
        return None
    return Finding(
        answer=f"No, none of the text that can be read says {quoted(phrase)}.",
        evidence=(f"{_count(len(asked.picture.rows), 'line')} of text searched.",),
    )


def occurrences(lines: tuple[TextLine, ...], phrase: str) -> Iterator[TextLine]:
    """The pieces of text that have the phrase as words of its own, whatever the case and spaces."""
    letters = "".join(phrase.split()).casefold()
    if not letters:
        return
    # Readers lose and invent spaces, so none is relied on.
    pattern = r"\s*".join(map(re.escape, letters))
    before = r"(?<!\w)" if letters[0].isalnum() else ""
    after = r"(?!\w)" if letters[-1].isalnum() else ""
    matcher = re.compile(before + pattern + after)
    # What says only this, such as a button, comes before what also says it.
    for line in sorted(lines, key=lambda line: len(line.text)):
        if matcher.search(line.text.casefold()):
            yield line


def place(box: Box) -> str:
    """Where a box is, for somebody who may want to click there."""
    return f"at x {box.x}, y {box.y} ({box.width} x {box.height})"


def confidence(evidence: Evidence) -> str:
    """How sure the reader was, in one line."""
    found = [line.confidence for line in evidence.lines]
    least, most = min(found, default=0), max(found, default=0)
    sure = f"{least} %" if least == most else f"{least} to {most} %"
    return f"Read with a confidence of {sure} a line."


def _unread(reason: str) -> Finding:
    return Finding(answer=f"The text cannot be read here: {reason}.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def _is(number: int, noun: str) -> str:
    return f"{'is' if number == 1 else 'are'} {_count(number, noun)}"
