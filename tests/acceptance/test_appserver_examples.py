"""The example clients of the app-server, in Python and Node, and a model that uses their tool."""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.servers.appserver_side import Side, TalkingServer, limner_side
from tests.servers.codex_messages import RECORDING
from tests.servers.codex_process import MODEL
from tests.servers.components import skipped_without
from tests.servers.scripted import calls, says

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
GUARD_S = 60.0
NODE = shutil.which("node")
CLIENTS = [
    pytest.param([sys.executable, "-W", "error", EXAMPLES / "app_server_client.py"], id="python"),
    pytest.param(
        [NODE, EXAMPLES / "node" / "swatch.mjs"],
        id="node",
        marks=skipped_without([] if NODE else ["node"]),
    ),
]


@pytest.fixture
def model() -> Iterator[TalkingServer]:
    with TalkingServer() as server:
        yield server


@pytest.fixture
def side(tmp_path: Path, model: TalkingServer) -> Side:
    return limner_side(tmp_path, model)


def run(client: list[str | Path], side: Side, **env: str) -> str:
    """What a client says; it finds `limner` where its environment has programs."""
    path = os.pathsep.join([str(side.program.parent), os.environ["PATH"]])
    done = subprocess.run(
        client,
        env={**side.env, **RECORDING, "PATH": path, **env},
        cwd=side.cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_the_model_sees_the_picture_that_the_clients_tool_answers_with(
    client: list[str | Path], side: Side, model: TalkingServer
) -> None:
    made = (
        calls(("swatch", '{"colour":"teal"}'), words="Let me paint."),
        says("A teal ", "square."),
    )
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in made))
    assert run(client, side) == "Let me paint.A teal square.\ncompleted\n"
    [words, shown] = model.sent("ask")[-1].json()["input"][-1]["output"]
    assert words == {"type": "input_text", "text": "A square of teal:"}
    data = base64.b64decode(shown["image_url"].removeprefix("data:image/png;base64,"))
    with Image.open(io.BytesIO(data)) as picture:
        assert (picture.size, picture.getcolors()) == ((64, 64), [(4096, (0, 128, 128))])


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_key_the_client_gets_a_picture_all_the_same(
    client: list[str | Path], side: Side
) -> None:
    said = run(client, side, OPENAI_API_KEY="", LIMNER_MODEL_ROLES_DEFAULT="limner/offline")
    assert Path(said.splitlines()[0]).read_bytes().startswith(b"\x89PNG")
    assert said.endswith("\ncompleted\n")
