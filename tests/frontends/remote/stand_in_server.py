"""An app-server that says what a test tells it to, on a real web socket."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve, unix_serve
from websockets.exceptions import ConnectionClosed

GUARD_S = 30.0
USER_AGENT = "limner/0.166.0 (stand-in)"

Answer = Callable[[Mapping[str, Any]], Any]


class Refusal(Exception):
    """Raised by an answer: the request is refused with these words."""


def thread_answer(thread_id: str) -> dict[str, Any]:
    """What a server says of a thread that it has started or taken up."""
    return {"thread": {"id": thread_id}, "model": "gpt-5.5", "cwd": "/"}


class StandIn:
    """Answers requests by ``answers``, and remembers what it was asked and answered.

    By default there is one thread, ``t1``, whose turns are ``turn1``, ``turn2`` and so on. What
    happens in them is told by the ``stories``, one for each; without one a turn goes on for ever.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.asked: list[tuple[str, Any]] = []
        self.replies: dict[int, dict[str, Any]] = {}
        self.headers: list[Mapping[str, str]] = []
        self.turns = 0
        self.stories: deque[Callable[[], Awaitable[None]]] = deque()
        self.answers: dict[str, Answer] = {
            "initialize": lambda _: {"userAgent": USER_AGENT},
            "thread/start": lambda _: thread_answer("t1"),
            "thread/resume": lambda params: thread_answer(params["threadId"]),
            "thread/fork": lambda _: thread_answer("t2"),
            "thread/archive": lambda _: {},
            "thread/turns/list": lambda _: {"data": []},
            "turn/start": self._turn,
            "turn/steer": lambda params: {"turnId": params["expectedTurnId"]},
            "turn/interrupt": self._interrupt,
        }
        self._sockets: list[ServerConnection] = []
        self._telling: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        if self.path is None:
            self._server = await serve(self._connected, "127.0.0.1", 0, compression=None)
        else:
            self._server = await unix_serve(self._connected, str(self.path), compression=None)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        await asyncio.gather(*self._telling)

    @property
    def url(self) -> str:
        if self.path is not None:
            return f"unix://{self.path}"
        assert self._server is not None
        return f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def sent(self, method: str) -> list[Any]:
        """The params of the requests and notices of that name, in their order."""
        return [params for name, params in self.asked if name == method]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the client is about to say."""
        async with asyncio.timeout(GUARD_S), self._changed:
            await self._changed.wait_for(condition)

    async def notify(self, method: str, **params: Any) -> None:
        """Tell the client something about the thread ``t1``, unless it says of which."""
        await self._send({"method": method, "params": {"threadId": "t1", **params}})

    async def finish(self, *, status: str = "completed", **turn: Any) -> None:
        """End the latest turn."""
        told = {"id": f"turn{self.turns}", "status": status, "items": [], "error": None, **turn}
        await self.notify("turn/completed", turn=told)

    async def request(self, method: str, params: Mapping[str, Any], *, number: int) -> None:
        """Ask the client for something."""
        await self._send({"id": number, "method": method, "params": params})

    async def call(self, tool: str, *, number: int = 0, **arguments: Any) -> None:
        """Call a tool of the client in the latest turn; the number is also the call's id."""
        params = {
            "threadId": "t1",
            "turnId": f"turn{self.turns}",
            "callId": f"call_{number}",
            "namespace": None,
            "tool": tool,
            "arguments": arguments,
        }
        await self.request("item/tool/call", params, number=number)

    async def reply(self, number: int) -> dict[str, Any]:
        """What the client answers."""
        await self.until(lambda: number in self.replies)
        return self.replies[number]

    async def drop(self) -> None:
        """Lose the connection; the client may come back."""
        socket = self._sockets.pop()
        socket.transport.abort()
        await socket.wait_closed()

    async def until_back(self, *, times: int = 1) -> None:
        """Wait for the client to have come back, and to have taken up its thread."""
        await self.until(lambda: len(self.sent("thread/resume")) == times)

    def _turn(self, params: Mapping[str, Any]) -> Any:
        self.turns += 1
        return {"turn": {"id": f"turn{self.turns}", "status": "inProgress", "items": []}}

    def _interrupt(self, params: Mapping[str, Any]) -> Any:
        self._telling.append(asyncio.create_task(self.finish(status="interrupted")))
        return {}

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self._sockets[-1].send(json.dumps(message))

    async def _connected(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        headers = socket.request.headers.raw_items()
        self.headers.append({name.lower(): value for name, value in headers})
        self._sockets.append(socket)
        try:
            async for text in socket:
                await self._take(json.loads(text), socket)
        except ConnectionClosed:
            pass

    async def _take(self, message: dict[str, Any], socket: ServerConnection) -> None:
        if "method" not in message:
            self.replies[message.pop("id")] = message
        else:
            self.asked.append((message["method"], message.get("params")))
            if "id" in message:
                await socket.send(json.dumps({"id": message["id"], **self._answered(message)}))
            if message["method"] == "turn/start" and self.stories:
                self._telling.append(asyncio.create_task(self._tell(self.stories.popleft())))
        async with self._changed:
            self._changed.notify_all()

    async def _tell(self, story: Callable[[], Awaitable[None]]) -> None:
        try:
            await story()
        except BaseException:
            # Whoever waits for the turn must not wait for a story that broke off.
            await self.finish(status="failed", error={"message": "the story broke off"})
            raise

    def _answered(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"result": self.answers[message["method"]](message["params"])}
        except Refusal as refusal:
            return {"error": {"code": -32600, "message": str(refusal)}}
