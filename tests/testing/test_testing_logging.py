"""The log: what happens at info and debug, never a key, a whole prompt or bytes."""

from __future__ import annotations

import base64
import logging
import re

import pytest

import limner
from limner.errors import ProviderRefused, ProviderUnavailable
from limner.testing import FakeServices

MODEL = "openai/gpt-5.4"
HANDLE = r"[0-9a-f]{64}"


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[tuple[str, str]]:
    return [
        (record.name, re.sub(r"\d+\.\d\d s|\d+ ms", "TIME", record.getMessage()))
        for record in caplog.records
        if record.levelno == level and record.name.startswith("limner")
    ]


async def test_info_has_one_record_for_each_paid_call(
    limner_fake: FakeServices, caplog: pytest.LogCaptureFixture
) -> None:
    limner_fake.images.refuse()
    with caplog.at_level(logging.INFO, logger="limner"):
        async with limner_fake.limner() as lim:
            with pytest.raises(ProviderRefused):
                await lim.generate("a fox")
            drawn = await lim.generate("a fox")
            await lim.inspect(drawn, "What is it?", model=MODEL)
            async with limner.Agent(lim, model=MODEL) as agent:
                async for _ in agent.run("Hello"):
                    pass
    drawer = f"image_generate: {drawn.provider}/{drawn.model}"
    cost = re.escape(f"${drawn.cost_usd}")
    failed, made, looked, talked = messages(caplog, logging.INFO)
    assert failed == (
        "limner.money",
        f"{drawer} failed with IMAGE_GEN_REJECTED in TIME for $0.00 (computed)",
    )
    assert re.fullmatch(rf"{drawer} made {HANDLE} in TIME for {cost}\d* \(computed\)", made[1])
    assert looked[1].startswith("inspect_image: openai/gpt-5.4 answered in TIME for $0.00")
    assert talked[1].startswith("conversation: openai/gpt-5.4 answered in TIME for $0.00")


async def test_info_says_that_a_request_is_sent_again(
    limner_fake: FakeServices, caplog: pytest.LogCaptureFixture
) -> None:
    limner_fake.images.respond(429, {}, headers={"Retry-After": "0"})
    with caplog.at_level(logging.INFO, logger="limner"):
        async with limner_fake.limner() as lim:
            await lim.generate("a fox")
    name, message = messages(caplog, logging.INFO)[0]
    again = "openai-image: IMAGE_GEN_QUOTA_EXCEEDED; limner asks again in 0.5 s"
    assert (name, message) == ("limner.net", again)


async def test_debug_has_requests_without_query_and_shortened_prompts(
    limner_fake: FakeServices, caplog: pytest.LogCaptureFixture
) -> None:
    corner = limner.Region(x=0, y=0, width=100, height=100)  # a part has to be encoded
    with caplog.at_level(logging.DEBUG, logger="limner"):
        async with limner_fake.limner() as lim:
            drawn = await lim.generate("a fox " * 30)
            for question in ("What is it?", "And now?"):
                await lim.inspect(drawn, question, model="google/gemini-3.8-flash", region=corner)
    logged = messages(caplog, logging.DEBUG)
    base = limner_fake.env["OPENAI_BASE_URL"]
    assert ("limner.net", f"POST {base}/images/generations 200 in TIME") in logged
    (prompt,) = [message for name, message in logged if "is asked for" in message]
    assert prompt.endswith(
        f"1024x1024 pixels and 0 source pictures: {('a fox ' * 30)[:80] + '…'!r}"
    )
    assert not any("alt=sse" in message for _, message in logged)
    assert any("is in the cache" in message for _, message in logged)


async def test_no_record_at_debug_has_a_key_or_bytes(
    limner_fake: FakeServices, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = [value for name, value in limner_fake.env.items() if "KEY" in name or "TOKEN" in name]
    echo = {"error": {"message": " ".join(secrets), "code": secrets[0]}}
    limner_fake.images.respond(500, echo)
    limner_fake.responses.respond(401, echo)
    caplog.set_level(logging.DEBUG)
    async with limner_fake.limner() as lim:
        with pytest.raises(ProviderUnavailable):
            await lim.generate("a fox")
        for provider in ("openai-image", "gemini-image", "replicate-flux"):
            drawn = await lim.generate("a fox", provider=provider)
        data = drawn.path.read_bytes()
        with pytest.raises(limner.LimnerError):
            await lim.inspect(data, "What is it?", model=MODEL)
        for model in (MODEL, "anthropic/claude-opus-4-8", "google/gemini-3.8-flash"):
            await lim.inspect(data, "What is it?", model=model)
    text = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert len(secrets) == 4
    assert [secret for secret in secrets if secret in text] == []
    pieces = (repr(data[20:60])[2:-1], base64.b64encode(data)[30:80].decode())
    assert [piece for piece in pieces if piece in text] == []


def test_the_library_installs_no_handler(limner_fake: FakeServices) -> None:
    limner.generate("a fox")
    named = [name for name in logging.root.manager.loggerDict if name.startswith("limner")]
    assert [name for name in named if logging.getLogger(name).handlers] == []
