"""App-servers as processes beside a scripted model, and clients that talk to them."""

from __future__ import annotations

import asyncio
import itertools
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from tests.frontends.cli_process import LIMNER
from tests.servers.scripted import Line, scripted
from websockets.asyncio.client import ClientConnection, connect

from limner.testing.servers.responses_server import ResponsesServer

MODEL = "openai/gpt-5.4"
KEY = "talker-key-0123456789abcdef"
GUARD_S = 60.0
MAX_LINE_BYTES = 256 * 1024 * 1024

Message = dict[str, Any]


class Refused(Exception):
    """The server answered a request with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class Wire(Protocol):
    """What carries messages."""

    def send(self, text: str) -> None: ...
    async def receive(self) -> str | bytes: ...


class Pipes:
    """A server's standard streams."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, text: str) -> None:
        self._to.write(text.encode() + b"\n")

    async def receive(self) -> bytes:
        line = await self._from.readline()
        if not line:
            raise EOFError("the server ended")
        return line


class Socket:
    """A web socket; what is sent goes out in its order."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._sending: set[asyncio.Task[None]] = set()

    def send(self, text: str) -> None:
        task = asyncio.ensure_future(self._socket.send(text))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def receive(self) -> str | bytes:
        return await self._socket.recv()


class Client:
    """One client. Whatever the server tells or asks is kept in order until somebody looks at it.

    Attributes:
        heard: every notification so far, and every request of the server.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._numbers = itertools.count(1)
        self._unread: list[Message] = []
        self.heard: list[Message] = []

    async def greet(self, *, name: str = "tests", experimental: bool = True, **can: Any) -> Message:
        """Introduce itself."""
        capabilities = {"experimentalApi": experimental, **can}
        who = {"name": name, "title": None, "version": "1"}
        answer = await self.request("initialize", clientInfo=who, capabilities=capabilities)
        self.send({"method": "initialized"})
        return answer

    def send(self, message: Message) -> None:
        self._wire.send(json.dumps(message))

    def ask_at_once(self, *requests: tuple[str, Message]) -> list[int]:
        """Send requests in one piece, as somebody does who waits for nothing; their numbers."""
        numbers = [next(self._numbers) for _ in requests]
        messages = [
            {"id": number, "method": method, "params": params}
            for number, (method, params) in zip(numbers, requests, strict=True)
        ]
        self._wire.send("\n".join(map(json.dumps, messages)))
        return numbers

    def ask(self, method: str, **params: Any) -> int:
        """Send a request, and do not wait; its number."""
        number = next(self._numbers)
        self.send({"id": number, "method": method, "params": params})
        return number

    async def request(self, method: str, **params: Any) -> Any:
        """What a request is answered.

        Raises:
            Refused: with an error.
        """
        return await self.answer_to(self.ask(method, **params))

    async def answer_to(self, number: int) -> Any:
        """The answer to a request that was sent."""
        while True:
            message = await self._receive()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]
            self._keep(message)

    async def refusal(self, method: str, **params: Any) -> tuple[int, str]:
        """The code and the words with which a request is refused."""
        try:
            result = await self.request(method, **params)
        except Refused as refused:
            return refused.code, refused.message
        raise AssertionError(f"{method} was answered {result}")

    async def next(self, *methods: str) -> Message:
        """The next notification or request of the server, of one of these methods if named."""
        while True:
            if not self._unread:
                self._keep(await self._receive())
            message = self._unread.pop(0)
            if not methods or message["method"] in methods:
                return message

    async def until(self, method: str) -> Any:
        """The params of the next message of that method."""
        return (await self.next(method))["params"]

    def answer(self, asked: Message, result: Any) -> None:
        """Answer a request of the server."""
        self.send({"id": asked["id"], "result": result})

    def refuse(self, asked: Message, message: str) -> None:
        """Answer a request of the server with an error."""
        self.send({"id": asked["id"], "error": {"code": -32000, "message": message}})

    async def start(self, **params: Any) -> str:
        """Begin a thread; its id."""
        return (await self.request("thread/start", **params))["thread"]["id"]

    async def say(self, thread_id: str, *words: str, **params: Any) -> str:
        """Begin a turn; its id."""
        said = [{"type": "text", "text": text} for text in words]
        params = {"input": said, **params}
        return (await self.request("turn/start", threadId=thread_id, **params))["turn"]["id"]

    async def turn(self, thread_id: str, *words: str, **params: Any) -> Message:
        """Take a turn to its end; how it ended."""
        await self.say(thread_id, *words, **params)
        return (await self.until("turn/completed"))["turn"]

    @property
    def methods(self) -> list[str]:
        """The methods of everything that was heard."""
        return [message["method"] for message in self.heard]

    def told(self, method: str) -> list[Any]:
        """The params of everything that was heard of a method."""
        return [message["params"] for message in self.heard if message["method"] == method]

    def items(self, kind: str) -> list[Message]:
        """The items of a kind that were completed."""
        return [
            told["item"] for told in self.told("item/completed") if told["item"]["type"] == kind
        ]

    def _keep(self, message: Message) -> None:
        assert "method" in message, message
        self._unread.append(message)
        self.heard.append(message)

    async def _receive(self) -> Message:
        async with asyncio.timeout(GUARD_S):
            return json.loads(await self._wire.receive())


class Stage:
    """A home, a folder and a model that follows a script; servers are started in it."""

    def __init__(self, folder: Path, model: Any) -> None:
        self.folder, self.model = folder, model
        self.home, self.cwd = folder / "limner-home", folder / "work"
        self.home.mkdir()
        self.cwd.mkdir()
        config = (
            f'[[models]]\nname = "{MODEL}"\nbase_url = "{model.base_url}"\nkey_env = "TALKER"\n'
        )
        (self.home / "config.toml").write_text(config)
        self.env = {
            "HOME": str(folder),
            "LIMNER_HOME": str(self.home),
            "LIMNER_MODEL_ROLES_DEFAULT": MODEL,
            "LIMNER_MODEL_ROLES_VISION": "limner/eyes",
            "TALKER": KEY,
        }

    def script(self, *lines: Line) -> None:
        """What the model says from now on."""
        self.model.script, self.model.turn_lines = list(lines), 0

    @property
    def bodies(self) -> list[Any]:
        """The requests that the model got."""
        return [json.loads(request.body) for request in self.model.requests]

    def outputs(self, at: int = -1) -> list[Any]:
        """The outputs of tools in one request that the model got."""
        items = self.bodies[at]["input"]
        return [item["output"] for item in items if item["type"] == "function_call_output"]

    @asynccontextmanager
    async def process(self, *words: str) -> AsyncGenerator[Process]:
        """A server; it is killed at the end where it has not ended."""
        process = await asyncio.create_subprocess_exec(
            *LIMNER,
            "app-server",
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE if words else None,
            env=self.env,
            cwd=self.cwd,
            limit=MAX_LINE_BYTES,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    @asynccontextmanager
    async def piped(self, **can: Any) -> AsyncGenerator[Client]:
        """A server and its client, which has introduced itself; it ends in good order."""
        async with self.process() as process:
            client = Client(Pipes(process))
            await client.greet(**can)
            yield client
            assert process.stdin is not None
            process.stdin.close()
            async with asyncio.timeout(GUARD_S):
                assert await process.wait() == 0

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Callable[[], Any]]:
        """A server on a socket, and a way to come to it."""
        async with self.process("--listen", "ws://127.0.0.1:0", "--no-token") as process:
            assert process.stderr is not None
            line = (await process.stderr.readline()).decode()
            address = line.split("listening on ")[1].strip()

            @asynccontextmanager
            async def client(**can: Any) -> AsyncGenerator[Client]:
                async with connect(address, max_size=None, compression=None, proxy=None) as socket:
                    made = Client(Socket(socket))
                    await made.greet(**can)
                    yield made

            yield client


@contextmanager
def staged(folder: Path, *lines: Line) -> Generator[Stage]:
    """A stage whose model says these lines."""
    with ExitStack() as stack:
        model = stack.enter_context(scripted(ResponsesServer)())
        stage = Stage(folder, model)
        stage.script(*lines)
        yield stage


def function(name: str, **more: Any) -> Message:
    """A tool of a client, as it describes it."""
    return {
        "type": "function",
        "name": name,
        "description": f"The tool {name}.",
        "inputSchema": {"type": "object", "properties": {"target": {"type": "string"}}},
        **more,
    }


def said(*texts: str, success: bool = True) -> Message:
    """An answer in words."""
    items: Sequence[Message] = [{"type": "inputText", "text": text} for text in texts]
    return {"contentItems": list(items), "success": success}
