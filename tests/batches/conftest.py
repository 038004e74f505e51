"""Fake services with a bill, and manifests on disk."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from limner import Limner
from limner.testing import FakeServices

Rows = Sequence[Mapping[str, Any]]


class _Services(FakeServices):
    """Fake services for homes that use one database."""

    store_url: str | None = None

    @property
    def env(self) -> dict[str, str]:
        store = {} if self.store_url is None else {"LIMNER_STORE": self.store_url}
        return {**super().env, **store}


@pytest.fixture
def store_url() -> str | None:
    """The database of the home; a module whose tests run on every kind returns `database`."""
    return None


@pytest.fixture
def services(tmp_path: Path, store_url: str | None) -> Iterator[FakeServices]:
    with _Services(tmp_path) as started:
        started.store_url = store_url
        yield started


@pytest.fixture
async def lim(services: FakeServices) -> AsyncIterator[Limner]:
    async with services.limner() as made:
        yield made


def write_manifest(folder: Path, rows: Rows, name: str = "rows.jsonl") -> Path:
    """A manifest with one JSON object a line."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def drawings(count: int, **more: Any) -> list[dict[str, Any]]:
    """Rows that each draw a small picture at OpenAI's service."""
    row = {"provider": "openai-image", **more}
    return [{"key": f"k{number}", "prompt": f"fox {number}", **row} for number in range(count)]
