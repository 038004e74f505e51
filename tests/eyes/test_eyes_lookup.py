from __future__ import annotations

import json

import pytest
from eyes_samples import DIALOG

from limner.errors import UserError
from limner.eyes.criteria import judge
from limner.eyes.evidence import Evidence
from limner.eyes.model import look, short_answer
from limner.eyes.schema import fill
from limner.eyes.words import alike, content, stem
from limner.imaging.evidence import (
    Box,
    Control,
    LabelledValue,
    PageReading,
    Shape,
    Table,
    TextLine,
)


def box(x: int, y: int) -> Box:
    return Box(x=x, y=y, width=100, height=20)


def line(text: str, y: int, *, ink: str = "#000000", paper: str = "#ffffff") -> TextLine:
    contrast = 1.4 if ink == "#d0d0d0" else 21.0
    return TextLine(
        text=text, box=box(10, y), confidence=98, row=y, ink=ink, paper=paper, contrast=contrast
    )


def pair(label: str, value: str, *, change: str = "") -> LabelledValue:
    return LabelledValue(label=label, value=value, found="below", box=box(10, 40), change=change)


def control(kind: str, label: str, state: str, colour: str = "#ffffff") -> Control:
    return Control(kind=kind, label=label, state=state, colour=colour, box=box(10, 90))  # pyright: ignore[reportArgumentType]


ORDERS = Table(
    rows=(
        ("Order", "Customer", "Status", "Total"),
        ("#1042", "Maria Lopez", "Shipped", "$120.00"),
        ("#1044", "Wei Zhang", "Cancelled", "$310.25"),
        ("#1045", "Ada Byron", "Shipped", "$9.00"),
    ),
    header=True,
    box=box(0, 0),
    row_boxes=(box(0, 0), box(0, 20), box(0, 40), box(0, 60)),
)
SHOP = PageReading(
    lines=(
        line("The train arrives at 18:42.", 1),
        line("14 messages will be removed.", 2),
        line("1 failed, 5 passed in 0.83s", 3),
        line("Please enter a valid email address", 4, ink="#cc0000"),
        line("Support: +49 30 5550 199", 5),
        line("Fine: 60 EUR", 6),
        line("Hardly visible", 7, ink="#d0d0d0"),
        line("Total", 8),
    ),
    values=(
        pair("New users", "1,384", change="-3.1%"),
        pair("Full name", "Priya Natarajan"),
        pair("Fine", "60 EUR"),
        pair("Total", "$837.00"),
        LabelledValue(label="Mar", value="30", found="bar", box=box(1, 1)),
        LabelledValue(label="Apr", value="90", found="bar", box=box(2, 2)),
    ),
    controls=(
        control("checkbox", "Send me news", "off"),
        control("toggle", "Wi-Fi", "on"),
        control("radio", "Double room", "on"),
        control("button", "Archive", "disabled", "#eeeeee"),
        control("button", "Delete all", "enabled", "#d1242f"),
    ),
    shapes=tuple(
        Shape(kind=kind, colour=colour, box=box(5, 5))
        for kind, colour in (("circle", "#ff0000"), ("circle", "#0000ff"), ("square", "#ff0000"))
    ),
    tables=(ORDERS,),
)


def short(question: str, page: PageReading = SHOP) -> str | None:
    return short_answer(look([Evidence(measured=DIALOG, page=page)], question))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many new users are there and did it go up or down?", "1,384, down (-3.1%)"),
        ("What name was entered?", "Priya Natarajan"),
        ("How high is the fine?", "60 EUR"),
        ("When does the train arrive?", "18:42"),
        ("How many messages will be removed?", "14"),
        ("How many tests passed?", "5"),
        ("What is wrong with the form?", "Please enter a valid email address"),
        ("What is the phone number?", "+49 30 5550 199"),
        ("Which order is cancelled and who is the customer?", "#1044, Wei Zhang"),
        ("What is the total of order 1042?", "$120.00"),
        ("Which customer has the lowest total?", "Ada Byron ($9.00)"),
        ("How many orders are shipped?", "2"),
        ("What is the value for March?", "30"),
        ("Is the checkbox for news ticked?", "No, “Send me news” is not ticked."),
        ("How many buttons are disabled?", "1"),
        ("Is Wi-Fi on?", "Yes, “Wi-Fi” is on."),
        ("Which room is selected?", "Double room"),
        ("Which button is disabled?", "Archive"),
        ("What colour is the Delete all button?", "red (#d1242f)"),
        ("Is the Delete all button green?", "No, it is red (#d1242f)."),
        ("What does the red button say?", "Delete all"),
        ("How many red circles are there?", "1"),
        ("Is there low contrast text?", "Yes, 1 of 8 lines has low contrast: “Hardly visible”."),
    ],
)
def test_a_question_is_matched_to_the_evidence(question: str, expected: str) -> None:
    assert short(question) == expected


def test_a_button_that_is_not_there_has_no_colour() -> None:
    empty = Evidence(measured=DIALOG, page=PageReading(lines=(line("Hello", 1),)))
    assert judge("the save button is blue", empty) is None
    assert "button" not in look([empty], "What colour is the save button?")


def test_a_date_beside_a_possessive_is_found() -> None:
    page = PageReading(lines=(line("Alice's 12.03.2024 party", 1),))
    assert short("When is Alice due?", page) == "12.03.2024"
    assert [stem(word) for word in ("alice's", "alice\u2019s", "alice")] == ["alic"] * 3


@pytest.mark.parametrize(
    "question",
    [
        "What is the name of the ship?",
        "What is the dog doing?",
        "How many people are there?",
        "Who painted it?",
        "What is the total of order 2000?",
        "When does the bus leave?",
        "Is the radio on?",
        "Does the train arrive?",
    ],
)
def test_a_question_about_something_else_is_not_answered(question: str) -> None:
    assert short(question) is None


def test_the_answer_states_its_place_and_its_confidence() -> None:
    text = look([Evidence(measured=DIALOG, page=SHOP)], "What name was entered?")
    assert text.split("\n\n")[:2] == [
        "Answer: Priya Natarajan",
        "Key evidence:\n- “Full name” has “Priya Natarajan” below it "
        "at x 10, y 40 (100 x 20); confidence 82 %.",
    ]


def test_a_long_text_is_cut_to_the_length_of_a_short_answer() -> None:
    long = PageReading(lines=tuple(line("word " * 20, y) for y in range(9)))
    found = short("What does it say?", long)
    assert found is not None
    assert len(found) == 200


BEFORE = PageReading(
    lines=(line("Price: $9", 10), line("Upgrade", 50, paper="#2563eb"), line("Old", 90)),
    controls=(control("toggle", "Wi-Fi", "on"),),
)
AFTER = PageReading(
    lines=(line("Price: $12", 10), line("Upgrade", 50, paper="#16a34a"), line("New here", 200)),
    controls=(control("toggle", "Wi-Fi", "off"),),
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Did the price change?", "Yes: “Price: $9” -> “Price: $12”"),
        (
            "Did the colour of the upgrade button change?",
            "Yes: colour of “the box behind Upgrade”: blue #2563eb -> green #16a34a",
        ),
        ("Did the title change?", "No, no such change was found."),
    ],
)
def test_two_pictures_are_compared(question: str, expected: str) -> None:
    both = [Evidence(measured=DIALOG, page=page) for page in (BEFORE, AFTER)]
    assert short_answer(look(both, question)) == expected


def test_every_change_has_its_box() -> None:
    both = [Evidence(measured=DIALOG, page=page) for page in (BEFORE, AFTER)]
    assert look(both, "What has changed?").split("\n\n")[1] == (
        "Key evidence:\n"
        "- Text: “Price: $9” -> “Price: $12”, at x 10, y 10 (100 x 20).\n"
        "- Colour: colour of “the box behind Upgrade”: blue #2563eb -> green #16a34a, "
        "at x 10, y 50 (100 x 20).\n"
        "- Removed: “Old” was removed, at x 10, y 90 (100 x 20).\n"
        "- State: state of “Wi-Fi”: on -> off, at x 10, y 90 (100 x 20).\n"
        "- Added: “New here” was added, at x 10, y 200 (100 x 20)."
    )


def test_words_are_compared_without_their_endings() -> None:
    assert [stem(word) for word in ("cities", "arrives", "removed", "passed", "march")] == [
        *("city", "arriv", "remov", "pass", "mar"),
    ]
    assert content("What is the price of the desk lamp?") == ["pric", "desk", "lamp"]
    assert alike("invoice", "invoce")
    assert not alike("1042", "1043")


INVOICE = {
    "type": "object",
    "properties": {
        "total": {"type": "number"},
        "fullName": {"type": "string"},
        "newUsers": {"type": "integer"},
        "wi-fi": {"type": "boolean"},
        "colour_of_the_sea": {"type": ["string", "null"]},
        "orders": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"customer": {"type": "string"}, "total": {"type": "number"}},
            },
        },
    },
    "required": ["total", "fullName"],
}


def test_a_schema_is_filled_with_what_was_read() -> None:
    assert json.loads(fill(INVOICE, [Evidence(measured=DIALOG, page=SHOP)])) == {
        "total": 837.0,
        "fullName": "Priya Natarajan",
        "newUsers": 1384,
        "wi-fi": True,
        "colour_of_the_sea": None,
        "orders": [
            {"customer": "Maria Lopez", "total": 120.0},
            {"customer": "Wei Zhang", "total": 310.25},
            {"customer": "Ada Byron", "total": 9.0},
        ],
    }


def test_a_required_value_that_was_not_read_is_an_error() -> None:
    schema = {"type": "object", "properties": {"ship": {"type": "string"}}, "required": ["ship"]}
    with pytest.raises(UserError) as caught:
        fill(schema, [Evidence(measured=DIALOG, page=SHOP)])
    assert caught.value.message == (
        "limner/eyes cannot fill in 'ship': it was not read in the picture."
    )
