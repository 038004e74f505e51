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


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    with FakeServices(tmp_path) as started:
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
