from __future__ import annotations

import lzma
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limner.illustrator
from limner.errors import InputInvalid
from limner.illustrator import assets, figures, scenes, vocabulary
from limner.illustrator.synonyms import SYNONYMS
from limner.imaging.svg import Asset, rules

DATA = Path(limner.illustrator.__file__).with_name("data")


@pytest.fixture(scope="module")
def bodies() -> dict[str, str]:
    """Every drawing by name, from the whole pack read as one xz file."""
    lines = lzma.decompress((DATA / "pictures.xz").read_bytes()).decode().splitlines()
    names = [info.name for info in assets.all_infos()]
    assert len(lines) == len(names)
    return dict(zip(names, lines, strict=True))


def found(words: str, limit: int = 3) -> list[str]:
    return [info.name for info in assets.search(words, limit)]


def test_the_name_itself_is_found_first() -> None:
    assert found("robot") == ["robot", "robot-standing"]
    assert found("red apple", 1) == found("red-apple", 1) == ["red-apple"]
    assert found("hot air balloon", 2) == ["hot-air-balloon", "balloon"]


def test_a_synonym_is_found_before_names_that_contain_the_word() -> None:
    assert found("car") == ["automobile", "tram-car", "police-car"]
    assert found("tree", 1) == ["deciduous-tree"]


def test_plurals_find_the_singular() -> None:
    assert found("apples") == ["red-apple", "green-apple", "pie"]
    assert found("mice") == ["mouse", "computer-mouse", "mouse-face"]
    assert found("leaves", 1) == ["fallen-leaf"]


def test_tags_come_after_names_and_beginnings_after_tags() -> None:
    assert found("coffee", 1) == ["hot-beverage"]
    assert found("equestrian", 1) == ["horse"]
    assert "hippopotamus" in found("hippop")


def test_pictures_that_match_more_of_the_words_come_first() -> None:
    assert found("green apple pie", 2) == ["green-apple", "pie"]


def test_nothing_is_found_for_nothing() -> None:
    assert found("") == found("?!") == found("qqqqqq") == []


def test_a_picture_is_described_without_being_decompressed() -> None:
    assert assets.info("robot") == assets.AssetInfo(
        name="robot",
        title="robot",
        group="face-costume",
        tags=("face", "monster"),
        box=(0.06, 0.06, 0.94, 0.94),
        colours=("grey", "purple"),
    )


def test_an_unknown_name_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(InputInvalid) as caught:
        assets.get("bycicle")
    assert caught.value.as_json() | {"field": caught.value.field} == {
        "code": "INPUT_INVALID",
        "message": "No picture is named 'bycicle'.",
        "retryable": False,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "The nearest names: bicycle, blue-circle, brown-circle. "
        "`limner assets search WORD` finds pictures.",
        "field": "name",
    }


@pytest.mark.slow
@given(st.text(max_size=80))
def test_property_any_words_can_be_searched(words: str) -> None:
    hits = assets.search(words, limit=5)
    assert len(hits) <= 5
    assert len(assets.nearest(words)) <= 3


def test_names_are_many_sorted_and_plain() -> None:
    names = assets.names()
    assert len(names) == 2324
    assert names == sorted(set(names))
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_each_stream_gives_the_picture_the_index_promises(bodies: dict[str, str]) -> None:
    one_of_each_stream = assets.names()[::29]
    for name in one_of_each_stream:
        asset = assets.get(name)
        assert asset == Asset(view_box=asset.view_box, body=bodies[name])
        assert re.fullmatch(r"0 0 (3[23] 3[23]|48 48|100 100|512 512)", asset.view_box)


@pytest.mark.slow
def test_every_picture_is_well_formed_and_refers_only_to_itself(bodies: dict[str, str]) -> None:
    seen: set[str] = set()
    for body in bodies.values():
        ElementTree.fromstring(f"<svg>{body}</svg>")
        ids = re.findall(r'\bid="([^"]+)"', body)
        assert len(ids) == len(set(ids))
        assert seen.isdisjoint(ids)
        seen.update(ids)
        assert set(re.findall(r"url\(#([^)]+)\)", body)) <= set(ids)
        assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)


def test_the_sanitizer_admits_every_element_and_attribute(bodies: dict[str, str]) -> None:
    whole = "".join(bodies.values())
    assert set(re.findall(r"<([a-zA-Z]\w*)", whole)) <= rules.DRAWN
    assert set(re.findall(r"\s([a-zA-Z][\w:-]*)=", whole)) <= rules.ATTRIBUTES


def test_the_licences_are_beside_the_pictures_and_in_the_wheel() -> None:
    page = assets.licences()
    for file, holder in (
        ("LICENSE-fluent-emoji.txt", "Copyright (c) Microsoft Corporation"),
        ("LICENSE-emojibase.txt", "Copyright (c) 2017-2019 Miles Johnson"),
    ):
        text = (DATA / file).read_text(encoding="utf-8")
        assert file in page
        assert text.startswith("MIT License\n")
        assert holder in text
    for fact in ("1.2.7", "17.0.0", "2026-11-16", "@iconify-json/fluent-emoji", "emojibase-data"):
        assert fact in page
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shipped = {file for pattern in project["license-files"] for file in root.glob(pattern)}
    assert {DATA / "LICENSE-fluent-emoji.txt", DATA / "LICENSE-emojibase.txt"} <= shipped


def test_the_pack_stays_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 5_000_000


def test_every_table_names_pictures_and_groups_that_exist() -> None:
    names = set(assets.names())
    groups = {info.group for info in assets.all_infos()}
    assert set(SYNONYMS) <= names
    assert names >= vocabulary.MISLEADING
    assert groups >= vocabulary.SIGN_GROUPS
    assert set(scenes.USUAL_PLACES) <= names | groups
    assert set(scenes.HOUR_OF) <= names
    named = (
        figures.SEATS,
        figures.HATS,
        figures.INSTRUMENTS,
        figures.LONG,
        figures.CLOSED | figures.CAGES,
        figures.IN_USE.values(),
        figures.EYEWEAR,
        figures.HELD_HIGH,
        figures.READABLE,
        figures.CONTAINERS,
    )
    assert {name for table in named for name in table} <= names


def test_no_word_means_two_pictures() -> None:
    words = [word for listed in SYNONYMS.values() for word in listed.split(", ")]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("towel", "towel"),
        ("health potion", "potion"),
        ("drawer", "chest-of-drawers"),
        ("iron", "clothes-iron"),
        ("fan", "electric-fan"),
        ("orange", "tangerine"),
        ("knife", "kitchen-knife"),
        ("suitcase", "luggage"),
        ("paper clip", "paperclip"),
        ("tape", "adhesive-tape"),
    ],
)
def test_things_of_the_house_find_their_picture(word: str, name: str) -> None:
    assert vocabulary.find_asset(word) == name


def test_everyday_words_of_diagrams_find_their_picture() -> None:
    words = ("lock", "padlock", "key", "river", "database", "server")
    assert [vocabulary.find_asset(word) for word in words] == [
        "locked",
        "locked",
        "key",
        "river",
        "database",
        "server",
    ]
