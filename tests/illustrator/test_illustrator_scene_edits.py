"""Edits by words: what is named changes, and everything else keeps its place and look."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
import pytest

from limner.errors import InputInvalid
from limner.illustrator.draw import Illustration, draw, redraw
from limner.illustrator.edit_words import ACTIONS
from limner.illustrator.layout import KeptDrawing, decode_kept
from limner.illustrator.page_edits import edit_source

EDGE = 512


def first(prompt: str) -> KeptDrawing:
    kept = draw(prompt=prompt, svg=None, seed=1, width=EDGE, height=EDGE).kept
    assert kept is not None
    return kept


def edited(kept: KeptDrawing, words: str) -> Illustration:
    return redraw(kept, words, width=EDGE, height=EDGE)


def placed(drawn: Illustration | KeptDrawing) -> dict[str, list[tuple[float, float]]]:
    """The places of each thing, by its picture."""
    kept = drawn.kept if isinstance(drawn, Illustration) else drawn
    assert kept is not None
    assert kept.layout is not None
    found: dict[str, list[tuple[float, float]]] = {}
    for spot in kept.layout.spots:
        found.setdefault(kept.layout.things[spot.thing].asset, []).append((spot.x, spot.y))
    return found


def test_a_kept_drawing_draws_the_same_document_again() -> None:
    kept = first("a man with a hat and two ducks next to a house with a red door, at night")
    again = decode_kept(msgspec.json.encode(kept))
    assert again == kept
    same = edited(edited(kept, "make the house blue").kept or kept, "make it night")
    assert placed(same) == placed(kept)


def test_what_is_removed_is_gone_and_the_rest_stays_where_it_was() -> None:
    kept = first("a house and a tree in a meadow")
    drawn = edited(kept, "remove the tree")
    before = placed(kept)
    assert before.pop("deciduous-tree")
    assert placed(drawn) == before
    assert drawn.facts["changes"] == ["tree removed"]
    assert "deciduous-tree" not in drawn.svg


def test_more_of_a_thing_get_places_of_their_own() -> None:
    kept = first("two ducks on a lake and a house")
    before, after = placed(kept), placed(edited(kept, "two more ducks"))
    assert after["house"] == before["house"]
    assert after["duck"][:2] == before["duck"]
    assert len(set(after["duck"])) == 4


def test_another_hour_and_weather_move_nothing() -> None:
    kept = first("a dog and a bench in a park")
    night = edited(kept, "make it night and let it rain")
    assert placed(night) == placed(kept)
    assert night.facts["background"] == "park, night, rain"
    day = edited(night.kept or kept, "make it day")
    assert day.facts["background"] == "park"
    assert day.svg == edited(kept, "make it day").svg


def test_a_thing_moves_to_the_side_that_is_named() -> None:
    kept = first("a dog and a bench in a park")
    [(x, _)] = placed(edited(kept, "move the dog to the right"))["dog"]
    assert x > 0.65
    [(x, _)] = placed(edited(kept, "put the dog on the left"))["dog"]
    assert x < 0.35


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("bigger", ["dog: bigger"]),
        ("make the bench a bit smaller", ["bench: smaller"]),
        ("paint the bench blue", ["bench: blue"]),
        ("replace the dog with two cats", ["dog became 2 cats"]),
        ("swap the bench for a table", ["bench became table"]),
        ("add a red balloon on the left", ["red balloon added"]),
        ("add a cat under the bench", ["cat added"]),
        ("as pixel art", ["style: pixel"]),
        ("black and white", ["style: black and white"]),
        ("put it on a beach", ["scene: beach"]),
        ("change the background to a desert", ["scene: desert"]),
        ('add a sign that says "NO DOGS"', ["text: NO DOGS"]),
        ("remove everything except the dog", ["bench removed"]),
        ("entferne den Hund", ["dog removed"]),
        ("mach den Hund größer", ["dog: bigger"]),
        ("noch zwei Hunde", ["3 dogs"]),
        ("remove the dog and add a cow", ["dog removed", "cow added"]),
    ],
)
def test_an_edit_says_what_it_changed(words: str, changes: Sequence[str]) -> None:
    drawn = edited(first("a dog and a bench in a park"), words)
    assert drawn.facts["changes"] == [*changes]
    assert drawn.facts["left_out"] == []


def test_people_get_what_they_are_given() -> None:
    kept = first("a girl in a meadow")
    drawn = edited(kept, "give her glasses and a hat")
    assert drawn.kept is not None
    assert drawn.kept.layout is not None
    girl, hat = drawn.kept.layout.things
    assert girl.person is not None
    assert girl.person.glasses
    assert hat.relation is not None
    assert (hat.relation.kind, hat.relation.to) == ("wearing", 0)


def test_a_thing_that_is_not_there_is_refused_with_what_is_there() -> None:
    with pytest.raises(InputInvalid) as refused:
        edited(first("a penguin on an iceberg"), "remove the walrus")
    assert refused.value.message == "There is no walrus in this picture. Nothing was changed."
    assert refused.value.hint == "The picture shows penguin, scene: ice."


def test_words_without_a_known_change_are_refused() -> None:
    with pytest.raises(InputInvalid, match="does not know this change") as refused:
        edited(first("a penguin on an iceberg"), "make it more expensive")
    assert "remove the tree" in (refused.value.hint or "")


@pytest.mark.parametrize("words", ["move further", "move over", "put a bit"])
def test_a_move_without_a_thing_or_a_place_is_refused(words: str) -> None:
    with pytest.raises(InputInvalid, match="does not know this change"):
        edited(first("a penguin on an iceberg"), words)


def test_a_little_bit_to_a_place_is_a_move_to_that_place() -> None:
    kept = first("a boat on the sea")
    moved, wholly = (
        edited(kept, f"move the boat {words}to the top") for words in ("little bit ", "")
    )
    assert moved.facts["changes"] == ["boat moved"]
    assert placed(moved) == placed(wholly)


def test_words_that_are_not_shown_are_left_out() -> None:
    drawn = edited(first("a lighthouse on a cliff"), "at sunset, with a storm coming")
    assert drawn.facts["left_out"] == ["coming"]
    assert drawn.facts["background"] == "cliff, sunset, storm"


@pytest.mark.parametrize(
    "layout",
    [
        {"things": [{"asset": "no-such-picture", "words": "x"}], "scene": {}},
        {"things": [{"asset": "dog", "words": "x", "count": 10**9}], "scene": {}},
        {"things": [{"asset": "dog", "words": "x", "relation": ["on", 7]}], "scene": {}},
        {"things": [{"asset": "dog", "words": "x", "relation": ["on", 0]}], "scene": {}},
        {"things": [], "scene": {"places": ["nowhere"]}},
        {"things": [], "scene": {"hour": "never"}},
        {"things": [], "scene": {}, "spots": [[0, 0, 1e300, 0, 1]]},
        {"things": 3},
    ],
)
def test_a_hostile_scene_is_no_scene(layout: object) -> None:
    assert decode_kept(msgspec.json.encode({"prompt": "", "layout": layout})) is None


def test_the_unseen_edits_do_not_fail_but_for_the_one_that_must() -> None:
    table = Path(__file__).with_name("edits_unseen.tsv")
    lines = table.read_text("utf-8").splitlines()
    rows = [*csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    failed = list[str]()
    for row in rows[:28]:
        try:
            edited(first(row["prompt"]), row["edit"])
        except InputInvalid:
            failed.append(row["edit"])
    assert failed == ["remove the walrus"]


WORDS = """
the a it cat dog hat red night beach bigger left to on and , two more another except everything her
with into text under one sky "HI" ' further over little bit slightly top corner beside middle of her
"""


def test_no_order_of_words_breaks_an_edit() -> None:
    words = [*ACTIONS, *WORDS.split()]
    choice = Random(7)
    kept = first("a girl with a dog next to a house")
    for _ in range(100):
        with suppress(InputInvalid):
            edited(kept, " ".join(choice.choices(words, k=choice.randint(1, 9))))


CHART = '{"type":"bar","title":"Sales","labels":["Q1","Q2"],"values":[12,18]}'


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("change Q2 to 25", CHART.replace("18", "25")),
        ('make the title "Revenue"', CHART.replace("Sales", "Revenue")),
        ("rename Q1 to First", CHART.replace("Q1", "First")),
        (
            'change Q2 to 25 and change the title to "All"',
            CHART.replace("18", "25").replace("Sales", "All"),
        ),
        ("make it blue", CHART.replace("}", ',"colors":["#2a72d8"]}')),
    ],
)
def test_a_page_is_changed_in_its_source(words: str, source: str) -> None:
    assert edit_source(CHART, words)[0] == source


def test_a_text_of_a_diagram_is_replaced() -> None:
    assert edit_source("graph LR\nA[Start] --> B", "rename Start to Begin") == (
        "graph LR\nA[Begin] --> B",
        ("Start: Begin",),
    )


def test_other_changes_of_a_page_name_the_way_to_its_source() -> None:
    with pytest.raises(InputInvalid) as refused:
        edit_source(CHART, "make it a pie chart with shadows")
    assert "limner show FILE --json" in (refused.value.hint or "")
