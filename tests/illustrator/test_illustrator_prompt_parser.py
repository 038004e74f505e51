from __future__ import annotations

import pytest

from limner.illustrator import grammar, scenes
from limner.illustrator.parsed_prompt import ParsedPrompt, Relation, Subject, WordUse
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.scenes import Scene
from limner.illustrator.thing_list import MAX_THINGS


def drawn(prompt: str) -> list[tuple[str, int, str | None]]:
    return [(thing.asset, thing.count, thing.colour) for thing in parse_prompt(prompt).things]


def left_out(prompt: str) -> list[str]:
    return parse_prompt(prompt).words("left out")


def test_a_whole_prompt_is_parsed() -> None:
    assert parse_prompt(
        "A watercolor of a cat on a small blue bicycle on a beach at sunset"
    ) == ParsedPrompt(
        things=(
            Subject(asset="cat", words="cat", relation=Relation("on", 1)),
            Subject(asset="bicycle", words="bicycle", colour="blue", scale=0.65),
        ),
        scene=Scene(places=("beach",), hour="sunset"),
        texts=(),
        uses=(
            WordUse(words="watercolor", state="drawn", shown="watercolour"),
            WordUse(words="cat", state="drawn", shown="cat"),
            WordUse(words="small blue bicycle", state="drawn", shown="bicycle"),
            WordUse(words="on", state="drawn"),
            WordUse(words="beach", state="drawn", shown="beach"),
            WordUse(words="sunset", state="drawn", shown="sunset"),
        ),
        style="watercolour",
    )


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("a cat", 1),
        ("cats", grammar.BARE_PLURAL),
        ("two cats", 2),
        ("3 cats", 3),
        ("a dozen cats", 12),
        ("a pair of cats", 2),
        ("several cats", 4),
        ("many cats", 7),
        ("1000 cats", grammar.MAX_COUNT),
        ("0 cats", grammar.BARE_PLURAL),
    ],
)
def test_numbers_say_how_many(prompt: str, count: int) -> None:
    assert drawn(prompt) == [("cat", count, None)]


def test_irregular_plurals_are_things_too() -> None:
    assert drawn("mice, geese, children and wolves") == [
        ("mouse", 3, None),
        ("goose", 3, None),
        ("child-standing", 3, None),
        ("wolf-sitting", 3, None),
    ]


def test_the_longest_name_wins() -> None:
    assert drawn("a hot air balloon, a christmas tree and a t-rex") == [
        ("hot-air-balloon", 1, None),
        ("christmas-tree", 1, None),
        ("t-rex", 1, None),
    ]


def test_a_pile_is_one_picture_and_a_number_is_many() -> None:
    assert drawn("books") == [("books", 1, None)]
    assert drawn("three books") == [("open-book", 3, None)]


def test_a_colour_belongs_to_the_noun_after_it() -> None:
    assert drawn("a blue car and a dog") == [("automobile", 1, "blue"), ("dog", 1, None)]
    assert drawn("three red apples") == [("red-apple", 3, None)]


def test_a_colour_without_a_noun_is_a_fruit_or_unmatched() -> None:
    assert drawn("an orange on a table") == [("tangerine", 1, None), ("table", 1, None)]
    assert left_out("a cat in blue") == ["blue"]


@pytest.mark.parametrize(
    ("prompt", "relations"),
    [
        ("a robot holding a balloon", [None, Relation("holding", 0)]),
        (
            "a cat wearing a hat and holding a fish",
            [None, Relation("wearing", 0), Relation("holding", 0)],
        ),
        ("an astronaut riding a horse", [Relation("riding", 1), None]),
        ("a dog in front of a house", [Relation("front", 1), None]),
        ("a dog next to a house", [None, None]),
        ("a dog and a cat on a sofa", [Relation("on", 2), Relation("on", 2), None]),
        ("a dog and a cat on a horse", [None, Relation("on", 2), None]),
        ("a cat on a beach under an umbrella", [Relation("under", 1), None]),
    ],
)
def test_relations_attach_things_to_each_other(
    prompt: str, relations: list[Relation | None]
) -> None:
    assert [thing.relation for thing in parse_prompt(prompt).things] == relations


def test_flying_lifts_the_thing_before_or_after_it() -> None:
    assert [thing.aloft for thing in parse_prompt("a bird flying, a pig").things] == [True, False]
    assert [thing.aloft for thing in parse_prompt("flying pigs and a dog").things] == [True, False]


def test_negated_things_are_left_out() -> None:
    parsed = parse_prompt("a beach with no people and a dog without a leash")
    assert parsed.things == (Subject(asset="dog", words="dog"),)
    assert parsed.words("drawn") == ["beach", "no people", "dog", "no leash"]
    assert parsed.words("left out") == []


def test_body_parts_are_not_drawn_beside_a_person() -> None:
    parsed = parse_prompt("a woman with green eyes")
    assert [thing.asset for thing in parsed.things] == ["woman-standing"]
    assert parsed.words("left out") == ["green eyes"]
    assert drawn("an eye") == [("eye", 1, None)]


def test_a_noun_that_begins_another_name_is_not_drawn_for_it() -> None:
    parsed = parse_prompt("a cat on a coffee grinder, a mountain lion")
    assert parsed.things == (Subject(asset="cat", words="cat"),)
    assert parsed.words("left out") == ["on", "coffee grinder", "mountain lion"]
    assert left_out("a cat juggling") == ["juggling"]
    assert left_out("a man bird shrink") == ["man bird shrink"]
    assert drawn("a robot barista") == [("robot-standing", 1, None)]


def test_a_plain_background_has_a_colour() -> None:
    assert parse_prompt("icon of a robot").scene == Scene(hour="", paper="#ffffff")
    assert parse_prompt("a robot on a blue background").scene.paper == grammar.COLOURS["blue"]


def test_quoted_words_are_text_for_a_sign() -> None:
    parsed = parse_prompt('a shop with a sign that says "OPEN"')
    assert parsed.texts == ("OPEN",)
    assert parsed.words("left out") == []


def test_lone_colours_are_capped_as_well() -> None:
    assert len(parse_prompt("an orange, " * 40).things) == MAX_THINGS


def test_things_over_the_cap_are_reported_as_left_out() -> None:
    animals = "cat dog horse cow pig goat duck swan owl crab shark whale tiger zebra"
    parsed = parse_prompt(animals.replace(" ", ", "))
    assert len(parsed.things) == MAX_THINGS
    assert parsed.words("left out") == ["tiger", "zebra"]


@pytest.mark.parametrize(
    ("prompt", "known"),
    [
        ("a mountain lake at dawn", True),
        ("a pelican riding a bicycle", True),
        ("quarterly revenue dashboard with a cat", True),
        ("rainy", True),
        ('"hello"', True),
        ("a coffee grinder", False),
        ("spider-man", False),
        ("red", False),
        ("?!", False),
        ("", False),
    ],
)
def test_a_prompt_is_known_if_anything_in_it_can_be_drawn(prompt: str, known: bool) -> None:
    assert parse_prompt(prompt).is_known is known


def test_every_scene_word_is_matched_as_one() -> None:
    for phrase, place in scenes.PLACE_PHRASES.items():
        assert parse_prompt(" ".join(phrase)).scene.places == (place,)
    for phrase, hour in scenes.HOUR_PHRASES.items():
        assert parse_prompt(" ".join(phrase)).scene.hour == hour
    for phrase, weather in scenes.WEATHER_PHRASES.items():
        assert parse_prompt(" ".join(phrase)).scene.weather == {weather}
