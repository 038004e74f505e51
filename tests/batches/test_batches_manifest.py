"""Manifests: what a row is, in each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from limner.batches.manifest import ManifestRow, read_rows
from limner.errors import InputInvalid, UserError


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_line_of_json_is_a_row_and_blank_lines_are_none(tmp_path: Path) -> None:
    text = '\ufeff{"key": 7, "prompt": "a fox", "seed": null}\n\n{"key": "b", "tool": "image_edit"}'
    assert [*read_rows(written(tmp_path, "rows.jsonl", text))] == [
        ManifestRow(key="7", number=1, tool="image_generate", arguments={"prompt": "a fox"}),
        ManifestRow(key="b", number=2, tool="image_edit", arguments={}),
    ]


def test_a_line_of_csv_is_a_row_without_its_empty_cells(tmp_path: Path) -> None:
    text = 'key,tool,prompt,seed\na,,"a fox, a hen",5\nb,image_render,,\n'
    assert [*read_rows(written(tmp_path, "rows.csv", text))] == [
        ManifestRow(
            key="a",
            number=1,
            tool="image_generate",
            arguments={"prompt": "a fox, a hen", "seed": "5"},
        ),
        ManifestRow(key="b", number=2, tool="image_render", arguments={}),
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rows.jsonl", '{"key": "a"}\n[1]', "Line 2 is not a JSON object"),
        ("rows.jsonl", '{"prompt": "a fox"}', "Row 1 needs a key"),
        ("rows.jsonl", '{"key": "a\\nb"}', "Row 1 needs a key"),
        ("rows.jsonl", '{"key": "a", "tool": 3}', "The tool of row 'a' is not a name"),
        ("rows.csv", "key,prompt\na,b,c\n", "more cells than the header"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(InputInvalid, match=problem):
        list(read_rows(written(tmp_path, name, text)))


def test_another_file_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its name must end with"):
        list(read_rows(tmp_path / "rows.xlsx"))
    with pytest.raises(UserError, match="cannot be read: No such file"):
        list(read_rows(tmp_path / "rows.csv"))
