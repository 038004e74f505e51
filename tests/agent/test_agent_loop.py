"""A model on each of the wires draws, looks, edits and answers; and every way to fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.talking import Talk, ending, happened, of, talk
from tests.servers.scripted import TALKERS, calls, says

import limner
from limner.agent.events import (
    Compacted,
    InputAdded,
    ItemAdded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UsageUpdated,
)
from limner.agent.history_repair import ABORTED
from limner.agent.loop import INTERRUPTED
from limner.agent.session_options import SessionOptions
from limner.errors import UserError
from limner.testing.servers.http_server import Gate, ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import TokenCounts
from limner.tools.base import Outcome, Question, Tool, ToolContext
from limner.wires.items import is_call

DRAW = ("image_generate", '{"prompt": "a red fox", "output_path": "fox.png"}')
LOOK = ("inspect_image", '{"path": "fox.png", "question": "Which colours?"}')
EDIT = ("image_edit", '{"image": "fox.png", "prompt": "make it blue", "output_path": "blue.png"}')


@pytest.fixture(params=TALKERS)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    with talk(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def openai(tmp_path: Path) -> Iterator[Talk]:
    """One wire, where it makes no difference which."""
    with talk("openai/gpt-5.4", tmp_path) as made:
        yield made


def outputs(events: list[Any]) -> dict[str, Any]:
    """What each call gave back, by its id."""
    return {event.call.call_id: event.item["output"] for event in of(ToolFinished, events)}


def waiting_tool(*, started: asyncio.Event, cost_nano: int = 0) -> Tool:
    """A tool that ends when it is stopped."""

    async def run(arguments: Any, context: ToolContext) -> Outcome:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody waits for ever")

    return made_tool("wait", run, timeout_s=30)


def made_tool(name: str, run: Any, **more: Any) -> Tool:
    return Tool(
        name=name,
        description=f"What {name} does.",
        schema={"type": "object", "properties": {}},
        run=run,
        toolset="test",
        max_result_chars=1_000,
        **more,
    )


async def test_a_model_draws_looks_edits_and_answers(at: Talk) -> None:
    at.script(calls(DRAW), calls(LOOK, start=2), calls(EDIT, start=3), says("It is ", "blue now."))
    events = await happened(at.agent(), "Draw a fox, look at it, make it blue.")
    ended = ending(events)
    assert (ended.status, ended.text, ended.error) == ("completed", "It is blue now.", None)
    assert [event.call.name for event in of(ToolFinished, events)] == [
        "image_generate",
        "inspect_image",
        "image_edit",
    ]
    assert all(event.result.ok for event in of(ToolFinished, events))
    assert (at.cwd / "fox.png").exists()
    assert (at.cwd / "blue.png").exists()
    # Both pictures are in the request that follows them.
    assert len(at.asked) == 4
    assert at.asked[1].count("/9j/") + at.asked[1].count("iVBOR") == 1
    assert at.asked[3].count("/9j/") + at.asked[3].count("iVBOR") == 2
    told = of(TextDelta, events)
    assert "".join(delta.text for delta in told) == "It is blue now."
    said = [event.item for event in of(ItemAdded, events) if event.item["type"] == "message"]
    assert said[-1]["id"] == told[-1].item_id


async def test_the_cost_of_a_turn_is_that_of_the_ledger(at: Talk) -> None:
    at.script(calls(DRAW), says("Done."))
    lim = at.limner()
    agent = at.agent(lim)
    ended = ending(await happened(agent, "Draw."))
    spend = await lim.money.spend()
    assert ended.cost_nano == ended.spent_nano == spend.total_nano > 0
    assert {row.session_id for row in spend.recent} == {agent.session_id}


async def test_calls_made_together_run_together_and_every_output_is_kept(at: Talk) -> None:
    both = asyncio.Barrier(2)

    async def run(arguments: Any, context: ToolContext) -> Outcome:
        await both.wait()
        return Outcome(value={"call": context.call_id})

    at.script(calls(("meet", "{}"), ("meet", "{}")), says("They met."))
    agent = at.agent(tools=[made_tool("meet", run)])
    events = await happened(agent, "Go.")
    assert ending(events).text == "They met."
    made = [event.item for event in of(ItemAdded, events) if event.item["type"] == "function_call"]
    assert outputs(events) == {
        item["call_id"]: json.dumps({"call": item["call_id"]}, separators=(",", ":"))
        for item in made
    }
    assert len(made) == 2


async def test_the_model_reads_the_error_of_a_tool_and_the_turn_continues(at: Talk) -> None:
    at.script(
        calls(("inspect_image", '{"path": "nowhere.png", "question": "?"}'), ("no_such", "{}")),
        says("It failed."),
    )
    events = await happened(at.agent(), "Look.")
    assert ending(events).text == "It failed."
    errors = {
        event.call.name: json.loads(event.item["output"])["error"]["code"]
        for event in of(ToolFinished, events)
    }
    assert errors == {"inspect_image": "FILE_NOT_FOUND", "no_such": "UNKNOWN_TOOL"}


async def test_the_model_reads_that_its_arguments_were_cut_off(openai: Talk) -> None:
    openai.script(calls(("image_generate", '{"prompt": "a f')), says("Again, then."))
    events = await happened(openai.agent(), "Draw.")
    assert ending(events).text == "Again, then."
    assert of(ToolStarted, events) == []
    assert "failed to parse function arguments" in openai.asked[-1]


async def test_a_tool_that_never_ends_is_stopped_by_its_time_and_by_the_user(at: Talk) -> None:
    started = asyncio.Event()
    slow = waiting_tool(started=started)
    quick = Tool(**{**{k: getattr(slow, k) for k in vars(Tool)["__slots__"]}, "timeout_s": 0.01})
    at.script(calls(("wait", "{}")), says("It took too long."))
    events = await happened(at.agent(tools=[quick]), "Wait.")
    assert ending(events).text == "It took too long."
    assert of(ToolFinished, events)[0].result.domain_code == "TOOL_TIMEOUT"

    started.clear()
    at.script(calls(("wait", "{}")), says("never said"))
    agent = at.agent(tools=[slow])
    running = asyncio.ensure_future(happened(agent, "Wait."))
    await started.wait()
    agent.interrupt()
    events = await running
    assert ending(events).status == "interrupted"
    assert of(ToolFinished, events)[0].result.domain_code == "CANCELLED"


async def test_steering_is_part_of_the_next_request(at: Talk) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def run(arguments: Any, context: ToolContext) -> Outcome:
        arrived.set()
        await go_on.wait()
        return Outcome(value={"done": True})

    at.script(calls(("work", "{}")), says("A green one, then."))
    agent = at.agent(tools=[made_tool("work", run)])
    running = asyncio.ensure_future(happened(agent, "A red one."))
    await arrived.wait()
    await agent.steer("No, a green one.")
    go_on.set()
    events = await running
    assert ending(events).text == "A green one, then."
    assert len(of(InputAdded, events)) == 2
    assert at.asked[1].index("No, a green one.") > at.asked[1].index("A red one.")
    with pytest.raises(UserError, match="No turn is running"):
        await agent.steer("Too late.")


async def test_steering_while_the_model_speaks_makes_it_speak_again(openai: Talk) -> None:
    gate = Gate()
    openai.script(says("Red it is.", gate=gate), says("Green it is."))
    agent, events = openai.agent(), []
    async for event in agent.run("A red one."):
        events.append(event)
        if isinstance(event, TextDelta) and event.text == "Red it is.":
            await agent.steer("Green!")
            gate.open()
    assert ending(events).text == "Green it is."


async def test_an_interrupted_answer_is_counted_and_the_conversation_goes_on(at: Talk) -> None:
    gate = Gate()
    at.script(says("I would say", gate=gate), says("Hello again."))
    lim = at.limner()
    agent, events = at.agent(lim), []
    async for event in agent.run("Speak."):
        events.append(event)
        if isinstance(event, TextDelta):
            agent.interrupt()
    gate.open()
    assert ending(events).status == "interrupted"
    assert [row.state for row in (await lim.money.spend()).recent] == ["unknown"]
    at.script(says("Hello again."))
    assert ending(await happened(agent, "And now?")).text == "Hello again."
    assert INTERRUPTED.splitlines()[0] in at.asked[-1]


async def test_another_process_goes_on_with_the_same_spend_and_the_same_terms(at: Talk) -> None:
    at.script(calls(DRAW), says("Here."))
    lim = at.limner()
    agent = at.agent(lim, instructions="Speak like a sailor.", budget_usd="5")
    first = ending(await happened(agent, "Draw a fox."))
    await lim.aclose()

    at.script(says("I drew a fox."))
    later = at.limner()
    again = limner.Agent(later, session=agent.session_id)
    second = ending(await happened(again, "What did you draw?"))
    assert second.text == "I drew a fox."
    assert second.spent_nano == first.spent_nano + second.cost_nano
    assert "Speak like a sailor." in at.asked[-1]
    assert "Draw a fox." in at.asked[-1]
    assert at.asked[-1].count("/9j/") + at.asked[-1].count("iVBOR") == 1


async def test_a_call_of_a_process_that_died_is_sent_as_aborted(openai: Talk) -> None:
    started = asyncio.Event()
    openai.script(calls(("wait", "{}")), says("never said"))
    agent = openai.agent(tools=[waiting_tool(started=started)])
    running = asyncio.ensure_future(happened(agent, "Wait."))
    await started.wait()
    running.cancel()
    await asyncio.wait({running})
    openai.script(says("It was aborted."))
    await agent.aclose()
    again = openai.agent(session=agent.session_id)
    assert ending(await happened(again, "And?")).text == "It was aborted."
    sent = json.loads(openai.asked[-1])["input"]
    assert [item.get("output") for item in sent if item["type"] == "function_call_output"] == [
        ABORTED
    ]


async def test_a_call_that_was_left_open_can_still_be_answered(at: Talk) -> None:
    started = asyncio.Event()
    at.script(calls(("wait", "{}"), words="One moment. "), says("never said"))
    agent = at.agent(tools=[waiting_tool(started=started)])
    running = asyncio.ensure_future(happened(agent, "Wait."))
    await started.wait()
    running.cancel()
    await asyncio.wait({running})

    async def run(arguments: Any, context: ToolContext) -> Outcome:
        return Outcome(value={"answered": "late"})

    at.script(says("Better late than never."))
    await agent.aclose()
    again = at.agent(session=agent.session_id, tools=[made_tool("wait", run)])
    conversation = await again.conversation()
    left = [one.item async for one in conversation.session.items() if is_call(one.item)]
    events: list[Any] = []
    await conversation.run([], on_event=events.append, pending=left)
    assert ending(events).text == "Better late than never."
    assert "late" in at.asked[-1]
    assert ABORTED not in at.asked[-1]


async def test_a_conversation_that_outgrows_the_model_is_summed_up(at: Talk) -> None:
    at.script(calls(DRAW), says("Here is your fox.", usage=TokenCounts(input=10_000_000, cached=0)))
    agent = at.agent()
    await happened(agent, "Draw a fox. Take your time.")
    at.script(says("The user wanted a fox; fox.png has it."), says("As I said, fox.png."))
    compacted = of(Compacted, await happened(agent, "Where is it?"))
    if at.name.startswith("groq"):  # nobody knows how much this one holds
        assert compacted == []
        return
    (done,) = compacted
    assert done.summary == "The user wanted a fox; fox.png has it."
    (handle,) = done.dropped
    request = at.asked[-1]
    assert f"[picture {handle}: a red fox; no longer sent" in request
    assert "The user wanted a fox" in request
    assert "Where is it?" in request
    assert "Take your time." not in request
    assert "iVBOR" not in request


async def test_a_service_that_finds_it_too_long_gets_a_shorter_one(openai: Talk) -> None:
    def too_long(seen: ReceivedRequest) -> Reply:
        error = {
            "message": "Your input exceeds the context window of this model.",
            "type": "invalid_request_error",
            "param": "input",
            "code": "context_length_exceeded",
        }
        return json_reply({"error": error}, status=400)

    openai.script(says("First."))
    agent = openai.agent()
    await happened(agent, "One.")
    openai.script(too_long, says("We said one."), says("Second."))
    events = await happened(agent, "Two.")
    assert ending(events).text == "Second."
    assert of(Compacted, events)[0].summary == "We said one."


async def test_compaction_on_request_follows_its_own_prompt(at: Talk) -> None:
    at.script(says("Ahoy."))
    agent = at.agent()
    await happened(agent, "Hello.")
    conversation = await agent.conversation()
    await agent.limner.conversations.change(
        conversation, SessionOptions(compact_prompt="Sum it up in one word.")
    )
    at.script(says("Greetings."))
    events = [event async for event in agent.compact()]
    assert ending(events).status == "completed"
    assert of(Compacted, events)[0].summary == "Greetings."
    assert "Sum it up in one word." in at.asked[-1]


@pytest.mark.slow
async def test_a_cap_of_five_cents_holds_when_forty_pictures_are_wanted_at_once(
    openai: Talk,
) -> None:
    wanted = [
        ("image_generate", json.dumps({"prompt": f"fox {number}", "quality": "standard"}))
        for number in range(40)
    ]
    openai.script(calls(*wanted), says("That is all I could afford."))
    lim = openai.limner()
    agent = openai.agent(lim, budget_usd="0.05")
    events = await happened(agent, "Forty foxes.")
    ended = ending(events)
    results = [event.result for event in of(ToolFinished, events)]
    assert len(results) == 40
    drawn = [result for result in results if result.ok]
    assert {result.domain_code for result in results if not result.ok} == {"BUDGET_EXCEEDED"}
    assert len(drawn) == len(openai.drawer.requests) > 0
    assert ended.spent_nano <= 50_000_000
    assert await lim.money.spent(session_id=agent.session_id) == ended.spent_nano


async def test_a_personality_offers_its_toolset_and_writes_within_its_reach(openai: Talk) -> None:
    painter = openai.home / "personalities" / "painter"
    painter.mkdir(parents=True)
    (painter / "SOUL.md").write_text("You paint.")
    (painter / "toolset.yaml").write_text("- image_generate\n")
    (painter / "config.toml").write_text('[fs_reach]\nwrite = ["${CWD}/out"]\n')
    openai.script(calls(DRAW), says("Denied."))
    events = await happened(openai.agent(personality="painter"), "Draw.")
    offered = json.loads(openai.asked[0])["tools"]
    assert [tool["name"] for tool in offered] == ["image_generate"]
    (finished,) = of(ToolFinished, events)
    assert (finished.result.code, finished.result.domain_code) == (
        "execution_failed",
        "OUTPUT_PATH_DENIED",
    )
    assert openai.drawer.requests == []


async def test_the_price_of_a_users_tool_is_added_to_the_session(openai: Talk) -> None:
    async def good(arguments: Any, context: ToolContext) -> Outcome:
        return Outcome(value={"words": "x" * 5_000}, cost_nano=7_000_000, cost_source="provider")

    async def bad(arguments: Any, context: ToolContext) -> Outcome:
        error = limner.LimnerError("it broke, and was paid for")
        error.charge(3_000_000, "provider")
        raise error

    openai.script(calls(("good", "{}"), ("bad", "{}")), says("Paid."))
    lim = openai.limner()
    agent = openai.agent(lim, tools=[made_tool("good", good), made_tool("bad", bad)])
    events = await happened(agent, "Spend.")
    assert [event.result.cost_nano for event in of(ToolFinished, events)].count(7_000_000) == 1
    by_tool = {row.tool: row.cost_nano for row in (await lim.money.spend()).recent}
    assert by_tool["good"] == 7_000_000
    assert by_tool["bad"] == 3_000_000
    assert ending(events).spent_nano == sum(
        row.cost_nano for row in (await lim.money.spend()).recent
    )
    await lim.aclose()
    later = openai.limner()
    assert await later.money.spent(session_id=agent.session_id) == ending(events).spent_nano


async def test_a_turn_has_a_limit_of_requests_and_of_calls(openai: Talk) -> None:
    async def run(arguments: Any, context: ToolContext) -> Outcome:
        return Outcome(value={})

    openai.flags = {"agent.max_requests": 3}
    openai.script(calls(("again", "{}")))
    agent = openai.agent(tools=[made_tool("again", run)])
    ended = ending(await happened(agent, "Go."))
    assert (ended.status, ended.error and ended.error.code) == ("failed", "TURN_LIMIT")
    assert len(openai.asked) == 3

    openai.flags = {"agent.max_calls": 3}
    openai.script(calls(("again", "{}"), ("again", "{}")))
    agent = openai.agent(tools=[made_tool("again", run)])
    events = await happened(agent, "Go.")
    assert ending(events).error is not None
    assert len(of(ToolStarted, events)) == 2
    openai.script(says("Stopped."))
    assert ending(await happened(agent, "Go on.")).text == "Stopped."


async def test_a_service_that_fails_ends_the_turn_and_nothing_else(at: Talk) -> None:
    at.script(Reply(status=500, pieces=(b'{"error": {"message": "down"}}',)))
    agent = at.agent()
    ended = ending(await happened(agent, "Hello."))
    assert ended.status == "failed"
    assert ended.error is not None
    at.script(says("Back again."))
    assert ending(await happened(agent, "Hello?")).text == "Back again."


async def test_every_event_is_emitted_in_order_and_after_it_is_on_disk(openai: Talk) -> None:
    openai.script(calls(DRAW, words="Let me draw. "), says("Here."))
    agent, kinds = openai.agent(), []
    async for event in agent.run("Draw."):
        kinds.append(type(event).__name__)
        if isinstance(event, ItemAdded | InputAdded | ToolFinished):
            conversation = await agent.conversation()
            stored = [one.item async for one in conversation.session.items()]
            assert event.item in stored
    without_progress = [kind for kind in kinds if kind != "ToolProgress"]
    assert without_progress == [
        "TurnStarted",
        "InputAdded",
        "TextDelta",
        "ItemAdded",
        "ItemAdded",
        "ToolStarted",
        "ToolFinished",
        "UsageUpdated",
        "TextDelta",
        "ItemAdded",
        "UsageUpdated",
        "TurnEnded",
    ]


async def test_a_second_turn_cannot_start_while_one_is_running(openai: Talk) -> None:
    gate = Gate()
    openai.script(says("Wait", gate=gate))
    agent = openai.agent()
    async for event in agent.run("One."):
        if isinstance(event, TurnStarted):
            with pytest.raises(UserError, match="is running"):
                await happened(agent, "Two.")
            gate.open()


async def test_the_counts_of_a_turn_add_up(openai: Talk) -> None:
    openai.script(calls(LOOK), says("Nothing there."))
    counted = of(UsageUpdated, await happened(openai.agent(), "Look."))
    assert [event.last.input_tokens for event in counted] == [1200, 1200]
    assert [event.total.input_tokens for event in counted] == [1200, 2400]
    assert counted[1].spent_nano > counted[0].spent_nano


async def test_the_user_is_not_asked_if_no_approval_is_needed(openai: Talk) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> bool:
        asked.append(question)
        return True

    openai.script(calls(DRAW), says("Done."))
    await happened(openai.agent(ask=ask), "Draw.")
    assert asked == []
