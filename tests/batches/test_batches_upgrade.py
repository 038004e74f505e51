"""A newer limner brings the tables of a team up to date while older processes go on."""

from __future__ import annotations

import pytest
from tests.batches.conftest import drawings
from tests.servers.postgres_server import PostgresServer, needs_postgres

from limner import Limner
from limner.batches.records import BatchCounts
from limner.testing import FakeServices

pytestmark = [pytest.mark.slow, needs_postgres]


@pytest.fixture
def store_url(postgres: PostgresServer) -> str:
    return postgres.new_url()


async def test_a_process_goes_on_after_every_table_has_a_new_column(
    services: FakeServices, lim: Limner, postgres: PostgresServer, store_url: str
) -> None:
    # Often enough that the driver has prepared the statements of a paid picture.
    first = await lim.batch(drawings(12), budget_usd=1)
    tables = postgres.run(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()", url=store_url
    )
    assert len(tables) > 15
    # What a migration may do: add columns, tables and indexes.
    for (table,) in tables:
        postgres.run(f"ALTER TABLE {table} ADD COLUMN of_tomorrow text", url=store_url)
    postgres.run("CREATE TABLE tomorrow (id text PRIMARY KEY)", url=store_url)
    postgres.run("UPDATE schema_version SET number = 9999", url=store_url)
    second = await lim.batch(drawings(12, size="1024x1536"), budget_usd=1)
    async with services.limner() as another:
        third = await another.batch(drawings(3, size="1536x1024"), budget_usd=1)
    assert [one.counts for one in (first, second, third)] == [
        BatchCounts(done=12),
        BatchCounts(done=12),
        BatchCounts(done=3),
    ]
    spent_nano = sum(one.spent_nano for one in (first, second, third))
    assert services.bill().cost_usd * 1e9 == pytest.approx(spent_nano)
