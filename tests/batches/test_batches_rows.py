"""Some rows of a batch, as an engine runs them block by block: each is paid once."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.batches.conftest import drawings

from limner import Limner
from limner.batches.queue import BatchQueue
from limner.batches.records import BatchCounts
from limner.errors import InputInvalid, UserError
from limner.testing import FakeServices


@pytest.fixture
def store_url(database: str | None) -> str | None:
    return database


async def run(lim: Limner, rows: list[dict[str, Any]], **more: Any) -> list[dict[str, object]]:
    return await lim.run_rows(rows, **{"batch": "foxes", "budget_usd": 1, **more})


async def test_rows_of_overlapping_blocks_are_paid_for_once(
    services: FakeServices, lim: Limner
) -> None:
    rows = drawings(5)
    first = await run(lim, rows[:3])
    other, again = await asyncio.gather(run(lim, rows[2:]), run(lim, rows[:3]))
    assert again == first
    assert other[0] == first[2]
    ended = first + other[1:]
    assert [(row["key"], row["state"], row["error"]) for row in ended] == [
        (f"k{number}", "done", None) for number in range(5)
    ]
    assert len({row["handle"] for row in ended} - {None}) == 5
    assert len(services.images.requests) == 5
    status = await lim.batches.status("foxes")
    assert (status.counts, status.state) == (BatchCounts(done=5), "done")
    assert sum(float(str(row["cost_usd"])) for row in ended) == pytest.approx(
        status.spent_nano / 1e9
    )


async def test_a_row_that_is_wrong_fails_alone(services: FakeServices, lim: Limner) -> None:
    fox, hen = drawings(2)
    await run(lim, [fox])
    rows = [{**fox, "prompt": "another"}, hen, hen, {"key": "k9", "prompt": "owl", "size": 3}]
    ended = await run(lim, rows)
    assert [(row["key"], row["state"], row["error"]) for row in ended] == [
        ("k0", "failed", "INPUT_INVALID: The batch has another row 'k0'"),
        ("k1", "done", None),
        ("k1", "failed", "INPUT_INVALID: Two rows have the key 'k1'"),
        ("k9", "failed", "INPUT_INVALID: Row 'k9': size must be a string"),
    ]
    assert len(services.images.requests) == 2


async def test_rows_beyond_the_budget_are_not_sent_and_say_so(
    services: FakeServices, lim: Limner
) -> None:
    (free,) = await run(lim, drawings(1), budget_usd="0.000001")
    assert (free["state"], free["cost_usd"], free["handle"]) == ("failed", 0.0, None)
    assert "budget" in str(free["error"])
    (paid,) = await run(lim, drawings(1))
    assert (paid["state"], paid["error"]) == ("done", None)
    assert len(services.images.requests) == 1


async def test_a_cancelled_batch_and_a_wrong_name_are_refused(lim: Limner) -> None:
    await run(lim, drawings(1))
    await lim.batches.cancel("foxes")
    with pytest.raises(UserError) as cancelled:
        await run(lim, drawings(2))
    assert cancelled.value.hint == "limner batch resume foxes opens it."
    for name in ("batch_1", "rows-1", "a b", "../x", ""):
        with pytest.raises(InputInvalid, match="is no name for a batch"):
            await run(lim, drawings(1), batch=name)


async def test_rows_of_a_cancelled_claim_can_be_claimed_again(lim: Limner) -> None:
    await run(lim, drawings(1), budget_usd="0.000001")
    claiming, go_on = threading.Event(), threading.Event()

    def slow_clock() -> datetime:
        claiming.set()
        assert go_on.wait(timeout=60)
        return datetime.now(UTC)

    queue = BatchQueue(store=lim.store, clock=slow_clock)
    batch = await queue.get("foxes")
    claim = asyncio.ensure_future(queue.claim(batch, count=1))
    await asyncio.to_thread(claiming.wait, 60)
    claim.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await claim
    claimed = await queue.claim_interrupted(batch, uncertain=False)
    assert [(row.row_key, row.interrupted) for row in claimed] == [("k0", True)]
