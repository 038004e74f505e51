from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.illustrator.words import MAX_WORDS, PromptWords, singular, split


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("apples", "apple"),
        ("berries", "berry"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("children", "child"),
        ("geese", "goose"),
        ("glasses", "glass"),
        ("heroes", "hero"),
        ("houses", "house"),
        ("knives", "knife"),
        ("leaves", "leaf"),
        ("mice", "mouse"),
        ("people", "person"),
        ("wolves", "wolf"),
        ("women", "woman"),
        ("pies", "pie"),
    ],
)
def test_a_plural_goes_back_to_its_singular(plural: str, one: str) -> None:
    assert singular(plural) == one


@pytest.mark.parametrize("word", ["bus", "grass", "octopus", "gas", "cat", "is", "chess", "sheep"])
def test_a_singular_does_not_change(word: str) -> None:
    assert singular(word) == word


def test_words_are_lower_case_without_hyphens_and_possessives() -> None:
    assert split("A T-Rex, the dog\N{RIGHT SINGLE QUOTATION MARK}s Bone!") == PromptWords(
        words=("a", "t", "rex", ",", "the", "dog", "bone", "!"), quoted=()
    )


def test_quoted_text_is_not_split_into_words() -> None:
    assert split("a sign that says \"OPEN  now\" or 'closed'") == PromptWords(
        words=("a", "sign", "that", "says", "or"), quoted=("OPEN now", "closed")
    )


def test_the_letters_of_a_text_are_no_words_and_those_of_the_post_are() -> None:
    assert split('a sign "OPEN" in big, red letters').words == ("a", "sign")
    assert split("a cat in a heap of letters").words[-2:] == ("of", "letters")


def test_an_apostrophe_opens_no_quotation() -> None:
    assert split("a child's toy and a dog's bone").quoted == ()


def test_words_of_other_scripts_are_words() -> None:
    assert split("猫 кошка γάτα").words == ("猫", "кошка", "γάτα")


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_property_splitting_gives_bounded_valid_text(prompt: str) -> None:
    parts = split(prompt)
    assert len(parts.words) <= MAX_WORDS
    for piece in (*parts.words, *parts.quoted):
        assert 0 < len(piece) <= 80 * 18  # NFKC may expand one character to eighteen
        piece.encode()
