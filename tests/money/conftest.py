"""A real ledger in a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from money_clock import Clock

from limner.money.ledger import Caps, Money
from limner.storage.store import Store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger_path(sqlite_file: Path) -> Path:
    return sqlite_file


@pytest.fixture
def money(store: Store, clock: Clock) -> Money:
    return Money(store, caps=Caps(), clock=clock)
