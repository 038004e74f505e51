from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from format_samples import ALL

from limner.imaging.pool import Imaging


@pytest.fixture(scope="session")
def imaging() -> Iterator[Imaging]:
    """One pool for all tests: each runs on an event loop of its own, which must not matter."""
    pool = Imaging()
    yield pool
    asyncio.run(pool.aclose())


@pytest.fixture(scope="session")
def wide() -> Iterator[Imaging]:
    """A pool that accepts every format there is."""
    pool = Imaging(workers=1, accept=ALL)
    yield pool
    asyncio.run(pool.aclose())
