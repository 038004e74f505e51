"""A client of a server that says what the test tells it to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.frontends.remote.stand_in_server import StandIn

import limner
from limner.frontends.remote.client import Client
from limner.frontends.remote.threads import Thread
from limner.settings import load


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[limner.Limner]:
    env = {"HOME": str(tmp_path), "LIMNER_HOME": str(tmp_path / "limner-home")}
    async with limner.Limner(load(env=env, cwd=tmp_path), env=env, cwd=tmp_path) as lim:
        yield lim


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with StandIn() as server:
        yield server


@pytest.fixture
async def client(server: StandIn, lim: limner.Limner) -> AsyncIterator[Client]:
    async with limner.connect(server.url, lim=lim) as client:
        yield client


@pytest.fixture
async def thread(client: Client) -> Thread:
    return await client.thread()
