"""The evidence of two pictures -> what changed between them, with boxes and texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from limner.eyes.evidence import Evidence, Finding
from limner.eyes.quotes import QUOTED_IS_DATA, cleaned, quoted
from limner.eyes.text import place
from limner.eyes.words import content, hits, word_set
from limner.imaging.comparison import ChangedArea
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
# The share of a picture in two colours, in percent, from which on its shapes are compared.
_FLAT = 30
# A colour with at least this share of a picture, in percent, is one of its main colours.
_MAIN_COLOUR = 15
_NONE_IN_A_SCENE = (
    "No difference of size, text, controls or main colours was found; `limner check` compares "
    "the pixels."
)


class ScreenChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change: of a text, a colour, a state, a place, or the size of the picture.

    ``box`` is in pixels of the second picture, or of the first for what was removed. ``moved_by``
    is right and down in pixels, if it was measured. The kind is "changed" if only the pixels show
    that something differs.
    """

    kind: Literal["text", "colour", "state", "moved", "added", "removed", "size", "changed"]
    what: str
    before: str
    after: str
    box: Box
    moved_by: tuple[int, int] | None = None

    @property
    def sentence(self) -> str:
        """The change in words."""
        what = quoted(self.what) if self.what else "something"
        if self.kind in {"added", "removed"}:
            return f"{what} was {self.kind}"
        if self.kind == "moved":
            by = "" if self.moved_by is None else f" by {self.moved_by}"
            return f"{what} moved{by}"
        if self.kind == "changed":
            return f"{what} looks different"
        if self.kind == "colour" and not self.what:
            return f"colour: {self.before} -> {self.after}"
        if self.kind == "text":
            return f"{quoted(self.before)} -> {quoted(self.after)}"
        return f"{self.kind} of {quoted(self.what)}: {self.before} -> {self.after}"


def compare(before: Evidence, after: Evidence) -> list[ScreenChange]:
    """Every difference in size, text, colours, controls and shapes."""
    found = [
        *_size(before, after),
        *_texts(before.lines, after.lines),
        *_controls(before.page.controls, after.page.controls),
    ]
    if _is_flat(before) and _is_flat(after):
        found += _shapes(before.page.shapes, after.page.shapes)
    return sorted(found, key=lambda one: (one.box.y, one.box.x))


def _is_flat(picture: Evidence) -> bool:
    """Whether it has flat areas, as a screen: in a scene, each shade would count as a shape."""
    return picture.measured.texture.two_colours >= _FLAT


def name_areas(
    areas: Sequence[ChangedArea], before: Evidence, after: Evidence
) -> list[ScreenChange]:
    """What changed in each area that differs in its pixels, in the words of the evidence.

    The pixels decide that something changed, so a text that OCR reads in two ways is no change.
    Areas of one change become one.
    """
    known = [one for one in compare(before, after) if one.kind != "size"]
    named: dict[int, ScreenChange] = {}
    others: list[ScreenChange] = []
    for area in areas:
        if area.kind == "changed" and (text := _new_text(area, before, after)) is not None:
            key = id(text[1])
            known_box = named[key].box if key in named else area.box
            named[key] = _text_change(*text, _around(known_box, area.box))
            continue
        touched = [one for one in known if _touch(one.box, area.box)]
        best = min(touched, key=lambda one: _RANKS[one.kind], default=None)
        if best is None or (best.kind != "state" and area.kind in {"moved", "colour"}):
            others.append(_measured(area, before, after))
            continue
        box = area.box if id(best) not in named else _around(named[id(best)].box, area.box)
        named[id(best)] = replace(best, box=box)
    return sorted([*named.values(), *others], key=lambda one: (one.box.y, one.box.x))


# What names an area best: a recoloured toggle was switched, and a new text says more than a colour.
_RANKS = {"state": 0, "text": 1, "added": 2, "removed": 2, "moved": 3, "colour": 4}


def _new_text(
    area: ChangedArea, before: Evidence, after: Evidence
) -> tuple[TextLine, TextLine] | None:
    """The only line in an area, before and after, if it says something else now."""
    seen = (before.lines, after.lines)
    old, new = ([one for one in lines if _touch(one.box, area.box)] for lines in seen)
    if len(old) == len(new) == 1 and not _same_text(old[0], new[0]):
        return old[0], new[0]
    return None


def _text_change(old: TextLine, new: TextLine, box: Box) -> ScreenChange:
    return ScreenChange(kind="text", what=old.text, before=old.text, after=new.text, box=box)


def _measured(area: ChangedArea, before: Evidence, after: Evidence) -> ScreenChange:
    """An area in the words of its pixels, with the text in it or right beside it."""
    seen = before if area.kind == "removed" else after
    inside = [line for line in seen.lines if _touch(line.box, area.box)]
    what = " ".join(line.text for line in inside[:3])
    colours = [f"{name_of(code)} {code}" if code else "" for code in (area.before, area.after)]
    said = ("", what) if area.kind == "added" else (what, "")
    old, new = said if area.kind in {"added", "removed"} else colours
    return ScreenChange(
        kind=area.kind, what=what, before=old, after=new, box=area.box, moved_by=area.moved_by
    )


def _touch(one: Box, other: Box) -> bool:
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across > 0 and down > 0


def _around(one: Box, other: Box) -> Box:
    x, y = min(one.x, other.x), min(one.y, other.y)
    right = max(one.x + one.width, other.x + other.width)
    bottom = max(one.y + one.height, other.y + other.height)
    return Box(x=x, y=y, width=right - x, height=bottom - y)


def answer_difference(before: Evidence, after: Evidence, question: str) -> Finding:
    """What changed, or whether the thing in the question did."""
    differences = [*compare(before, after), *_main_colours(before, after)]
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
        flat = _is_flat(before) and _is_flat(after)
        answer = _list(relevant) or ("No difference was found." if flat else _NONE_IN_A_SCENE)
    shown = tuple(f"{_kind_of(one)}: {one.sentence}, {place(one.box)}." for one in relevant[:20])
    return Finding(answer=cleaned(answer, max_chars=200), evidence=shown, caveats=caveats)


def _main_colours(before: Evidence, after: Evidence) -> Iterator[ScreenChange]:
    """The main colours of two scenes, if they have none in common."""
    if _is_flat(before) and _is_flat(after):
        return
    old, new = (
        list(
            dict.fromkeys(one.name for one in seen.measured.colours if one.percent >= _MAIN_COLOUR)
        )
        for seen in (before, after)
    )
    if old and new and not set(old) & set(new):
        size = after.measured
        yield ScreenChange(
            kind="colour",
            what="",
            before=", ".join(old),
            after=", ".join(new),
            box=Box(x=0, y=0, width=size.width, height=size.height),
        )


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
            yield _text_change(one, other, other.box)
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
