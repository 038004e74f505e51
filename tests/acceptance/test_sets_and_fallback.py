"""Several pictures in one call, and another provider after a failure that cost nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import Studio

from limner import ToolResult
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.tools.base import Question

pytestmark = pytest.mark.slow

FLARE = "openai-image"


def value(result: ToolResult) -> dict[str, Any]:
    assert result.ok, result
    return json.loads(result.value)


async def ledger(studio: Studio) -> list[tuple[str, str, str | None]]:
    async with studio.open() as lim:
        spend = await lim.money.spend()
    return sorted((row.provider, row.state, row.error_code) for row in spend.recent)


async def test_a_set_is_several_pictures_each_with_its_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    result = await studio.connect(openai).call(prompt="a fox", n=3)
    answer = value(result)
    assert sorted(Path(picture["path"]) for picture in answer["pictures"]) == studio.files
    assert len(studio.files) == 3
    costs = [picture["cost_usd"] for picture in answer["pictures"]]
    assert answer["cost_usd"] == pytest.approx(sum(costs)) == result.cost_usd
    assert min(costs) > 0
    assert len(result.content) == 3
    assert await ledger(studio) == [(FLARE, "settled", None)] * 3


async def test_a_set_is_saved_under_numbered_names(studio: Studio, openai: OpenAIServer) -> None:
    await studio.connect(openai).call(prompt="a fox", n=3, output_path="fox.png")
    assert sorted(path.name for path in studio.cwd.iterdir()) == [
        "fox-1.png",
        "fox-2.png",
        "fox.png",
    ]


async def test_one_that_fails_takes_no_other_with_it(studio: Studio, openai: OpenAIServer) -> None:
    openai.script("generate", error_reply(500, "Oops."))
    answer = value(await studio.connect(openai).call(prompt="a fox", n=3))
    assert len(answer["pictures"]) == len(studio.files) == 2
    assert [failed["code"] for failed in answer["failed"]] == ["IMAGE_GEN_PROVIDER_UNAVAILABLE"]


async def test_where_all_fail_the_call_fails(studio: Studio, openai: OpenAIServer) -> None:
    openai.always("generate", error_reply(400, "No such thing."))
    result = await studio.connect(openai).call(prompt="a fox", n=3)
    assert (result.domain_code, result.billed) == ("IMAGE_GEN_BAD_REQUEST", False)
    assert studio.files == []


async def test_a_budget_holds_for_a_set(studio: Studio, openai: OpenAIServer) -> None:
    studio.env["LIMNER_BUDGET_SESSION_USD"] = "0.03"
    answer = value(await studio.connect(openai).call(prompt="a fox", n=5))
    assert len(answer["pictures"]) == 2
    assert {failed["code"] for failed in answer["failed"]} == {"BUDGET_EXCEEDED"}
    assert len(openai.sent("generate")) == 2


async def test_the_user_is_asked_once_for_the_whole_set(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.env["LIMNER_APPROVAL_POLICY"] = "untrusted"
    asked: list[Question] = []

    async def ask(question: Question) -> bool:
        asked.append(question)
        return True

    context = replace(studio.connect(openai).context(), ask=ask)
    await studio.call(context=context, prompt="a fox", n=3)
    (question,) = asked
    assert question.text.startswith("3 pictures from openai-image costs $0.0")
    assert len(studio.files) == 3


async def test_the_user_is_asked_again_where_another_provider_is_dearer(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    replicate.always("create", error_reply(401, "Who are you?"))
    studio.connect(openai, replicate).env |= {
        "LIMNER_IMAGES_PROVIDER": "replicate-flux",
        "LIMNER_IMAGES_FALLBACK": FLARE,
        "LIMNER_APPROVAL_POLICY": "untrusted",
    }
    asked: list[str] = []

    async def agree_to_the_first(question: Question) -> bool:
        asked.append(question.text.partition(" costs")[0])
        return len(asked) == 1

    context = studio.context(ask=agree_to_the_first)
    result = await studio.call(context=context, prompt="a fox", n=2)
    assert result.domain_code == "APPROVAL_DENIED"
    assert asked == ["2 pictures from replicate-flux", *["A picture from openai-image"] * 2]
    assert openai.requests == []


async def test_each_of_a_set_has_a_seed_of_its_own(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await studio.connect(replicate).call(prompt="a fox", n=3, seed=7)
    seeds = [seen.json()["input"]["seed"] for seen in replicate.sent("create")]
    assert sorted(seeds) == [7, 8, 9]


async def test_a_seed_that_the_model_ignores_is_reported(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    studio.connect(openai, replicate)
    with_seed = await studio.call(prompt="a fox", provider=FLARE, seed=7)
    without = await studio.call(prompt="a fox", provider=FLARE)
    honoured = await studio.call(prompt="a fox", provider="replicate-flux", seed=7)
    notices = [json.loads(one.value).get("notice") for one in (with_seed, without, honoured)]
    assert notices == [
        f"{FLARE}/gpt-image-2.5-flare has no seeds: the same seed draws another picture.",
        None,
        None,
    ]


async def test_the_failures_of_a_list_are_told_beside_the_pictures(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.script("generate", error_reply(400, "no"))
    async with studio.connect(openai).open() as lim:
        drawn = await lim.generate("a fox", n=2, provider=FLARE)
    assert len(drawn) == 1
    (failed,) = cast("list[dict[str, str]]", drawn[0].extras["failed"])
    assert failed["code"] == "IMAGE_GEN_BAD_REQUEST"


async def test_cancelling_a_set_stops_all_of_it_and_tells_the_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.always("generate", Reply(hold=Gate()))
    cancel = asyncio.Event()
    context = replace(studio.connect(openai).context(), cancel=cancel)
    call = asyncio.ensure_future(studio.call(context=context, prompt="a fox", n=2))
    await openai.wait_until("generate", count=2)
    cancel.set()
    result = await call
    assert (result.domain_code, result.billed, result.cost_source) == ("CANCELLED", True, "unknown")
    assert await ledger(studio) == [(FLARE, "unknown", "CANCELLED")] * 2


@pytest.mark.parametrize("count", [0, 11, "two"])
async def test_a_set_has_one_to_ten_pictures(studio: Studio, count: Any) -> None:
    result = await studio.call(prompt="a fox", n=count)
    assert (result.code, result.field) == ("input_invalid", "n")


async def test_after_a_failure_that_cost_nothing_the_next_provider_draws(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    openai.always("generate", error_reply(401, "Oops."))
    studio.connect(openai, replicate).env["LIMNER_IMAGES_FALLBACK"] = "replicate-flux"
    studio.env["LIMNER_IMAGES_PROVIDER"] = FLARE
    answer = value(await studio.call(prompt="a fox"))
    assert answer["provider"] == "replicate-flux"
    assert answer["passed_over"] == [
        {
            "provider": FLARE,
            "code": "IMAGE_GEN_AUTH",
            "why": "OpenAI answered 401: Oops.",
        }
    ]
    assert await ledger(studio) == [
        (FLARE, "released", "IMAGE_GEN_AUTH"),
        ("replicate-flux", "settled", None),
    ]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (error_reply(502, "Bad gateway."), "IMAGE_GEN_PROVIDER_UNAVAILABLE"),
        (error_reply(400, "No.", code="moderation_blocked"), "IMAGE_GEN_REJECTED"),
    ],
    ids=["what may be billed", "a refusal"],
)
async def test_nobody_else_is_asked_after(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer, reply: Reply, code: str
) -> None:
    openai.always("generate", reply)
    studio.connect(openai, replicate).env["LIMNER_IMAGES_FALLBACK"] = "replicate-flux"
    studio.env["LIMNER_IMAGES_PROVIDER"] = FLARE
    result = await studio.call(prompt="a fox")
    assert result.domain_code == code
    assert replicate.requests == []


async def test_a_provider_without_its_key_is_passed_over(
    studio: Studio, replicate: ReplicateServer
) -> None:
    studio.connect(replicate).env["LIMNER_IMAGES_FALLBACK"] = "replicate-flux"
    studio.env["LIMNER_IMAGES_PROVIDER"] = FLARE
    answer = value(await studio.call(prompt="a fox"))
    assert answer["provider"] == "replicate-flux"
    assert answer["passed_over"][0]["code"] == "IMAGE_GEN_NO_PROVIDER"


async def test_a_provider_named_in_the_call_is_taken_at_its_word(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    openai.always("generate", error_reply(500, "Oops."))
    studio.connect(openai, replicate).env["LIMNER_IMAGES_FALLBACK"] = "replicate-flux"
    result = await studio.call(prompt="a fox", provider=FLARE)
    assert result.domain_code == "IMAGE_GEN_PROVIDER_UNAVAILABLE"
    assert replicate.requests == []


async def test_a_shape_is_drawn_at_the_nearest_size_a_model_has(
    studio: Studio, openai: OpenAIServer
) -> None:
    await studio.connect(openai).call(prompt="a fox", size="16:9")
    (request,) = openai.sent("generate")
    width, height = map(int, request.json()["size"].split("x"))
    assert width / height == pytest.approx(16 / 9, rel=0.02)
    assert (width % 16, height % 16) == (0, 0)
