"""Rows of a batch: each run once, paid once, within one budget, whatever happens."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image
from tests.batches.conftest import drawings, write_manifest

from limner import Limner
from limner.batches.records import BatchCounts, RowResult
from limner.errors import InputInvalid
from limner.money.records import PaymentTerms
from limner.testing import FakeServices
from limner.tools.batches import BatchManifest


@pytest.fixture
def store_url(database: str | None) -> str | None:
    return database


async def results(lim: Limner, name: str | Path) -> list[RowResult]:
    batch = await lim.batches.queue.get(str(name))
    return [row async for row in lim.batches.queue.results(batch)]


async def test_a_batch_draws_each_row_once_however_often_it_runs(
    services: FakeServices, lim: Limner
) -> None:
    manifest = write_manifest(services.folder, drawings(5))
    first = await lim.batch(manifest, budget_usd=1)
    again = await lim.batch(manifest, budget_usd=1)
    assert first.counts == again.counts == BatchCounts(done=5)
    assert len(services.images.requests) == 5
    assert first.spent_nano == again.spent_nano > 0
    assert services.bill().cost_usd * 1e9 == pytest.approx(first.spent_nano)
    rows = await results(lim, manifest)
    assert [row.row_key for row in rows] == ["k0", "k1", "k2", "k3", "k4"]
    assert all(Path(json.loads(row.result or "")["path"]).is_file() for row in rows)
    assert all(row.picture is not None for row in rows)


async def test_a_failed_row_leaves_the_others_alone_and_is_tried_again_if_it_cost_nothing(
    services: FakeServices, lim: Limner
) -> None:
    services.images.refuse()
    status = await lim.batch(drawings(3), budget_usd=1)
    assert status.counts == BatchCounts(done=2, failed=1)
    name = status.batch.id
    failed = [row for row in await results(lim, name) if row.state == "failed"]
    assert [(json.loads(row.error or "")["code"], row.cost_nano) for row in failed] == [
        ("IMAGE_GEN_REJECTED", 0)
    ]
    again = await lim.batches.run(await lim.batches.reopen(name))
    assert again.counts == BatchCounts(done=3)
    assert len(services.images.requests) == 4


async def test_a_row_that_may_have_been_paid_for_is_never_sent_again(
    services: FakeServices, lim: Limner
) -> None:
    services.images.outage(status=500)
    status = await lim.batch(drawings(2), budget_usd=1)
    assert status.counts == BatchCounts(done=1, failed=1)
    assert status.unknown_nano > 0
    again = await lim.batch(drawings(2), budget_usd=1)
    assert again.counts == BatchCounts(done=1, failed=1)
    assert len(services.images.requests) == 2


async def test_a_batch_stops_at_its_budget_and_goes_on_with_a_larger_one(
    services: FakeServices, lim: Limner
) -> None:
    rows = drawings(6)
    plan = await lim.batches.plan(BatchManifest.of_rows(rows), lim.person())
    one_usd = plan.quoted_nano / 6 / 1e9
    status = await lim.batch(rows, budget_usd=one_usd * 3.5)
    assert status.spent_nano <= status.batch.budget_nano
    assert status.counts.done + status.counts.waiting == 6
    assert status.counts.waiting > 0
    assert status.stopped is not None
    whole = await lim.batch(rows, budget_usd=one_usd * 6)
    assert whole.counts == BatchCounts(done=6)
    assert len(services.images.requests) == 6


async def test_a_changed_manifest_adds_and_drops_rows_but_never_changes_a_paid_one(
    services: FakeServices, lim: Limner
) -> None:
    manifest = write_manifest(services.folder, drawings(2))
    await lim.batch(manifest, budget_usd=1)
    write_manifest(services.folder, drawings(3))
    assert (await lim.batch(manifest, budget_usd=1)).counts == BatchCounts(done=3)
    assert len(services.images.requests) == 3
    write_manifest(services.folder, [{"key": "k0", "prompt": "a crow"}])
    with pytest.raises(InputInvalid, match="The row 'k0' has changed, and it is paid for"):
        await lim.batch(manifest, budget_usd=1)


async def test_two_rows_with_the_same_key_are_refused_before_anything_is_sent(
    services: FakeServices, lim: Limner
) -> None:
    with pytest.raises(InputInvalid, match="Two rows have the key 'k0'"):
        await lim.batch([*drawings(1), *drawings(1)], budget_usd=1)
    assert services.images.requests == []


async def test_a_row_for_several_pictures_or_an_unknown_tool_is_refused(
    services: FakeServices, lim: Limner
) -> None:
    with pytest.raises(InputInvalid, match="Row 'k0': a row is one picture"):
        await lim.batch(drawings(1, n=3), budget_usd=1)
    with pytest.raises(InputInvalid, match="Row 'k0': there is no tool 'paint'"):
        await lim.batch(drawings(1, tool="paint"), budget_usd=1)


async def test_a_cancelled_batch_runs_no_row_until_it_is_resumed(
    services: FakeServices, lim: Limner
) -> None:
    batch = await lim.batches.open(
        BatchManifest.of_rows(drawings(2)), lim.person(), budget_nano=10**9, approved=True
    )
    assert (await lim.batches.cancel(batch.id)).state == "cancelled"
    assert (await lim.batches.run(batch)).counts == BatchCounts(waiting=2)
    status = await lim.batches.run(await lim.batches.reopen(batch.id))
    assert status.counts == BatchCounts(done=2)


async def test_a_manifest_cannot_write_where_a_model_may_not(lim: Limner) -> None:
    code = lim.cwd / "main.py"
    code.write_text("print()\n")
    rows = [
        {"key": "code", "prompt": "a fox", "output_path": "main.py", "overwrite": True},
        {"key": "git", "prompt": "a fox", "output_path": ".git/config"},
    ]
    status = await lim.batch(rows, budget_usd=1)
    assert status.counts == BatchCounts(failed=2)
    errors = [json.loads(row.error or "")["code"] for row in await results(lim, status.batch.id)]
    assert errors == ["OUTPUT_PATH_DENIED"] * 2
    assert code.read_text() == "print()\n"


async def test_the_row_of_a_process_that_ended_before_it_paid_runs_again(
    services: FakeServices, lim: Limner
) -> None:
    batch = await lim.batches.open(
        BatchManifest.of_rows(drawings(2)), lim.person(), budget_nano=10**9, approved=True
    )
    async with services.limner() as other:
        assert len(await other.batches.queue.claim(batch, count=1)) == 1
        assert (await lim.batches.status(batch.id)).counts == BatchCounts(waiting=1, running=1)
        await other.store.write(lambda tx: tx.run("owner_delete", id=other.store.owner.id))
    assert (await lim.batches.run(batch)).counts == BatchCounts(done=2)
    assert len(services.images.requests) == 2


async def test_an_answer_that_was_paid_for_and_not_recorded_is_not_paid_for_again(
    services: FakeServices, lim: Limner, sqlite_file: Path
) -> None:
    Image.new("RGB", (40, 30), "red").save(lim.cwd / "red.png")
    lim = services.limner(settings={"model_roles.vision": "openai/gpt-5.5"})
    services.responses.reply("Red.")
    ask = {"key": "q", "tool": "inspect_image", "path": "red.png", "question": "Which colour?"}
    first = await lim.batch([ask], budget_usd=1)
    assert first.counts == BatchCounts(done=1)
    # As if the process had ended between the settlement and the end of the row.
    batch = first.batch
    with closing(sqlite3.connect(lim.home.database)) as database, database:
        database.execute("UPDATE batch_rows SET state = 'running', owner = 'gone', result = NULL")
    again = await lim.batches.run(batch)
    assert again.counts == BatchCounts(done=1)
    assert again.spent_nano == first.spent_nano > 0
    assert len(services.responses.requests) == 1
    await lim.aclose()


async def test_no_row_is_paid_for_if_another_process_has_it(
    services: FakeServices, lim: Limner
) -> None:
    batch = await lim.batches.open(
        BatchManifest.of_rows(drawings(1)), lim.person(), budget_nano=10**9, approved=True
    )
    (row,) = await lim.batches.queue.claim(batch, count=1)
    async with services.limner() as other:
        terms = PaymentTerms(
            key=batch.key_of(row.row_key),
            admit=lambda tx, _: other.batches.queue.check_held(tx, batch, row.row_key),
        )
        outcome = await other.batches.calls.run(batch, row, terms)
    assert outcome.error is not None
    assert "Another process runs the row 'k0' now" in outcome.error["message"]
    assert services.images.requests == []
