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
    "diagram-02-oauth-login": "Blocks such as loop and alt are drawn as notes across all actors.",
}


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("first_try"))
    yield made
    asyncio.run(made.aclose())


def test_there_are_three_sets_of_documents() -> None:
    assert len(DOCUMENTS) == 75


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
async def test_a_document_is_drawn_without_a_loss(lim: Limner, document: Path) -> None:
    drawn = await lim.render(document.read_text())
    told = cast("list[str]", drawn.extras["notes"])
    notes = [note for note in told if "is not bundled" not in note]
    expected = NOTES.get(document.stem)
    assert [note[: len(expected or note)] for note in notes] == ([expected] if expected else [])
    assert min(drawn.dimensions) >= 200
