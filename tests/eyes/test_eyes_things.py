"""Things in a picture: from limner's own record or from the detector, and never a no."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.eyes.eyes_samples import DIALOG

from limner.client import Limner
from limner.eyes import Eyes
from limner.eyes.evidence import DrawingRecord, Evidence, RecordedThing
from limner.eyes.model import look, short_answer
from limner.eyes.things import read_record
from limner.imaging.evidence import Box, DetectedObject, PageReading
from limner.imaging.pool import Imaging
from limner.settings import Settings

ORIGIN = {
    "provider": "illustrator",
    "model": "limner-illustrator",
    "prompt": 'three ducks and a boat, with the text "HELLO"',
    "scene": {
        "layout": {
            "things": [
                {"words": "ducks", "asset": "duck", "count": 3},
                {"words": "boat", "asset": "sailboat"},
                {"words": "HELLO", "asset": "signboard"},
            ]
        },
        "texts": ["HELLO"],
    },
}
RECORD = DrawingRecord(
    source="store",
    model="limner-illustrator",
    prompt='three ducks and a boat, with the text "HELLO"',
    things=(RecordedThing(name="ducks", count=3), RecordedThing(name="boat", count=1)),
    texts=("HELLO",),
)


def answer(evidence: Evidence, question: str) -> str | None:
    return short_answer(look([evidence], question))


def test_the_record_of_a_drawing_has_its_things_and_texts() -> None:
    assert read_record(ORIGIN, "store") == RECORD


def test_the_record_of_a_chart_has_its_numbers() -> None:
    prompt = 'limner document: {"type": "bar", "labels": ["Q1", "Q2"], "values": [12, 18.5]}'
    record = read_record({"provider": "illustrator", "prompt": prompt}, "label")
    assert record is not None
    assert record.values == (("Q1", "12"), ("Q2", "18.5"))


def test_another_provider_leaves_no_record_of_a_drawing() -> None:
    assert read_record({**ORIGIN, "provider": "openai-image"}, "store") is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many ducks are there?", "3, from limner's own record."),
        ("Is there a boat?", "Yes: 1 boat, from limner's own record."),
        ("What is drawn?", "3 ducks, 1 boat, from limner's own record."),
        ("say what you drew", "3 ducks, 1 boat, from limner's own record."),
        ("let me know what is in it", "3 ducks, 1 boat, from limner's own record."),
        ("Is there a dragon?", None),
        ("How many dragons are there?", None),
    ],
)
def test_an_answer_from_the_record_says_so(question: str, expected: str | None) -> None:
    assert answer(Evidence(measured=DIALOG, record=RECORD), question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many dogs are there?", "At least 2 dogs (81 % sure)."),
        ("Are there any people?", "Yes: 1 person (90 % sure)."),
        ("What objects are in the photo?", "2 dogs (81 % sure), 1 person (90 % sure)."),
        ("Is there a cat?", None),
        ("How many cats are there?", None),
    ],
)
def test_an_answer_from_the_detector_says_how_sure_it_is(
    question: str, expected: str | None
) -> None:
    box = Box(x=1, y=2, width=30, height=40)
    found = [("dog", 88), ("person", 90), ("dog", 81)]
    objects = tuple(DetectedObject(name=name, confidence=sure, box=box) for name, sure in found)
    page = PageReading(objects=objects)
    assert answer(Evidence(measured=DIALOG, page=page), question) == expected


@pytest.mark.slow
async def test_the_detector_finds_a_person_on_a_photo_and_nothing_on_a_drawing(
    imaging: Imaging,
) -> None:
    here = Path(__file__).parent
    # A photo of NASA, in the public domain.
    photo = await Eyes(imaging).gather((here / "astronaut.jpg").read_bytes())
    assert answer(photo, "How many people are there?") == "At least 1 person (73 % sure)."
    assert answer(photo, "Is there a dog?") is None
    (person,) = photo.page.objects
    assert person.box.width > 100
    shapes = await Eyes(imaging).gather((here / "questions/given/18_shapes.png").read_bytes())
    assert shapes.page.objects == ()


@pytest.mark.slow
async def test_a_drawn_picture_brings_its_record_also_in_another_home(tmp_path: Path) -> None:
    file = tmp_path / "ducks.png"
    records: list[DrawingRecord | None] = []
    for home in ("first", "second"):
        async with Limner(Settings(home=tmp_path / home), cwd=tmp_path) as lim:
            if home == "first":
                await lim.generate("three ducks on a lake", output_path=str(file), size="256x256")
            records.append((await lim.evidence(file)).record)
    things = (RecordedThing(name="ducks", count=3),)
    assert [one and (one.source, one.things) for one in records] == [
        ("store", things),
        ("label", things),
    ]
