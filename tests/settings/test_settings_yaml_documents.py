"""YAML as far as it is read: lists, tables and texts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import SettingsError
from limner.settings.yaml_documents import parse_yaml

FILE = Path("some.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("- image_generate\n- inspect_image\n", ["image_generate", "inspect_image"]),
        ("- a # why\n- 'b'\n- \"c\"\n", ["a", "b", "c"]),
        (
            "- no\n- ~\n- 1.0\n- 12:30:45\n- 2026-01-01\n",
            ["no", "~", "1.0", "12:30:45", "2026-01-01"],
        ),
        ("a: 1\nb: [c, {d: e}]\nf:\n", {"a": "1", "b": ["c", {"d": "e"}], "f": ""}),
        ("<<: {a: b}\n", {"<<": {"a": "b"}}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ],
)
def test_every_scalar_stays_the_text_it_was_written_as(text: str, value: object) -> None:
    assert parse_yaml(text, path=FILE) == value


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("- !!python/object/apply:os.system [ls]", "tags are not supported (at line 1, column 3)"),
        ("a: !!binary AAAA", "tags are not supported (at line 1, column 4)"),
        ("! a", "tags are not supported (at line 1, column 1)"),
        ("- &a b", "anchors and aliases are not supported (at line 1, column 3)"),
        ("- *a", "anchors and aliases are not supported (at line 1, column 3)"),
        ("x: 1\na: 1\na: 2", "a key appears twice (at line 1, column 1)"),
        ("[a]: b", "found unhashable key (at line 1, column 1)"),
        ("a: b: c", "mapping values are not allowed here (at line 1, column 5)"),
        ("--- a\n--- b\n", "but found another document (at line 2, column 1)"),
        ("\0", "unacceptable character #x0000: special characters are not allowed"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, trouble: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_yaml(text, path=FILE)
    assert caught.value.message == f"some.yaml is not valid YAML: {trouble}"


LAUGHS = "a: &a [x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 8)}]"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "[" * 60_000,
        "{a: " * 10_000,
        "- " * 30_000,
        '"\\ud800"',
        '"\\UFFFFFFFF"',
        '"\\U00110000"',
        "%YAML " + "9" * 6_000 + ".1\n--- a",
    ],
    ids=["laughs", "deep", "tables", "dashes", "surrogate", "escape", "beyond", "version"],
)
def test_a_hostile_document_is_refused(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_yaml(text, path=FILE)
    assert len(caught.value.message) < 300


# JSON writes what lies beyond in two halves, and YAML does not.
words = st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=8)
documents = st.recursive(
    words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(documents)
def test_a_document_of_lists_tables_and_texts_is_read_as_it_was_written(document: object) -> None:
    assert parse_yaml(json.dumps(document), path=FILE) == document


SIGNS = [*"-a:?>|&*!%'\"\\[]{},# \n\t0~\ufeff", "- ", ": ", "---", "!!str ", "\\u", "\\x", "%TAG "]


@given(st.text() | st.lists(st.sampled_from(SIGNS)).map("".join))
def test_any_text_is_a_document_or_a_settings_error(text: str) -> None:
    try:
        value = parse_yaml(text, path=FILE)
    except SettingsError:
        return
    os.fsencode(json.dumps(value, ensure_ascii=False))
