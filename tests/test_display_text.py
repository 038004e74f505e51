"""Text from anywhere -> text that a terminal only shows, and that forges no line of a question."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from limner.display_text import clean_line, clean_text, quote
from limner.tools.base import Question

ANYTHING = st.text(st.characters(codec=None))
# Characters that a name may have and a question must not, far more often than by chance.
HOSTILE = st.text(
    st.sampled_from('a"\\\n\r\t\x1b\x07\x9b\x85\u2028\u202e\u2066\u200f\ufeff\U000e0041')
)
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def moves_something(character: str) -> bool:
    """Whether a character moves a cursor, ends a line or turns the direction of text."""
    return (
        unicodedata.category(character) in {"Cc", "Zl", "Zp", "Cs"}
        or unicodedata.bidirectional(character) in BIDI
        or character in "\u200e\u200f\u061c"
    )


@given(ANYTHING | HOSTILE)
def test_only_line_ends_and_tabs_are_left_of_what_drives_a_terminal(text: str) -> None:
    assert {one for one in clean_text(text) if moves_something(one)} <= {"\n", "\t"}


@given(ANYTHING | HOSTILE)
def test_a_line_is_one_line_of_visible_characters(text: str) -> None:
    line = clean_line(text)
    assert line.isprintable()
    assert len(line.splitlines()) <= 1


@given(ANYTHING | HOSTILE)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean_text(clean_text(text)) == clean_text(text)
    assert clean_line(clean_line(text)) == clean_line(text)


def test_every_text_that_may_stay_as_it_is_is_what_a_thorough_look_leaves_too() -> None:
    shown = "".join(chr(code) for code in range(0x110000) if clean_text(chr(code)) == chr(code))
    assert clean_text(f"\x1b{shown}") == f"\\u001b{shown}"


# Above are tags and selectors of variants, in which text can be hidden.
ORDINARY = st.characters(
    max_codepoint=0xDFFFF, exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Cn"]
)


@given(st.text(ORDINARY))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


def test_the_joiners_of_emoji_and_of_persian_stay() -> None:
    text = "👩‍🚀 می‌خواهم 🏳️‍🌈"
    assert clean_text(text) == text


@given(st.text() | HOSTILE)
def test_json_stays_the_same_json(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    assert json.loads(clean_text(written)) == text


@given(ANYTHING | HOSTILE)
def test_a_quoted_name_cannot_end_its_quotation(text: str) -> None:
    inner = quote(text)[1:-1]
    assert '"' not in inner.replace('\\"', "")


def test_a_long_name_is_cut() -> None:
    assert clean_line("x" * 9, max_chars=4) == "xxxx…"


@given(HOSTILE)
def test_no_name_forges_a_question(name: str) -> None:
    asked = Question(text=f'Write the picture to "{name}"?')
    assert asked.text.isprintable()
