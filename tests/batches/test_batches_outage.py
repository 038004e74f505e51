"""A bucket that is down during a batch: what was paid is fetched later, and paid once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.batches.conftest import drawings
from tests.servers.s3_server import BUCKET, S3Server, needs_s3

from limner import Limner
from limner.batches import runner
from limner.batches.records import BatchCounts
from limner.testing import FakeServices

pytestmark = [pytest.mark.slow, needs_s3]


@pytest.fixture
def store_url(database: str | None) -> str | None:
    return database


async def test_rows_that_were_paid_while_the_bucket_was_down_are_resumed_without_a_payment(
    services: FakeServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run waits ten minutes for the bucket. This is about what is left when it has given up.
    monkeypatch.setattr(runner, "UNREACHABLE_S", 0.0)
    with S3Server(tmp_path / "s3") as bucket:
        env = {**services.env, **bucket.env, "LIMNER_BLOBS": f"s3://{BUCKET}/team"}
        async with Limner(env=env, cwd=tmp_path) as lim:
            # The place is claimed before the outage, as on every host that has drawn before.
            await lim.batch(drawings(1), budget_usd=1)
            bucket.stop()
            during = await lim.batch(drawings(2, size="1024x1536"), budget_usd=1)
            bucket.start()
            after = await lim.batches.run(await lim.batches.reopen(during.batch.id))
    assert during.counts == BatchCounts(failed=2)
    assert after.counts == BatchCounts(done=2)
    assert during.spent_nano == after.spent_nano > 0
    assert len(services.images.requests) == 3
