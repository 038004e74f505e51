"""Budgets of a program and of its parts: what they cap, and that calls wait instead of failing."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.conftest import OPENAI_KEY, PRICE_NANO, Studio, picture
from tests.agent.talking import Talk, ending, happened, talk
from tests.servers.scripted import says

from limner import Inspection, Limner
from limner.errors import BudgetExceeded, InputInvalid
from limner.money.records import SpendSums
from limner.settings import load
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.responses_server import ResponsesServer

NANO = 1_000_000_000


@pytest.fixture
def openai_talk(tmp_path: Path) -> Iterator[Talk]:
    with talk("openai/gpt-5.4", tmp_path) as made:
        made.script(says("Hello."))
        yield made


def capped(at: Talk, budget_usd: str) -> Limner:
    settings = load(env=at.env, cwd=at.cwd)
    made = Limner(settings, budget_usd=budget_usd, env=at.env, cwd=at.cwd)
    at.limners.append(made)
    return made


async def test_the_budget_of_a_program_caps_its_agents_too(openai_talk: Talk) -> None:
    lim = capped(openai_talk, "0.03")
    for _ in range(2):
        await lim.generate("a fox")
    turns = [ending(await happened(openai_talk.agent(lim), "Hello.")) for _ in range(14)]
    refused = {turn.error.code for turn in turns if turn.error is not None}
    assert refused == {"BUDGET_EXCEEDED"}
    spend = await lim.spend()
    assert 2 * PRICE_NANO <= spend.total_nano <= 0.03 * NANO
    assert spend.own_usd == spend.total_usd


@pytest.mark.slow
async def test_ten_agents_and_forty_calls_under_one_cap_all_succeed_and_never_pass_it(
    openai_talk: Talk,
) -> None:
    lim = capped(openai_talk, "1.00")
    most: list[int] = []

    async def watch(done: asyncio.Event) -> None:
        while not done.is_set():
            seen = await lim.money.spend(recent=0, lines=1)
            most.append(seen.total_nano + seen.in_flight_nano)
            await asyncio.sleep(0)

    done = asyncio.Event()
    watching = asyncio.create_task(watch(done))
    drawn = [lim.generate(f"fox {number}") for number in range(40)]
    turns = [happened(openai_talk.agent(lim), "Hello.") for _ in range(10)]
    pictures, told = await asyncio.gather(asyncio.gather(*drawn), asyncio.gather(*turns))
    done.set()
    await watching
    assert len({one.path for one in pictures}) == 40
    assert [ending(events).status for events in told] == ["completed"] * 10
    assert max(most) <= NANO
    assert await lim.money.wrong_counters() == []
    rows = (await lim.money.spend(recent=100)).recent
    assert sum(row.quoted_nano for row in rows) > NANO, "without waiting, some would be refused"


@pytest.fixture
def desk(studio: Studio) -> Iterator[tuple[Studio, ResponsesServer]]:
    with ResponsesServer() as server:
        studio.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": server.base_url}
        studio.env["LIMNER_MODEL_ROLES_VISION"] = "openai/gpt-5.5"
        (studio.cwd / "photo.png").write_bytes(picture(80, 60))
        yield studio, server


def longest_answers(server: ResponsesServer) -> list[int]:
    return [request.json()["max_output_tokens"] for request in server.sent("ask")]


async def test_looks_at_once_wait_for_each_other_instead_of_failing(
    desk: tuple[Studio, ResponsesServer],
) -> None:
    studio, server = desk
    async with studio.open(budget_usd="0.40") as lim:
        looks = [lim.inspect("photo.png", "What is it?") for _ in range(6)]
        answers: list[Inspection] = await asyncio.gather(*looks)
        assert {one.text for one in answers} == {answers[0].text}
        assert longest_answers(server) == [8_192] * 6
        rows = (await lim.money.spend()).recent
    assert sum(row.quoted_nano for row in rows) > 0.40 * NANO


async def test_a_look_is_shortened_to_what_the_budget_leaves(
    desk: tuple[Studio, ResponsesServer],
) -> None:
    studio, server = desk
    async with studio.open(budget_usd="0.10") as lim:
        looked = await lim.inspect("photo.png", "What is it?")
        (row,) = (await lim.money.spend()).recent
    assert row.quoted_nano <= 0.10 * NANO
    (length,) = longest_answers(server)
    assert 256 < length < 8_192
    assert looked.cost_nano < row.quoted_nano


async def test_a_look_that_does_not_count_its_tokens_costs_no_more_than_was_reserved(
    desk: tuple[Studio, ResponsesServer],
) -> None:
    studio, server = desk
    server.script("ask", server.streamed(ModelAnswer(usage=None), {"model": "gpt-5.5"}))
    async with studio.open(budget_usd="0.10") as lim:
        looked = await lim.inspect("photo.png", "What is it?")
    assert looked.cost_nano <= 0.10 * NANO


@pytest.mark.slow
async def test_scopes_are_capped_one_by_one_and_go_on_in_the_next_program(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open(budget_usd="0.05") as lim:
        alice, bob = (lim.scope(name, budget_usd="0.03") for name in ("alice", "bob"))
        async with alice:  # nothing of it needs closing
            for _ in range(2):
                await alice.generate("a fox")
        refused = []
        for one in (alice, bob, bob):
            try:
                await one.generate("a fox")
            except BudgetExceeded as error:
                refused.append(error.extras["cap"])
        assert refused == ["scope", "program"]
        assert [await one.money.sums_here() for one in (alice, bob, lim)] == [
            SpendSums(settled_nano=count * PRICE_NANO) for count in (2, 1, 3)
        ]
    async with studio.open() as lim:
        with pytest.raises(BudgetExceeded, match="of the 'alice' budget"):
            await lim.scope("alice", budget_usd="0.03").generate("a fox")
        await lim.scope("alice", budget_usd="0.05").generate("a fox")


async def test_the_agents_of_a_scope_spend_its_budget(openai_talk: Talk) -> None:
    lim = openai_talk.limner()
    alice = lim.scope("alice", budget_usd="0.0001")
    ended = ending(await happened(openai_talk.agent(alice), "Hello."))
    assert (ended.error and ended.error.code, openai_talk.asked) == ("BUDGET_EXCEEDED", [])
    assert ending(await happened(openai_talk.agent(lim), "Hello.")).status == "completed"


@pytest.mark.parametrize("name", ["", "  "])
async def test_a_scope_has_a_name_and_no_scopes(studio: Studio, name: str) -> None:
    async with studio.open() as lim:
        with pytest.raises(InputInvalid, match="needs a name"):
            lim.scope(name)
        with pytest.raises(InputInvalid, match="has no scopes"):
            lim.scope("alice").scope("bob")


@pytest.mark.slow
def test_the_program_of_the_guide_runs_without_a_key(tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "budgets.md"
    program, *_ = re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.DOTALL | re.MULTILINE)
    env = {"HOME": str(tmp_path), "LIMNER_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.split()[-2]).is_file()
