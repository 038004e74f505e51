"""Results of a batch as files that other programs read."""

from __future__ import annotations

import csv
import io
import json
import sys
import tarfile
from pathlib import Path

import pytest
from PIL import Image
from tests.batches.conftest import drawings

from limner import Limner
from limner.batches.manifest import read_rows
from limner.errors import MissingExtra, OutputExists, StorageError, UserError
from limner.testing import FakeServices

CHART = {"type": "bar", "labels": ["a", "b"], "values": [1, 2]}
ROW = [{"key": "chart", "tool": "image_render", "source": json.dumps(CHART)}]
SCHEMA = {"type": "object", "properties": {"width": {"type": "integer"}}}


@pytest.fixture
async def batch(lim: Limner) -> str:
    """A batch with a picture, a failed row whose key looks like a formula, and a question."""
    Image.new("RGB", (40, 30), "red").save(lim.cwd / "red.png")
    rows = [
        {"key": "a.b/c", "tool": "image_render", "source": json.dumps(CHART)},
        {"key": "=1+1", "tool": "inspect_image", "path": "missing.png", "question": "What?"},
    ]
    return (await lim.batch(rows, budget_usd=0)).batch.id


async def test_jsonl_has_every_row_with_its_result_or_its_error(lim: Limner, batch: str) -> None:
    assert await lim.batches.export(batch, lim.cwd / "rows.jsonl") == 2
    lines = (lim.cwd / "rows.jsonl").read_text().splitlines()
    drawn, failed = map(json.loads, lines)
    assert (drawn["key"], drawn["state"], drawn["error"]) == ("a.b/c", "done", None)
    assert Path(drawn["result"]["path"]).is_file()
    assert (failed["result"], failed["error"]["code"]) == (None, "FILE_NOT_FOUND")


async def test_csv_has_no_cell_that_a_spreadsheet_takes_for_a_formula(
    lim: Limner, batch: str
) -> None:
    await lim.batches.export(batch, lim.cwd / "rows.csv")
    with (lim.cwd / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == ["a.b/c", "'=1+1"]
    assert [row["state"] for row in rows] == ["done", "failed"]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@"))]


async def test_the_texts_in_a_drawing_are_no_answer(lim: Limner) -> None:
    row = {"key": "fox", "prompt": "a fox", "size": "64x64", "provider": "illustrator"}
    drawn = (await lim.batch([row], budget_usd=0)).batch.id
    await lim.batches.export(drawn, lim.cwd / "rows.csv")
    with (lim.cwd / "rows.csv").open(newline="") as file:
        assert [cells["answer"] for cells in csv.DictReader(file)] == [""]


async def test_a_tar_is_a_web_dataset_with_picture_and_facts_under_one_key(
    lim: Limner, batch: str
) -> None:
    await lim.batches.export(batch, lim.cwd / "rows.tar")
    with tarfile.open(lim.cwd / "rows.tar") as tar:
        assert tar.getnames() == ["a_b_c.png", "a_b_c.json", "_1_1.json"]
        picture = tar.extractfile("a_b_c.png")
        assert picture is not None
        assert Image.open(io.BytesIO(picture.read())).format == "PNG"


async def test_a_folder_gets_the_pictures_under_their_keys(lim: Limner, batch: str) -> None:
    await lim.batches.export(batch, lim.cwd / "pictures")
    assert [path.name for path in (lim.cwd / "pictures").iterdir()] == ["a_b_c.png"]


async def test_nothing_is_replaced_and_an_unknown_suffix_is_refused(
    lim: Limner, batch: str
) -> None:
    (lim.cwd / "rows.csv").write_text("mine")
    with pytest.raises(OutputExists):
        await lim.batches.export(batch, lim.cwd / "rows.csv")
    with pytest.raises(UserError, match="a batch is exported as"):
        await lim.batches.export(batch, lim.cwd / "rows.xlsx")
    assert (lim.cwd / "rows.csv").read_text() == "mine"


async def test_the_folder_of_an_export_is_made_and_refused_before_a_row_runs(
    services: FakeServices, lim: Limner
) -> None:
    await lim.batch(ROW, budget_usd=0, out="made/here/rows.jsonl")
    assert [path.name for path in (lim.cwd / "made/here").iterdir()] == ["rows.jsonl"]
    (lim.cwd / "file").write_text("mine")
    with pytest.raises(StorageError, match="a part of the path is a file"):
        await lim.batch(drawings(1), budget_usd=1, out="file/rows.jsonl")
    assert services.images.requests == []


@pytest.mark.slow  # pyarrow is large
async def test_parquet_is_written_and_read_again_as_a_manifest(lim: Limner, batch: str) -> None:
    await lim.batches.export(batch, lim.cwd / "rows.parquet")
    drawn, failed = read_rows(lim.cwd / "rows.parquet")
    assert (drawn.key, drawn.arguments["state"], drawn.arguments["cost_usd"]) == (
        *("a.b/c", "done", 0.0),
    )
    assert Path(json.loads(drawn.arguments["result"])["path"]).is_file()
    assert (failed.key, failed.arguments["state"]) == ("=1+1", "failed")


async def test_without_pyarrow_parquet_is_refused_before_anything_is_written(
    lim: Limner, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match="pyarrow is not installed, and limner writes"):
        await lim.batches.export(batch, lim.cwd / "rows.parquet")
    assert not (lim.cwd / "rows.parquet").exists()
    with pytest.raises(MissingExtra, match="pyarrow is not installed, and limner reads"):
        list(read_rows(lim.cwd / "rows.parquet"))
