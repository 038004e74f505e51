"""Turns that end early, are cancelled, or are started twice: no input is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.agent.talking import Talk, ending, happened, of, talk
from tests.servers.scripted import TALKERS, calls, says

from limner.agent.events import Event, InputAdded, TextDelta, ToolFinished
from limner.errors import InputInvalid, UserError
from limner.money.ledger import Money
from limner.money.records import Reservation
from limner.testing.servers.http_server import Gate, Reply
from limner.tools.base import Outcome, Tool, ToolContext


@pytest.fixture(params=TALKERS)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    with talk(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def openai(tmp_path: Path) -> Iterator[Talk]:
    """One wire, where it makes no difference which."""
    with talk("openai/gpt-5.4", tmp_path) as made:
        yield made


async def test_the_input_of_an_interrupted_turn_is_sent_in_the_next(
    openai: Talk,
) -> None:
    gate = Gate()
    openai.script(says("Red it is.", gate=gate))
    agent, events = openai.agent(), []
    async for event in agent.run("A red one."):
        events.append(event)
        if isinstance(event, TextDelta):
            await agent.steer("Green!")
            agent.interrupt()
    gate.open()
    assert ending(events).status == "interrupted"
    assert len(of(InputAdded, events)) == 2
    openai.script(says("Green it is."))
    await happened(agent, "Go on.")
    sent = openai.asked[-1]
    assert sent.index("A red one.") < sent.index("Green!") < sent.index("turn_aborted")


async def test_the_input_of_a_failed_turn_is_sent_in_the_next(openai: Talk) -> None:
    agent, events = openai.agent(), []
    told = asyncio.Event()

    openai.script(Reply(status=400, pieces=(b'{"error": {"message": "no"}}',)))
    async for event in agent.run("A red one."):
        events.append(event)
        if isinstance(event, InputAdded) and not told.is_set():
            told.set()
            await agent.steer("Green!")
    assert ending(events).status == "failed"
    openai.script(says("Green it is."))
    await happened(agent, "Go on.")
    assert "Green!" in openai.asked[-1]


async def test_an_unexpected_exception_does_not_hide_what_the_turn_has_cost(
    openai: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, reserved = Money.reserve, list[int]()

    async def fail_once_paid(money: Money, quote_nano: int, **call: Any) -> Reservation:
        if reserved:
            raise KeyError("oops")
        reserved.append(quote_nano)
        return await reserve(money, quote_nano, **call)

    monkeypatch.setattr(Money, "reserve", fail_once_paid)
    openai.script(calls(("no_such_tool", "{}")))
    ended = ending(await happened(openai.agent(), "Draw."))
    assert ended.error is not None
    assert (ended.status, ended.error.code) == ("failed", "UNEXPECTED")
    assert ended.cost_nano > 0


async def test_the_answer_for_a_session_that_was_deleted_meanwhile_is_paid_at_its_price(
    openai: Talk,
) -> None:
    gate = Gate()
    openai.script(says("Red it is.", gate=gate))
    lim = openai.limner()
    agent, events = openai.agent(lim), []
    async for event in agent.run("A red one."):
        events.append(event)
        if isinstance(event, TextDelta):
            await lim.sessions.delete(str(agent.session_id))
            gate.open()
    ended = ending(events)
    assert ended.error is not None
    assert (ended.status, ended.error.code) == ("failed", "NO_SUCH_SESSION")
    (paid,) = (await lim.money.spend()).recent
    assert (paid.state, paid.cost_source, paid.error_code) == (
        "settled",
        "computed",
        "NO_SUCH_SESSION",
    )
    assert ended.cost_nano == paid.cost_nano > 0


async def test_an_answer_is_in_the_history_as_soon_as_its_price_is_final(
    openai: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lim = openai.limner()
    openai.script(says("Red it is."))
    agent, seen = openai.agent(lim), list[str]()
    settle = Money.settle

    async def look_after_it(money: Money, *of: Any, **how: Any) -> None:
        await settle(money, *of, **how)
        session = await lim.sessions.open(str(agent.session_id))
        seen.extend([stored.item["type"] async for stored in session.items()])

    monkeypatch.setattr(Money, "settle", look_after_it)
    await happened(agent, "A red one.")
    assert seen == ["message", "message"]


async def test_who_leaves_a_turn_can_begin_the_next_one_at_once(openai: Talk) -> None:
    gate = Gate()
    openai.script(says("I would say", gate=gate), says("Hello again."))
    agent = openai.agent()
    async with aclosing(agent.run("Speak.")) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    gate.open()
    assert ending(await happened(agent, "And now?")).text == "Hello again."


async def test_a_caller_that_breaks_out_of_the_loop_can_run_the_next_turn_at_once(
    openai: Talk,
) -> None:
    gate = Gate()
    openai.script(says("I would say", gate=gate), says("Hello again."))
    agent = openai.agent()
    async for event in agent.run("Speak."):
        if isinstance(event, TextDelta):
            break
    assert ending(await happened(agent, "And now?")).text == "Hello again."
    gate.open()
    sent = openai.asked[-1]
    assert sent.index("Speak.") < sent.index("turn_aborted") < sent.index("And now?")


async def test_a_caller_that_leaves_a_generator_around_the_run_can_run_at_once(
    openai: Talk,
) -> None:
    gate = Gate()
    openai.script(says("I would say", gate=gate), says("Hello again."))
    agent = openai.agent()

    async def texts() -> AsyncGenerator[str]:
        async for event in agent.run("Speak."):
            if isinstance(event, TextDelta):
                yield event.text

    async for _ in texts():
        break
    assert ending(await happened(agent, "And now?")).text == "Hello again."
    gate.open()


async def test_a_run_whose_task_has_ended_does_not_block_the_next_run(openai: Talk) -> None:
    gate = Gate()
    openai.script(says("I would say", gate=gate), says("Hello again."))
    agent = openai.agent()
    kept = agent.run("Speak.")
    await asyncio.create_task(_read_to_first_words(kept))
    assert ending(await happened(agent, "And now?")).text == "Hello again."
    gate.open()


async def test_closing_the_agent_ends_its_turn(openai: Talk) -> None:
    gate = Gate()
    openai.script(says("I would say", gate=gate), says("Hello again."))
    async with openai.agent() as agent:
        kept = agent.run("Speak.")
        await _read_to_first_words(kept)
    gate.open()
    assert ending([event async for event in kept]).status == "interrupted"
    again = openai.agent(session=agent.session_id)
    assert ending(await happened(again, "And now?")).text == "Hello again."


async def test_a_turn_that_another_task_reads_is_not_ended(openai: Talk) -> None:
    gate, has_started = Gate(), asyncio.Event()
    openai.script(says("I would", " say", gate=gate))
    agent = openai.agent()

    async def read() -> str:
        last = None
        async for event in agent.run("Speak."):
            has_started.set()
            last = event
        return ending([last] if last else []).text

    reading = asyncio.create_task(read())
    await has_started.wait()
    with pytest.raises(UserError) as refused:
        await happened(agent, "And now?")
    assert refused.value.code == "TURN_UNDER_WAY"
    gate.open()
    assert await reading == "I would say"


async def test_two_first_turns_at_once_are_one_session_and_one_turn(openai: Talk) -> None:
    openai.script(says("Hello."))
    lim = openai.limner()
    agent = openai.agent(lim)
    ends = await asyncio.gather(
        happened(agent, "One."), happened(agent, "Two."), return_exceptions=True
    )
    assert [getattr(end, "code", None) for end in ends].count("TURN_UNDER_WAY") == 1
    assert len(await lim.sessions.list()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"approval": "nevr"},
        {"sandbox": "readonly"},
        {"budget_usd": "lots"},
        {"budget_usd": -1},
        {"budget_usd": "nan"},
    ],
)
async def test_terms_that_are_none_are_refused_before_anything_is_kept(
    openai: Talk, wrong: dict[str, Any]
) -> None:
    lim = openai.limner()
    with pytest.raises(InputInvalid):
        openai.agent(lim, **wrong)
    assert await lim.sessions.list() == []


async def test_an_answer_of_nothing_is_no_reason_to_end_the_conversation(at: Talk) -> None:
    at.script(says(""), says("Something."))
    agent = at.agent()
    ended = ending(await happened(agent, "Hello."))
    assert (ended.status, ended.text) == ("completed", "")
    assert ending(await happened(agent, "Hello?")).text == "Something."


async def test_a_call_with_a_used_id_gets_a_new_one(at: Talk) -> None:
    async def run(arguments: Any, context: ToolContext) -> Outcome:
        return Outcome(value={"number": len(at.asked)})

    tool = Tool(
        name="count",
        description="Counts.",
        schema={"type": "object", "properties": {}},
        run=run,
        toolset="test",
        max_result_chars=100,
    )
    at.script(calls(("count", "{}")), calls(("count", "{}")), says("Twice."))
    agent = at.agent(tools=[tool])
    finished = of(ToolFinished, await happened(agent, "Count to two."))
    assert len({event.call.call_id for event in finished}) == 2
    at.script(says("I counted to two."))
    await agent.aclose()
    again = at.agent(session=agent.session_id)
    assert ending(await happened(again, "And?")).text == "I counted to two."
    assert all(event.item["output"].strip("{}") in _plain(at.asked[-1]) for event in finished)


async def _read_to_first_words(events: AsyncGenerator[Event]) -> None:
    async for event in events:
        if isinstance(event, TextDelta):
            return


def _plain(request: str) -> str:
    return request.replace("\\", "")
