"""A server that the client starts: its environment, its end, and its restart."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.settings.trusting import trust_folder

import limner
from limner import Limner, LimnerError
from limner.errors import MissingExtra, UserError
from limner.frontends.remote.client import OWN_SERVER
from limner.frontends.remote.connection import Params, Request, ServerConnection
from limner.frontends.remote.discovery import find_codex, find_program, safe_environment
from limner.frontends.remote.events import Reconnected, TurnResult
from limner.frontends.remote.transports import ServerCommand
from limner.net.clock import Clock

# Greets, has one thread, and does with a turn what its words say.
SERVER = dedent(
    """\
    import json, os, sys
    print("this is no message", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message["method"], message.get("params") or {}
        def say(**told):
            print(json.dumps(told), flush=True)
        def answer(result):
            say(id=message["id"], result=result)
        if method == "initialize":
            answer({"userAgent": os.environ.get("WHO", "nobody")})
        elif method in ("thread/start", "thread/resume"):
            answer({"thread": {"id": "t1"}})
        elif method == "thread/turns/list":
            answer({"data": []})
        elif method == "turn/start":
            answer({"turn": {"id": "turn1"}})
            words = params["input"][0]["text"]
            if words == "die":
                print("out of paper, token=abcdef123456", file=sys.stderr, flush=True)
                sys.exit(3)
            if words == "pid":
                text = str(os.getpid())
                item = {"type": "agentMessage", "id": "m", "text": text, "phase": None}
                ended = {"id": "turn1", "status": "completed", "items": [item]}
                say(method="turn/completed", params={"threadId": "t1", "turn": ended})
    """
)


class Owner:
    """The owner of a connection, which only waits for its end."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[LimnerError] = asyncio.get_running_loop().create_future()

    def on_notification(self, method: str, params: Params) -> None:
        pass

    async def on_request(self, method: str, params: Params) -> Any:
        raise AssertionError(method)

    async def on_reconnect(self, reason: str, request: Request) -> None:
        raise AssertionError(reason)

    def on_lost(self, error: LimnerError) -> None:
        self.lost.set_result(error)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER)
    return [sys.executable, str(tmp_path / "server.py")]


async def test_a_server_gets_its_environment_and_ends_with_the_client(
    command: list[str], lim: Limner
) -> None:
    async with limner.connect(command=command, env={"WHO": "a stand-in"}, lim=lim) as client:
        assert client.server == "a stand-in"
        thread = await client.thread()
        pid = int((await thread.run("pid")).text)
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_server_that_dies_is_started_again_and_its_stderr_is_shown_without_secrets(
    command: list[str], lim: Limner
) -> None:
    reason = "the server ended with status 3: out of paper, token=•••"
    async with limner.connect(command=command, lim=lim) as client:
        thread = await client.thread()
        first = (await thread.run("pid")).text
        reconnected, completed = [event async for event in thread.stream("die")]
        assert reconnected == Reconnected(reason=reason, goes_on=False)
        assert isinstance(completed, TurnResult)
        assert completed.status == "interrupted"
        assert completed.error is not None
        assert completed.error.message.endswith(reason)
        assert (await thread.run("pid")).text != first


async def test_a_server_that_is_killed_is_started_again(command: list[str], lim: Limner) -> None:
    async with limner.connect(command=command, lim=lim) as client:
        thread = await client.thread()
        first = (await thread.run("pid")).text
        os.kill(int(first), signal.SIGKILL)
        # The first turn may be lost, if the client had not yet noticed the end.
        _, last = [await thread.run("pid"), await thread.run("pid")]
        assert (last.status, last.text == first) == ("completed", False)


@pytest.mark.slow
async def test_a_server_that_does_not_end_by_itself_is_stopped(tmp_path: Path, lim: Limner) -> None:
    stubborn = SERVER + "import signal\nwhile True:\n    signal.pause()\n"
    (tmp_path / "server.py").write_text(stubborn)
    command = [sys.executable, str(tmp_path / "server.py")]
    async with limner.connect(command=command, lim=lim) as client:
        thread = await client.thread()
        pid = int((await thread.run("pid")).text)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_server_that_stays_away_is_tried_for_half_a_minute(
    command: list[str],
) -> None:
    pauses: list[float] = []
    owner = Owner()

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    program = Path(command[1]).with_name("program")
    program.write_text(f"#!{sys.executable}\n{SERVER}")
    program.chmod(0o755)
    connection = ServerConnection(
        ServerCommand(words=[str(program)]), owner, clock=Clock(sleep=sleep)
    )
    await connection.open()
    try:
        program.unlink()
        die = {"threadId": "t", "input": [{"type": "text", "text": "die"}]}
        await connection.request("turn/start", die)
        error = await owner.lost
        with pytest.raises(LimnerError) as gone:
            await connection.request("thread/start", {})
    finally:
        await connection.aclose()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0, 5.0]
    assert (error.code, gone.value) == ("SERVER_GONE", error)
    assert f"{program} cannot be started" in error.message


async def test_a_server_that_cannot_be_started_is_an_error_at_once(lim: Limner) -> None:
    with pytest.raises(LimnerError) as missing:
        async with limner.connect(command=["/no/such/program"], lim=lim):
            pass
    assert missing.value.code == "SERVER_GONE"
    assert "/no/such/program cannot be started" in missing.value.message


async def test_a_server_that_ends_at_its_start_is_an_error_with_its_stderr(lim: Limner) -> None:
    words = [sys.executable, "-c", "import sys; sys.exit('no settings')"]
    with pytest.raises(LimnerError) as ended:
        async with limner.connect(command=words, lim=lim):
            pass
    assert ended.value.message == (
        "The app-server is gone: the server ended with status 1: no settings"
    )


async def test_words_that_arrive_after_the_end_of_the_server_are_shown_too(lim: Limner) -> None:
    # The child holds standard error open, and writes when its parent is gone.
    late = "while kill -0 $0 2>/dev/null; do :; done; echo late >&2"
    words = ["sh", "-c", f"sh -c '{late}' $$ & exit 3"]
    with pytest.raises(LimnerError) as ended:
        async with limner.connect(command=words, lim=lim):
            pass
    assert ended.value.message == "The app-server is gone: the server ended with status 3: late"


def test_a_server_whose_child_stays_leaves_no_open_pipe(lim: Limner, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    words = ["sh", "-c", f"cat '{gate}' & exit 3"]

    async def connect_to_it() -> None:
        with pytest.raises(LimnerError):
            async with limner.connect(command=words, lim=lim):
                pass

    def open_pipes() -> set[str]:
        links = Path("/proc/self/fd").iterdir()
        return {str(link.readlink()) for link in links if link.exists()}

    before = open_pipes()
    asyncio.run(connect_to_it())
    after = open_pipes()
    gate.write_bytes(b"")  # The child ends.
    assert after == before


def test_the_default_server_is_the_installed_limner() -> None:
    assert list(OWN_SERVER) == [
        *(sys.executable, "-P", "-m"),
        *("limner", "app-server"),
    ]


def test_codex_is_found_on_the_path_or_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\n")
    codex.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_codex() == str(codex)
    assert find_codex("codex") == str(codex)
    assert find_codex(codex) == str(codex)


@pytest.mark.parametrize("place", ["", ".", "bin", "../outside", "{cwd}/bin"])
def test_a_program_of_the_working_folder_is_not_run_before_the_folder_is_trusted(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cwd, home, real = tmp_path / "clone", tmp_path / "home", tmp_path / "real" / "codex"
    for folder in (cwd, cwd / "bin", tmp_path / "outside", real.parent):
        folder.mkdir(exist_ok=True)
        (folder / "codex").write_text("#!/bin/sh\n")
        (folder / "codex").chmod(0o755)
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("LIMNER_HOME", str(home))
    monkeypatch.setenv("PATH", f"{place.format(cwd=cwd)}:{real.parent}")
    assert find_codex() == str(real)
    assert safe_environment()["PATH"] == str(real.parent)
    real.unlink()
    with pytest.raises(UserError) as refused:
        find_program("codex")
    assert "limner does not run" in refused.value.message
    trust_folder(home, cwd)
    if place.startswith("{cwd}"):
        assert find_program("codex") == str(cwd / "bin" / "codex")
    else:
        with pytest.raises(UserError, match="relative folder"):
            find_program("codex")


async def test_a_server_command_is_looked_up_like_codex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = tmp_path / "some-server"
    server.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", ".:/usr/bin:/bin")
    with pytest.raises(UserError, match="limner does not run"):
        await ServerCommand(words=["some-server"]).open()
    assert not (tmp_path / "ran").exists()


def test_a_missing_codex_is_an_error_that_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra) as missing:
        limner.connect(codex="codex-that-nobody-has")
    assert missing.value.message == "The program 'codex-that-nobody-has' is not installed."
    assert missing.value.hint == (
        "Install Codex: npm install -g @openai/codex, or pip install openai-codex."
    )
