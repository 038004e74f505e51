from __future__ import annotations

import pytest
from msgspec.structs import replace

from limner.illustrator.draw import draw
from limner.illustrator.people import PEOPLE, Person, vary
from limner.illustrator.person_art import draw_person
from limner.illustrator.prompt_parser import parse_prompt


def person(prompt: str) -> Person | None:
    return parse_prompt(prompt).things[0].person


def test_a_person_looks_as_the_prompt_says() -> None:
    old_man, woman = PEOPLE["old-man"], PEOPLE["woman-standing"]
    assert person("a smiling grandfather with a white beard") == replace(old_man, beard="#f1f2f6")
    assert person("a sad old man walking") == replace(old_man, sad=True, pose="walking")
    assert person("a woman with red hair and glasses") == replace(
        woman, hair_colour="#c9502a", glasses=True
    )
    assert person("a woman wearing a green dress") == replace(
        woman, top="dress", top_colour="#35a544"
    )
    assert person("a bald man") == replace(PEOPLE["man-standing"], hair="bald")
    assert person("a cat with glasses") is None


def test_a_person_has_the_clothes_of_the_role_and_the_skin_of_the_words() -> None:
    bride = person("a bride")
    assert bride is not None
    assert (bride.top, bride.hat) == ("dress", "veil")
    woman = PEOPLE["woman-standing"]
    assert person("a black woman with yellow boots") == replace(
        woman, skin="#7a4a30", shoes_colour="#f8c81c"
    )
    assert person("a man with a moustache") == replace(PEOPLE["man-standing"], moustache="#4a2f24")


def test_a_look_that_no_person_has_is_left_out() -> None:
    assert parse_prompt("a house and a smiling").words("left out") == ["smiling"]


def test_the_words_for_a_look_are_accounted_for() -> None:
    parsed = parse_prompt("a smiling doctor with a brown beard and green eyes")
    assert parsed.words("drawn") == ["doctor", "smiling", "brown beard"]
    assert parsed.words("left out") == ["green eyes"]


def test_a_role_brings_its_equipment() -> None:
    things = parse_prompt("a tennis player hitting the ball").things
    assert [(thing.asset, thing.relation and thing.relation.kind) for thing in things] == [
        ("player", None),
        ("tennis", "holding"),
    ]


@pytest.mark.parametrize("name", PEOPLE)
def test_every_person_is_drawn_in_every_pose(name: str) -> None:
    poses = "standing sitting walking running waving riding dancing jumping pointing"
    for pose in poses.split():
        figure = draw_person(replace(PEOPLE[name], pose=pose))
        assert 0 <= figure.box[0] < figure.box[2] <= 1
        assert figure.anchors["seat"][1] <= figure.box[3]


def test_several_people_of_a_kind_differ() -> None:
    boy = PEOPLE["boy-standing"]
    assert len({draw_person(vary(boy, boy, "boys", nth)).asset.body for nth in range(4)}) == 4
    made = draw(prompt="two boys", svg=None, width=64, height=64, seed=None)
    assert set(made.assets) == {"boy-standing", "boy-standing-2"}


def test_a_sitting_person_is_lower_than_a_standing_one() -> None:
    standing, sitting = (draw_person(Person(pose=pose)) for pose in ("standing", "sitting"))
    assert sitting.box[3] < standing.box[3]
    assert sitting.anchors["seat"][1] < standing.anchors["seat"][1]
