"""Criteria in words -> pass, fail, or None if no measurement decides them."""

from __future__ import annotations

import pytest
from eyes_samples import LINES, evidence
from msgspec.structs import replace

from limner.eyes.criteria import Judgement, judge
from limner.eyes.evidence import DrawingRecord, Evidence, RecordedThing
from limner.imaging.evidence import (
    Box,
    Colour,
    Control,
    DetectedObject,
    LabelledValue,
    PageReading,
    Shape,
    Texture,
)


def box(x: int, y: int) -> Box:
    return Box(x=x, y=y, width=60, height=20)


CONTROLS = (
    Control(kind="button", label="Cancel", state="enabled", colour="#ffffff", box=box(100, 160)),
    Control(kind="button", label="Delete", state="disabled", colour="#d1242f", box=box(180, 160)),
    Control(kind="toggle", label="Dark mode", state="on", colour="#2563eb", box=box(300, 160)),
    Control(kind="checkbox", label="Remember me", state="off", colour="#ffffff", box=box(1, 1)),
)
SCREEN = replace(
    evidence(texture=Texture(equal=92, sharp=5, two_colours=93, grey=75, focus=98)),
    page=PageReading(
        lines=tuple(replace(line, ink="#000000", paper="#ffffff", contrast=9.0) for line in LINES),
        controls=CONTROLS,
        shapes=(
            Shape(kind="circle", colour="#ff0000", box=box(500, 500)),
            Shape(kind="circle", colour="#00ff00", box=box(600, 500)),
        ),
        values=(
            LabelledValue(label="Q2", value="18", found="bar", box=box(700, 300)),
            LabelledValue(label="Total", value="$42.50", found="right", box=box(800, 300)),
        ),
        objects=(DetectedObject(name="dog", confidence=81, box=box(900, 300)),),
    ),
)


def verdict(criterion: str, picture: Evidence = SCREEN) -> str | None:
    found = judge(criterion, picture)
    return None if found is None else found.verdict


@pytest.mark.parametrize(
    "criterion",
    [
        "shows 'Cancel'",
        "shows 'Total $42.50'",
        "shows 'Total: $42.50'",
        'The page says "Delete 3 files?"',
        "the text 'cannot be undone' is visible",
        "does not show 'Save'",
        "no 'Save' button",
        "says this cannot be undone",
        "is at least 800 px wide",
        "at most 1000 pixels high",
        "no wider than 1280 px",
        "is 1280x720",
        "width is 1280",
        "is landscape",
        "is not square",
        "smaller than 10 kB",
        "is not blank",
        "is sharp",
        "is not blurry",
        "the background is white",
        "the background is not blue",
        "contains blue",
        "is mostly white",
        "text is readable",
        "all text has enough contrast",
        "meets WCAG AA",
        "the text meets WCAG AAA",
        "no text is cut off",
        "the dark mode toggle is on",
        "'Dark mode' is on",
        "the Remember me checkbox is not checked",
        "the 'Delete' button is disabled",
        "the Cancel button is enabled",
        "the Delete button is red",
        "the 'Delete' button is not green",
        "has 2 buttons",
        "there are two circles",
        "has exactly 1 red circle",
        "has at least one toggle",
        "Q2 is 18",
        "the total is at least 40",
        "the total is $42.50",
        "shows a dog",
        "contains 1 dog",
    ],
)
def test_what_is_so_passes(criterion: str) -> None:
    assert verdict(criterion) == "pass"


@pytest.mark.parametrize(
    "criterion",
    [
        "shows 'Save'",
        "does not show 'Cancel'",
        "says saved",
        "is at least 2000 px wide",
        "is 800 x 600",
        "is portrait",
        "under 5 kB",
        "is blank",
        "is blurry",
        "the background is blue",
        "does not contain blue",
        "contains orange",
        "some text is cut off",
        "the dark mode toggle is off",
        "the Delete button is enabled",
        "the Delete button is green",
        "has 3 buttons",
        "has more than two circles",
        "Q2 is 19",
        "the total is less than 40",
        "shows no dog",
    ],
)
def test_what_is_not_so_fails(criterion: str) -> None:
    assert verdict(criterion) == "fail"


@pytest.mark.parametrize(
    "criterion",
    [
        "looks friendly",
        "shows a cat",
        "shows no cat",
        "the logo is in the top left corner",
        "the person is smiling",
        "the layout is balanced",
        "the search field is empty",
        "Q9 is 18",
        "has 3 cats",
        "the sky is blue",
    ],
)
def test_what_no_measurement_decides_is_left_open(criterion: str) -> None:
    assert judge(criterion, SCREEN) is None


@pytest.mark.parametrize(
    "criterion", ["shows 'Cancel'", "does not show 'Save'", "text is readable", "has 2 buttons"]
)
def test_without_ocr_nothing_about_text_or_layout_is_decided(criterion: str) -> None:
    assert judge(criterion, evidence(lines=(), no_text_reason="limner[eyes] is missing")) is None


def test_a_verdict_has_its_evidence_and_its_box() -> None:
    assert judge("shows 'Cancel'", SCREEN) == Judgement(
        verdict="pass", evidence="it says “Cancel”", box=Box(x=100, y=160, width=60, height=20)
    )
    assert judge("shows 'Concel'", SCREEN) == Judgement(
        verdict="fail",
        evidence="none of 4 lines of text says “Concel”; the nearest is “Cancel”",
        box=Box(x=100, y=160, width=60, height=20),
    )
    assert judge("the 'Dark mode' toggle is off", SCREEN) == Judgement(
        verdict="fail",
        evidence="“Dark mode” is on",
        box=Box(x=300, y=160, width=60, height=20),
    )


def test_weak_contrast_names_the_line() -> None:
    weak = replace(SCREEN.page, lines=(replace(SCREEN.lines[2], contrast=2.1), *SCREEN.lines[3:]))
    found = judge("text is readable", replace(SCREEN, page=weak))
    assert found == Judgement(
        verdict="fail",
        evidence="1 of 2 lines has low contrast: “Cancel”",
        box=Box(x=100, y=160, width=60, height=20),
    )


def test_letters_that_look_the_same_to_ocr_are_the_same() -> None:
    read = replace(LINES[2], text="Blll 10")
    assert verdict("shows 'Bill 1O'", evidence(lines=(read,))) == "pass"


def test_a_plain_picture_is_blank() -> None:
    plain = evidence(
        lines=(),
        colours=(Colour(name="white", hex="#ffffff", percent=100),),
        texture=Texture(equal=100, sharp=0, two_colours=100, grey=100),
    )
    assert (verdict("is not blank", plain), verdict("is empty", plain)) == ("fail", "pass")
    assert verdict("is sharp", plain) is None


def test_the_record_of_a_drawing_is_evidence_and_named_as_such() -> None:
    drawn = replace(
        evidence(lines=()),
        record=DrawingRecord(
            source="store",
            model="illustrator",
            prompt="two penguins",
            things=(RecordedThing(name="penguin", count=2),),
        ),
    )
    found = judge("shows penguins", drawn)
    assert found == Judgement(
        verdict="pass", evidence="limner's record of the drawing names 2 penguin"
    )
