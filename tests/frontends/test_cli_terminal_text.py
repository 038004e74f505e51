"""A tool call and its answer -> the lines a person reads first, measured in terminal cells."""

from __future__ import annotations

import wcwidth
from hypothesis import example, given
from hypothesis import strategies as st

from limner.frontends.cli.chat.tool_lines import main_argument
from limner.frontends.cli.stderr import wrapped
from limner.frontends.cli.terminal_text import WordWrap, clipped, output_view

FOOTER = "openai/gpt-5.5 · image/webp"
LONG = "\n".join(f"line {number}" for number in range(1, 31))


def preview(question: str) -> str:
    return main_argument({"question": question})


def test_the_question_preview_is_100_columns_wide() -> None:
    assert preview("x" * 100) == "x" * 100
    assert preview("x" * 101) == "x" * 99 + "…"


def test_the_question_preview_is_one_line() -> None:
    assert preview("What\n  does\tit say?") == "What does it say?"


def test_the_collapsed_output_has_4_lines_and_says_how_many_more() -> None:
    assert output_view(LONG, footer=FOOTER, expanded=False) == [
        "line 1",
        "line 2",
        "line 3",
        "line 4",
        "… 26 more lines",
        FOOTER,
    ]


def test_the_expanded_output_has_16_lines() -> None:
    view = output_view(LONG, footer=FOOTER, expanded=True)
    assert view[:16] == [f"line {number}" for number in range(1, 17)]
    assert view[16:] == ["… 14 more lines", FOOTER]


def test_a_short_output_is_whole() -> None:
    assert output_view("one\ntwo", footer=FOOTER, expanded=False) == ["one", "two", FOOTER]
    five = "1\n2\n3\n4\n5"
    assert output_view(five, footer=FOOTER, expanded=False)[4] == ("… 1 more line")


def test_each_line_is_at_most_120_columns_wide() -> None:
    view = output_view("y" * 120 + "\n" + "y" * 121, footer=FOOTER, expanded=False)
    assert view == ["y" * 120, "y" * 119 + "…", FOOTER]


def test_a_chinese_character_takes_two_cells() -> None:
    assert clipped("図" * 60, 120) == "図" * 60
    assert clipped("図" * 61, 120) == "図" * 59 + "…"


def test_an_emoji_of_several_characters_is_kept_or_left_out_whole() -> None:
    family = "👨‍👩‍👧"
    assert clipped(family * 3, 6) == family * 3
    assert clipped(family * 4, 6) == family * 2 + "…"


def test_what_a_model_says_cannot_move_the_cursor() -> None:
    assert clipped("a\x1b[2Jb\rc", 40) == "a\\u001b[2Jb\\u000dc"


@example("0\u1087\x1f", 3)
@given(st.text(max_size=200), st.integers(2, 130))
def test_nothing_is_wider_than_it_may_be(text: str, cells: int) -> None:
    assert wcwidth.width(clipped(text.replace("\n", " "), cells)) <= cells


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 7))
def test_a_streamed_text_keeps_its_words_and_breaks_only_between_them(text: str, step: int) -> None:
    wrap = WordWrap(lambda: 40)
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    shown = "".join(map(wrap.feed, pieces)) + wrap.end()
    assert shown.split() == text.split()
    assert all(len(line) < 40 or " " not in line.strip() for line in shown.splitlines())


def test_a_line_is_wrapped_between_words_and_keeps_its_indent() -> None:
    found = wrapped("  one two three four", 12)
    assert found.splitlines() == ["  one two", "  three", "  four"]
    assert wrapped("short\n\nlines", 80) == "short\n\nlines"
