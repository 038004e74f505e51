"""Ten pages of a browser: tables right to the cell, controls with their states, text in order."""

from __future__ import annotations

import pytest
from tests.eyes.page_facts import EXPECTED, PAGES, facts

from limner.eyes import Eyes
from limner.imaging.pool import Imaging

pytestmark = pytest.mark.slow


async def test_every_known_fact_of_the_pages_is_found_and_none_is_invented(
    imaging: Imaging,
) -> None:
    wrong: list[tuple[str, str]] = []
    for name, expected in EXPECTED.items():
        seen = await Eyes(imaging).gather((PAGES / f"{name}.png").read_bytes())
        wrong += [(name, what) for fine, what in facts(seen, expected) if not fine]
    assert wrong == []
