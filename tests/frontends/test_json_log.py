"""The log as lines of JSON: each line has the ids of its work, and no secret."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.batches.conftest import drawings, lim, services, store_url

from limner import Limner
from limner.errors import UserError
from limner.frontends.json_log import log_to
from limner.log_fields import log_fields
from limner.testing import FakeServices

__all__ = ["lim", "services", "store_url"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A file that gets the log of this process."""
    root, ours = logging.getLogger(), logging.getLogger("limner")
    before, level = list(root.handlers), ours.level
    file = tmp_path / "limner.jsonl"
    log_to(file)
    yield file
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()
    ours.setLevel(level)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_each_picture_of_a_batch_is_one_line_with_its_ids(
    services: FakeServices, lim: Limner, log: Path
) -> None:
    status = await lim.batch(drawings(2), budget_usd=1)
    # The library of HTTP requests writes a record of its own.
    told = [line for line in lines(log) if line["logger"] == "limner.money"]
    jobs = {line.pop("job") for line in told}
    times = {line.pop("time")[-6:] for line in told}
    messages = [line.pop("message") for line in told]
    batch = status.batch.id
    assert sorted(told, key=lambda line: line["row"]) == [
        {"level": "info", "logger": "limner.money", "batch": batch, "row": row, "session": batch}
        for row in ("k0", "k1")
    ]
    assert len(jobs) == 2
    assert times == {"+00:00"}
    assert all(message.startswith("image_generate: openai-image/") for message in messages)
    assert services.env["OPENAI_API_KEY"] not in log.read_text()


async def test_work_at_the_same_time_keeps_its_ids_apart(log: Path) -> None:
    async def work(session: str) -> None:
        with log_fields(session=session):
            await asyncio.sleep(0)
            logging.getLogger("limner.test").info("key sk-0123456789abcdef of %s", session)

    await asyncio.gather(work("a"), work("b"))
    logging.getLogger("limner.test").warning("last\nline")
    assert [(line["message"], line.get("session")) for line in lines(log)] == [
        ("key ••• of a", "a"),
        ("key ••• of b", "b"),
        ("last\nline", None),
    ]


def test_a_log_that_cannot_be_written_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        log_to(tmp_path / "missing" / "log")
