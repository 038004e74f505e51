"""Slow pictures and impatient clients: nothing is lost, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from msgspec.structs import replace
from tests.acceptance.conftest import Studio
from tests.servers.mcp_process import Mode, by_pipes, inside, listening

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

FOX = {"prompt": "a fox"}
IMPATIENT_S = 0.5


def held(openai: OpenAIServer) -> Gate:
    """Let the next picture take until the gate opens."""
    gate = Gate()
    openai.script("generate", replace(openai.drawn({}), hold=gate))
    return gate


def value_of(result: types.CallToolResult) -> Any:
    assert isinstance(result.content[0], types.TextContent)
    return json.loads(result.content[0].text)


async def ledger(studio: Studio) -> list[tuple[str, bool]]:
    """How each call stands, oldest first, and whether it has its picture."""
    async with studio.open() as lim:
        rows = (await lim.money.spend()).recent
    return [(row.state, row.picture is not None) for row in reversed(rows)]


@asynccontextmanager
async def connected(studio: Studio, way: str, mode: Mode) -> AsyncGenerator[Client]:
    if way == "pipes":
        async with by_pipes(studio, mode=mode) as client:
            yield client
        return
    async with listening(studio) as server, Client(server.url, mode=mode) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pipes", "http"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_gives_up_and_asks_again_has_the_picture_and_pays_once(
    studio: Studio, openai: OpenAIServer, way: str, mode: Mode
) -> None:
    studio.connect(openai)
    gate = held(openai)
    async with connected(studio, way, mode) as client:
        with pytest.raises(MCPError, match="timed out"):
            await client.call_tool("image_generate", FOX, read_timeout_seconds=2)
        gate.open()
        drawn = await client.call_tool("image_generate", FOX)
    assert [block.type for block in drawn.content] == ["text", "image"]
    assert len(openai.sent("generate")) == 1
    assert [row for row in await ledger(studio) if row[0] != "released"] == [("settled", True)]
    assert value_of(drawn)["path"] == str(studio.files[0])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_was_sent_goes_on_without_its_caller_and_is_there_for_the_next(
    studio: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    studio.connect(openai)
    gate = held(openai)
    async with inside(studio, mode=mode) as client:
        given_up = asyncio.create_task(client.call_tool("image_generate", FOX))
        await openai.wait_until("generate")
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        gate.open()
        drawn = await client.call_tool("image_generate", FOX)
    assert value_of(drawn)["path"] == str(studio.files[0])
    assert len(openai.sent("generate")) == 1
    assert await ledger(studio) == [("settled", True)]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_beyond_the_set_time_a_call_answers_with_a_job_that_has_the_picture(
    studio: Studio, openai: OpenAIServer, mode: Mode
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.2"
    gate = held(openai)
    async with inside(studio, mode=mode) as client:
        told = value_of(await client.call_tool("image_generate", FOX))
        assert (told["status"], told["tool"]) == ("running", "image_generate")
        job = {"id": told["job"]}
        still = value_of(await client.call_tool("image_job", {**job, "action": "status"}))
        assert still["status"] == "running"
        gate.open()
        while (done := await client.call_tool("image_job", job)) and not done.is_error:
            if value_of(done)["status"] != "running":
                break
    about = value_of(done)
    assert (about["job"], about["status"]) == (told["job"], "done")
    assert about["path"] == str(studio.files[0])
    assert [block.type for block in done.content] == ["text", "image"]
    assert await ledger(studio) == [("settled", True)]


async def test_a_second_picture_of_the_same_words_is_drawn_once_the_first_was_delivered(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with inside(studio) as client:
        await client.call_tool("image_generate", FOX)
        await client.call_tool("image_generate", FOX)
    assert len(openai.sent("generate")) == 2


@pytest.mark.slow
async def test_a_call_that_is_given_up_before_anything_was_sent_costs_nothing(
    studio: Studio, openai: OpenAIServer
) -> None:
    """All places are taken, so that it waits for its turn."""
    studio.connect(openai).env["LIMNER_IMAGES_CONCURRENCY"] = "1"
    gate = held(openai)
    async with inside(studio, mode="legacy") as client:
        first = asyncio.create_task(client.call_tool("image_generate", FOX))
        await openai.wait_until("generate")
        with pytest.raises(MCPError, match="timed out"):
            await client.call_tool(
                "image_generate", {"prompt": "a hare"}, read_timeout_seconds=IMPATIENT_S
            )
        gate.open()
        await first
        # Its row is concluded by the time that a later call is answered.
        await client.call_tool("spend", {})
    assert len(openai.sent("generate")) == 1
    assert await ledger(studio) == [("settled", True), ("released", False)]


async def test_a_job_that_is_cancelled_says_that_it_may_have_been_billed(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.2"
    held(openai)
    async with inside(studio) as client:
        told = value_of(await client.call_tool("image_generate", FOX))
        await openai.wait_until("generate")
        stopped = await client.call_tool("image_job", {"id": told["job"], "action": "cancel"})
    about = value_of(stopped)
    assert stopped.is_error
    assert (about["status"], about["error"]["code"]) == ("cancelled", "CANCELLED")
    assert about["error"]["billed"]
    assert await ledger(studio) == [("unknown", False)]


async def test_progress_is_told_while_a_picture_is_drawn(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    gate, news = held(openai), list[tuple[float, str | None]]()

    async def told(progress: float, total: float | None, message: str | None) -> None:
        news.append((progress, message))
        gate.open()

    async with inside(studio, mode="legacy") as client:
        await client.call_tool("image_generate", FOX, progress_callback=told)
    assert news
    assert all(message for _, message in news)
    assert [progress for progress, _ in news] == sorted({progress for progress, _ in news})


@pytest.mark.slow
@pytest.mark.parametrize("again", ["the job", "the same call", "the id in the ledger"])
async def test_a_service_with_job_ids_delivers_after_the_server_was_killed(
    studio: Studio, replicate: ReplicateServer, again: str
) -> None:
    studio.connect(replicate).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "1"
    replicate.looks = 1
    replicate.script("look", Reply(hold=Gate()))
    async with listening(studio) as server, Client(server.url) as client:
        told = value_of(await client.call_tool("image_generate", FOX))
        await replicate.wait_until("look")
        server.process.kill()
        await server.process.wait()
    async with studio.open() as lim:
        (open_job,) = await lim.money.unfinished_jobs()
    async with listening(studio) as server, Client(server.url) as client:
        call = {
            "the job": _job(told["job"]),
            "the same call": ("image_generate", FOX),
            "the id in the ledger": _job(open_job.id),
        }[again]
        while value_of(done := await client.call_tool(*call)).get("status") == "running":
            pass
    assert value_of(done)["path"] == str(studio.files[0])
    assert [block.type for block in done.content] == ["text", "image"]
    assert len(replicate.sent("create")) == 1
    assert await ledger(studio) == [("settled", True)]


@pytest.mark.slow
@pytest.mark.parametrize("again", ["the job", "the same call"])
async def test_a_service_without_job_ids_ends_as_may_be_billed_and_is_not_paid_again(
    studio: Studio, openai: OpenAIServer, again: str
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "1"
    held(openai)
    async with listening(studio) as server, Client(server.url) as client:
        told = value_of(await client.call_tool("image_generate", FOX))
        await openai.wait_until("generate")
        server.process.kill()
        await server.process.wait()
    async with listening(studio) as server, Client(server.url) as client:
        call = ("image_generate", FOX) if again == "the same call" else _job(told["job"])
        lost = await client.call_tool(*call)
    error = value_of(lost)["error"]
    assert lost.is_error
    assert (error["code"], error["billed"]) == ("JOB_LOST", True)
    assert "may have been billed" in error["message"]
    assert len(openai.sent("generate")) == 1
    assert await ledger(studio) == [("unknown", False)]


def _job(call_id: str) -> tuple[str, dict[str, Any]]:
    return "image_job", {"id": call_id}


@pytest.mark.slow
async def test_a_client_that_waits_five_seconds_gets_a_job_within_four_and_is_told_of_image_job(
    studio: Studio, openai: OpenAIServer
) -> None:
    """Counted from the request: the modules that load with the first call count too."""
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "4"
    gate = held(openai)
    async with by_pipes(studio, mode="legacy") as client:
        await client.list_tools()
        told = value_of(await client.call_tool("image_generate", FOX, read_timeout_seconds=5))
        gate.open()
        drawn = await client.call_tool("image_job", {"job": told["job"]})
    assert f'call image_job with {{"job": "{told["job"]}"}}' in told["hint"]
    assert value_of(drawn)["path"] == str(studio.files[0])
