"""Whole pictures with questions: dashboards, forms, charts, receipts, terminals, two versions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from limner.eyes import Eyes
from limner.eyes.model import look, short_answer
from limner.imaging.pool import Imaging

FOLDERS = sorted((Path(__file__).parent / "questions").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_every_short_answer_is_right(imaging: Imaging, folder: Path) -> None:
    eyes = Eyes(imaging)
    wrong: list[tuple[str, str, str | None]] = []
    for entry in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        seen = [await eyes.gather((folder / name).read_bytes()) for name in entry["pictures"]]
        for asked in entry["questions"]:
            answer = short_answer(look(seen, asked["question"]))
            if not re.search(asked["expected"], answer or "", re.DOTALL):
                wrong.append((entry["pictures"][0], asked["question"], answer))
    assert wrong == []
