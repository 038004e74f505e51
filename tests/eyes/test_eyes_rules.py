from __future__ import annotations

import pytest
from eyes_samples import evidence
from hypothesis import given
from hypothesis import strategies as st

from limner.eyes.rules import RULES, findings, matching, needs_text, normalize
from limner.eyes.text import occurrences, wanted_phrase
from limner.imaging.evidence import Box, TextLine


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does it say?", ["transcript"]),
        ("Transcribe the text.", ["transcript"]),
        ("OCR this", ["transcript"]),
        ("What does the red button say?", []),
        ("What is the error message?", []),
        ("Does it say anything?", ["transcript"]),
        ("What is the title of the page?", ["heading"]),
        ("How many lines of text are there?", ["counts"]),
        ("How many words does it have?", ["counts"]),
        ("Is there a QR code?", ["codes"]),
        ("What does the barcode say?", ["codes"]),
        ("What colours are in the picture?", ["colours"]),
        ("What color is the car?", ["colours"]),
        ("What colour is the writing?", ["colours"]),
        ("What is on the red sign?", []),
        ("Is the button green?", []),
        ("Is there any green in it?", ["named colours"]),
        ("Is its colour teal or navy?", ["named colours"]),
        ("What colour is the background?", ["background"]),
        ("Is it dark mode?", ["brightness"]),
        ("What are its dimensions?", ["size"]),
        ("How big is the photo?", ["size"]),
        ("what is the size", ["size"]),
        ("Size?", ["size"]),
        ("What is the size of the shirt?", []),
        ("Is it landscape?", ["size"]),
        ("Check that it is red.", ["named colours"]),
        ("What is shown?", ["describe"]),
        ("What is the file size?", ["file"]),
        ("What size is the image and what format?", ["size", "file"]),
        ("Is it animated?", ["file"]),
        ("Does it have transparency?", ["file"]),
        ("When was this photo taken, and with which camera?", ["camera"]),
        ("Where was it taken?", ["camera"]),
        ("Is it rotated?", ["orientation"]),
        ("Is this a photo or a screenshot?", ["kind"]),
        ("What kind of picture is it?", ["kind"]),
        ("What does it say, and what colour is the background?", ["background", "transcript"]),
        ("Describe this image.", ["describe"]),
        ("How high is the fine?", []),
        ("When was the draft saved?", []),
        ("Is the picture blurred?", ["focus"]),
        ("How many people are there?", []),
        ("What is the cat doing?", []),
    ],
)
def test_the_words_of_a_question_choose_its_rules(question: str, names: list[str]) -> None:
    assert [rule.name for rule in matching(normalize(question))] == names


def test_every_rule_is_named_once_and_gives_way_only_to_others_that_exist() -> None:
    names = {rule.name for rule in RULES}
    assert len(names) == len(RULES)
    assert {other for rule in RULES for other in rule.unless} <= names | {"search"}


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ('does it say "delete 3 files"?', "delete 3 files"),
        ("is 'cancel' written anywhere?", "cancel"),
        ("where is “total”", "total"),
        ("does it say hello world?", "hello world"),
        ("does the page mention the word refund?", "refund"),
        ("where is the delete button?", "delete"),
        ("where does it say total?", "total"),
        ("find the search field", "search"),
        ("does it say anything?", None),
        ("does it say how much it costs?", None),
        ("what does it say?", None),
        ("where was it taken?", None),
        ("don't shout, it's a dog's life", None),
    ],
)
def test_a_question_may_look_for_words(question: str, phrase: str | None) -> None:
    assert wanted_phrase(question) == phrase


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("delete", ["Delete", "Delete 3 files?"]),
        ("DELETE 3  files", ["Delete 3 files?"]),
        ("files?", ["Delete 3 files?"]),
        ("undo", []),
        ("  ", []),
    ],
)
def test_words_are_found_whatever_their_case_and_spaces_but_never_inside_others(
    phrase: str, found: list[str]
) -> None:
    assert [line.text for line in occurrences(evidence().lines, phrase)] == found


@given(st.text(min_size=1), st.text(), st.text())
def test_a_phrase_between_spaces_is_always_found(phrase: str, before: str, after: str) -> None:
    box = Box(x=0, y=0, width=1, height=1)
    line = TextLine(text=f"{before} {phrase} {after}", box=box, confidence=99, row=0)
    expected = [line] if phrase.split() else []
    assert list(occurrences((line,), phrase)) == expected


@given(st.text())
def test_no_question_is_too_odd_to_be_answered(question: str) -> None:
    assert isinstance(findings(evidence(), question), list)


@pytest.mark.parametrize(
    ("question", "needed"),
    [
        ("What size is it?", False),
        ("What colours does it have?", False),
        ("Is there a QR code?", False),
        ("What does it say?", True),
        ("Where is the search field?", True),
        ("Is it a screenshot?", True),
        ("What is this?", True),
    ],
)
def test_ocr_runs_only_if_the_answer_needs_it(question: str, needed: bool) -> None:
    assert needs_text(question) is needed


def test_a_question_of_a_million_letters_is_truncated() -> None:
    assert len(normalize("what " * 200_000)) < 2000
