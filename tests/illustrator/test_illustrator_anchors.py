from __future__ import annotations

from pathlib import Path

import pytest

import limner.illustrator
from limner.illustrator import assets, figures
from limner.illustrator.anchors import anchors_of, coat_of
from limner.illustrator.assets import AssetInfo
from limner.illustrator.attachments import Part
from limner.illustrator.draw import draw
from limner.illustrator.groups import group
from limner.illustrator.prompt_parser import parse_prompt

DATA = Path(limner.illustrator.__file__).with_name("data")
BODY = {"head", "face", "mouth", "hand"}


def required(info: AssetInfo) -> set[str]:
    """The anchors that a picture of its kind must have."""
    kinds = {"top"}
    kinds |= BODY if figures.is_alive(info) or figures.is_face(info) else set()
    kinds |= {"seat"} if figures.has_seat(info) else set()
    kinds |= {"inside"} if info.name in figures.CONTAINERS else set()
    return kinds | ({"grip"} if figures.can_be_held(info) else set())


def test_every_picture_has_the_anchors_of_its_kind_within_its_box() -> None:
    wrong: list[str] = []
    for info in assets.all_infos():
        anchors = anchors_of(info)
        if not required(info) <= anchors.keys():
            wrong.append(f"{info.name} lacks {required(info) - anchors.keys()}")
        left, top, right, bottom = info.box
        for kind, (x, y, *more) in anchors.items():
            corners = [(x, y), *([(more[0], more[1])] if kind == "inside" else [])]
            if not all(left <= x <= right and top <= y <= bottom for x, y in corners):
                wrong.append(f"{info.name}: {kind} is outside")
    assert wrong == []


def test_the_anchors_are_a_small_file_with_a_line_for_each_picture() -> None:
    text = (DATA / "anchors.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[0] for line in text.splitlines()] == [
        info.name for info in assets.all_infos()
    ]
    assert len(text) < 100_000


def test_an_arm_has_the_colour_of_the_coat() -> None:
    assert coat_of(assets.info("cat")) is None
    coat = coat_of(assets.info("panda-sitting"))
    assert coat is not None
    assert max(int(coat[at : at + 2], 16) for at in (1, 3, 5)) < 110


def parts_of(prompt: str) -> list[Part]:
    (made,) = group(parse_prompt(prompt).things)
    return list(made.parts)


def relations(prompt: str) -> list[tuple[str, str | None]]:
    things = parse_prompt(prompt).things
    return [(thing.asset, thing.relation and thing.relation.kind) for thing in things]


def test_what_a_person_holds_is_at_the_hand_under_the_fingers() -> None:
    person, cup, hands = parts_of("a woman holding a cup")
    assert person.figure is not None
    assert hands.figure is not None
    assert hands.figure.asset == person.figure.hands
    assert person.nearness < cup.nearness < hands.nearness
    hand = person.at("hand")
    assert hand is not None
    left, top, right, bottom = cup.drawn
    assert left <= hand[0] <= right
    assert top <= hand[1] <= bottom


def test_an_animal_stretches_an_arm_to_what_it_holds() -> None:
    bear, balloon, arm = parts_of("a bear holding a balloon")
    assert (bear.info.name, balloon.info.name) == ("bear-sitting", "balloon")
    assert arm.figure is not None
    assert arm.figure.asset.body.count("<path") == 2


@pytest.mark.parametrize(
    ("prompt", "anchor"),
    [
        ("a cat wearing a crown", "head"),
        ("a dog with sunglasses", "face"),
        ("a frog wearing a top hat", "head"),
        ("a man wearing a top hat", "head"),
    ],
)
def test_what_is_worn_is_on_the_head_or_before_the_eyes(prompt: str, anchor: str) -> None:
    owner, worn = parts_of(prompt)
    point = owner.at(anchor)
    assert point is not None
    left, top, right, bottom = worn.drawn
    assert left < point[0] < right
    assert top < point[1] < bottom


def test_what_is_in_a_container_is_cut_off_at_its_rim_or_window() -> None:
    box, bear = parts_of("a teddy bear in a box")
    assert bear.clip is not None
    assert box.drawn[1] < bear.clip[3] < bear.drawn[3]
    car, dog = parts_of("a dog in a car")
    assert dog.clip is not None
    left, top, right, bottom = dog.clip[:4]
    assert car.drawn[0] < left < right < car.drawn[2]
    assert car.drawn[1] < top < bottom < car.drawn[3]


def test_a_rabbit_looks_out_of_a_hat_that_stands_on_its_top() -> None:
    hat, _ = parts_of("a rabbit in a top hat")
    assert hat.angle == 180


def test_a_rider_sits_on_the_seat_over_the_mount() -> None:
    horse, girl = parts_of("a girl riding a horse")
    seat, sits = horse.at("seat"), girl.at("seat")
    assert seat is not None
    assert sits is not None
    assert sits[:2] == pytest.approx(seat[:2])
    assert girl.nearness > horse.nearness


def test_a_mirrored_group_keeps_what_is_held_in_the_hand() -> None:
    (made,) = group(parse_prompt("a pirate with a sword").things)
    turned = made.mirrored()
    for part, other in zip(made.parts, turned.parts, strict=True):
        assert other.angle == -part.angle
        assert other.mirrored
        assert other.drawn[0] == pytest.approx(-part.drawn[2])


def test_words_for_places_on_a_body_and_parts_of_a_whole() -> None:
    assert relations("a parrot on a pirate's shoulder")[0] == ("parrot", "shoulder")
    assert relations("a pirate with a parrot")[1] == ("parrot", "shoulder")
    assert relations("a seal with a soccer ball on its head")[1] == ("soccer-ball", "head")
    assert relations("a tree with apples")[1] == ("red-apple", "hung")
    assert relations("a car with a flag")[1] == ("triangular-flag", "mounted")
    assert relations("a bird on its nest") == [("bird", "in"), ("nest-with-eggs", None)]
    assert relations("a duck wearing a scarf")[1] == ("scarf-worn", "wearing")
    assert relations("a fox carrying a basket of apples")[2] == ("red-apple", "in")
    (ship,) = parse_prompt("a ship with red sails").things
    assert (ship.asset, ship.parts) == ("sailing-ship", (("sail", "#e0242f"),))


def test_a_family_has_different_people_of_different_sizes() -> None:
    made = group(parse_prompt("a family of four in the park").things)
    figures_made = [one.parts[0].figure for one in made]
    assert len({figure.asset.body for figure in figures_made if figure is not None}) == 4
    assert len({one.parts[0].size for one in made}) == 2


def test_a_drawing_with_relations_is_the_same_every_time() -> None:
    prompt = "a boy flying a kite and a dog in a car"
    first, second = (
        draw(prompt=prompt, svg=None, width=96, height=96, seed=3).svg for _ in range(2)
    )
    assert first == second
    assert "clip-path" in first
