"""A batch whose database goes away at one of its COMMITs and comes back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.test_lost_commits import billed, counted, program
from tests.servers.postgres_server import PostgresServer, needs_postgres
from tests.servers.postgres_wire import PostgresWire

from limner.storage import postgres_engine
from limner.testing import FakeServices
from limner.tools.batches import BatchManifest

pytestmark = [pytest.mark.slow, needs_postgres]

ROWS = 4


class Mender(logging.Handler):
    """Mends the wire when the batch says that it waits."""

    def __init__(self, wire: PostgresWire) -> None:
        super().__init__()
        self._wire, self.heard = wire, list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("The batch waits: "):
            self.heard.append(record.levelname)
            self._wire.mend()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    with FakeServices(tmp_path / "services") as made:
        yield made


@pytest.mark.parametrize("provider", ["openai-image", "replicate-flux"])
async def test_a_batch_waits_for_its_database_and_pays_for_each_row_once(
    services: FakeServices,
    wire: PostgresWire,
    postgres: PostgresServer,
    provider: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_engine, "OUTCOME_S", 0.0)
    schema, mender, broke = postgres.new_schema(), Mender(wire), list[bool]()
    logging.getLogger("limner.batches").addHandler(mender)
    try:
        async with program(services, wire.url(schema), provider) as lim:
            for number in range(5, 28, 6):
                manifest = BatchManifest.of_rows(
                    [{"key": f"{row}", "prompt": f"fox {number} {row}"} for row in range(ROWS)]
                )
                batch = await lim.batches.open(
                    manifest, lim.person(), budget_nano=10**9, approved=True
                )
                wire.break_at(number, "gone")
                status = await lim.batches.run(batch)
                broke.append(wire.broke)
                wire.mend()
                assert (status.counts.done, status.counts.failed) == (ROWS, 0), number
                paid, due = counted(postgres, schema), billed(services)
                assert [(one[0], one[2]) for one in paid] == [("settled", True)] * len(due), number
                # If the price could not be noted either, the quote counts, which is never less.
                assert all(
                    counts >= costs for (_, counts, _), (_, costs, _) in zip(paid, due, strict=True)
                )
    finally:
        logging.getLogger("limner.batches").removeHandler(mender)
    # Rows in flight share commits, so a batch on a slow machine may have fewer than a later number.
    assert broke[0]
    assert set(mender.heard) == {"WARNING"}
