"""Histories that the real Codex wrote: taken in with their pictures, continued, and given back.

Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import OPENAI_KEY, Studio, picture
from tests.acceptance.hardship import limner, until
from tests.servers.codex_process import MODEL, Codex
from tests.servers.components import needs
from tests.wires.vendor_types import assert_legal

from limner import Limner
from limner.agent.events import ToolFinished, TurnEnded
from limner.agents import Agent
from limner.content import Picture
from limner.models.remote import RemoteModel
from limner.net.http import Http
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall
from limner.testing.servers.responses_server import ResponsesServer
from limner.wires.base import HANDLE_URL, Prompt

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

PICTURE = picture()
HANDLE = hashlib.sha256(PICTURE).hexdigest()
BASE64 = base64.b64encode(PICTURE).decode()
DATA_URL = f"data:image/png;base64,{BASE64}"
LONG_AGO = 1_700_000_000

TOOL = {
    "type": "function",
    "name": "take_screenshot",
    "description": "Takes a picture of what is on the screen.",
    "inputSchema": {"type": "object", "properties": {"target": {"type": "string"}}},
}
CALL = ScriptedCall(name="take_screenshot", arguments='{"target":"window"}', call_id="call_1")


def screenshot(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the client's tool answers."""
    assert (call["tool"], call["arguments"]) == ("take_screenshot", {"target": "window"})
    items = [
        {"type": "inputText", "text": "The window:"},
        {"type": "inputImage", "imageUrl": DATA_URL},
    ]
    return {"contentItems": items, "success": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A thread that Codex has written down, and where Codex and its model are."""

    codex: Codex
    server: ResponsesServer
    thread_id: str
    path: Path

    @property
    def items(self) -> list[Any]:
        """The items in the file as they are kept: orders of other programs are quoted."""
        text = self.path.read_text().replace(DATA_URL, f"{HANDLE_URL}{HANDLE}")
        lines = [json.loads(line) for line in text.splitlines()]
        items = [line["payload"] for line in lines if line["type"] == "response_item"]
        return [quoted(item) if item.get("role") == "developer" else item for item in items]


def quoted(item: dict[str, Any]) -> dict[str, Any]:
    head = {"type": "input_text", "text": 'A message of the role "developer" in the file:'}
    content = [head, *item["content"]]
    return {**item, "role": "user", "content": content, "untrusted": True}


@pytest.fixture
def server() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


def will_say(server: ResponsesServer, *sayings: ModelAnswer) -> None:
    """The model's next answers."""
    server.script("ask", *(server.streamed(saying, {"model": MODEL}) for saying in sayings))


@pytest.fixture
async def written(tmp_path: Path, server: ResponsesServer) -> AsyncIterator[Written]:
    """Codex's model looks at a screenshot that a client's tool took, and says what it sees."""
    codex = Codex(tmp_path, server)
    will_say(
        server,
        ModelAnswer(pieces=("Let me ", "look."), calls=(CALL,)),
        ModelAnswer(pieces=("Half red, ", "half blue.")),
    )
    async with codex.app_server(on_call=screenshot) as talk:
        started = await talk.request("thread/start", cwd=str(codex.cwd), dynamicTools=[TOOL])
        thread_id = started["thread"]["id"]
        turn = await talk.turn(thread_id, "What is on my screen?")
        assert (turn["status"], turn["error"]) == ("completed", None)
    (path,) = codex.rollouts
    yield Written(codex=codex, server=server, thread_id=thread_id, path=path)
    # Codex has asked its model, and nobody else.
    assert {(seen.method, seen.path) for seen in server.requests} == {("POST", "/v1/responses")}


async def imported(studio: Studio, path: Path) -> dict[str, Any]:
    """What `limner sessions import --json` says of a file."""
    status, said = await limner("sessions", "import", str(path), env=studio.env, cwd=studio.cwd)
    assert status == 0, said
    (told,) = said["imports"]
    return told


async def kept(lim: Limner, session_id: str) -> list[Any]:
    session = await lim.sessions.open(session_id)
    return [stored.item async for stored in session.items()]


def written_out(home: Path) -> list[Path]:
    """The files beside the pictures' own that have any part of the picture in them as base64."""
    parts = [BASE64[start : start + 64].encode() for start in range(0, len(BASE64) - 64, 64)]
    files = [path for path in home.rglob("*") if path.is_file()]
    others = [path for path in files if home / "blobs" not in path.parents]
    assert others
    return [path for path in others if any(part in path.read_bytes() for part in parts)]


def told_in(item: Mapping[str, Any]) -> Any:
    """What an item says, without the ids and notes that differ from run to run."""
    match item:
        case {"type": "message", "role": role, "content": str(words)}:
            return role, words
        case {"type": "message", "role": role, "content": parts}:
            return role, "".join(part["text"] for part in parts)
        case {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}:
            return call_id, name, arguments
        case {"type": "function_call_output", "call_id": call_id, "output": output}:
            return call_id, output
        case _:
            raise AssertionError(item)


def conversation(image_url: str) -> list[Any]:
    """What was said and done, in its order, with the picture named so."""
    words = {"type": "input_text", "text": "The window:"}
    image = {"type": "input_image", "image_url": image_url, "detail": "high"}
    return [
        ("user", "What is on my screen?"),
        ("assistant", "Let me look."),
        ("call_1", "take_screenshot", '{"target":"window"}'),
        ("call_1", [words, image]),
        ("assistant", "Half red, half blue."),
    ]


async def test_a_rollout_of_codex_is_imported_with_its_pictures(
    written: Written, studio: Studio
) -> None:
    assert await imported(studio, written.path) == {
        "file": str(written.path),
        "session": written.thread_id,
        "items": len(written.items),
        "pictures": 1,
        "omitted": 0,
        "bad_lines": 0,
        "warnings": [],
    }
    async with studio.open() as lim:
        items = await kept(lim, written.thread_id)
        picture_file = lim.pictures.local_path(await lim.pictures.recall(HANDLE))
    assert items == written.items
    assert [told_in(item) for item in items[-5:]] == conversation(f"{HANDLE_URL}{HANDLE}")
    assert picture_file.read_bytes() == PICTURE
    assert written.path in written_out(written.codex.home)
    assert written_out(studio.home) == []


async def continued(lim: Limner, session_id: str, words: str) -> None:
    """Say something in a session to the model it was with, and keep that and the answer."""
    session = await lim.sessions.open(session_id)
    settings = (await session.about()).settings
    found = lim.models.find(f"openai/{settings['model']}")
    assert found is not None
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
    instructions = settings["base_instructions"]["text"]
    prompt = Prompt(items=[*await session.history(), said], instructions=instructions)
    ready = await lim.prompts.build(prompt, found.model)
    http, key = Http(), lim.models.key(found.model) or ""
    try:
        model = RemoteModel(found.model, http=http.client(), key=key, kind="test")
        answer = await model.ask(ready.prompt)
    finally:
        await http.aclose()
    await session.append([said, *answer.items])


async def test_it_is_continued_here_and_then_by_codex_again(
    written: Written, studio: Studio
) -> None:
    server, export = written.server, studio.cwd / "back.jsonl"
    studio.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": server.base_url}
    await imported(studio, written.path)
    will_say(server, ModelAnswer(pieces=("On the ", "left.")), ModelAnswer(pieces=("Gladly.",)))
    question = ("user", "Where is the red?")
    async with studio.open() as lim:
        await continued(lim, written.thread_id, question[1])
        items = await kept(lim, written.thread_id)
        exported = await lim.export_session(written.thread_id, export)
    sent = server.requests[-1].json()
    assert_legal("openai-responses", sent)
    assert [told_in(item) for item in sent["input"][-6:]] == [*conversation(DATA_URL), question]
    assert items[:-2] == written.items
    added = [question, ("assistant", "On the left.")]
    assert [told_in(item) for item in items[-2:]] == added
    assert written_out(studio.home) == []
    assert (exported.items, exported.pictures) == (len(items), {HANDLE})

    async with written.codex.app_server() as talk:
        resumed = await talk.request("thread/resume", threadId=written.thread_id, path=str(export))
        assert resumed["thread"]["id"] == written.thread_id
        assert resumed["thread"]["preview"] == "What is on my screen?"
        assert shown_in(resumed["thread"]["turns"]) == [
            *["What is on my screen?", "Let me look.", "Half red, half blue."],
            *["Where is the red?", "On the left."],
        ]
        turn = await talk.turn(written.thread_id, "Thank you.")
        assert (turn["status"], turn["error"]) == ("completed", None)
    sent = server.requests[-1].json()
    told = [told_in(item) for item in sent["input"]]
    start = told.index(("user", "What is on my screen?"))
    assert told[start : start + 7] == [*conversation(DATA_URL), *added]
    assert told[-1] == ("user", "Thank you.")
    assert TOOL["name"] in [tool.get("name") for tool in sent["tools"]]


def shown_in(turns: list[Any]) -> list[Any]:
    """The messages and the pictures of turns, as a client of Codex sees them."""
    shown: list[Any] = []
    for item in (item for turn in turns for item in turn["items"]):
        match item:
            case {"type": "userMessage", "content": content}:
                shown += [part.get("text", part.get("url")) for part in content]
            case {"type": "agentMessage", "text": words}:
                shown.append(words)
            case {"type": "imageGeneration", "result": result}:
                shown.append(result)
            case _:
                shown.append(item["type"])
    return shown


async def test_codex_shows_the_turns_and_the_pictures_of_an_exported_conversation(
    tmp_path: Path, studio: Studio, server: ResponsesServer
) -> None:
    async with studio.open() as lim:
        async with Agent(lim, model="limner/offline") as agent:
            events = [event async for event in agent.run("draw a red fox in the snow")]
            session_id = agent.session_id or ""
        await lim.export_session(session_id, studio.cwd / "fox.jsonl")
        (drawn,) = (event for event in events if isinstance(event, ToolFinished))
        (fox,) = (part for part in drawn.result.content if isinstance(part, Picture))
        pixels = base64.b64encode(await lim.pictures.original(fox)).decode()
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    async with Codex(tmp_path, server).app_server() as talk:
        path = str(studio.cwd / "fox.jsonl")
        resumed = await talk.request("thread/resume", threadId=session_id, path=path)
    (turn,) = resumed["thread"]["turns"]
    assert turn["status"] == "completed"
    assert shown_in([turn]) == ["draw a red fox in the snow", pixels, ended.text]


async def test_one_that_codex_has_compressed_is_the_same(written: Written, studio: Studio) -> None:
    items, packed = written.items, written.path.with_suffix(".jsonl.zst")
    # What nobody has touched for some days is compressed in the background.
    os.utime(written.path, (LONG_AGO, LONG_AGO))
    async with written.codex.app_server(features=("local_thread_store_compression",)):
        await until(lambda: written.codex.rollouts == [packed])
    assert (await imported(studio, packed))["session"] == written.thread_id
    async with studio.open() as lim:
        assert await kept(lim, written.thread_id) == items
        assert await lim.pictures.original(await lim.pictures.recall(HANDLE)) == PICTURE
