from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from limner.imaging.pool import Imaging


@pytest.fixture(scope="session")
def imaging() -> Iterator[Imaging]:
    """One pool for all tests, so that the OCR models are loaded once."""
    pool = Imaging()
    yield pool
    asyncio.run(pool.aclose())
