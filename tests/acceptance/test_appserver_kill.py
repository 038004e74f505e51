"""`kill -9` of the app-server in the middle of turns whose tools belong to the client.

What the client was told is kept, what it answered is used, what it has not answered can still be
answered, and the model never sees a call without its one output.
"""

from __future__ import annotations

import asyncio
import io
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from tests.fuzz import IS_LONG
from tests.servers.appserver_side import Side, Talk, limner_side
from tests.servers.scripted import calls, says

from limner.base64_text import encode_base64
from limner.testing.servers.http_server import Gate, ReceivedRequest, Reply
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = pytest.mark.slow

KILLS = 100 if IS_LONG else 10
KILLS_A_THREAD = 2
# A turn with two calls tells about so many things from its beginning to its end.
MOST_MESSAGES = 24
LOOK, AND_NOW = "Look at both halves", "And now?"
SCREENSHOT = {
    "type": "function",
    "name": "screenshot",
    "description": "Take a picture of a part of the screen.",
    "inputSchema": {"type": "object", "properties": {"of": {"type": "string"}}},
}


class LookingModel(ResponsesServer):
    """Calls two tools at once whenever it is told to look; speaks when it has seen, or is asked.

    ``hold`` is the request, by its number, that is never answered; ``on_held`` hears of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hold: int | None = None
        self.on_held: Callable[[], object] = lambda: None
        self._asked = 0

    def answer(self, seen: ReceivedRequest) -> Reply:
        problem = self.objection(seen)
        if problem is not None:
            return problem
        self._asked += 1
        if self._asked == self.hold:
            self.on_held()
            return Reply(hold=Gate())
        body = seen.json()
        started = [at for at, one in enumerate(body["input"]) if _says(one, LOOK, AND_NOW)]
        since = body["input"][started[-1] :]
        made = sum(one["type"] == "function_call" for one in body["input"])
        if _says(since[0], AND_NOW) or any(one["type"] == "function_call" for one in since):
            return self.streamed(says("I see."), body)
        both = [("screenshot", f'{{"of":"{half}"}}') for half in ("left", "right")]
        return self.streamed(calls(*both, words="Let me look.", start=made + 1), body)

    def reset(self, hold: int | None) -> None:
        """Count from here on, and hold another one."""
        self._asked, self.hold = 0, hold


def _says(item: dict[str, Any], *words: str) -> bool:
    if item["type"] != "message" or item["role"] != "user":
        return False
    return any(part.get("text") in words for part in item["content"])


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """The point at which a server is killed; at the end of its turn where that does not come.

    Attributes:
        messages: when so many messages have come from it.
        calls: when it has asked for that many answers, and before the last of them is given.
        answers: as soon as that many answers are sent.
        requests: while its model thinks about that request.
    """

    messages: int | None = None
    calls: int | None = None
    answers: int | None = None
    requests: int | None = None

    @classmethod
    def drawn(cls, seed: str) -> Death:
        """Any point, and the same one for the same seed."""
        chance = random.Random(seed)
        kind = chance.choice(["messages", "calls", "answers", "requests"])
        most = MOST_MESSAGES if kind == "messages" else 2
        return cls(**{kind: chance.randint(1, most)})


class Client:
    """Answers the calls of one thread, through the deaths of its server.

    Attributes:
        called: the calls it was asked to answer.
        told: the calls it was told to be done.
        heard: the items it was told of.
    """

    def __init__(self) -> None:
        self.called: list[str] = []
        self.told: set[str] = set()
        self.heard: set[tuple[str, str]] = set()

    async def attend(self, talk: Talk, turn_id: str, death: Death, held: asyncio.Event) -> None:
        """Serve a turn to its end, or to the point of the server's death."""
        counts: Counter[str] = Counter()
        stop = asyncio.ensure_future(held.wait())
        try:
            while counts["messages"] != death.messages:
                coming = asyncio.ensure_future(talk.receive())
                await asyncio.wait({coming, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return
                counts["messages"] += 1
                message = coming.result()
                self._hear(message)
                if message.get("method") == "item/tool/call":
                    counts["calls"] += 1
                    if counts["calls"] == death.calls:
                        return
                    await talk.sent({"id": message["id"], "result": _answer(self.called[-1])})
                    counts["answers"] += 1
                    if counts["answers"] == death.answers:
                        return
                if _has_ended(message, turn_id):
                    return
        finally:
            stop.cancel()

    def _hear(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "item/tool/call", "params": {"callId": call_id}}:
                # What is done would be done to the world twice.
                assert call_id not in self.told
                self.called.append(call_id)
            case {"method": "item/completed", "params": {"item": item}}:
                self.heard.add((item["type"], item["id"]))
                if item["type"] == "dynamicToolCall":
                    assert item["contentItems"] == _answer(item["id"])["contentItems"]
                    self.told.add(item["id"])
            case _:
                pass


def _has_ended(message: dict[str, Any], turn_id: str) -> bool:
    match message:
        case {"method": "turn/completed", "params": {"turn": {"id": ended}}}:
            return ended == turn_id
        case _:
            return False


def _picture_url(call_id: str) -> str:
    """A picture that no other call is answered with."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (0, 128, int(call_id.removeprefix("call_")))).save(file, "PNG")
    return f"data:image/png;base64,{encode_base64(file.getvalue())}"


def _answer(call_id: str) -> dict[str, Any]:
    items = [
        {"type": "inputText", "text": f"{call_id}:"},
        {"type": "inputImage", "imageUrl": _picture_url(call_id)},
    ]
    return {"contentItems": items, "success": True}


def _output(call_id: str) -> list[dict[str, Any]]:
    return [
        {"type": "input_text", "text": f"{call_id}:"},
        {"type": "input_image", "image_url": _picture_url(call_id), "detail": "high"},
    ]


async def _running_turn(talk: Talk, thread_id: str, *, is_new: bool) -> str:
    """The turn that goes on where the last server left it, or else one that begins."""
    if not is_new:
        resumed = await talk.request("thread/resume", threadId=thread_id)
        assert resumed["thread"]["id"] == thread_id
        turns = resumed["thread"]["turns"]
        if turns and turns[-1]["status"] == "inProgress":
            return turns[-1]["id"]
    return (await talk.turn(thread_id, LOOK))["id"]


async def _die(side: Side, model: LookingModel, client: Client, thread_id: str, seed: str) -> str:
    """One life of a server, which ends at a point that the seed chooses."""
    death = Death.drawn(seed)
    held = asyncio.Event()
    loop = asyncio.get_running_loop()
    model.on_held = lambda: loop.call_soon_threadsafe(held.set)
    model.reset(hold=death.requests)
    async with side.server() as talk:
        is_new = not thread_id
        if is_new:
            started = await talk.request("thread/start", dynamicTools=[SCREENSHOT])
            thread_id = started["thread"]["id"]
        turn_id = await _running_turn(talk, thread_id, is_new=is_new)
        await client.attend(talk, turn_id, death, held)
        await talk.kill()
    return thread_id


@pytest.mark.parametrize("seed", range(KILLS // KILLS_A_THREAD))
async def test_a_killed_server_loses_nothing_and_leaves_no_call_open(
    seed: int, tmp_path: Path
) -> None:
    client = Client()
    with LookingModel() as model:
        side = limner_side(tmp_path, model)
        thread_id = ""
        for life in range(KILLS_A_THREAD):
            thread_id = await _die(side, model, client, thread_id, f"{seed}.{life}")
        model.reset(hold=None)
        async with side.server() as talk:
            turn_id = await _running_turn(talk, thread_id, is_new=False)
            await client.attend(talk, turn_id, Death(), asyncio.Event())
            turn = await talk.turn(thread_id, AND_NOW)
            assert (await talk.ended(turn["id"]))["status"] == "completed"
            read = await talk.request("thread/read", threadId=thread_id, includeTurns=True)
            await talk.close()
        asked = model.sent("ask")[-1].json()["input"]
    kept = {(item["type"], item["id"]) for one in read["thread"]["turns"] for item in one["items"]}
    assert client.heard <= kept
    made = [one["call_id"] for one in asked if one["type"] == "function_call"]
    answered = {
        one["call_id"]: one["output"] for one in asked if one["type"] == "function_call_output"
    }
    counts = Counter(one["call_id"] for one in asked if one["type"] == "function_call_output")
    assert Counter(made) == counts == dict.fromkeys(made, 1)
    assert set(client.called) <= set(made)
    assert answered == {call_id: _output(call_id) for call_id in made}


async def test_a_call_that_is_pending_at_the_death_is_asked_again_in_the_same_turn(
    tmp_path: Path,
) -> None:
    with LookingModel() as model:
        side = limner_side(tmp_path, model)
        async with side.server() as talk:
            started = await talk.request("thread/start", dynamicTools=[SCREENSHOT])
            thread_id = started["thread"]["id"]
            turn = await talk.turn(thread_id, LOOK)
            first, second = await talk.called("call_1"), await talk.called("call_2")
            talk.send({"id": first["id"], "result": _answer("call_1")})
            await talk.wait(method="item/completed", params={"item": {"id": "call_1"}})
            await talk.kill()
        async with side.server() as talk:
            resumed = await talk.request("thread/resume", threadId=thread_id)
            again = await talk.called("call_2")
            assert again["params"] == second["params"]
            states = {
                item["id"]: item["status"]
                for item in resumed["thread"]["turns"][-1]["items"]
                if item["type"] == "dynamicToolCall"
            }
            assert states == {"call_1": "completed", "call_2": "inProgress"}
            talk.send({"id": again["id"], "result": _answer("call_2")})
            assert (await talk.ended(turn["id"]))["status"] == "completed"
            await talk.close()
        asked = model.sent("ask")[-1].json()["input"]
    outputs = {
        one["call_id"]: one["output"] for one in asked if one["type"] == "function_call_output"
    }
    assert outputs == {"call_1": _output("call_1"), "call_2": _output("call_2")}
