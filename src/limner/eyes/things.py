"""Things and people in a picture -> answers, from limner's own record or from the detector.

The record says what limner drew; nothing in it was measured, and each answer says so. Neither says
that something is missing: a record lists no clouds, and a detector overlooks things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Literal, cast

import msgspec

from limner.eyes.evidence import DrawingRecord, EyesQuestion, Finding, RecordedThing
from limner.eyes.quotes import QUOTED_IS_DATA, quoted
from limner.eyes.text import place
from limner.eyes.words import content, hits, stems
from limner.imaging.evidence import DetectedObject
from limner.pictures.labels import read_label

OWN_RECORD = "This is from limner's own record of the drawing; it was not measured."
_DETECTED = "A detector found this on the photo; it can overlook things and confuse them."
# The provider that draws without a model; the record of others is only a prompt.
_ILLUSTRATOR = "illustrator"
_DOCUMENT = "limner document: "
_MAX_VALUES = 200
_COUNT = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b")
_EXISTS = re.compile(r"\b(?:is|are) there\b|\b(?:do|can) you see\b|\bdoes (?:it|this)\b.*\bshow\b")
_LIST = re.compile(
    r"\b(?:what|which) (?:objects?|things?|animals?|items)\b"
    r"|\bwhat(?:'s| is| was) (?:drawn|shown|depicted|(?:in|on) it)\b"
    r"|\bwhat(?:'s| is| was) in (?:the|this) (?:photo|picture|image|drawing)"
    r"|\bwhat (?:(?:did|have) )?you (?:have )?(?:draw|drew|drawn|paint|painted)\b"
)
_PEOPLE = frozenset(stems("people persons anyone anybody someone somebody human humans"))


def read_record(
    origin: Mapping[str, Any], source: Literal["store", "label"]
) -> DrawingRecord | None:
    """The record of a drawing, from what was stored with it; None if limner did not draw it."""
    if origin.get("provider") != _ILLUSTRATOR:
        return None
    scene = _mapping(origin.get("scene"))
    layout = _mapping(scene.get("layout"))
    texts = [str(one) for one in _list(scene.get("texts"))]
    things = [_mapping(one) for one in _list(layout.get("things"))]
    prompt = str(origin.get("prompt", ""))
    return DrawingRecord(
        source=source,
        model=str(origin.get("model", "")),
        prompt=prompt,
        things=tuple(
            RecordedThing(name=str(one["words"]), count=int(one.get("count", 1)))
            for one in things
            if one.get("words") and one["words"] not in texts
        ),
        texts=tuple(texts),
        values=tuple(_chart_values(prompt)),
    )


def read_label_record(data: bytes) -> DrawingRecord | None:
    """The record in the label of a file that limner wrote; None if it has none."""
    found = read_label(BytesIO(data))
    if found is None:
        return None
    label, _ = found
    provider, _, model = label.model.partition("/")
    try:
        scene = msgspec.json.decode(label.scene) if label.scene else None
    except msgspec.DecodeError:
        scene = None
    origin = {"provider": provider, "model": model, "prompt": label.prompt, "scene": scene}
    return read_record(origin, "label")


def _chart_values(prompt: str) -> Iterator[tuple[str, str]]:
    """The numbers of a rendered chart, by their labels."""
    if not prompt.startswith(_DOCUMENT):
        return
    try:
        chart = _mapping(msgspec.json.decode(prompt.removeprefix(_DOCUMENT)))
    except msgspec.DecodeError:
        return
    labels, values = _list(chart.get("labels")), _list(chart.get("values"))
    for label, value in zip(labels[:_MAX_VALUES], values, strict=False):
        yield str(label), str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def answer_things(query: EyesQuestion) -> Finding | None:
    """How many of a thing there are, whether there is one, or what was drawn or detected."""
    return _from_record(query) or _from_detector(query)


def _from_record(query: EyesQuestion) -> Finding | None:
    record = query.picture.record
    if record is None:
        return None
    said = _record_answer(record, query.question)
    if said is None:
        return None
    where = "the store" if record.source == "store" else "the label of the file"
    drawn = ", ".join(f"{quoted(one.name)} x {one.count}" for one in record.things)
    return Finding(
        answer=f"{said}, from limner's own record.",
        evidence=(f"Drawn, by {where}: {drawn or 'a document'}.",),
        caveats=(OWN_RECORD, QUOTED_IS_DATA),
    )


def _record_answer(record: DrawingRecord, question: str) -> str | None:
    wanted = content(question)
    named = [one for one in record.things if wanted and hits(wanted, one.name)]
    if _COUNT.search(question) and named:
        return str(sum(one.count for one in named))
    if _EXISTS.search(question) and named and len(hits(wanted, named[0].name)) == len(wanted):
        return f"Yes: {named[0].count} {named[0].name}"
    if _LIST.search(question) and record.things:
        return ", ".join(f"{one.count} {one.name}" for one in record.things)
    values = [(label, value) for label, value in record.values if wanted and hits(wanted, label)]
    return values[0][1] if len(values) == 1 else None


def _from_detector(query: EyesQuestion) -> Finding | None:
    objects, question = query.picture.page.objects, query.question
    if not objects:
        return None
    wanted = [_class(word) for word in content(question)]
    named = [one for one in objects if wanted and hits(wanted, one.name)]
    if _COUNT.search(question) and named:
        # It may have overlooked some.
        answer = f"At least {_names(named)}"
    elif _EXISTS.search(question) and named:
        answer = f"Yes: {_names(named)}"
    elif _LIST.search(question):
        named, answer = list(objects), _names(objects)
    else:
        return None
    shown = tuple(f"{one.name}, {one.confidence} % sure, {place(one.box)}." for one in named[:20])
    return Finding(answer=f"{answer}.", evidence=shown, caveats=(_DETECTED,))


def _class(word: str) -> str:
    return "person" if word in _PEOPLE else word


def _names(objects: Sequence[DetectedObject]) -> str:
    counts = dict.fromkeys(one.name for one in objects)
    parts = [(name, [one for one in objects if one.name == name]) for name in counts]
    return ", ".join(
        f"{_counted(len(some), name)} ({min(one.confidence for one in some)} % sure)"
        for name, some in parts
    )


def _counted(number: int, name: str) -> str:
    if number == 1:
        return f"1 {name}"
    return f"{number} people" if name == "person" else f"{number} {name}s"
