"""The guide "Which interface?": its commands and programs run as written, and its links work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.acceptance.conftest import Studio, data_url, picture
from tests.acceptance.hardship import LIMNER
from tests.servers.appserver_side import TalkingServer, codex_side, limner_side
from tests.servers.codex_messages import RECORDING
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.scripted import calls, says

from limner.testing.servers.model_server import ModelAnswer

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "which-interface.md"
GUARD_S = 60.0
# Programs on the page may wait at their outermost level, as in a notebook.
RUN = """\
import ast, asyncio, inspect, sys
code = compile(sys.stdin.read(), "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
waiting = eval(code, {"take_picture": lambda window: open(f"{window}.png", "rb").read()})
if inspect.iscoroutine(waiting):
    asyncio.run(waiting)
"""
# These go on until somebody stops them, or fetch something; other tests start them.
ENDLESS = (
    "pip install limner",
    "limner chat",
    "limner app-server --listen ws://127.0.0.1:8791",
    "limner codex --",
)


def blocks(kind: str) -> list[str]:
    """The blocks of that kind, in the order of the page."""
    return re.findall(rf"^```{kind}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """The commands without what is said about them."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.join(shlex.split(line.removeprefix("$ "), comments=True)) for line in lines]


def run(words: list[str], *, env: Mapping[str, str], cwd: Path, given: str = "") -> str:
    """What a program says that ends well."""
    done = subprocess.run(
        words,
        env=env,
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def model() -> Iterator[TalkingServer]:
    with TalkingServer() as server:
        yield server


def will_say(model: TalkingServer, *sayings: ModelAnswer) -> None:
    """The model's next answers."""
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))


@pytest.mark.slow
def test_every_command_works(studio: Studio) -> None:
    shown = commands()
    assert set(ENDLESS) < set(shown)
    for command in shown:
        if command not in ENDLESS:
            program, *words = shlex.split(command)
            assert program == "limner"
            run([str(LIMNER), *words], env=studio.env, cwd=studio.cwd)


@pytest.mark.slow
def test_the_library_draws_and_looks(studio: Studio) -> None:
    library, _, _ = blocks("python")
    said = run([sys.executable, "-c", RUN], env=studio.env, cwd=studio.cwd, given=library)
    path, cost_usd, _ = said.split(maxsplit=2)
    assert (Path(path).read_bytes()[:4], cost_usd) == (b"\x89PNG", "0.0")


@pytest.mark.slow
def test_a_function_of_the_client_shows_the_model_a_picture(
    tmp_path: Path, model: TalkingServer
) -> None:
    _, client, _ = blocks("python")
    side = limner_side(tmp_path, model)
    (side.cwd / "editor.png").write_bytes(picture(64, 64))
    will_say(model, calls(("screenshot", '{"window":"editor"}')), says("An editor."))
    env = {**side.env, **RECORDING}
    said = run([sys.executable, "-c", RUN], env=env, cwd=side.cwd, given=client)
    assert said == "An editor.\n"
    assert data_url(picture(64, 64)) in model.requests[-1].body.decode()


@pytest.mark.slow
@needs("codex_cli_bin")
def test_the_real_codex_draws_and_looks(
    tmp_path: Path, model: TalkingServer, studio: Studio
) -> None:
    _, _, host = blocks("python")
    side = codex_side(tmp_path / "codex", model)
    look = json.dumps({"path": "fox.png", "question": "What is it?"})
    will_say(
        model,
        calls(("image_generate", '{"prompt":"a fox","output_path":"fox.png"}')),
        calls(("inspect_image", look), start=2),
        says("A fox."),
    )
    env = {**side.env, **studio.env}
    assert run([sys.executable, "-c", RUN], env=env, cwd=side.cwd, given=host) == "A fox.\n"
    assert (side.cwd / "fox.png").read_bytes().startswith(b"\x89PNG")
    assert model.requests[-1].body.decode().count("data:image/") == 1


def test_its_links_lead_somewhere() -> None:
    text = GUIDE.read_text()
    headings = {
        re.sub(r"[^a-z -]", "", line.lower()).strip().replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if link.startswith("#"):
            assert link[1:] in headings, link
        else:
            assert (GUIDE.parent / link).exists(), link
