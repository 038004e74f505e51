"""What people type, paste and drop -> lines and pictures; what tools answer -> lines to read."""

from __future__ import annotations

import json
import stat
from itertools import pairwise
from pathlib import Path

import pytest
import wcwidth
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz import SHARED_FIXTURE

from limner.agent.events import ToolFinished
from limner.frontends.cli.chat.attachments import find_picture, find_pictures, is_only_pictures
from limner.frontends.cli.chat.input_history import KEPT, InputHistory
from limner.frontends.cli.chat.line_editor import PASTE_BEGINS, PASTE_ENDS, LineEditor
from limner.frontends.cli.chat.tool_lines import collapsed, expanded, main_argument
from limner.storage.reach import Reach
from limner.tools.base import ToolCall, ToolContext, ToolResult

TEXT = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "))


@pytest.fixture
def person(tmp_path: Path) -> ToolContext:
    return ToolContext(cwd=tmp_path, reach=Reach.for_person(home=tmp_path / "home"))


@given(st.lists(TEXT))
def test_lines_come_out_as_they_were_typed_property(typed: list[str]) -> None:
    assert LineEditor().feed("".join(f"{line}\r" for line in typed)) == typed


@given(st.text(), st.lists(st.integers(0, 40)))
@example("\x1b[200~a\rb\x1b[201~\r", [3, 9])
@example("a\x1b[A\x1bOPb\r", [2, 5])
def test_where_the_keys_are_cut_makes_no_difference_property(keys: str, cuts: list[int]) -> None:
    whole, pieces = LineEditor(), LineEditor()
    at = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    told = [line for a, b in pairwise(at) for line in pieces.feed(keys[a:b])]
    assert (told, pieces.text) == (whole.feed(keys), whole.text)


@given(st.text())
def test_no_key_but_a_printable_one_gets_into_a_line_property(keys: str) -> None:
    draft = LineEditor()
    lines = [*draft.feed(keys), draft.text]
    assert all(key.isprintable() or key in "\t\n" for line in lines for key in line)


def test_a_line_is_edited_as_in_a_shell() -> None:
    draft = LineEditor()
    assert draft.feed("two words\x17three\x7f\x7fy\x1b[D") == []
    assert draft.text == "two thry"
    assert draft.feed("\x15gone\x15\n") == [""]
    assert draft.feed(f"{PASTE_BEGINS}a\rb\n{PASTE_ENDS}c\r") == ["a\nb\nc"]
    assert draft.feed("\x1b[" + "1" * 40 + "\r") != []


NAMES = ["fox.png", "my fox.JPG", "it's.webp", "ärger.gif", "(1).jpeg", "a;b&c.png", "ro#se.tiff"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_found_however_it_is_written(person: ToolContext, name: str) -> None:
    path = person.cwd / name
    path.write_bytes(b"")
    escaped = "".join(f"\\{one}" if one in " '()&;#" else one for one in str(path))
    forms = [str(path), f'"{path}"', escaped, path.as_uri(), f"  {path}  ", name]
    for form in forms:
        assert find_pictures(form, person) == [path], form
        assert is_only_pictures(form, person), form
    for form in (f'"{path}"', escaped, path.as_uri()):
        said = f"Look at {form} and say what it is."
        assert find_pictures(said, person) == [path], said
        assert not is_only_pictures(said, person)


def test_words_around_a_path_are_no_part_of_it(person: ToolContext) -> None:
    fox, owl = person.cwd / "fox.png", person.cwd / "an owl.png"
    for path in (fox, owl):
        path.write_bytes(b"")
    assert find_pictures("Compare (fox.png), `fox.png` with 'an owl.png'?", person) == [fox, owl]
    assert find_pictures("What's in it's.png? fox.pdf, foxpng or fox", person) == []
    assert is_only_pictures("fox.png 'an owl.png'", person)
    assert find_picture("", person) is None
    assert find_picture("file://elsewhere/fox.png", person) is None
    (person.cwd / "folder.png").mkdir()
    assert find_pictures("folder.png", person) == []


def test_what_is_below_the_floor_is_not_attached(person: ToolContext) -> None:
    assert find_pictures("/etc/passwd.png /proc/self/x.png", person) == []


@given(st.text())
@settings(suppress_health_check=SHARED_FIXTURE)
@example("file://[/x.png")
@example("a\x00b.png")
@example("x" * 5000 + ".png")
def test_no_words_break_the_search_property(person: ToolContext, words: str) -> None:
    assert find_pictures(words, person) == []
    assert not is_only_pictures(words, person)


def test_history_is_kept_for_its_owner_and_survives_damage(tmp_path: Path) -> None:
    path = tmp_path / "new" / "chat_history"
    history = InputHistory(path)
    assert history.load() == []
    history.add("one\ntwo")
    with path.open("ab") as file:
        file.write(b'\xff\n{"a": 1}\n\n')
    history.add("“three”")
    assert InputHistory(path).load() == ["one\ntwo", "“three”"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_has_grown_too_long_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_text("".join(f"{json.dumps(f'{number} ' + 'x' * 500)}\n" for number in range(3000)))
    loaded = InputHistory(path).load()
    assert len(loaded) == KEPT
    assert loaded[-1].startswith("2999 ")
    assert InputHistory(path).load() == loaded
    assert path.stat().st_size < 1024 * 1024
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "chat_history").mkdir()
    history = InputHistory(tmp_path / "chat_history")
    history.add("one")
    assert history.load() == []


def finished(arguments: dict[str, object], **result: object) -> ToolFinished:
    call = ToolCall(name="image_generate", arguments=arguments, call_id="c")
    told = {"call_id": "c", "name": "image_generate", "ok": True, **result}
    return ToolFinished(call=call, result=ToolResult(**told), item={}, duration_ms=1234)  # type: ignore[arg-type]


def test_a_call_is_one_line_with_its_price_and_time() -> None:
    done = finished({"size": "64x64", "prompt": "a  red\nfox"}, cost_nano=40_000_000)
    assert collapsed(done, columns=80) == ["✓ image_generate  a red fox · $0.04 · 1.2 s"]
    failed = finished({}, ok=False, error="No.\nNever.", hint="Ask again.")
    assert collapsed(failed, columns=80) == [
        "✗ image_generate · $0.00 · 1.2 s",
        "  No. Never. Ask again.",
    ]


def test_an_expanded_call_shows_what_went_in_and_the_first_of_what_came_out() -> None:
    value = json.dumps({"text": "\n".join(map(str, range(20))), "size": {"width": 1}})
    lines = expanded(finished({"prompt": "a fox", "n": 2}, value=value), columns=80)
    assert lines[:5] == [
        "✓ image_generate  a fox · $0.00 · 1.2 s",
        "  prompt: a fox",
        "  n: 2",
        "  ->",
        "  0",
    ]
    assert lines[-1] == "  … 5 more lines"


@given(st.dictionaries(st.text(), st.text() | st.integers()), st.text(), st.integers(30, 200))
def test_a_line_fits_and_drives_no_terminal_property(
    arguments: dict[str, object], error: str, columns: int
) -> None:
    done = finished(arguments, ok=False, error=error, value=error)
    for line in (*collapsed(done, columns=columns), *expanded(done, columns=columns)):
        assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in line)
        assert wcwidth.width(line) <= columns


def test_the_argument_that_says_most_is_shown() -> None:
    assert main_argument({"path": "fox.png", "question": "What is it?"}) == "What is it?"
    assert main_argument({"n": 1, "other": "words"}) == "words"
    assert main_argument({"n": 1}) == ""
