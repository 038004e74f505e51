"""A recorded client: its messages as they stand in a file, played to any app-server.

Each line is a step. ``ask`` sends a request and waits for its answer, ``send`` sends a message as
it is, ``await`` waits for one that has these members; ``keep`` remembers what is at a place of
what came, and ``$name`` stands for it from then on. ``model`` is what the model says next, or how
it fails. ``restart`` is a new process. What came is told apart by ``scene``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from tests.acceptance.client_script import DATA_URL, green
from tests.servers.appserver_side import Side, Talk
from tests.servers.codex_process import MODEL

from limner.testing.servers.http_server import Reply
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall
from limner.testing.servers.openai_server import error_reply
from limner.testing.servers.responses_server import ResponsesServer

SCRIPT = Path(__file__).with_suffix(".jsonl")
MAX_CHARS = 1_048_576

Message = dict[str, Any]
Scenes = dict[str, list[Message]]


class Player:
    """Plays the script to one server.

    ``scenes`` is what it has answered and told; an answer names in ``to`` what was asked.
    """

    def __init__(self, side: Side, model: ResponsesServer) -> None:
        self._side, self._model = side, model
        self._kept: dict[str, Any] = {"picture": DATA_URL, "long": "x" * (MAX_CHARS + 1)}
        self._asked: dict[Any, str] = {}
        self._stack = AsyncExitStack()
        self._seen = 0
        self.scenes: Scenes = {}

    async def __aenter__(self) -> Self:
        file = self._side.cwd / "green.png"
        file.write_bytes(green())
        self._kept["file"] = str(file)
        self._talk = await self._start()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._stack.__aexit__(*exc)

    async def play(self) -> Scenes:
        """Play everything."""
        for step in steps():
            await self._do(step)
        await self._talk.close()
        self._collect()
        return self.scenes

    async def _do(self, step: Mapping[str, Any]) -> None:
        match step:
            case {"scene": name}:
                self._collect()
                self._talk.forget()
                self.scenes[name] = []
            case {"model": line}:
                self._model.script("ask", self._line(line))
            case {"restart": True}:
                await self._talk.close()
                self._collect()
                self._talk = await self._start()
            case {"send": message}:
                self._send(self._filled(message))
            case {"await": look, **more}:
                self._keep(more, await self._talk.wait(**self._filled(look)))
            case {"ask": method, "params": params, **more}:
                number = f"ask-{len(self._asked)}"
                self._send({"id": number, "method": method, "params": self._filled(params)})
                self._keep(more, await self._talk.wait(id=number))
            case _:
                raise AssertionError(f"no step: {step}")

    async def _start(self) -> Talk:
        self._seen = 0
        return await self._stack.enter_async_context(self._side.server(greeted=False))

    def _send(self, message: Message) -> None:
        if "method" in message and "id" in message:
            self._asked[message["id"]] = message["method"]
        self._talk.send(message)

    def _collect(self) -> None:
        """What came since belongs to the scene that ends."""
        if not self.scenes:
            return
        scene = self.scenes[next(reversed(self.scenes))]
        for message in self._talk.received[self._seen :]:
            is_answer = "method" not in message
            scene.append({**message, "to": self._asked[message["id"]]} if is_answer else message)
        self._seen = len(self._talk.received)

    def _keep(self, more: Mapping[str, Any], message: Message) -> None:
        for name, place in more.get("keep", {}).items():
            value: Any = message
            for member in place.split("."):
                value = value[member]
            self._kept[name] = value

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner) for inner in value]
        if isinstance(value, str) and value.startswith("$"):
            return self._kept[value.removeprefix("$")]
        return value

    def _line(self, line: Mapping[str, Any]) -> Reply:
        if "fails" in line:
            return error_reply(line["fails"], "The server had to think of something else.")
        called = tuple(
            ScriptedCall(
                name=one["name"], arguments=json.dumps(one["arguments"]), call_id=one["id"]
            )
            for one in line.get("calls", ())
        )
        saying = ModelAnswer(pieces=tuple(line["says"]), calls=called)
        return self._model.streamed(saying, {"model": MODEL})


def steps() -> Iterator[Mapping[str, Any]]:
    """The script, line by line."""
    for line in SCRIPT.read_text().splitlines():
        yield json.loads(line)
