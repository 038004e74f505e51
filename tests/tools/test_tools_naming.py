"""A path as people write it -> the file that is meant, within reach."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import ReachDenied
from limner.storage.reach import Reach
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file, variants

SCREENSHOT = "Screenshot 2026-11-15 at 3.04.05\u202fPM.png"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    reach = Reach.from_lists(read=[str(tmp_path)], write=[], home=tmp_path / "home")
    return ToolContext(cwd=tmp_path, reach=reach)


def found(name_on_disk: str, written: str, context: ToolContext) -> bool:
    (context.cwd / name_on_disk).touch()
    return find_file(written, context) == context.cwd / name_on_disk


def test_shell_escaped_spaces_are_unescaped(context: ToolContext) -> None:
    assert found("my photo (1).png", r"my\ photo\ \(1\).png", context)


def test_a_plain_space_before_am_or_pm_finds_the_narrow_no_break_space(
    context: ToolContext,
) -> None:
    assert found(SCREENSHOT, SCREENSHOT.replace("\u202f", " "), context)


def test_am_and_pm_are_found_in_small_letters_too(context: ToolContext) -> None:
    name = "shot at 9.00\u202fam.png"
    assert found(name, "shot at 9.00 am.png", context)


def test_accents_stored_apart_from_their_letters_are_found(context: ToolContext) -> None:
    name = unicodedata.normalize("NFD", "café.png")
    assert found(name, unicodedata.normalize("NFC", "café.png"), context)


def test_a_straight_quote_finds_the_curly_one(context: ToolContext) -> None:
    assert found("Anna\u2019s cat.png", "Anna's cat.png", context)


def test_accents_and_quotes_are_found_together(context: ToolContext) -> None:
    name = unicodedata.normalize("NFD", "Zoë\u2019s café.png")
    assert found(name, "Zoë's café.png", context)


def test_an_escaped_path_is_found_with_its_narrow_space(context: ToolContext) -> None:
    written = SCREENSHOT.replace("\u202f", " ").replace(" ", "\\ ")
    assert found(SCREENSHOT, written, context)


def test_the_path_as_it_is_written_comes_first(context: ToolContext) -> None:
    (context.cwd / "a b.png").touch()
    assert found(r"a\ b.png", r"a\ b.png", context)


def test_a_path_that_is_nowhere_is_itself(context: ToolContext) -> None:
    assert find_file("no such.png", context) == context.cwd / "no such.png"


def test_a_variant_out_of_reach_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "secret\u2019s").mkdir()
    (tmp_path / "secret\u2019s" / "x.png").touch()
    (tmp_path / "open").mkdir()
    reach = Reach.from_lists(
        read=[str(tmp_path / "open"), str(tmp_path / "secret's")], write=[], home=tmp_path / "home"
    )
    context = ToolContext(cwd=tmp_path / "open", reach=reach)
    literal = tmp_path / "secret's" / "x.png"
    assert find_file("../secret's/x.png", context) == literal


def test_a_path_out_of_reach_is_denied_whatever_its_variants(tmp_path: Path) -> None:
    reach = Reach.from_lists(read=[str(tmp_path / "open")], write=[], home=tmp_path / "home")
    context = ToolContext(cwd=tmp_path, reach=reach)
    with pytest.raises(ReachDenied):
        find_file("elsewhere.png", context)


@given(st.text(max_size=40))
def test_variants_are_few_and_differ(text: str) -> None:
    found = list(variants(text))
    assert len(found) == len({*found, text}) - 1
    assert len(found) <= 9
