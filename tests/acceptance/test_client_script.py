"""One client script, unchanged, against the real Codex and against limner, over every transport.

Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance import client_script
from tests.acceptance.conftest import Studio
from tests.servers.appserver_listening import listening
from tests.servers.appserver_side import Side, TalkingServer, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs

import limner

SIDES = [
    pytest.param("codex", marks=[pytest.mark.slow, needs("codex_cli_bin")]),
    pytest.param("limner"),
]


@pytest.fixture
def model() -> Iterator[TalkingServer]:
    with TalkingServer() as server:
        yield server


@pytest.fixture
def side(request: pytest.FixtureRequest, tmp_path: Path, model: TalkingServer) -> Side:
    return side_of(request.param, tmp_path, model)


@asynccontextmanager
async def started(side: Side, _: Path) -> AsyncGenerator[dict[str, Any]]:
    """A server that the client starts for itself."""
    yield {"command": [side.program, "app-server"], "env": side.env}


@asynccontextmanager
async def on_a_port(side: Side, _: Path) -> AsyncGenerator[dict[str, Any]]:
    """A server that listens on a port of its own choice."""
    async with listening(side, "ws://127.0.0.1:0") as address:
        yield {"url": address}


@asynccontextmanager
async def on_a_socket(side: Side, folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """A server that listens on a socket in the file system."""
    async with listening(side, f"unix://{folder / 'socket'}") as address:
        yield {"url": address}


@pytest.mark.parametrize("side", SIDES, indirect=True)
@pytest.mark.parametrize("served", [started, on_a_port, on_a_socket])
async def test_the_client_script_passes(
    side: Side, served: Any, model: TalkingServer, studio: Studio, tmp_path: Path
) -> None:
    said = (model.streamed(saying, {"model": MODEL}) for saying in client_script.SAYINGS)
    model.script("ask", *said)
    async with studio.open() as lim, served(side, tmp_path) as where:
        async with limner.connect(**where, lim=lim) as client:
            thread_id = await client_script.play(client, cwd=side.cwd, model=MODEL)
        async with limner.connect(**where, lim=lim) as client:
            await client_script.play_on(client, thread_id, cwd=side.cwd)
    # The pictures of both calls, of the user's words and of the file are in the last request.
    sent = model.requests[-1].body.decode()
    assert sent.count(client_script.DATA_URL) == 4
