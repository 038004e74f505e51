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
from tests.servers.scripted import calls, says

import limner
from limner.frontends.remote.approvals import ApprovalRequest

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("side", SIDES, indirect=True)
async def test_who_steers_interrupts_and_leaves_is_obeyed(
    side: Side, model: TalkingServer, studio: Studio, tmp_path: Path
) -> None:
    sayings = client_script.SAYINGS_AT_THE_WHEEL
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))
    async with (
        studio.open() as lim,
        started(side, tmp_path) as where,
        limner.connect(**where, lim=lim) as client,
    ):
        await client_script.play_at_the_wheel(client, cwd=side.cwd, model=MODEL)
    said = [
        part["text"]
        for item in model.requests[-1].json()["input"]
        if item["type"] == "message" and item["role"] == "user"
        for part in item["content"]
    ]
    words = [text for text in said if not text.startswith("<")]
    assert words == ["Paint", "In green.", "Paint again", "And again", "Are you there?"]


@pytest.mark.parametrize("agrees", [True, False])
async def test_what_limners_own_tools_ask_the_user_reaches_the_client(
    model: TalkingServer, studio: Studio, tmp_path: Path, agrees: bool
) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(approval: ApprovalRequest) -> bool:
        asked.append(approval)
        return agrees

    side = side_of("limner", tmp_path, model)
    order = '{"prompt":"a fox","provider":"illustrator","output_path":"fox.png"}'
    sayings = (calls(("image_generate", order)), says("Done."))
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))
    async with (
        studio.open() as lim,
        started(side, tmp_path) as where,
        limner.connect(**where, lim=lim, approve=approve) as client,
    ):
        thread = await client.thread(cwd=side.cwd, approval_policy="untrusted")
        result = await thread.run("Draw a fox")
    path = side.cwd / "fox.png"
    assert [(one.kind, one.thread_id) for one in asked] == [("file_change", thread.id)]
    assert asked[0].text == f'Write the picture to "{path}"? Change files?'
    drawn = [item["status"] for item in result.items if item["type"] == "imageGeneration"]
    assert (drawn, path.exists()) == (["completed" if agrees else "failed"], agrees)
