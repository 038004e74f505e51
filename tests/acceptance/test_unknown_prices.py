"""A model without a known price is reserved at a fixed rate: caps hold, and policies ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import OPENAI_KEY, Studio, picture
from tests.agent.talking import Talk, ending, happened, talk
from tests.servers.scripted import says

from limner import ToolCall, ToolResult
from limner.catalogue.rates import UNKNOWN_RATE
from limner.catalogue.vision import vision_models
from limner.testing.servers.model_server import TokenCounts
from limner.testing.servers.responses_server import ResponsesServer
from limner.tools.base import ApprovalPolicy, Question

UNLISTED = "openai/gpt-of-tomorrow"


@pytest.fixture
def responses() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


@pytest.fixture
def desk(studio: Studio, responses: ResponsesServer) -> Studio:
    studio.env |= {
        "OPENAI_API_KEY": OPENAI_KEY,
        "OPENAI_BASE_URL": responses.base_url,
        "LIMNER_MODEL_ROLES_VISION": UNLISTED,
    }
    (studio.cwd / "photo.png").write_bytes(picture(80, 60))
    return studio


@pytest.fixture
def groq(tmp_path: Path) -> Iterator[Talk]:
    """A model with a key that no price list has."""
    with talk("groq/talker", tmp_path) as made:
        yield made


async def look(desk: Studio, path: str = "photo.png", **context: Any) -> ToolResult:
    async with desk.open() as lim:
        call = ToolCall(name="inspect_image", arguments={"path": path, "question": "What is it?"})
        (result,) = await lim.registry().execute_parallel([call], desk.context(**context))
        return result


def test_no_listed_model_costs_more_than_the_rate_of_an_unlisted_one() -> None:
    dearest = max(
        row.rate.most(input_tokens=1_000, output_tokens=1_000)
        for row in vision_models()
        if row.rate is not None
    )
    assert UNKNOWN_RATE.most(input_tokens=1_000, output_tokens=1_000) == dearest


async def test_a_cap_holds_for_a_look_of_unknown_price(
    desk: Studio, responses: ResponsesServer
) -> None:
    refused = await look(desk, budget_nano=1_000_000)
    assert (refused.domain_code, len(responses.sent("ask"))) == ("BUDGET_EXCEEDED", 0)


async def test_a_cap_holds_for_a_file_that_cannot_be_decoded(
    desk: Studio, responses: ResponsesServer
) -> None:
    desk.env["LIMNER_MODEL_ROLES_VISION"] = "openai/gpt-5.5"
    (desk.cwd / "broken.png").write_bytes(picture(80, 60)[:60])
    refused = await look(desk, "broken.png", budget_nano=1_000_000)
    assert (refused.domain_code, len(responses.sent("ask"))) == ("BUDGET_EXCEEDED", 0)


async def test_a_look_of_unknown_price_is_a_paid_call(
    desk: Studio, responses: ResponsesServer
) -> None:
    asked: list[Question] = []

    async def no(question: Question) -> bool:
        asked.append(question)
        return False

    careful = ApprovalPolicy(policy="untrusted", above_nano=0)
    denied = await look(desk, approval=careful, ask=no)
    assert (denied.domain_code, len(responses.sent("ask"))) == ("APPROVAL_DENIED", 0)
    assert [question.amount_nano is not None for question in asked] == [True]


async def test_counted_tokens_are_settled_at_the_reserved_rate(desk: Studio) -> None:
    result = await look(desk)
    counts = TokenCounts()
    nano = UNKNOWN_RATE.cost(input_tokens=counts.input, output_tokens=counts.output)
    assert (result.ok, result.cost_nano, result.cost_source) == (True, nano, "unknown")
    async with desk.open() as lim:
        assert await lim.money.spent() == nano


async def test_a_cap_holds_for_a_conversation_of_unknown_price(groq: Talk) -> None:
    groq.script(says("Hello."))
    lim = groq.limner()
    ended = ending(await happened(groq.agent(lim, budget_usd="0.01"), "Hello."))
    assert (ended.status, ended.error and ended.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert groq.asked == []

    agent = groq.agent(lim, budget_usd="1")
    ended = ending(await happened(agent, "Hello."))
    counts = TokenCounts()
    nano = UNKNOWN_RATE.cost(input_tokens=counts.input, output_tokens=counts.output)
    assert (ended.text, ended.spent_nano) == ("Hello.", nano)


async def test_uncounted_tokens_cost_what_was_reserved(groq: Talk) -> None:
    groq.script(says("Hello.", usage=TokenCounts(input=0, cached=0, output=0, reasoning=0)))
    lim = groq.limner()
    ended = ending(await happened(groq.agent(lim), "Hello."))
    (row,) = (await lim.money.spend()).recent
    assert (ended.text, row.cost_source) == ("Hello.", "unknown")
    assert row.cost_nano == row.quoted_nano == ended.cost_nano > 0
