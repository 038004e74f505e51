"""Whole pictures with questions: dashboards, forms, charts, receipts, terminals, two versions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from limner.eyes import Eyes
from limner.eyes.model import look, short_answer
from limner.imaging.pool import Imaging

HERE = Path(__file__).parent
FOLDERS = sorted((HERE / "questions").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_every_short_answer_is_right(imaging: Imaging, folder: Path) -> None:
    assert await mismatches(imaging, folder) == []


@pytest.mark.slow
async def test_no_answer_to_questions_that_were_written_before_the_first_run_is_wrong(
    imaging: Imaging,
) -> None:
    unlike = await mismatches(imaging, HERE / "held_out")
    assert [one for one in unlike if one[2] is not None] == []
    assert len(unlike) <= 8


async def mismatches(imaging: Imaging, folder: Path) -> list[tuple[str, str, str | None]]:
    """The questions whose short answer is not as expected, with that answer."""
    eyes = Eyes(imaging)
    wrong: list[tuple[str, str, str | None]] = []
    for entry in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        seen = [await eyes.gather((folder / name).read_bytes()) for name in entry["pictures"]]
        for asked in entry["questions"]:
            answer = short_answer(look(seen, asked["question"]))
            if not re.search(asked["expected"], answer or "", re.DOTALL):
                wrong.append((entry["pictures"][0], asked["question"], answer))
    return wrong
