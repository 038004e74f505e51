from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from xml.etree import ElementTree

import pytest
from PIL import Image

from limner.errors import InputInvalid
from limner.illustrator import assets, scenes
from limner.illustrator.draw import NOTE, Illustration, draw
from limner.illustrator.scenes import HOURS, PLACES, WEATHERS
from limner.illustrator.vocabulary import find_asset
from limner.imaging.pool import Imaging
from limner.rendering.help import SVG_HELP

SVG = "{http://www.w3.org/2000/svg}"


def drawing(
    prompt: str, *, width: int = 256, height: int = 256, seed: int | None = None
) -> Illustration:
    return draw(prompt=prompt, svg=None, width=width, height=height, seed=seed)


def placed(prompt: str) -> Counter[str]:
    """How often each picture is placed."""
    root = ElementTree.fromstring(drawing(prompt).svg)
    return Counter(element.attrib["name"] for element in root.iter(f"{SVG}asset"))


def test_the_facts_of_a_prompt_account_for_every_word() -> None:
    made = drawing(
        "A highly detailed photo of a cat on a red bicycle on a beach at sunset, no people"
    )
    assert made.facts == {
        "account": "Left out: highly detailed, photo.",
        "matched": [
            {"words": "cat", "asset": "cat", "count": 1, "colour": None},
            {"words": "bicycle", "asset": "bicycle", "count": 1, "colour": "red"},
        ],
        "drawn": ["cat", "red bicycle", "on", "beach", "sunset", "no people"],
        "approximated": [],
        "left_out": ["highly detailed", "photo"],
        "background": "beach, sunset",
        "text": [],
        "note": NOTE,
    }
    assert made.assets == {name: assets.get(name) for name in ("cat", "bicycle")}


def test_what_is_only_similar_or_missing_is_said_in_one_line() -> None:
    facts = drawing("two penguins and a corgi beside a gramophone on the prairie").facts
    assert facts == {
        "account": "Approximated: corgi (dog), prairie (meadow). Left out: gramophone.",
        "matched": [
            {"words": "penguins", "asset": "penguin", "count": 2, "colour": None},
            {"words": "corgi", "asset": "dog", "count": 1, "colour": None},
        ],
        "drawn": ["two penguins"],
        "approximated": ["corgi (dog)", "prairie (meadow)"],
        "left_out": ["gramophone"],
        "background": "meadow",
        "text": [],
        "note": NOTE,
    }


def test_the_example_of_the_specification_is_a_scene_of_its_own() -> None:
    made = drawing("A watercolor painting of a mountain lake at dawn")
    assert made.facts["background"] == "mountains, lake, dawn"
    assert made.facts["left_out"] == []
    assert made.assets == {}


def test_the_note_names_the_variable_to_set() -> None:
    assert "OPENAI_API_KEY" in NOTE
    assert "offline" in NOTE


def test_everything_asked_for_is_placed_as_often_as_asked() -> None:
    assert placed("two penguins and a snowman beside a christmas tree") == {
        "penguin": 2,
        "snowman": 1,
        "christmas-tree": 1,
    }
    assert placed("three red apples on a table") == {"red-apple": 3, "table": 1}
    assert placed("two cats riding two bicycles") == {"cat": 2, "bicycle": 2}
    assert placed("a lion between a zebra and a giraffe") == {
        "lion-sitting": 1,
        "zebra": 1,
        "giraffe": 1,
    }


def test_a_crowd_is_thinned_out_fairly() -> None:
    counts = placed("twelve cats, twelve dogs and twelve horses")
    assert counts == {"cat": 8, "dog": 8, "horse": 8}


def test_a_colour_the_picture_has_already_changes_nothing() -> None:
    red, blue = (drawing(f"a {colour} car").assets["automobile"] for colour in ("red", "blue"))
    assert red == assets.get("automobile")
    assert blue != red


def test_small_things_indoors_stand_on_a_table() -> None:
    assert placed("a laptop in a cafe") == {"laptop": 1, "table": 1}
    assert placed("a table on a book in a room") == {"open-book": 1, "table": 1}


def test_quoted_text_is_written_on_a_sign() -> None:
    made = drawing('a cat with a sign that says "FISH & <CHIPS>"')
    root = ElementTree.fromstring(made.svg)
    lines = [element.text for element in root.iter(f"{SVG}text")]
    assert lines == ["FISH &", "<CHIPS>"]
    assert made.facts["text"] == ["FISH & <CHIPS>"]
    assert placed('a cat, "HELLO"')["signboard"] == 1


def test_the_same_arguments_give_the_same_drawing() -> None:
    prompt = "five birds over a forest at dusk"
    assert drawing(prompt, seed=7) == drawing(prompt, seed=7)
    assert drawing(prompt, seed=7).svg != drawing(prompt, seed=8).svg
    assert drawing(prompt).svg != drawing(prompt, seed=0).svg


def test_another_process_gives_the_same_drawing() -> None:
    code = (
        "import hashlib; from limner.illustrator.draw import draw; "
        "made = draw(prompt='a dog, a cat and a book in a foggy autumn forest in the rain', "
        "svg=None, width=300, height=200, seed=1); "
        "print(hashlib.sha256((made.svg + str(made.facts)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("width", "height"),
    [(16, 16), (16, 4096), (4096, 16), (512, 512), (1024, 1792), (1792, 1024), (4096, 4096)],
)
def test_every_size_from_16_to_4096_is_drawn(width: int, height: int) -> None:
    made = drawing("six cats, a house and a bird in a city", width=width, height=height)
    root = ElementTree.fromstring(made.svg)
    assert root.attrib["viewBox"] == f"0 0 {width} {height}"
    for element in root.iter(f"{SVG}asset"):
        x, y, size = (float(element.attrib[key]) for key in ("x", "y", "size"))
        assert 0 <= x + size / 2 <= width
        assert 0 <= y + size / 2 <= height


@pytest.mark.parametrize(("width", "height"), [(15, 100), (100, 15), (4097, 100), (100, 4097)])
def test_other_sizes_are_refused(width: int, height: int) -> None:
    with pytest.raises(InputInvalid) as caught:
        drawing("a cat", width=width, height=height)
    assert caught.value.field == "size"


def test_what_is_half_known_is_drawn() -> None:
    facts = drawing("a zorgblat riding a bicycle").facts
    assert [one["asset"] for one in facts["matched"]] == ["bicycle"]
    assert facts["left_out"] == ["zorgblat", "riding"]


def test_a_prompt_of_which_nothing_is_known_becomes_a_card_that_says_so() -> None:
    made = drawing("quarterly <fintech> synergy", width=400, height=300)
    root = ElementTree.fromstring(made.svg)
    assert [element.text for element in root.iter(f"{SVG}text")] == [
        "quarterly <fintech> synergy",
        "no picture is known for these words",
    ]
    assert made.facts["background"] == "card"
    assert made.facts["account"] == (
        "The illustrator knows none of these words, so the picture is a card with them."
    )
    assert made.facts["left_out"] == ["quarterly", "fintech", "synergy"]


def test_an_account_stays_short() -> None:
    facts = drawing("a cat, " + " ".join(f"blurb{number}" for number in range(300))).facts
    assert facts["account"].endswith("blurb11 and 288 more.")
    json.dumps(facts)


def test_a_document_of_the_caller_is_passed_on_with_its_pictures() -> None:
    document = '<svg><asset name="robot" x="1" y="2" size="3"/><asset size="9" name=\'cat\'/></svg>'
    made = draw(prompt="ignored", svg=document, width=64, height=64, seed=None)
    assert made == Illustration(
        svg=document,
        assets={"cat": assets.get("cat"), "robot": assets.get("robot")},
        facts={
            "account": "",
            "matched": [
                {"words": "cat", "asset": "cat", "count": None, "colour": None},
                {"words": "robot", "asset": "robot", "count": None, "colour": None},
            ],
            "drawn": [],
            "approximated": [],
            "left_out": [],
            "background": None,
            "text": [],
            "note": NOTE,
            "missing_assets": [],
            "missing_scenes": [],
        },
    )


def test_a_document_may_name_a_scene_as_its_background() -> None:
    document = '<svg><scene name="beach sunset"/><scene name="library"/><scene name="qwzk"/></svg>'
    made = draw(prompt="", svg=document, width=64, height=32, seed=None)
    assert made.facts["background"] == "beach, sunset; library"
    assert made.facts["missing_scenes"] == ["qwzk"]
    backgrounds = {"scene: beach sunset", "scene: library", "scene: qwzk"}
    assert backgrounds < made.assets.keys()
    assert {made.assets[name].view_box for name in backgrounds} == {"0 0 64 32"}
    # The walls of the library have shelves, which are pictures too.
    assert "bookshelf" in made.assets


@pytest.mark.parametrize("name", [*PLACES, *HOURS, *WEATHERS])
def test_every_word_that_the_help_names_is_a_scene(name: str) -> None:
    made = draw(prompt="", svg=f'<svg><scene name="{name}"/></svg>', width=64, height=32, seed=None)
    assert made.facts["missing_scenes"] == []
    assert name in SVG_HELP


def test_a_picture_that_does_not_exist_is_a_labelled_frame_and_reported() -> None:
    document = '<svg><asset name="bycicle"/><asset name="cat"/></svg>'
    made = draw(prompt="", svg=document, width=64, height=64, seed=None)
    assert made.facts["missing_assets"] == [
        {"name": "bycicle", "nearest": ["bicycle", "blue-circle", "brown-circle"]}
    ]
    assert ">bycicle</text>" in made.assets["bycicle"].body
    assert made.assets["cat"] == assets.get("cat")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("moon", "full-moon"),
        ("coffee", "hot-beverage"),
        ("smartphone", "mobile-phone"),
        ("robots", "robot-standing"),
        ("christmas_tree", "christmas-tree"),
        ("database", "database"),
        ("flux capacitor", None),
    ],
)
def test_everyday_words_name_pictures(word: str, name: str | None) -> None:
    assert find_asset(word) == name


def test_a_document_may_not_ask_for_the_whole_pack() -> None:
    document = "".join(f'<asset name="{name}"/>' for name in assets.names())
    with pytest.raises(InputInvalid, match="2324 different pictures; at most 200"):
        draw(prompt="", svg=f"<svg>{document}</svg>", width=64, height=64, seed=None)


PROMPTS = [
    *scenes.PLACES,
    *(f"a meadow at {hour}" for hour in scenes.HOURS),
    *(f"a meadow, {words.split(', ')[0]}" for words in scenes.WEATHERS.values()),
    "a blue car and a purple elephant wearing a hat",
    "an astronaut riding a horse in space",
    'a sign that says "OPEN" on a yellow background',
]


@pytest.mark.slow
async def test_every_scene_is_rendered_and_none_is_blank() -> None:
    async with Imaging() as imaging:
        for prompt in PROMPTS:
            made = drawing(prompt, width=96, height=96)
            png = await imaging.render_svg(made.svg, width=96, height=96, assets=made.assets)
            picture = Image.open(io.BytesIO(png)).convert("RGBA")
            assert picture.size == (96, 96)
            assert picture.getchannel("A").getextrema() == (255, 255), prompt
            assert len(set(picture.get_flattened_data())) > 50, prompt


def test_the_pictures_placed_are_the_pictures_sent() -> None:
    made = drawing("a robot reading a book in a library at night")
    named = set(re.findall(r'<asset name="([^"]+)"', made.svg))
    assert named == set(made.assets) == {"robot-standing", "open-book", "bookshelf"}
