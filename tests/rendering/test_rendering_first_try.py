"""The documents of `first_try`: each is drawn, and only what is known to be missing is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.agent.agent_pictures import program

from limner import Limner

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).with_name("first_try")
DOCUMENTS = sorted(FOLDER.glob("documents*/*"))
# Replaced fonts are told in the notes too; they lose nothing.
NOTES = {
    "diagram-01-cloud-architecture": ["Ignored: ports."],
    "chart-01-ab-test-checkout": ["Ignored: legend of bar."],
    "chart-03-training-minutes": ["Ignored: legend of bar."],
    "diagram-01-vet-clinic-schema": ["Ignored: ports."],
    "diagram-05-moving-house": ["Ignored: excludes."],
    "diagram-05-printer-help": ["Ignored: style."],
    "layout-05-handball-matchday": ["Ignored: highlight of table."],
}


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("first_try"))
    yield made
    asyncio.run(made.aclose())


def test_there_are_seven_sets_of_documents() -> None:
    assert len(DOCUMENTS) == 175


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
async def test_a_document_is_drawn_without_a_loss(lim: Limner, document: Path) -> None:
    drawn = await lim.render(document.read_text())
    told = cast("list[str]", drawn.extras["notes"])
    notes = [note for note in told if "is not bundled" not in note]
    assert notes == NOTES.get(document.stem, [])
    assert min(drawn.dimensions) >= 150
