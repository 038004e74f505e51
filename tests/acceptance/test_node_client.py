"""The Node client against limner and the real Codex, and its own tests."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_listening import listening
from tests.servers.appserver_side import Side, TalkingServer, side_of
from tests.servers.codex_messages import RECORDS
from tests.servers.codex_process import MODEL
from tests.servers.components import needs, skipped_without
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate

NODE = shutil.which("node")
PACKAGE = Path(__file__).parents[2] / "clients" / "node"
README = PACKAGE / "README.md"
SCRIPT = Path(__file__).parent / "node_client.mjs"
GUARD_S = 60.0

pytestmark = [pytest.mark.slow, skipped_without([] if NODE else ["node"])]


@pytest.fixture
def model() -> Iterator[TalkingServer]:
    with TalkingServer() as server:
        yield server


@pytest.fixture
def side(request: pytest.FixtureRequest, tmp_path: Path, model: TalkingServer) -> Side:
    return side_of(request.param, tmp_path, model)


async def run_node(
    *words: str | Path, cwd: Path, env: Mapping[str, str] | None = None, program: Path = SCRIPT
) -> str:
    """What a Node program prints that ends well; it finds ``program`` by its name."""
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    assert NODE is not None
    process = await asyncio.create_subprocess_exec(
        NODE, *words, cwd=cwd, stdout=PIPE, stderr=PIPE, env={**(env or {}), "PATH": path}
    )
    async with asyncio.timeout(GUARD_S):
        printed, errors = await process.communicate()
    assert process.returncode == 0, (printed + errors).decode()
    return printed.decode()


async def play(side: Side, model: TalkingServer, *flags: str, connect_to: Any) -> Any:
    """What the script saw; the model's third answer waits until the client has left."""
    gate = Gate()
    sayings = (
        calls(("screenshot", '{"of":"window"}'), words="Let me look."),
        says("A red window."),
        says("For", " ever", gate=gate),
        says("I am here."),
        says("Still here."),
    )
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))
    shot = side.cwd / "shot.png"
    shot.write_bytes(picture())
    given = {"connectTo": connect_to, "model": MODEL, "cwd": str(side.cwd), "shot": str(shot)}
    printed = await run_node(*flags, SCRIPT, json.dumps(given), cwd=side.cwd)
    gate.open()
    return json.loads(printed)


def check(seen: Any, model: TalkingServer) -> None:
    started, said, called, answered, last, ended = seen["events"]
    assert (started["type"], said["type"], said["text"]) == ("turn_started", "text", "Let me look.")
    call = {"call_id": called["call_id"], "name": "screenshot"}
    assert called == {"type": "tool_started", **call, "arguments": {"of": "window"}}
    assert answered.pop("duration_ms") >= 0
    assert answered == {
        "type": "tool_finished",
        **call,
        "ok": True,
        "value": "The window:",
        "images": [],
    }
    assert (last["text"], ended["status"], ended["text"]) == (
        "A red window.",
        "completed",
        "A red window.",
    )
    assert (seen["next"], seen["resumed"]) == ("I am here.", "Still here.")
    # The user's picture and the tool's are in the last request.
    assert model.requests[-1].body.decode().count("data:image/png;base64,") == 2


@pytest.mark.parametrize(
    "side", [pytest.param("codex", marks=needs("codex_cli_bin")), "limner"], indirect=True
)
async def test_the_client_talks_to_a_server_that_it_starts(
    side: Side, model: TalkingServer
) -> None:
    command = {"command": [str(side.program), "app-server"], "env": side.env}
    check(await play(side, model, connect_to=command), model)


@pytest.mark.parametrize("side", ["limner"], indirect=True)
async def test_the_client_talks_to_a_server_that_listens(side: Side, model: TalkingServer) -> None:
    async with listening(side, "ws://127.0.0.1:0") as address:
        flags = ["--experimental-websocket", "--no-warnings"]
        check(await play(side, model, *flags, connect_to={"url": address}), model)


@pytest.mark.parametrize("side", ["limner"], indirect=True)
async def test_the_program_on_its_page_runs(side: Side, model: TalkingServer) -> None:
    sayings = (calls(("screenshot", '{"of":"window"}')), says("It is red."))
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))
    (program,) = re.findall(r"^```js\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    imported = program.replace('"limner-client"', json.dumps(str(PACKAGE / "src" / "index.js")))
    stub = "const takeScreenshot = (name) => `${name}.png`;\n"
    (side.cwd / "program.mjs").write_text(imported + stub)
    for name in ("mood.jpg", "window.png"):
        (side.cwd / name).write_bytes(picture())
    printed = await run_node("program.mjs", cwd=side.cwd, env=side.env, program=side.program)
    assert re.fullmatch(r"It is red\.\ncompleted, \$0\.\d+\n", printed)


async def test_the_tests_of_the_package_pass() -> None:
    messages = {"MESSAGES": str(RECORDS)}
    await run_node("--test", "test/client.test.js", cwd=PACKAGE, env=messages)
