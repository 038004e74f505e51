"""One client script, the same for every app-server: what it does, and what it has to find."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from PIL import Image
from tests.servers.scripted import calls, says

import limner
from limner.agent.events import ItemAdded, TextDelta, ToolFinished, ToolStarted, UsageUpdated
from limner.base64_text import encode_base64
from limner.frontends.remote.client import Client
from limner.frontends.remote.events import TurnResult
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall

# What the model says to each request of the script, in its order.
SAYINGS: Sequence[ModelAnswer] = (
    ModelAnswer(
        pieces=("Let me ", "look."),
        calls=(
            ScriptedCall(name="screenshot", arguments='{"of":"left"}', call_id="call_1"),
            ScriptedCall(name="screenshot", arguments='{"of":"right"}', call_id="call_2"),
        ),
    ),
    ModelAnswer(pieces=("Both ", "are green.")),
    ModelAnswer(pieces=("A green square.",)),
    ModelAnswer(pieces=("Still ", "here.")),
    ModelAnswer(pieces=("In the fork.",)),
)
# And to each request of the one who is at the wheel.
SAYINGS_AT_THE_WHEEL: Sequence[ModelAnswer] = (
    calls(("paint", "{}"), start=1),
    says("In green, then."),
    calls(("paint", "{}"), start=2),
    calls(("paint", "{}"), start=3),
    says("Still here."),
)


def green() -> bytes:
    """A picture small enough to be sent as it is."""
    file = io.BytesIO()
    Image.new("RGB", (16, 16), "green").save(file, "PNG")
    return file.getvalue()


DATA_URL = f"data:image/png;base64,{encode_base64(green())}"


@limner.tool
def screenshot(of: str) -> list[Any]:
    """Take a picture of a part of the screen."""
    return [f"The {of} half:", green()]


async def play(client: Client, *, cwd: Path, model: str) -> str:
    """Start, stream with tools, look at pictures, resume, fork, list, archive; the thread's id."""
    thread = await client.thread(tools=[screenshot], cwd=cwd, model=model)
    async with aclosing(thread.stream("What is on my screen?")) as stream:
        events = [event async for event in stream]
    last = events[-1]
    assert isinstance(last, TurnResult), events
    assert (last.status, last.text) == ("completed", "Both are green."), last
    words = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert words == "Let me look.Both are green."
    called = {event.call.call_id for event in events if isinstance(event, ToolStarted)}
    answered = {event.call.call_id for event in events if isinstance(event, ToolFinished)}
    assert called == answered == {"call_1", "call_2"}
    made = [event.item for event in events if isinstance(event, ItemAdded)]
    made_calls = {one["id"]: one for one in made if one["type"] == "dynamicToolCall"}
    assert {name: one["contentItems"] for name, one in made_calls.items()} == {
        "call_1": shown("left"),
        "call_2": shown("right"),
    }
    assert {one["status"] for one in made_calls.values()} == {"completed"}
    assert any(isinstance(event, UsageUpdated) for event in events)
    assert last.usage.input_tokens > 0

    file = cwd / "green.png"
    file.write_bytes(green())
    looked = await thread.run("And this?", images=[green(), file])
    assert (looked.status, looked.text) == ("completed", "A green square."), looked
    return thread.id


async def play_at_the_wheel(client: Client, *, cwd: Path, model: str) -> None:
    """Speak in the middle of one turn, stop another, walk away from a third, and still go on."""
    painted = asyncio.Event()

    @limner.tool
    async def paint() -> str:
        """Paint until somebody says that it is enough."""
        await painted.wait()
        return "Painted."

    thread = await client.thread(tools=[paint], cwd=cwd, model=model)
    async with aclosing(thread.stream("Paint")) as stream:
        async for event in stream:
            if isinstance(event, ToolStarted):
                await thread.steer("In green.")
                painted.set()
            elif isinstance(event, TurnResult):
                assert (event.status, event.text) == ("completed", "In green, then.")
    painted.clear()
    async with aclosing(thread.stream("Paint again")) as stream:
        async for event in stream:
            if isinstance(event, ToolStarted):
                await thread.interrupt()
            elif isinstance(event, TurnResult):
                assert event.status == "interrupted"
    async with aclosing(thread.stream("And again")) as stream:
        async for event in stream:
            if isinstance(event, ToolStarted):
                break
    assert (await thread.run("Are you there?")).text == "Still here."


async def play_on(client: Client, thread_id: str, *, cwd: Path) -> None:
    """What another client does with the thread that `play` has left."""
    thread = await client.resume(thread_id, tools=[screenshot], cwd=cwd)
    assert thread.id == thread_id
    assert (await thread.run("Are you there?")).text == "Still here."
    fork = await client.fork(thread_id, tools=[screenshot], cwd=cwd)
    assert fork.id != thread_id
    assert (await fork.run("And you?")).text == "In the fork."
    assert {thread_id, fork.id} <= {info.id for info in await client.list()}
    await fork.archive()
    assert fork.id not in {info.id for info in await client.list()}


def shown(half: str) -> list[dict[str, Any]]:
    """What the tool answers, as a server shows it."""
    return [
        {"type": "inputText", "text": f"The {half} half:"},
        {"type": "inputImage", "imageUrl": DATA_URL},
    ]
