"""The real Codex and limner, two app-servers of one model: processes, and a client's side of them.

Whatever a test does here it can do with either, so that the one shows what the test asks of the
other.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from tests.servers.codex_messages import LIMNER
from tests.servers.codex_process import MODEL, Codex, codex_program
from tests.servers.samples import KEY

from limner.testing.servers.model_server import ModelAnswer, ServerEvent
from limner.testing.servers.responses_server import ResponsesServer

GUARD_S = 60.0
MAX_LINE_BYTES = 64 * 1024 * 1024
GREETING: Mapping[str, Any] = {
    "clientInfo": {"name": "limner_tests", "title": None, "version": "1"},
    "capabilities": {"experimentalApi": True},
}
KINDS = ("codex", "limner")


class TalkingServer(ResponsesServer):
    """The Responses API, which never gives two messages the same id."""

    def __init__(self) -> None:
        super().__init__()
        self._said = 0

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        self._said += 1
        before, after = super().events(answer, body)
        return self._named(before), self._named(after)

    def _named(self, events: Sequence[ServerEvent]) -> list[ServerEvent]:
        name = f'"msg_{self._said:08x}"'
        return [
            ServerEvent(
                name=one.name, data=json.loads(json.dumps(one.data).replace('"msg_1"', name))
            )
            for one in events
        ]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two, set up in a folder of its own.

    Attributes:
        kind: which one.
        program: what a client starts, with ``app-server`` and whatever follows it.
        env: all of its environment.
        cwd: where it works.
        home: where it keeps what it knows.
    """

    kind: str
    program: Path
    env: dict[str, str]
    cwd: Path
    home: Path

    @asynccontextmanager
    async def server(self, *, greeted: bool = True) -> AsyncGenerator[Talk]:
        """A running server, ended at the end if it still runs."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            "app-server",
            "--listen",
            "stdio://",
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self.env,
            cwd=self.cwd,
            limit=MAX_LINE_BYTES,
        )
        talk = Talk(process)
        try:
            async with asyncio.timeout(GUARD_S):
                if greeted:
                    await talk.greet()
                yield talk
        except TimeoutError:
            raise AssertionError(
                f"nothing came after {talk.received[-3:]}; it said: {talk.errors}"
            ) from None
        finally:
            await talk.kill()


def limner_side(folder: Path, server: ResponsesServer) -> Side:
    """limner, with a model on this machine."""
    home, cwd = folder / "limner-home", folder / "project"
    cwd.mkdir(parents=True)
    program = folder / "limner"
    program.write_text(f'#!/bin/sh\nexec {" ".join(LIMNER)} "$@"\n')
    program.chmod(0o755)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LIMNER_HOME": str(home),
        "LIMNER_MODEL_ROLES_DEFAULT": f"openai/{MODEL}",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": server.base_url,
    }
    return Side(kind="limner", program=program, env=env, cwd=cwd, home=home)


def codex_side(folder: Path, server: ResponsesServer) -> Side:
    """The real Codex, with the same model."""
    folder.mkdir(parents=True, exist_ok=True)
    codex = Codex(folder, server)
    return Side(
        kind="codex", program=codex_program(), env=codex.env, cwd=codex.cwd, home=codex.home
    )


def side_of(kind: str, folder: Path, server: ResponsesServer) -> Side:
    """The one of that name, in a folder of its own below."""
    make = limner_side if kind == "limner" else codex_side
    return make(folder / kind, server)


class Talk:
    """A client's side: what it sends, and what it receives, each message waited for by its look.

    ``received`` is everything so far in the order it came, whether anybody waited for it or not.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.received: list[dict[str, Any]] = []
        self._to, self._from = process.stdin, process.stdout
        self._unclaimed: list[dict[str, Any]] = []
        self._asked = 0
        self._errors: list[bytes] = []
        self._listening = asyncio.ensure_future(self._listen(process.stderr))

    async def greet(self) -> dict[str, Any]:
        """Introduce ourselves, as a client that wants to bring tools."""
        answer = await self.request("initialize", **GREETING)
        self.send({"method": "initialized"})
        return answer

    def send(self, message: Mapping[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")

    async def sent(self, message: Mapping[str, Any]) -> None:
        """Send, and wait until the pipe has taken it."""
        self.send(message)
        await self._to.drain()

    async def request(self, method: str, **params: Any) -> Any:
        """Ask for something; what is answered."""
        answer = await self.answer(method, **params)
        assert "result" in answer, (answer, self.errors)
        return answer["result"]

    async def answer(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something; the whole answer, which may be an error."""
        self._asked += 1
        number = f"ask-{self._asked}"
        self.send({"id": number, "method": method, "params": params})
        return await self.wait(id=number)

    async def turn(self, thread_id: str, words: str) -> dict[str, Any]:
        """Say something; the turn that it began."""
        said = [{"type": "text", "text": words}]
        return (await self.request("turn/start", threadId=thread_id, input=said))["turn"]

    async def called(self, call_id: str) -> dict[str, Any]:
        """Wait for the call of one of our tools."""
        return await self.wait(method="item/tool/call", params={"callId": call_id})

    async def ended(self, turn_id: str) -> dict[str, Any]:
        """Wait for the end of a turn; the turn."""
        ended = await self.wait(method="turn/completed", params={"turn": {"id": turn_id}})
        return ended["params"]["turn"]

    async def wait(self, **look: Any) -> dict[str, Any]:
        """The first message that has these members and that nobody waited for yet."""
        for message in self._unclaimed:
            if _has(message, look):
                self._unclaimed.remove(message)
                return message
        while not _has(message := await self._next(), look):
            self._unclaimed.append(message)
        return message

    async def receive(self) -> dict[str, Any]:
        """The next message, whatever it is, that nobody waited for yet."""
        return self._unclaimed.pop(0) if self._unclaimed else await self._next()

    def forget(self) -> None:
        """Wait for nothing of what has come so far."""
        self._unclaimed.clear()

    async def kill(self) -> None:
        """End it the way no program can prepare for."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._listening
        self._to.close()
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._to.wait_closed()

    async def close(self) -> None:
        """Leave in good order."""
        self._to.close()
        while line := await self._from.readline():
            self.received.append(json.loads(line))
        assert await self.process.wait() == 0, self.errors

    @property
    def errors(self) -> str:
        """What was said on standard error, the end of it."""
        return b"".join(self._errors[-20:]).decode()

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        async for line in errors:
            self._errors.append(line)

    async def _next(self) -> dict[str, Any]:
        line = await self._from.readline()
        assert line.endswith(b"\n"), f"the server ended: {self.errors}"
        message = json.loads(line)
        self.received.append(message)
        return message


def _has(value: Any, look: Any) -> bool:
    """Whether a value has everything that another one has."""
    if isinstance(look, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and _has(value[name], wanted) for name, wanted in look.items()
        )
    return value == look
