"""Text from anywhere -> text that a terminal only shows."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from limner.frontends.cli.stderr import harmless

ANYTHING = st.text(st.characters(codec=None))


@given(ANYTHING)
def test_no_control_character_but_line_ends_and_tabs_reaches_the_terminal(text: str) -> None:
    controls = {c for c in harmless(text) if unicodedata.category(c) == "Cc"}
    assert controls <= {"\n", "\t"}


@given(ANYTHING)
def test_making_text_harmless_twice_changes_nothing_more(text: str) -> None:
    assert harmless(harmless(text)) == harmless(text)


@given(st.text(st.characters(exclude_categories=["Cc"])))
def test_text_without_control_characters_is_left_as_it_is(text: str) -> None:
    assert harmless(text) == text
