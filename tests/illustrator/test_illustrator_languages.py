from __future__ import annotations

import pytest

from limner.illustrator.draw import draw
from limner.illustrator.languages import to_english
from limner.illustrator.palette import recolour
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.words import split


@pytest.mark.parametrize(
    ("prompt", "english"),
    [
        ("Ein roter Drache auf einer Burg", "a red dragon on a castle"),
        ("un chat noir sur une chaise", "a black cat on a chair"),
        ("tres mariposas azules en un jardín", "three blue butterflies in a garden"),
        ("un gatto nero", "a black cat"),
        ("uma casa azul", "a blue house"),
        ("一只熊猫在竹林里吃竹子", "a panda in bamboo forest eating bamboo"),
    ],
)
def test_a_prompt_in_another_language_becomes_english(prompt: str, english: str) -> None:
    found = to_english(split(prompt).words, known=0)
    assert found == tuple(english.split())


def test_an_english_prompt_is_not_translated() -> None:
    assert to_english(split("a quarterly dashboard").words, known=2) is None


def test_the_account_of_a_translated_prompt_says_what_is_drawn() -> None:
    parsed = parse_prompt("Zwei rote Autos vor einem Haus")
    assert parsed.words("drawn") == ["two red cars", "house", "in front of"]


def test_an_idea_is_a_scene_and_reported_as_approximated() -> None:
    parsed = parse_prompt("hope after the storm")
    assert [thing.asset for thing in parsed.things] == ["seedling", "rainbow-arch"]
    assert parsed.scene.weather == {"storm"}
    assert parsed.words("approximated") == ["hope (a seedling under a rainbow)"]


def test_only_the_main_colour_is_replaced() -> None:
    body = '<path fill="#cc2211"/><path fill="#ee4433"/><path fill="#2266cc"/>'
    assert recolour(body, ("red", "blue"), "#35a544") == (
        '<path fill="#2e8f3b"/><path fill="#3cbb4d"/><path fill="#2266cc"/>'
    )


def test_a_part_is_painted_on_its_whole() -> None:
    def drawing(prompt: str) -> str:
        made = draw(prompt=prompt, svg=None, width=64, height=64, seed=None)
        assert set(made.assets) == {"house"}
        return made.assets["house"].body

    assert drawing("a house with a blue door") != drawing("a house with a green door")
    assert drawing("a house with a door") == drawing("a house")
