"""A paid call whose connection to the database breaks at any one of its COMMITs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres_server import PostgresServer, needs_postgres
from tests.servers.postgres_wire import Break, PostgresWire

from limner import Limner
from limner.errors import LimnerError
from limner.settings import load
from limner.storage import postgres_engine
from limner.testing import FakeServices

pytestmark = [pytest.mark.slow, needs_postgres]

# A call has fewer commits.
MOST_COMMITS = 60
COUNTED = "SELECT state, cost_nano, picture IS NOT NULL FROM ledger WHERE state <> 'released'"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    with FakeServices(tmp_path / "services") as made:
        yield made


def program(services: FakeServices, url: str, provider: str) -> Limner:
    env = {**services.env, "LIMNER_STORE": url, "LIMNER_IMAGES_PROVIDER": provider}
    return Limner(load(env=env, cwd=services.folder), env=env, cwd=services.folder)


def counted(postgres: PostgresServer, schema: str) -> list[tuple[Any, ...]]:
    """What the ledger counts: the state, the cost, and whether the picture is there."""
    return sorted(postgres.run(COUNTED, url=postgres.url(schema=schema)))


def billed(services: FakeServices) -> list[tuple[Any, ...]]:
    """What the ledger should count."""
    return sorted(("settled", one.cost_nano, True) for one in services.bill().charges)


@pytest.mark.parametrize("provider", ["openai-image", "replicate-flux"])
@pytest.mark.parametrize("kind", ["lost", "kept"])
async def test_a_call_does_not_notice_that_the_answer_to_a_commit_is_lost(
    services: FakeServices,
    wire: PostgresWire,
    postgres: PostgresServer,
    kind: Break,
    provider: str,
) -> None:
    schema = postgres.new_schema()
    async with program(services, wire.url(schema), provider) as lim:
        await lim.generate("the first fox")
        number = 0
        while wire.broke or number == 0:
            number += 1
            assert number < MOST_COMMITS
            wire.break_at(number, kind)
            await lim.generate(f"fox {number}")
    assert number > 5, "a paid call has more commits"
    assert len(services.bill().charges) == number + 1
    assert counted(postgres, schema) == billed(services)


@pytest.mark.parametrize("provider", ["openai-image", "replicate-flux"])
async def test_a_settlement_whose_answer_never_comes_is_still_that_of_this_call(
    services: FakeServices,
    wire: PostgresWire,
    postgres: PostgresServer,
    provider: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_engine, "OUTCOME_S", 0.0)
    schema, errors = postgres.new_schema(), list[str]()
    async with program(services, wire.url(schema), provider) as lim:
        await lim.generate("the first fox")
        number = 0
        while wire.broke or number == 0:
            number += 1
            assert number < MOST_COMMITS
            wire.break_at(number, "kept")
            try:
                await lim.generate(f"fox {number}")
            except LimnerError as error:
                errors.append(error.code)
            wire.mend()
            await lim.money.conclude_dead_calls()
            for job in await lim.money.unfinished_jobs():
                await lim.recover(job)
            assert counted(postgres, schema) == billed(services), number
    assert number > 5, "a paid call has more commits"
    assert set(errors) == {"STORAGE_FAILED"}


@pytest.mark.parametrize("provider", ["openai-image", "replicate-flux"])
async def test_a_database_that_is_gone_after_a_commit_costs_no_picture_and_holds_no_money(
    services: FakeServices,
    wire: PostgresWire,
    postgres: PostgresServer,
    provider: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Long enough is another test.
    monkeypatch.setattr(postgres_engine, "OUTCOME_S", 0.0)
    schema = postgres.new_schema()
    async with program(services, wire.url(schema), provider) as lim:
        await lim.generate("the first fox")
        number = 0
        while wire.broke or number == 0:
            number += 1
            assert number < MOST_COMMITS
            wire.break_at(number, "gone")
            with suppress(LimnerError):
                await lim.generate(f"fox {number}")
            wire.mend()
            # As the next use of the ledger does after a minute, and `limner jobs recover`.
            await lim.money.conclude_dead_calls()
            for job in await lim.money.unfinished_jobs():
                await lim.recover(job)
            assert counted(postgres, schema) == billed(services), number
    assert number > 5, "a paid call has more commits"
