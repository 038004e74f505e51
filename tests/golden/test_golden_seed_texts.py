"""The words that the specifications fix to the letter."""

from __future__ import annotations

from tests.golden.record import check


def test_the_words_that_specifications_fix_are_as_recorded() -> None:
    check("seed_texts")
