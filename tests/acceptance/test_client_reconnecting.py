"""A client's tool runs while its server is killed or the wire between them is cut.

The tool runs once, what it costs is paid once, and the turn ends as it would have. Codex, which
comes with the package `openai-codex` (`pip install --group local`), does not go on after its death
but does where only the wire is cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, data_url, picture
from tests.acceptance.hardship import kill_child
from tests.servers.appserver_listening import listening
from tests.servers.appserver_side import Side, TalkingServer, limner_side, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.relay import Relay
from tests.servers.scripted import calls, says

import limner
from limner.agent.events import ItemAdded, ToolFinished, ToolStarted
from limner.frontends.appserver.tool_answers import CANCELLED
from limner.frontends.remote.events import Reconnected, RemoteEvent, TurnResult
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.openai_server import OpenAIServer
from limner.tools.function_tools import FunctionTool

# Both requests to the model, which the server pays for and reports.
REQUESTS_NANO = 2 * 1_371_000


@pytest.fixture
def model() -> Iterator[TalkingServer]:
    with TalkingServer() as server:
        yield server


@pytest.fixture
def side(tmp_path: Path, model: TalkingServer) -> Side:
    return limner_side(tmp_path / "limner", model)


class Painter:
    """A tool that paints when it is told to go on, and remembers what it began."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self._go_on: dict[str, asyncio.Event] = {}

    def go_on(self, what: str) -> None:
        """Let it finish a painting."""
        self._finished(what).set()

    @property
    def tool(self) -> FunctionTool:
        @limner.tool
        async def paint(what: str) -> str:
            """Paint, slowly."""
            self.runs.append(what)
            await self._finished(what).wait()
            return f"{what}, painted"

        return paint

    def _finished(self, what: str) -> asyncio.Event:
        return self._go_on.setdefault(what, asyncio.Event())


def will_say(model: TalkingServer, *sayings: ModelAnswer) -> None:
    """The model's next answers."""
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))


def outputs(model: TalkingServer) -> list[tuple[str, Any]]:
    """What the tools gave back, with their calls, as the model's last request has it."""
    items = model.requests[-1].json()["input"]
    return [
        (item["call_id"], item["output"])
        for item in items
        if item["type"] == "function_call_output"
    ]


def count(told: list[RemoteEvent], kind: type[Any]) -> int:
    return sum(isinstance(event, kind) for event in told)


def result_of(told: list[RemoteEvent]) -> TurnResult:
    assert isinstance(told[-1], TurnResult)
    return told[-1]


@pytest.mark.slow
async def test_a_paid_call_outlives_the_server_and_is_paid_once(
    side: Side, model: TalkingServer, studio: Studio, openai: OpenAIServer
) -> None:
    gate, drawn = Gate(), openai.drawn({"model": "gpt-image-2.5-flare"})
    openai.script("generate", Reply(hold=gate, headers=drawn.headers, pieces=drawn.pieces))
    call = calls(("image_generate", '{"prompt":"a fox"}'), words="A fox.")
    will_say(model, call, says("Done."), says("Still here."))
    async with (
        studio.connect(openai).open() as lim,
        limner.connect(command=[side.program, "app-server"], env=side.env, lim=lim) as client,
    ):
        thread = await client.thread(tools=lim.tools(), cwd=side.cwd)
        told: list[RemoteEvent] = []
        async for event in thread.stream("Draw a fox"):
            told.append(event)
            if isinstance(event, ToolStarted):
                await openai.wait_until("generate")
                kill_child("app-server")
            elif isinstance(event, Reconnected):
                gate.open()
        spend = await lim.money.spend()
        assert (await thread.run("Are you there?")).text == "Still here."
    (reconnected,) = [event for event in told if isinstance(event, Reconnected)]
    assert (reconnected.goes_on, "status -9" in reconnected.reason) == (True, True)
    result = result_of(told)
    assert (result.status, result.text, result.error) == ("completed", "Done.", None)
    assert (count(told, ToolStarted), count(told, ToolFinished)) == (1, 1)
    assert len(openai.sent("generate")) == 1
    assert result.cost_nano == PRICE_NANO + REQUESTS_NANO
    assert [(line.name, line.nano) for line in spend.by_session] == [(thread.id, PRICE_NANO)]
    ((call_id, output),) = outputs(model)
    assert (call_id, output[1]["image_url"]) == ("call_1", data_url(picture()))


@pytest.mark.slow
@pytest.mark.parametrize("is_done_first", [True, False])
async def test_the_answer_of_a_tool_reaches_the_server_that_came_after(
    side: Side, model: TalkingServer, studio: Studio, is_done_first: bool
) -> None:
    painter = Painter()
    will_say(model, calls(("paint", '{"what":"a fox"}')), says("There."))
    async with (
        studio.open() as lim,
        limner.connect(command=[side.program, "app-server"], env=side.env, lim=lim) as client,
    ):
        thread = await client.thread(tools=[painter.tool], cwd=side.cwd)
        told: list[RemoteEvent] = []
        async for event in thread.stream("Paint a fox"):
            told.append(event)
            if isinstance(event, ToolStarted):
                kill_child("app-server")
            if isinstance(event, ToolStarted if is_done_first else Reconnected):
                painter.go_on("a fox")
    assert (result_of(told).status, result_of(told).text) == ("completed", "There.")
    assert (painter.runs, outputs(model)) == (["a fox"], [("call_1", "a fox, painted")])


@pytest.mark.slow
async def test_of_two_calls_only_the_one_without_an_answer_is_put_again_however_often_it_dies(
    side: Side, model: TalkingServer, studio: Studio
) -> None:
    painter = Painter()
    both = calls(("paint", '{"what":"a fox"}'), ("paint", '{"what":"an owl"}'))
    will_say(model, both, says("There."))
    async with (
        studio.open() as lim,
        limner.connect(command=[side.program, "app-server"], env=side.env, lim=lim) as client,
    ):
        thread = await client.thread(tools=[painter.tool], cwd=side.cwd)
        told: list[RemoteEvent] = []
        async for event in thread.stream("Paint both"):
            told.append(event)
            match event:
                case ToolStarted() if count(told, ToolStarted) == 2:
                    painter.go_on("a fox")
                case ItemAdded(item={"id": "call_1"}):
                    kill_child("app-server")
                case Reconnected() if count(told, Reconnected) == 1:
                    kill_child("app-server")
                case Reconnected():
                    painter.go_on("an owl")
                case _:
                    pass
    assert (result_of(told).status, result_of(told).text) == ("completed", "There.")
    assert [event.goes_on for event in told if isinstance(event, Reconnected)] == [True, True]
    assert painter.runs == ["a fox", "an owl"]
    assert outputs(model) == [("call_1", "a fox, painted"), ("call_2", "an owl, painted")]
    made = [item["id"] for item in result_of(told).items if item["type"] == "dynamicToolCall"]
    assert sorted(made) == ["call_1", "call_2"]


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [True, False])
async def test_a_server_that_is_restarted_where_it_was_is_found_again(
    side: Side, model: TalkingServer, studio: Studio, tmp_path: Path, is_killed: bool
) -> None:
    painter = Painter()
    will_say(model, calls(("paint", '{"what":"a fox"}')), says("There."))
    async with AsyncExitStack() as stack:
        lim = await stack.enter_async_context(studio.open())
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(listening(side, f"unix://{tmp_path / 'socket'}"))
        client = await stack.enter_async_context(limner.connect(url, lim=lim))
        thread = await client.thread(tools=[painter.tool], cwd=side.cwd)
        told: list[RemoteEvent] = []
        async for event in thread.stream("Paint a fox"):
            told.append(event)
            if isinstance(event, ToolStarted):
                if is_killed:
                    kill_child("app-server")
                await first.aclose()
                await stack.enter_async_context(listening(side, url))
            elif isinstance(event, Reconnected):
                painter.go_on("a fox")
        result = result_of(told)
        if not is_killed:
            # Who is told to stop ends its turns in good order.
            assert (result.status, painter.runs) == ("interrupted", ["a fox"])
            result = await thread.run("And now?")
    assert (result.status, result.text) == ("completed", "There.")
    output = "a fox, painted" if is_killed else CANCELLED
    assert (painter.runs, outputs(model)) == (["a fox"], [("call_1", output)])


@pytest.mark.parametrize(
    "kind",
    [pytest.param("codex", marks=[pytest.mark.slow, needs("codex_cli_bin")]), "limner"],
)
async def test_a_wire_that_is_cut_is_back_and_the_turn_goes_on(
    kind: str, model: TalkingServer, studio: Studio, tmp_path: Path
) -> None:
    painter = Painter()
    will_say(model, calls(("paint", '{"what":"a fox"}')), says("There."))
    side, far, near = side_of(kind, tmp_path, model), tmp_path / "far", tmp_path / "near"
    async with (
        listening(side, f"unix://{far}"),
        Relay(near, to=far).running() as relay,
        studio.open() as lim,
        limner.connect(f"unix://{near}", lim=lim) as client,
    ):
        thread = await client.thread(tools=[painter.tool], cwd=side.cwd)
        told: list[RemoteEvent] = []
        async for event in thread.stream("Paint a fox"):
            told.append(event)
            if isinstance(event, ToolStarted):
                relay.cut()
            elif isinstance(event, Reconnected):
                painter.go_on("a fox")
    assert [event.goes_on for event in told if isinstance(event, Reconnected)] == [True]
    assert (result_of(told).status, result_of(told).text) == ("completed", "There.")
    assert (painter.runs, outputs(model)) == (["a fox"], [("call_1", "a fox, painted")])
