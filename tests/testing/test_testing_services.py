"""`FakeServices`: the services do what a test scripted, and their bill is what limner reports."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import limner
from limner.client import Limner
from limner.errors import (
    BudgetExceeded,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.testing import FakeServices
from limner.testing.sample_pictures import make_png

FOX = make_png(64, 64, pixel=b"\xe6\x5c\x00\xff")
PROVIDERS = {
    "openai-image": "images",
    "gemini-image": "gemini_images",
    "replicate-flux": "replicate",
}
MODELS = {
    "openai/gpt-5.4": "responses",
    "anthropic/claude-opus-4-8": "anthropic",
    "google/gemini-3.8-flash": "gemini",
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_picture_costs_what_the_service_charges(
    provider: str, limner_fake: FakeServices
) -> None:
    async with limner_fake.limner(settings={"images.provider": provider}) as lim:
        drawn = await lim.generate("a fox", size="1024x1024")
        again = await lim.generate("a cat", size="1024x1024")
    bill = limner_fake.bill()
    assert [charge.service for charge in bill.charges] == [PROVIDERS[provider]] * 2
    assert [charge.model for charge in bill.charges] == [drawn.model] * 2
    assert (drawn.cost_usd or 0) + (again.cost_usd or 0) == bill.cost_usd > 0
    assert drawn.dimensions == again.dimensions
    assert drawn.image != again.image


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_refused_picture_is_refused_once_and_costs_nothing(
    provider: str, limner_fake: FakeServices
) -> None:
    getattr(limner_fake, PROVIDERS[provider]).refuse("No foxes.")
    async with limner_fake.limner(settings={"images.provider": provider}) as lim:
        with pytest.raises(ProviderRefused, match="No foxes"):
            await lim.generate("a fox")
        assert limner_fake.bill().charges == ()
        await lim.generate("a fox")
    assert len(limner_fake.bill().charges) == 1


async def test_the_next_picture_has_the_bytes_of_the_test(limner_fake: FakeServices) -> None:
    limner_fake.images.draw(FOX)
    async with limner_fake.limner() as lim:
        drawn = await lim.generate("a fox")
        other = await lim.generate("a fox")
    handle = hashlib.sha256(FOX).hexdigest()
    assert (handle in str(drawn.image), handle in str(other.image)) == (True, False)


async def test_an_outage_lasts_as_many_requests_as_the_test_says(
    limner_fake: FakeServices,
) -> None:
    limner_fake.images.outage(times=2)
    async with limner_fake.limner() as lim:
        for _ in range(2):
            with pytest.raises(ProviderUnavailable):
                await lim.generate("a fox")
        await lim.generate("a fox")
    assert len(limner_fake.images.requests) == 3
    assert len(limner_fake.bill().charges) == 1


async def test_a_service_that_hangs_up_has_charged(limner_fake: FakeServices) -> None:
    limner_fake.images.hang_up()
    async with limner_fake.limner() as lim:
        with pytest.raises(ProviderUnavailable) as caught:
            await lim.generate("a fox")
    assert caught.value.billed
    assert len(limner_fake.bill().charges) == 1


async def test_any_reply_can_be_scripted(limner_fake: FakeServices) -> None:
    limner_fake.responses.respond(429, {}, headers={"Retry-After": "3600"})
    async with limner_fake.limner() as lim:
        drawn = await lim.generate("a fox")
        with pytest.raises(ProviderRateLimited) as caught:
            await lim.inspect(drawn.path, "What is it?", model="openai/gpt-5.4")
    assert caught.value.retry_after_s == 3600.0


@pytest.mark.parametrize("model", MODELS)
async def test_a_conversation_calls_a_tool_and_costs_what_the_service_charges(
    model: str, limner_fake: FakeServices
) -> None:
    service = getattr(limner_fake, MODELS[model])
    service.call_tool("image_generate", {"prompt": "a fox"}, text="I draw.")
    service.reply("Here is the fox.")
    async with limner_fake.limner() as lim, limner.Agent(lim, model=model) as agent:
        events = [event async for event in agent.run("Draw a fox")]
    ended = events[-1]
    assert isinstance(ended, limner.TurnEnded)
    assert ended.text == "Here is the fox."
    names = [charge.service for charge in limner_fake.bill().charges]
    assert names == [MODELS[model], "images", MODELS[model]]
    assert [request.method for request in limner_fake.requests] == ["POST"] * 3


async def test_a_model_answers_without_a_script_and_can_refuse(limner_fake: FakeServices) -> None:
    async with limner_fake.limner() as lim:
        drawn = await lim.generate("a fox")
        answer = await lim.inspect(drawn.path, "What is it?", model="openai/gpt-5.4")
        charged = limner_fake.bill().charges[-1].cost_usd
        assert (answer.text, answer.cost_usd) == ("OK.", charged)
        limner_fake.responses.refuse("I will not look.")
        with pytest.raises(ProviderRefused):
            await lim.inspect(drawn.path, "Who is it?", model="openai/gpt-5.4")


async def test_a_budget_stops_before_the_service_is_asked(limner_fake: FakeServices) -> None:
    async with limner_fake.limner(budget_usd=0.001) as lim:
        with pytest.raises(BudgetExceeded):
            await lim.generate("a fox")
    assert (limner_fake.requests, limner_fake.bill().cost_usd) == ([], 0)


def test_the_blocking_calls_of_a_test_reach_the_fake_services(limner_fake: FakeServices) -> None:
    drawn = limner.generate("a fox")
    assert drawn.cost_usd == limner_fake.bill().cost_usd
    assert drawn.path.is_relative_to(limner_fake.folder)


def test_the_fixture_hides_the_real_keys_of_the_developer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAL_KEY", "real-0123456789")
    monkeypatch.setenv("LIMNER_IMAGES_PROVIDER", "fal")
    monkeypatch.setenv("OPENAI_API_KEY", "real-0123456789")
    with FakeServices() as fake:
        assert fake.real_variables() >= {"FAL_KEY", "LIMNER_IMAGES_PROVIDER"}
        assert "OPENAI_API_KEY" in fake.env
        assert fake.folder.is_dir()
    assert not fake.folder.exists()


@pytest.mark.slow
def test_a_program_in_another_process_uses_the_services(limner_fake: FakeServices) -> None:
    command = [sys.executable, "-m", "limner", "generate", "a fox", "--json"]
    env = {"PATH": os.defpath, **limner_fake.env}
    done = subprocess.run(command, env=env, cwd=limner_fake.folder, check=True, capture_output=True)
    assert limner_fake.bill().cost_usd > 0
    assert b'"openai-image"' in done.stdout


def test_an_unknown_path_is_not_found(limner_fake: FakeServices) -> None:
    url = limner_fake.env["OPENAI_BASE_URL"].replace("/openai/v1", "/elsewhere")
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        urllib.request.urlopen(url)
    caught.value.close()


async def test_one_limner_serves_two_event_loops(tmp_path: Path) -> None:
    def draw(lim: Limner) -> None:
        asyncio.run(lim.generate("a fox"))

    with FakeServices(tmp_path) as fake:
        async with fake.limner() as lim:
            await asyncio.to_thread(draw, lim)
            await lim.generate("a cat")
        assert len(fake.bill().charges) == 2


def test_an_illegal_history_is_refused_and_costs_nothing(limner_fake: FakeServices) -> None:
    stray = {"type": "function_call_output", "call_id": "call_9", "output": "done"}
    request = urllib.request.Request(
        f"{limner_fake.env['OPENAI_BASE_URL']}/responses",
        data=json.dumps({"model": "gpt-5.4", "input": [stray]}).encode(),
        headers={"Authorization": "Bearer key"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value as error:
        assert (error.code, b"No tool call found" in error.read()) == (400, True)
    assert limner_fake.bill().charges == ()
