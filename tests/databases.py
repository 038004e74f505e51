"""The same tests on every kind of database: the fixtures that open a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres_server import PostgresServer, needs_postgres, running_postgres
from tests.servers.postgres_wire import PostgresWire

from limner.storage.store import Store

# A test that names one of these fixtures looks into the SQLite file itself.
OF_SQLITE = {"path", "ledger_path", "sqlite_file"}
KINDS = [
    pytest.param("sqlite"),
    pytest.param("postgres", marks=[pytest.mark.slow, needs_postgres]),
]


async def rows(store: Store, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement in the dialect that both databases have."""
    return await store.read(lambda tx: [tuple(row) for row in tx.raw(statement)])


async def change(store: Store, statement: str, **params: Any) -> None:
    """Change rows behind the back of the program."""
    await store.write(lambda tx: tx.raw(statement, params))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _is_sqlite_on_postgres(item)]


def _is_sqlite_on_postgres(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return False
    wants = set(item._fixtureinfo.argnames)  # pyright: ignore[reportPrivateUsage]
    return item.callspec.params.get("database") == "postgres" and bool(wants & OF_SQLITE)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this process."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def wire(postgres: PostgresServer, tmp_path: Path) -> Iterator[PostgresWire]:
    """A way to the server that breaks when a test says so."""
    with PostgresWire(tmp_path, server=postgres.folder).running() as made:
        yield made


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    return tmp_path / "limner.db"


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> str | None:
    """The address of a new database; None is a SQLite file."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_url()


@pytest.fixture
def new_store(sqlite_file: Path, database: str | None) -> Callable[[], Store]:
    """Opens one database again and again, as several processes do."""
    return lambda: Store(sqlite_file, url=database)


@pytest.fixture
async def store(new_store: Callable[[], Store]) -> AsyncIterator[Store]:
    """A new database."""
    made = new_store()
    yield made
    await made.aclose()
