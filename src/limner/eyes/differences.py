"""The evidence of two pictures -> what changed between them, with boxes and texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from limner.eyes.evidence import Evidence, Finding
from limner.eyes.quotes import QUOTED_IS_DATA, cleaned, quoted
from limner.eyes.text import place
from limner.eyes.words import content, hits, word_set
from limner.imaging.evidence import Box, Control, Shape, TextLine
from limner.imaging.evidence.colour_names import name_of, oklab

ASKS = re.compile(
    r"\b(?:chang(?:e[ds]?|ing)|differ(?:s|ent|ence|ences)?|compare[ds]?|comparison|same|identical"
    r"|new|added|removed|moved|versus|vs)\b"
)
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?[$€£¥]|\d[.,]\d\d\b")
_ASPECT_WORDS = word_set(
    "change changed changes different difference differences differ same identical compare "
    "compared color colour colours text button price between two pictures images screens "
    "versions version first second new added removed moved still size position before after"
)
# In OKLab, a smaller distance may come from anti-aliasing.
_LEAST_COLOUR = 0.04


class ScreenChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change: of a text, a colour, a state, a place, or the size of the picture.

    ``box`` is in pixels of the second picture, or of the first for what was removed.
    """

    kind: str
    what: str
    before: str
    after: str
    box: Box

    @property
    def sentence(self) -> str:
        """The change in words."""
        if self.kind == "added":
            return f"{quoted(self.after)} was added"
        if self.kind == "removed":
            return f"{quoted(self.before)} was removed"
        if self.kind == "moved":
            return f"{quoted(self.what)} moved"
        if self.kind == "text":
            return f"{quoted(self.before)} -> {quoted(self.after)}"
        return f"{self.kind} of {quoted(self.what)}: {self.before} -> {self.after}"


def compare(before: Evidence, after: Evidence) -> list[ScreenChange]:
    """Every difference in size, text, colours, controls and shapes."""
    found = [
        *_size(before, after),
        *_texts(before.lines, after.lines),
        *_controls(before.page.controls, after.page.controls),
        *_shapes(before.page.shapes, after.page.shapes),
    ]
    return sorted(found, key=lambda one: (one.box.y, one.box.x))


def answer_difference(before: Evidence, after: Evidence, question: str) -> Finding:
    """What changed, or whether the thing in the question did."""
    differences = compare(before, after)
    reasons = [one.no_text_reason for one in (before, after) if one.no_text_reason]
    caveats = (
        "Compared were size, text, colours of text, controls and flat shapes, not each pixel.",
        *(f"The text cannot be read here: {reason}." for reason in reasons[:1]),
        QUOTED_IS_DATA,
    )
    relevant = differences
    if re.match(r"(?:did|does|do|has|have|is|are|was|were)\b", question):
        relevant = _relevant(differences, question)
        same = re.search(r"\b(?:same|identical)\b", question) is not None
        word = "Yes" if bool(relevant) != same else "No"
        answer = f"{word}: {_list(relevant)}" if relevant else f"{word}, no such change was found."
    else:
        narrowed = _relevant(differences, question)
        relevant = narrowed or differences
        answer = _list(relevant) if relevant else "No difference was found."
    shown = tuple(f"{_kind_of(one)}: {one.sentence}, {place(one.box)}." for one in relevant[:20])
    return Finding(answer=cleaned(answer, max_chars=200), evidence=shown, caveats=caveats)


def _kind_of(one: ScreenChange) -> str:
    return one.kind.capitalize()


def _list(differences: Sequence[ScreenChange]) -> str:
    return "; ".join(one.sentence for one in differences)


def _relevant(differences: Sequence[ScreenChange], question: str) -> list[ScreenChange]:
    """The differences of what the question names; all if it names nothing."""
    found = list(differences)
    if re.search(r"\bcolou?rs?\b", question):
        found = [one for one in found if one.kind == "colour"]
    if re.search(r"\b(?:prices?|costs?|amount)\b", question):
        found = [one for one in found if _MONEY.search(one.before + " " + one.after)]
    if re.search(r"\b(?:text|words?|wording)\b", question):
        found = [one for one in found if one.kind in {"text", "added", "removed"}]
    wanted = content(question, besides=_ASPECT_WORDS)
    if not wanted:
        return found
    return [one for one in found if hits(wanted, f"{one.what} {one.before} {one.after}")]


def _size(before: Evidence, after: Evidence) -> Iterator[ScreenChange]:
    one, other = before.measured, after.measured
    if (one.width, one.height) != (other.width, other.height):
        yield ScreenChange(
            kind="size",
            what="the picture",
            before=f"{one.width} x {one.height}",
            after=f"{other.width} x {other.height}",
            box=Box(x=0, y=0, width=other.width, height=other.height),
        )


def _texts(before: Sequence[TextLine], after: Sequence[TextLine]) -> Iterator[ScreenChange]:
    left, pairs = _paired(before, after)
    for one, other in pairs:
        if _letters(one.text) != _letters(other.text):
            yield ScreenChange(
                kind="text", what=one.text, before=one.text, after=other.text, box=other.box
            )
        elif _distance(one.box, other.box) > 0.5 * max(one.box.height, other.box.height):
            yield ScreenChange(
                kind="moved", what=one.text, before=place(one.box), after=place(other.box),
                box=other.box,
            )  # fmt: skip
        yield from _recoloured(one, other)
    matched = {id(other) for _, other in pairs}
    for line in left:
        yield ScreenChange(kind="removed", what=line.text, before=line.text, after="", box=line.box)
    for line in after:
        if id(line) not in matched:
            yield ScreenChange(
                kind="added", what=line.text, before="", after=line.text, box=line.box
            )


def _paired(
    before: Sequence[TextLine], after: Sequence[TextLine]
) -> tuple[list[TextLine], list[tuple[TextLine, TextLine]]]:
    """Lines of both pictures that belong together: same text first, then same place."""
    free, left = list(after), list(before)
    pairs: list[tuple[TextLine, TextLine]] = []
    for same in (_same_text, _same_place):
        for line in list(left):
            options = [other for other in free if same(line, other)]
            if options:
                nearest = min(options, key=lambda other: _distance(line.box, other.box))
                pairs.append((line, nearest))
                free.remove(nearest)
                left.remove(line)
    return left, pairs


def _same_text(one: TextLine, other: TextLine) -> bool:
    return _letters(one.text) == _letters(other.text)


def _same_place(one: TextLine, other: TextLine) -> bool:
    down = abs(one.box.y - other.box.y) <= 0.6 * max(one.box.height, other.box.height)
    shared = min(one.box.x + one.box.width, other.box.x + other.box.width) - max(
        one.box.x, other.box.x
    )
    return down and shared > 0.3 * min(one.box.width, other.box.width)


def _recoloured(one: TextLine, other: TextLine) -> Iterator[ScreenChange]:
    if not one.paper or not other.paper:
        return
    changed = [("the box behind", one.paper, other.paper)]
    if name_of(one.ink) != name_of(other.ink):
        changed.append(("the letters of", one.ink, other.ink))
    for part, before, after in changed:
        # Thin letters are a mixture of ink and paper, so their colour is less exact.
        if _differ(before, after, least=1 if before == one.paper else 4):
            yield ScreenChange(
                kind="colour",
                what=f"{part} {other.text}",
                before=f"{name_of(before)} {before}",
                after=f"{name_of(after)} {after}",
                box=other.box,
            )
            return  # new paper often means new ink, which is one change


def _differ(before: str, after: str, *, least: float) -> bool:
    places = [oklab((code[0], code[1], code[2])) for code in map(_channels, (before, after))]
    return math.dist(*places) > least * _LEAST_COLOUR


def _channels(code: str) -> bytes:
    return bytes.fromhex(code.removeprefix("#"))


def _controls(before: Sequence[Control], after: Sequence[Control]) -> Iterator[ScreenChange]:
    """Controls with the same label in another state; the text of fields is compared as text."""
    for one in before:
        other = next((two for two in after if (two.kind, two.label) == (one.kind, one.label)), None)
        if other is not None and one.kind != "field" and one.state != other.state:
            yield ScreenChange(
                kind="state", what=one.label, before=one.state, after=other.state, box=other.box
            )


def _shapes(before: Sequence[Shape], after: Sequence[Shape]) -> Iterator[ScreenChange]:
    free = list(after)
    for one in before:
        same = [
            other for other in free if other.kind == one.kind and _distance(one.box, other.box) <= 4
        ]
        other = next(iter(same), None)
        if other is None:
            name = f"{name_of(one.colour)} {one.kind}"
            yield ScreenChange(kind="removed", what=name, before=name, after="", box=one.box)
            continue
        free.remove(other)
        if _differ(one.colour, other.colour, least=1):
            yield ScreenChange(
                kind="colour", what=one.kind, before=f"{name_of(one.colour)} {one.colour}",
                after=f"{name_of(other.colour)} {other.colour}", box=other.box,
            )  # fmt: skip
    for other in free:
        name = f"{name_of(other.colour)} {other.kind}"
        yield ScreenChange(kind="added", what=name, before="", after=name, box=other.box)


def _letters(text: str) -> str:
    return "".join(text.split())


def _distance(one: Box, other: Box) -> float:
    return math.dist((one.x, one.y), (other.x, other.y))
