from __future__ import annotations

from pathlib import Path

import pytest

from limner.illustrator import assets, scenes, sizes, vocabulary
from limner.illustrator.draw import draw
from limner.illustrator.parsed_prompt import Relation
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.words import singular

NOUNS = Path(__file__).with_name("common_nouns.txt").read_text(encoding="utf-8").splitlines()


def left_edges(prompt: str) -> dict[str, float]:
    """The left edge of each picture of a drawing, by its name, in parts of the width."""
    kept = draw(prompt=prompt, svg=None, width=400, height=400, seed=None).kept
    assert kept is not None
    layout = kept.layout
    assert layout is not None
    return {layout.things[spot.thing].asset: spot.x for spot in layout.spots}


def relations(prompt: str) -> list[tuple[str, Relation | None]]:
    return [(thing.asset, thing.relation) for thing in parse_prompt(prompt).things]


def test_every_size_belongs_to_one_picture() -> None:
    named = " ".join(sizes.METRES.values()).split()
    assert len(named) == len(set(named))
    assert set(named) <= set(assets.names())


def test_sizes_keep_the_order_of_the_real_ones() -> None:
    order = ["honeybee", "mouse", "cat", "dog", "horse", "elephant", "house", "castle"]
    found = [sizes.size(assets.info(name)) for name in order]
    assert found == sorted(found)
    assert 3 < found[5] / found[1] < 6


@pytest.mark.parametrize(
    ("prompt", "order"),
    [
        ("a sheep on the left and a wolf on the right", ["ewe", "wolf-sitting"]),
        ("a wolf to the right of a sheep", ["ewe", "wolf-sitting"]),
        ("on the right a house, on the left a tree", ["deciduous-tree", "house"]),
        (
            "a sheep and a wolf with a fence between them",
            ["ewe", "fence", "wolf-sitting"],
        ),
    ],
)
def test_words_for_a_side_decide_where_a_thing_stands(prompt: str, order: list[str]) -> None:
    edges = left_edges(prompt)
    assert sorted(edges, key=lambda name: edges[name]) == order
    assert parse_prompt(prompt).words("left out") == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a cat with a hat", [("cat", None), ("top-hat", Relation("wearing", 0))]),
        ("a girl with a balloon", [("girl-standing", None), ("balloon", Relation("holding", 0))]),
        ("a boy with a dog", [("boy-standing", None), ("dog", None)]),
        ("a baby elephant", [("elephant", None)]),
        ("a bowl of cherries", [("bowl", None), ("cherries", Relation("in", 0))]),
        (
            "an island with two palm trees",
            [("sand-island", None), ("palm-tree", Relation("on", 0))],
        ),
        ("a goldfish in a fishbowl", [("fishbowl", None)]),
        (
            "a mermaid and a gull above her",
            [("woman-merpeople", None), ("seagull", Relation("above", 0))],
        ),
    ],
)
def test_small_words_relate_things(
    prompt: str, expected: list[tuple[str, Relation | None]]
) -> None:
    assert relations(prompt) == expected


@pytest.mark.parametrize(
    ("prompt", "state", "words"),
    [
        ("a tennis player hitting the ball", "approximated", ["hitting"]),
        ("a dog chasing through the snow", "left out", ["chasing"]),
        ("a cat in a house", "approximated", ["in"]),
        ("my grandma baking cookies", "approximated", ["baking"]),
        ("a castle with four towers", "approximated", ["four towers (castle)"]),
        ("a snowman with a red scarf", "approximated", ["red scarf (snowman)"]),
        ("a haunted house with a ghost in the window", "left out", ["in"]),
        ("a medieval castle with four towers and a drawbridge", "approximated", []),
    ],
)
def test_the_account_claims_what_the_picture_shows(
    prompt: str, state: str, words: list[str]
) -> None:
    assert (
        draw(prompt=prompt, svg=None, width=64, height=64, seed=None).facts[state.replace(" ", "_")]
        == words
    )


def test_a_group_word_is_a_count() -> None:
    assert [(one.asset, one.count) for one in parse_prompt("a family of deer").things] == [
        ("deer", 4)
    ]
    assert parse_prompt("a windmill in a field of tulips").things[1].count == 9


def test_flags_and_maps_are_found_by_country_and_by_what_belongs_to_it() -> None:
    for words in ("the flag of Brazil", "a Brazilian flag", "Brazil flag"):
        assert relations(words) == [("flag-of-brazil", None)]
    assert relations("a map of the Netherlands") == [("map-of-netherlands", None)]


def test_most_nouns_that_people_ask_for_have_a_picture() -> None:
    known = vocabulary.phrases()
    missing = [
        noun
        for noun in NOUNS
        if not {tuple(noun.split()), (*noun.split()[:-1], singular(noun.split()[-1]))}
        & (known.keys() | scenes.PLACE_PHRASES.keys() | scenes.WEATHER_PHRASES.keys())
    ]
    # An orange is drawn too: its word is a colour if a noun follows it.
    assert missing == ["orange", "solar panel"]
