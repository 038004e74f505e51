"""A real ledger in a temporary folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from money_clock import Clock

from limner.money.ledger import Caps, Money
from limner.storage.store import Store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    return tmp_path / "limner.db"


@pytest.fixture
async def store(ledger_path: Path) -> AsyncIterator[Store]:
    store = Store(ledger_path)
    yield store
    await store.aclose()


@pytest.fixture
def money(store: Store, clock: Clock) -> Money:
    return Money(store, caps=Caps(), clock=clock)
