"""`image_batch`: rows in, a job out, and the job's results later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from limner import Limner
from limner.errors import StorageError
from limner.testing import FakeServices
from limner.tools.base import ToolCall, ToolContext

ROWS = [{"key": f"k{number}", "prompt": f"fox {number}"} for number in range(2)]


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    with FakeServices(tmp_path) as services:
        async with services.limner(settings={"images.provider": "openai-image"}) as made:
            yield made


async def called(lim: Limner, context: ToolContext | None = None, **arguments: Any) -> Any:
    call = ToolCall(name="image_batch", arguments=arguments)
    (result,) = await lim.registry().execute_parallel([call], context or lim.context())
    return json.loads(result.value) if result.ok else result.domain_code


async def test_rows_become_a_job_whose_results_come_later(lim: Limner) -> None:
    started = await called(lim, rows=ROWS, budget_usd=0.5)
    ended = await called(lim, job=started["job"])
    assert (ended["status"], ended["rows"], ended["done"], ended["hint"]) == ("done", 2, 2, "")
    assert [row["key"] for row in ended["results"]] == ["k0", "k1"]
    assert all(Path(row["path"]).is_file() for row in ended["results"])
    assert (await called(lim, rows=ROWS, budget_usd=0.5))["spent_usd"] == ended["spent_usd"]


async def test_a_budget_above_what_the_policy_allows_needs_the_user(lim: Limner) -> None:
    assert await called(lim, rows=ROWS, budget_usd=50) == "APPROVAL_DENIED"


async def test_a_session_with_a_budget_cannot_pass_it_by_with_a_batch(lim: Limner) -> None:
    context = replace(lim.context(), budget_nano=10**9)
    assert await called(lim, context, rows=ROWS, budget_usd=0.5) == "BUDGET_EXCEEDED"


async def test_a_batch_has_no_batches(lim: Limner) -> None:
    row = {"key": "k", "tool": "image_batch", "job": "x"}
    assert await called(lim, rows=[row], budget_usd=0) == "INPUT_INVALID"


async def test_a_scope_stops_its_batches_when_the_program_closes(lim: Limner) -> None:
    scope = lim.scope("alice")
    started = await called(scope, rows=ROWS, budget_usd=0.5)
    ended = await called(scope, job=started["job"])
    stuck = asyncio.ensure_future(asyncio.Event().wait())
    scope.components.batches.running["batch"] = cast("Any", stuck)
    await lim.aclose()
    assert (ended["status"], stuck.cancelled()) == ("done", True)


def test_a_batch_can_be_followed_in_another_event_loop(tmp_path: Path) -> None:
    with FakeServices(tmp_path) as services:
        lim = services.limner(settings={"images.provider": "openai-image"})
        started = asyncio.run(called(lim, rows=ROWS, budget_usd=0.5))
        ended = asyncio.run(called(lim, job=started["job"], action="status"))
        asyncio.run(lim.aclose())
    assert (ended["job"], ended["rows"]) == (started["job"], 2)


async def test_the_error_that_stopped_a_batch_is_the_answer(lim: Limner) -> None:
    started = await called(lim, rows=ROWS, budget_usd=0.5)

    async def fail() -> Any:
        raise StorageError("The disk is full.")

    lim.batches.running[started["job"]] = asyncio.ensure_future(fail())
    assert await called(lim, job=started["job"]) == "STORAGE_FAILED"
