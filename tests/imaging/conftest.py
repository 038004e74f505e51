from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from limner.imaging.pool import Imaging


@pytest.fixture(scope="session")
def imaging() -> Iterator[Imaging]:
    """One pool for all tests: each runs on an event loop of its own, which must not matter."""
    pool = Imaging()
    yield pool
    asyncio.run(pool.aclose())
