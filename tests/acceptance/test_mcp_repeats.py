"""What counts as the same call, when its answer has been had, and what a failed job says."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import cast

import pytest
from mcp.client.client import Client
from tests.acceptance.conftest import Studio
from tests.acceptance.test_mcp_slow import FOX, held, ledger, value_of
from tests.servers.mcp_process import inside, listening

from limner.content import Picture
from limner.frontends.mcp.caller import Caller
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.service import McpService
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer
from limner.tools.base import Question, ToolResult

DRAWN = Picture(handle="f" * 64, mime="image/png", width=1, height=1, size_bytes=1)


class Rooted:
    """A client with one root, whose user is not asked."""

    session = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def roots(self, *, wait: bool) -> tuple[Path, ...]:
        return (self.folder,)

    async def ask(self, question: Question, call: RunningCall) -> bool:
        return False


@pytest.mark.slow
async def test_the_same_words_from_another_folder_are_another_call(
    studio: Studio, openai: OpenAIServer, tmp_path: Path
) -> None:
    """A relative path in them names another file."""
    studio.connect(openai)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    house = McpService(env=studio.env, cwd=Path("/"))
    calls = [
        await house.begin(
            "image_generate", {**FOX, "output_path": "fox.png"}, cast("Caller", Rooted(folder))
        )
        for folder in (*folders, folders[0])
    ]
    assert calls[0] is calls[2]
    drawn = [await call.task for call in calls[:2]]
    await house.aclose()
    paths = [json.loads(one.value)["path"] for one in drawn]
    assert paths == [str(folder / "fox.png") for folder in folders]


async def finished(house: McpService) -> RunningCall:
    """A call that was paid for, recorded, and has its picture."""

    async def run(work: RunningCall) -> ToolResult:
        work.sent = True
        return ToolResult(call_id=work.id, name="image_generate", ok=True, content=(DRAWN,))

    work = house.running.begin("image_generate", run, digest="same")
    await house.promise(work)
    await work.task
    return work


async def test_a_caller_who_leaves_at_the_last_moment_has_not_got_the_answer(
    studio: Studio,
) -> None:
    house = McpService(env=studio.env, cwd=studio.cwd)
    work = await finished(house)
    other = sqlite3.connect(studio.home / "limner.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # so that the note of the delivery has to wait
    delivering = asyncio.create_task(house.deliver(work))
    await asyncio.sleep(0)
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    other.execute("ROLLBACK")
    other.close()
    assert work.is_worth_joining()
    await house.aclose()


async def test_a_delivery_that_cannot_be_written_down_is_one_all_the_same(studio: Studio) -> None:
    house = McpService(env=studio.env, cwd=studio.cwd)
    work = await finished(house)
    await house.lim.store.aclose()
    database = studio.home / "limner.db"
    database.write_bytes(b"no database" * 1000)
    house = McpService(env=studio.env, cwd=studio.cwd)
    await house.deliver(work)
    assert work.delivered


async def test_a_failed_job_says_why_however_often_it_is_asked(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.2"
    gate = Gate()
    openai.script("generate", Reply(status=404, hold=gate))
    async with inside(studio) as client:
        job = {"id": value_of(await client.call_tool("image_generate", FOX))["job"]}
        gate.open()
        while not (failed := await client.call_tool("image_job", job)).is_error:
            pass
        again = await client.call_tool("image_job", job)
    assert value_of(again) == value_of(failed)
    error = value_of(failed)["error"]
    assert (error["code"], error["status"], error["billed"]) == (
        "IMAGE_GEN_BAD_REQUEST",
        404,
        False,
    )


async def test_a_job_that_ended_is_not_said_to_have_lost_its_server(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "0.2"
    held(openai)
    async with inside(studio) as client:
        job = {"id": value_of(await client.call_tool("image_generate", FOX))["job"]}
        await openai.wait_until("generate")
        await client.call_tool("image_job", {**job, "action": "cancel"})
        error = value_of(await client.call_tool("image_job", job))["error"]
    assert (error["code"], error["billed"]) == ("JOB_LOST", True)
    assert error["message"].startswith(
        "the call ended with CANCELLED during a request to openai-image"
    )


@pytest.mark.slow
async def test_a_picture_that_cannot_be_fetched_right_now_is_not_paid_for_again(
    studio: Studio, replicate: ReplicateServer
) -> None:
    """The server is killed, and the service does not answer the first who asks for the picture."""
    studio.connect(replicate).env["LIMNER_MCP_ANSWER_WITHIN_S"] = "1"
    replicate.looks = 1
    replicate.script("look", Reply(hold=Gate()))
    async with listening(studio) as server, Client(server.url) as client:
        await client.call_tool("image_generate", FOX)
        await replicate.wait_until("look")
        server.process.kill()
        await server.process.wait()
    del studio.env["LIMNER_MCP_ANSWER_WITHIN_S"]
    replicate.script("look", Reply(status=401))
    async with inside(studio) as client:
        failed = await client.call_tool("image_generate", FOX)
        drawn = await client.call_tool("image_generate", FOX)
    error = value_of(failed)["error"]
    assert (error["code"], error["billed"]) == ("IMAGE_GEN_AUTH", True)
    assert value_of(drawn)["path"] == str(studio.files[0])
    assert len(replicate.sent("create")) == 1
    assert await ledger(studio) == [("settled", True)]


async def test_an_id_that_was_never_given_out_is_not_kept(studio: Studio) -> None:
    async with inside(studio) as client:
        refused = await client.call_tool("image_job", {"id": "call_" + "0" * 100_000})
    error = value_of(refused)["error"]
    assert (error["code"], error["field"]) == ("INPUT_INVALID", "job")
    assert len(error["message"]) < 500
