"""The cheap lane against the three batch servers: half price, no payment lost or doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.batches.lane_rows import FOX, VENDORS, limner_for, rows_for, without_waiting
from tests.servers.batch_servers import BatchServer, fates

from limner import Limner
from limner.batches.records import BatchCounts, BatchStatus, RowResult
from limner.errors import UserError
from limner.testing.servers.http_server import Gate, dropped, json_reply
from limner.tools.batches import Batches, BatchManifest


class Lane:
    """A program, its server and its rows."""

    def __init__(self, name: str, server: BatchServer, lim: Limner) -> None:
        self.name, self.server, self.lim, self.vendor = name, server, lim, VENDORS[name]
        self.batches: Batches = without_waiting(lim)

    async def open(self, count: int = 3, *, budget_nano: int = 10**9) -> str:
        manifest = BatchManifest.of_rows(rows_for(self.name, count))
        batch = await self.batches.open(
            manifest, self.lim.person(), budget_nano=budget_nano, approved=True, lane="cheap"
        )
        return batch.id

    async def run(self, count: int = 3, *, budget_nano: int = 10**9) -> BatchStatus:
        batch_id = await self.open(count, budget_nano=budget_nano)
        return await self.batches.run(await self.batches.queue.get(batch_id))

    async def rows(self, status: BatchStatus) -> list[RowResult]:
        return [row async for row in self.batches.queue.results(status.batch)]

    async def ledger(self) -> list[tuple[str, int]]:
        spend = await self.lim.spend()
        return [(row.state, row.cost_nano) for row in reversed(spend.recent)]


# Google's answers have signatures of megabytes, which take most of the time.
FAST = ("openai", "anthropic")


@pytest.fixture(
    params=[
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in VENDORS
    ]
)
async def lane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Lane]:
    with VENDORS[request.param].server(FOX) as server:
        async with limner_for(request.param, server, tmp_path) as lim:
            yield Lane(request.param, server, lim)


async def test_every_row_costs_half_to_the_nano_dollar(lane: Lane) -> None:
    status = await lane.run()
    cost = lane.vendor.cost_nano
    assert status.counts == BatchCounts(done=3)
    assert (status.spent_nano, status.unknown_nano, status.remote) == (3 * cost, 0, ())
    assert await lane.ledger() == [("settled", cost)] * 3
    assert 2 * cost == lane.vendor.now_nano
    assert len(lane.server.batches) == 1
    assert len(lane.server.billed) == 3
    for row in await lane.rows(status):
        result = json.loads(row.result or "")
        assert (row.state, row.cost_nano, row.cost_source) == ("done", cost, "computed")
        if lane.vendor.vision is not None:
            assert result["text"] == lane.vendor.answer
            assert result["details"]["cost_usd"] == cost / 1e9
        else:
            assert Path(result["path"]).is_file()
            assert result["cost_usd"] == cost / 1e9


async def test_two_programs_at_one_batch_send_and_collect_each_row_once(
    lane: Lane, tmp_path: Path
) -> None:
    batch_id = await lane.open(8)
    async with limner_for(lane.name, lane.server, tmp_path) as other:
        batch = await lane.batches.queue.get(batch_id)
        mine, theirs = await asyncio.gather(
            lane.batches.run(batch), without_waiting(other).run(batch)
        )
    assert (mine.counts, theirs.counts) == (BatchCounts(done=8), BatchCounts(done=8))
    assert await lane.ledger() == [("settled", lane.vendor.cost_nano)] * 8
    assert len(lane.server.billed) == len(set(lane.server.billed)) == 8


async def test_running_it_again_pays_nothing(lane: Lane) -> None:
    first = await lane.run()
    again = await lane.run()
    assert first.spent_nano == again.spent_nano
    assert len(lane.server.batches) == 1


async def test_failed_and_expired_rows_are_released_and_a_resume_sends_them_again(
    lane: Lane,
) -> None:
    lane.server.fate = fates("ok", "failed", "expired")
    status = await lane.run()
    cost = lane.vendor.cost_nano
    assert status.counts == BatchCounts(done=1, failed=2)
    assert status.spent_nano == cost
    assert sorted(await lane.ledger()) == [("released", 0), ("released", 0), ("settled", cost)]
    failed = [row for row in await lane.rows(status) if row.state == "failed"]
    assert [row.cost_nano for row in failed] == [0, 0]
    lane.server.fate = lambda _: "ok"
    again = await lane.run()
    assert again.counts == BatchCounts(done=3)
    assert again.spent_nano == 3 * cost
    assert len(lane.server.billed) == 3


async def test_a_batch_that_is_refused_as_a_whole_costs_nothing(lane: Lane) -> None:
    if lane.name == "anthropic":
        lane.server.script("create", json_reply({"error": {"message": "no"}}, status=400))
    else:
        lane.server.refusal = "The model has no batches."
    status = await lane.run()
    assert status.counts == BatchCounts(failed=3)
    assert await lane.ledger() == [("released", 0)] * 3


async def test_results_that_are_gone_leave_the_payment_uncertain(lane: Lane) -> None:
    lane.server.lost = True
    status = await lane.run()
    assert status.counts == BatchCounts(failed=3)
    assert [state for state, _ in await lane.ledger()] == ["unknown"] * 3
    assert status.unknown_nano == status.spent_nano > 0


async def test_the_budget_is_not_passed_and_the_rest_waits(lane: Lane) -> None:
    manifest = BatchManifest.of_rows(rows_for(lane.name, 3))
    plan = await lane.batches.plan(manifest, lane.lim.person(), lane="cheap")
    status = await lane.run(budget_nano=plan.quoted_nano // 3 * 2)
    assert status.counts == BatchCounts(done=2, waiting=1)
    assert status.spent_nano <= status.batch.budget_nano
    assert status.stopped is not None
    more = await lane.run(budget_nano=plan.quoted_nano)
    assert more.counts == BatchCounts(done=3)


async def test_a_plan_says_what_the_lane_saves(lane: Lane) -> None:
    manifest = BatchManifest.of_rows(rows_for(lane.name, 2))
    now = await lane.batches.plan(manifest, lane.lim.person())
    cheap = await lane.batches.plan(manifest, lane.lim.person(), lane="cheap")
    assert now.quoted_nano == now.now_nano == cheap.now_nano
    assert cheap.quoted_nano == cheap.cheap_nano == now.cheap_nano
    assert cheap.cheap_nano is not None
    assert cheap.now_nano == pytest.approx(2 * cheap.cheap_nano, abs=4)
    assert (cheap.savings or "").startswith("cheap lane: $")
    assert (cheap.savings or "").endswith(", within 24 h")
    assert lane.server.requests == []


# --- what is lost on the way ---


async def test_a_creation_whose_answer_is_lost_is_found_and_not_repeated(lane: Lane) -> None:
    create = lane.server.answer

    def answer_then_drop(seen: Any) -> Any:
        reply = create(seen)
        return dropped() if lane.server.route(seen) == "create" else reply

    lane.server.answer = answer_then_drop
    status = await lane.run()
    assert status.counts == BatchCounts(done=3)
    assert len(lane.server.sent("create")) == len(lane.server.batches) == 1
    assert len(lane.server.billed) == 3


async def test_a_creation_that_never_arrived_is_released_and_sent_again(lane: Lane) -> None:
    lane.server.script("create", dropped())
    status = await lane.run()
    assert status.counts == BatchCounts(done=3)
    assert len(lane.server.batches) == 1
    assert sorted(await lane.ledger()) == [
        *[("released", 0)] * 3,
        *[("settled", lane.vendor.cost_nano)] * 3,
    ]


async def test_a_run_that_is_cancelled_leaves_the_vendor_at_work(lane: Lane) -> None:
    lane.server.withheld["status"] = gate = Gate()
    batch_id = await lane.open()
    running = asyncio.ensure_future(lane.batches.run(await lane.batches.queue.get(batch_id)))
    await lane.server.wait_until("status")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.open()
    lane.server.withheld.clear()
    status = await lane.batches.status(batch_id)
    assert status.counts == BatchCounts(running=3)
    [remote] = status.remote
    assert (remote.state, remote.requests) == ("running", 3)
    assert await lane.lim.money.unfinished_jobs() == []
    again = await lane.run()
    assert again.counts == BatchCounts(done=3)
    assert len(lane.server.batches) == 1


async def test_a_cancelled_batch_is_collected_as_far_as_it_was_answered(lane: Lane) -> None:
    lane.server.polls = 10**6
    batch_id = await lane.open()
    running = asyncio.ensure_future(lane.batches.run(await lane.batches.queue.get(batch_id)))
    await lane.server.wait_until("status")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    status = await lane.batches.cancel(batch_id)
    assert status.state == "cancelled"
    assert status.counts == BatchCounts(done=1, failed=2)
    assert status.spent_nano == lane.vendor.cost_nano
    assert len(lane.server.sent("cancel")) == 1


async def test_the_lane_of_a_batch_cannot_change_while_a_vendor_works_for_it(lane: Lane) -> None:
    lane.server.polls = 10**6
    batch_id = await lane.open()
    running = asyncio.ensure_future(lane.batches.run(await lane.batches.queue.get(batch_id)))
    await lane.server.wait_until("status")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    manifest = BatchManifest.of_rows(rows_for(lane.name, 3))
    with pytest.raises(UserError, match="are at a vendor"):
        await lane.batches.open(
            manifest, lane.lim.person(), budget_nano=10**9, approved=True, lane="now"
        )


async def test_a_row_without_a_batch_price_fails_alone(tmp_path: Path) -> None:
    with VENDORS["openai"].server(FOX) as server:
        async with limner_for("openai", server, tmp_path) as lim:
            batches = without_waiting(lim)
            rows = [*rows_for("openai", 1), {"key": "drawn", "prompt": "a fox", "svg": "<svg/>"}]
            batch = await batches.open(
                BatchManifest.of_rows(rows),
                lim.person(),
                budget_nano=10**9,
                approved=True,
                lane="cheap",
            )
            status = await batches.run(batch)
            assert status.counts == BatchCounts(done=1, failed=1)
            [failed] = [row async for row in batches.queue.results(batch) if row.state == "failed"]
            assert json.loads(failed.error or "")["code"] == "NO_CHEAP_LANE"


async def test_a_run_that_is_cancelled_before_it_sends_leaves_no_row_behind(
    tmp_path: Path,
) -> None:
    with VENDORS["openai"].server(FOX) as server:
        async with limner_for("openai", server, tmp_path) as lim:
            lane = Lane("openai", server, lim)
            batch = await lane.batches.queue.get(await lane.open())
            begun = asyncio.Event()

            async def wait_for_ever(*_: Any) -> Any:
                begun.set()
                await asyncio.Event().wait()

            cheap = lane.batches.lane
            slow = replace(cheap, calls=replace(cheap.calls, prepare=wait_for_ever))
            running = asyncio.ensure_future(replace(lane.batches, lane=slow).run(batch))
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await lane.batches.status(batch.id)).counts == BatchCounts(waiting=3)
            assert (await lane.run()).counts == BatchCounts(done=3)
