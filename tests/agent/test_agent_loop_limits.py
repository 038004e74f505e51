"""The edges of a turn: its limits, interruptions at every step, and a history that stays legal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.agent.talking import Talk, ending, happened, of, talk
from tests.servers.scripted import calls, says

from limner.agent.events import Compacted, ToolFinished, ToolStarted, UsageUpdated
from limner.testing.servers.http_server import ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import TokenCounts
from limner.tools.base import Outcome, Tool, ToolContext

FULL = TokenCounts(input=10_000_000, cached=0)


@pytest.fixture
def openai(tmp_path: Path) -> Iterator[Talk]:
    with talk("openai/gpt-5.4", tmp_path) as made:
        yield made


def tool_of(run: Any) -> Tool:
    return Tool(
        name="act",
        description="Acts.",
        schema={"type": "object", "properties": {}},
        run=run,
        toolset="test",
        max_result_chars=1_000,
    )


async def done(arguments: Any, context: ToolContext) -> Outcome:
    return Outcome(value={})


def outputs_asked(request: str) -> dict[str, str]:
    """The outputs of calls in a request to the model, by call."""
    items = json.loads(request)["input"]
    return {
        item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"
    }


async def test_as_many_calls_as_the_limit_run_and_one_more_does_not(openai: Talk) -> None:
    openai.flags = {"agent.max_calls": 2}
    openai.script(calls(("act", "{}"), ("act", "{}")), says("Done."))
    events = await happened(openai.agent(tools=[tool_of(done)]), "Go.")
    assert (ending(events).status, len(of(ToolFinished, events))) == ("completed", 2)
    openai.script(calls(("act", "{}"), ("act", "{}"), ("act", "{}")), says("Done."))
    events = await happened(openai.agent(tools=[tool_of(done)]), "Go.")
    assert (ending(events).status, len(of(ToolStarted, events))) == ("failed", 0)


async def test_as_many_requests_as_the_limit_are_sent(openai: Talk) -> None:
    openai.flags = {"agent.max_requests": 2}
    openai.script(calls(("act", "{}")), says("Done."))
    events = await happened(openai.agent(tools=[tool_of(done)]), "Go.")
    assert ending(events).text == "Done."


async def test_calls_over_the_limit_have_outputs_that_say_why(openai: Talk) -> None:
    openai.flags = {"agent.max_calls": 1}
    openai.script(calls(("act", "{}"), ("act", "{}")), says("Stopped."))
    agent = openai.agent(tools=[tool_of(done)])
    await happened(agent, "Go.")
    await happened(agent, "Go on.")
    asked = outputs_asked(openai.asked[-1])
    assert asked.keys() == {"call_1", "call_2"}
    assert all("This turn was stopped after 1 tool calls" in words for words in asked.values())


async def test_an_answer_that_was_cut_off_is_marked_and_a_whole_one_is_not(openai: Talk) -> None:
    openai.script(says("As I was say", stop="length"))
    agent = openai.agent()
    assert ending(await happened(agent, "Speak.")).is_cut
    openai.script(says("Now all of it."))
    assert not ending(await happened(agent, "Again.")).is_cut


async def test_an_interrupt_while_a_tool_runs_ends_the_turn_before_the_next_request(
    openai: Talk,
) -> None:
    async def interrupt(arguments: Any, context: ToolContext) -> Outcome:
        agent.interrupt()
        return Outcome(value={})

    agent = openai.agent(tools=[tool_of(interrupt)])
    openai.script(calls(("act", "{}")), says("Never said."))
    events = await happened(agent, "Go.")
    assert (ending(events).status, len(openai.asked)) == ("interrupted", 1)
    assert outputs_of_history(await stored(agent)) == {"call_1"}


async def test_the_answer_is_counted_if_running_its_calls_fails(openai: Talk) -> None:
    openai.flags = {"agent.max_calls": 1}
    openai.script(calls(("act", "{}"), ("act", "{}")))
    events = await happened(openai.agent(tools=[tool_of(done)]), "Go.")
    assert ending(events).status == "failed"
    assert [event.last.input_tokens for event in of(UsageUpdated, events)] == [1200]


async def test_the_summary_is_stored_before_it_is_announced(openai: Talk) -> None:
    openai.script(says("First.", usage=FULL))
    agent = openai.agent()
    await happened(agent, "One.")
    openai.script(says("We said one."), says("Second."))
    starts: list[int] = []
    with closing(sqlite3.connect(openai.home / "limner.db")) as other:
        async for event in agent.run("Two."):
            if isinstance(event, Compacted):
                (row,) = other.execute("SELECT sends_from FROM sessions").fetchall()
                starts.append(row[0])
    assert starts == [3]
    history = json.dumps(await (await agent.conversation()).session.history())
    assert "We said one." in history
    assert "First." not in history


async def test_a_summary_makes_room_so_the_next_request_is_not_summed_up_again(
    openai: Talk,
) -> None:
    openai.script(says("First.", usage=FULL))
    agent = openai.agent(tools=[tool_of(done)])
    await happened(agent, "One.")
    openai.script(
        says("We said one."), calls(("act", "{}"), usage=None), says("Second.", usage=None)
    )
    events = await happened(agent, "Two.")
    assert (ending(events).text, len(of(Compacted, events))) == ("Second.", 1)


async def test_a_refusal_for_length_that_is_billed_is_not_asked_a_second_time(
    openai: Talk,
) -> None:
    def too_long_and_billed(seen: ReceivedRequest) -> Reply:
        error = {
            "message": "Your input exceeds the context window of this model.",
            "code": "context_length_exceeded",
        }
        failed = {"status": "failed", "error": error, "output": [], "usage": usage, "id": "r"}
        return json_reply({"object": "response", **failed})

    usage = {"input_tokens": 900, "output_tokens": 1, "total_tokens": 901}
    openai.script(says("First."))
    agent = openai.agent()
    await happened(agent, "One.")
    openai.script(too_long_and_billed, says("We said one."), says("Second."))
    before = len(openai.asked)
    ended = ending(await happened(agent, "Two."))
    assert (ended.status, len(openai.asked) - before) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.billed


async def stored(agent: Any) -> list[Any]:
    return [one.item async for one in (await agent.conversation()).session.items()]


def outputs_of_history(items: list[Any]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] == "function_call_output"}
