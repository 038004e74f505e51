"""Two servers with homes of their own share a database and a bucket; clients move between them."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client as McpClient
from tests.acceptance.conftest import Studio, picture
from tests.acceptance.test_mcp_slow import FOX, held, value_of
from tests.servers.appserver_process import Client, Refused, Socket, Stage, function, scripted
from tests.servers.components import needs
from tests.servers.mcp_process import listening
from tests.servers.postgres_server import PostgresServer, needs_postgres
from tests.servers.s3_server import BUCKET, S3Server, needs_s3
from tests.servers.scripted import calls, says
from websockets.asyncio.client import connect

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = [pytest.mark.slow, needs_postgres, needs_s3, needs("obstore")]

PIXELS = f"data:image/png;base64,{base64.b64encode(picture(64, 48)).decode()}"
SHOT = {"contentItems": [{"type": "inputImage", "imageUrl": PIXELS}], "success": True}
# As if the process ran on another host, where no process table tells that it has ended.
ELSEWHERE = (
    "UPDATE owners SET boot = 'another boot', namespace = 'another'",
    "UPDATE ledger SET owner_boot = 'another boot'",
    "UPDATE session_leases SET owner_boot = 'another boot'",
)
AN_HOUR_AGO = "UPDATE owners SET beat_ms = beat_ms - 3600000"


class Team:
    """What both processes share."""

    def __init__(self, postgres: PostgresServer, s3: S3Server) -> None:
        self.url = postgres.new_url()
        self.env = {**s3.env, "LIMNER_STORE": self.url, "LIMNER_BLOBS": f"s3://{BUCKET}/team"}
        self._postgres = postgres

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements in the database; returns the rows of the last one."""
        return [self._postgres.run(statement, url=self.url) for statement in statements][-1]


@pytest.fixture
def team(postgres: PostgresServer, tmp_path: Path) -> Iterator[Team]:
    with S3Server(tmp_path / "s3") as s3:
        yield Team(postgres, s3)


@pytest.fixture
def stages(team: Team, tmp_path: Path) -> Iterator[list[Stage]]:
    """Two homes, and one model for both."""
    with ExitStack() as stack:
        model = stack.enter_context(scripted(ResponsesServer)())
        made: list[Stage] = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            made.append(Stage(tmp_path / name, model))
            made[-1].env |= team.env
        yield made


@pytest.fixture
def studios(team: Team, tmp_path: Path) -> list[Studio]:
    made: list[Studio] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(Studio(tmp_path / name))
        made[-1].env |= {**team.env, "LIMNER_MCP_ANSWER_WITHIN_S": "1"}
    return made


async def test_a_thread_goes_on_in_the_other_app_server_with_the_picture_of_an_earlier_turn(
    stages: list[Stage],
) -> None:
    one, two = stages
    one.script(calls(("shot", "{}")), says("One"), says("Two"), says("Three"))
    async with one.listening() as join_one, two.listening() as join_two:
        async with join_one() as client:
            thread = await client.start(dynamicTools=[function("shot")])
            await client.say(thread, "first")
            client.answer(await client.next("item/tool/call"), SHOT)
            await client.until("turn/completed")
        async with join_two() as client:
            resumed = await _resume(client, thread)
            assert (await client.turn(thread, "second"))["status"] == "completed"
        async with join_one() as client:
            back = await _resume(client, thread)
            assert (await client.turn(thread, "third"))["status"] == "completed"
    assert [turn["status"] for turn in resumed["thread"]["turns"]] == ["completed"]
    assert [turn["status"] for turn in back["thread"]["turns"]] == ["completed", "completed"]
    # The model sees the picture of the first turn, whichever process asks it.
    for body in (-2, -1):
        ((shown,),) = one.outputs(body)
        assert (shown["type"], shown["image_url"]) == ("input_image", PIXELS)


async def test_a_thread_is_talked_in_by_one_app_server_until_that_is_killed(
    stages: list[Stage], team: Team
) -> None:
    one, two = stages
    one.script(calls(("shot", "{}")), says("Done"), says("Two"))
    async with AsyncExitStack() as stack:
        words = ("--listen", "ws://127.0.0.1:0", "--no-token")
        process = await stack.enter_async_context(one.process(*words))
        assert process.stderr is not None
        address = (await process.stderr.readline()).decode().split("listening on ")[1].strip()
        socket = await stack.enter_async_context(connect(address, compression=None, proxy=None))
        first = Client(Socket(socket))
        await first.greet()
        thread = await first.start(dynamicTools=[function("shot")])
        turn = await first.say(thread, "go")
        await first.next("item/tool/call")
        join = await stack.enter_async_context(two.listening())
        second = await stack.enter_async_context(join())
        in_use = (-32600, f"thread {thread} already has an active writer")
        assert await second.refusal("thread/resume", threadId=thread) == in_use
        process.send_signal(signal.SIGKILL)
        await process.wait()
        team.run(*ELSEWHERE)
        assert await second.refusal("thread/resume", threadId=thread) == in_use
        team.run(AN_HOUR_AGO)
        resumed = await second.request("thread/resume", threadId=thread)
        second.answer(await second.next("item/tool/call"), SHOT)
        ended = await second.until("turn/completed")
    assert [(one["id"], one["status"]) for one in resumed["thread"]["turns"]] == [
        (turn, "inProgress")
    ]
    assert (ended["turn"]["id"], ended["turn"]["status"]) == (turn, "completed")


async def _resume(client: Client, thread: str) -> Any:
    """Open a thread, as soon as the server that the client left has noticed that."""
    while True:
        try:
            return await client.request("thread/resume", threadId=thread)
        except Refused as refused:
            if "already has an active writer" not in refused.message:
                raise


async def test_a_picture_and_a_job_of_one_mcp_server_are_there_in_the_other(
    studios: list[Studio], openai: OpenAIServer
) -> None:
    one, two = [studio.connect(openai) for studio in studios]
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(listening(studio)) for studio in (one, two)]
        first, second = [
            await stack.enter_async_context(McpClient(server.url)) for server in servers
        ]
        drawn = value_of(await _done(first, await first.call_tool("image_generate", FOX)))
        handle = drawn["image"]
        order = {"image": handle, "prompt": "make it blue"}
        edited = await _done(second, await second.call_tool("image_edit", order))
        (whole,) = (await second.read_resource(f"limner://image/{handle}")).contents
        gate = held(openai)
        told = value_of(await first.call_tool("image_generate", {"prompt": "a hen"}))
        assert told["status"] == "running"
        job = {"id": told["job"]}
        elsewhere = value_of(await second.call_tool("image_job", job))["error"]
        gate.open()
        done = await _done(first, await first.call_tool("image_job", job))
        there = await _done(second, await second.call_tool("image_job", job))
    assert whole.mime_type == "image/png"
    assert [block.type for block in edited.content] == ["text", "image"]
    assert (elsewhere["code"], elsewhere["retryable"]) == ("JOB_RUNNING_ELSEWHERE", True)
    assert [block.type for block in there.content] == ["text", "image"]
    assert value_of(there)["image"] == value_of(done)["image"]
    assert len(openai.sent("generate")) == 2


async def _done(client: McpClient, result: Any) -> Any:
    """Wait for the result of a job."""
    while (about := value_of(result)).get("status") == "running":
        result = await client.call_tool("image_job", {"id": about["job"]})
    assert not result.is_error, about
    return result


async def test_a_job_of_an_mcp_server_that_was_killed_ends_in_the_other(
    studios: list[Studio], replicate: ReplicateServer, team: Team
) -> None:
    one, two = [studio.connect(replicate) for studio in studios]
    replicate.looks = 1
    replicate.script("look", Reply(hold=Gate()))
    async with listening(one) as server, McpClient(server.url) as client:
        told = value_of(await client.call_tool("image_generate", FOX))
        await replicate.wait_until("look")
        server.process.kill()
        await server.process.wait()
    team.run(*ELSEWHERE)
    job = {"id": told["job"]}
    async with listening(two) as server, McpClient(server.url) as client:
        elsewhere = value_of(await client.call_tool("image_job", job))["error"]
        team.run(AN_HOUR_AGO)
        done = await _done(client, await client.call_tool("image_job", job))
    assert elsewhere["code"] == "JOB_RUNNING_ELSEWHERE"
    assert [block.type for block in done.content] == ["text", "image"]
    assert len(replicate.sent("create")) == 1
    assert team.run("SELECT state, picture IS NOT NULL FROM ledger") == [("settled", True)]
