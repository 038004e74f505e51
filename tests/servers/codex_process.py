"""The real Codex as a process: requests to its app-server, and its answers, calls and notices.

Its model is a server on this machine, and so is the proxy of all else that it may want to reach.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.servers.samples import KEY

from limner.testing.servers.responses_server import ResponsesServer

MODEL = "gpt-5.5"
GUARD_S = 60.0
MAX_LINE_BYTES = 64 * 1024 * 1024

# What is off would ask services elsewhere for news.
CONFIG = """\
model = "{model}"
model_provider = "here"

[model_providers.here]
name = "here"
base_url = "{base_url}"
env_key = "CODEX_TEST_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[features]
apps = false
plugins = false
remote_plugin = false

[analytics]
enabled = false
"""


def codex_program() -> Path:
    """The Codex of the package, or the one that ``LIMNER_TEST_CODEX`` names."""
    if named := os.environ.get("LIMNER_TEST_CODEX"):
        return Path(named)
    from codex_cli_bin import bundled_codex_path

    return bundled_codex_path()


Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def no_tools(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer of a client that offered nothing to call."""
    raise AssertionError(f"nobody expected a call of {call['tool']!r}")


class Codex:
    """A home of Codex in a folder, set up for a model server, and the processes that run in it."""

    def __init__(self, folder: Path, server: ResponsesServer) -> None:
        self.home, self.cwd = folder / "codex-home", folder / "project"
        self.home.mkdir()
        self.cwd.mkdir()
        config = CONFIG.format(model=MODEL, base_url=server.base_url)
        (self.home / "config.toml").write_text(config)
        proxies = dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), server.origin)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CODEX_HOME": str(self.home),
            "CODEX_TEST_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
            **proxies,
        }

    @property
    def rollouts(self) -> list[Path]:
        """The histories of its threads, as they are on disk now."""
        return sorted((self.home / "sessions").rglob("rollout-*"))

    @asynccontextmanager
    async def app_server(
        self, *, features: tuple[str, ...] = (), on_call: Answer = no_tools
    ) -> AsyncGenerator[AppServer]:
        """A running app-server that has been greeted; it is told to stop at the end."""
        words = [word for name in features for word in ("--enable", name)]
        process = await asyncio.create_subprocess_exec(
            codex_program(),
            *words,
            "app-server",
            stdin=PIPE,
            stdout=PIPE,
            env=self.env,
            cwd=self.cwd,
            limit=MAX_LINE_BYTES,
        )
        try:
            async with asyncio.timeout(GUARD_S):
                talk = AppServer(process, on_call)
                await talk.greet()
                yield talk
                assert process.stdin is not None
                process.stdin.close()
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class AppServer:
    """One client's side of the conversation, a line of JSON for each message."""

    def __init__(self, process: Process, on_call: Answer) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._on_call = on_call
        self._notices: deque[Mapping[str, Any]] = deque()
        self._asked = 0

    async def greet(self) -> None:
        """Introduce ourselves; tools of a client are an experiment that has to be asked for."""
        who = {"name": "limner_tests", "title": None, "version": "1"}
        await self.request("initialize", clientInfo=who, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    async def request(self, method: str, **params: Any) -> Any:
        """Ask for something; what is answered."""
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while True:
            message = await self._next()
            if "method" not in message and message["id"] == self._asked:
                assert "result" in message, message
                return message["result"]
            self._notices.append(message)

    async def notice(self, method: str, **params: Any) -> None:
        """Wait until it tells of something, and throw away what it told before."""
        while True:
            notice = self._notices.popleft() if self._notices else await self._next()
            if notice.get("method") == method and params.items() <= notice["params"].items():
                return

    async def turn(self, thread_id: str, words: str) -> Mapping[str, Any]:
        """Let the model answer a user's words, calling what it wants; how that ended."""
        said = [{"type": "text", "text": words}]
        await self.request("turn/start", threadId=thread_id, input=said)
        while True:
            notice = self._notices.popleft() if self._notices else await self._next()
            if notice.get("method") == "turn/completed":
                return notice["params"]["turn"]

    async def _next(self) -> Mapping[str, Any]:
        """The next message that is not a call of a tool; those are answered."""
        while line := await self._from.readline():
            message = json.loads(line)
            if message.get("method") != "item/tool/call":
                return message
            self._send({"id": message["id"], "result": self._on_call(message["params"])})
        raise AssertionError("Codex stopped in the middle of a conversation")

    def _send(self, message: Mapping[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")
