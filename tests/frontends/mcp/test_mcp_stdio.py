"""The server on its standard streams, message by message, in every revision."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import Studio, picture
from tests.servers.mcp_process import WORDS, environment

from limner.frontends.mcp.protocol import SESSION_REVISIONS, STATELESS
from limner.frontends.mcp.server import McpServer
from limner.frontends.mcp.stdio import serve_lines

ALONE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Talk:
    """The client's side of a server in this process, by plain messages."""

    def __init__(self) -> None:
        self.to_server = asyncio.Queue[bytes | None]()
        self.from_server = asyncio.Queue[Any]()

    async def send(self, messages: list[bytes]) -> None:
        for message in messages:
            self.from_server.put_nowait(json.loads(message))

    async def receive(self) -> bytes | None:
        return await self.to_server.get()

    def abort(self) -> None:
        self.to_server.put_nowait(None)

    def say(self, message: object) -> None:
        self.to_server.put_nowait(json.dumps(message).encode())

    async def ask(self, method: str, **params: Any) -> Any:
        self.say({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        return await self.answer(method)

    async def answer(self, request_id: str | int) -> Any:
        """The response to a request; requests of the server meanwhile stay unanswered."""
        while True:
            message = await self.from_server.get()
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == request_id and "method" not in message:
                return message

    async def greet(self, revision: str, **about: Any) -> Any:
        greeting = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
            **about,
        }
        answer = await self.ask("initialize", **greeting)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


@asynccontextmanager
async def talking(studio: Studio) -> AsyncGenerator[Talk]:
    talk = Talk()
    server = McpServer(env=studio.env, cwd=studio.cwd)
    serving = asyncio.create_task(serve_lines(server, talk))  # type: ignore[arg-type]
    try:
        yield talk
    finally:
        talk.to_server.put_nowait(None)
        await serving


@pytest.mark.parametrize("revision", [*SESSION_REVISIONS, "1999-01-01", STATELESS])
async def test_a_session_has_the_revision_of_its_client_or_the_latest(
    studio: Studio, revision: str
) -> None:
    async with talking(studio) as talk:
        result = (await talk.greet(revision))["result"]
    agreed = revision if revision in SESSION_REVISIONS else SESSION_REVISIONS[-1]
    assert result["protocolVersion"] == agreed
    assert ("title" in result["serverInfo"]) == (agreed >= "2025-06-18")
    assert {*result["capabilities"]} == {"tools", "resources"}


@pytest.mark.slow
@pytest.mark.parametrize("revision", SESSION_REVISIONS)
async def test_a_result_has_only_what_the_revision_has(studio: Studio, revision: str) -> None:
    async with talking(studio) as talk:
        await talk.greet(revision)
        drawn = (
            await talk.ask("tools/call", name="image_generate", arguments={"prompt": "a fox"})
        )["result"]
        spent = (await talk.ask("tools/call", name="spend"))["result"]
    assert ([one["type"] for one in drawn["content"]], {*drawn}) == (
        ["text", "image"],
        {"content", "isError"},
    )
    structure = {"structuredContent"} if revision >= "2025-06-18" else set[str]()
    assert {*spent} == {"content", "isError"} | structure


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "tools/list"}, -32600),
        ({"method": "server/discover"}, -32602),
        ({"method": "tasks/get", "params": {"taskId": "x"}}, -32602),
        ({"method": "nothing"}, -32601),
        ({"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}, -32602),
        ({"method": "initialize", "params": [1]}, -32602),
        ({"method": "ping", "params": {"_meta": ALONE}}, -32601),
        ({"method": "tasks/get", "params": {"_meta": ALONE, "taskId": "x"}}, -32021),
        ({"method": "tools/call", "params": {"_meta": ALONE}}, -32602),
        ({"method": "tools/call", "params": {"_meta": ALONE, "name": "nothing"}}, -32602),
        (
            {"method": "tools/list", "params": {"_meta": {**ALONE, next(iter(ALONE)): "2030"}}},
            -32022,
        ),
        ({"method": "tools/list", "params": {"_meta": {next(iter(ALONE)): STATELESS}}}, -32602),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
async def test_a_wrong_request_gets_the_error_of_the_protocol(
    studio: Studio, message: Mapping[str, Any], code: int
) -> None:
    async with talking(studio) as talk:
        talk.say({"jsonrpc": "2.0", "id": 1, **message})
        assert (await talk.answer(1))["error"]["code"] == code


async def test_a_request_that_stands_alone_needs_no_session(studio: Studio) -> None:
    async with talking(studio) as talk:
        found = (await talk.ask("server/discover", _meta=ALONE))["result"]
        listed = (await talk.ask("tools/list", _meta=ALONE))["result"]
    assert found["supportedVersions"] == [STATELESS]
    assert "io.modelcontextprotocol/tasks" in found["capabilities"]["extensions"]
    about = (listed["resultType"], listed["ttlMs"], listed["cacheScope"])
    assert about == ("complete", 3_600_000, "public")
    assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "limner"


async def test_a_request_that_stands_alone_learns_which_field_it_lacks(studio: Studio) -> None:
    async with talking(studio) as talk:
        alone = await talk.ask("server/discover")
        await talk.greet(SESSION_REVISIONS[-1])
        in_session = await talk.ask("server/discover")
    lacks = f"params._meta lacks {' and '.join(ALONE)}"
    assert alone["error"] == {"code": -32602, "message": lacks}
    assert in_session["error"]["code"] == -32601


async def test_one_revision_may_send_several_messages_in_an_array(studio: Studio) -> None:
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    async with talking(studio) as talk:
        await talk.greet("2025-03-26")
        talk.say(pings)
        assert [(await talk.answer(number))["result"] for number in (1, 2)] == [{}, {}]


async def test_messages_that_make_no_sense_end_nothing(studio: Studio) -> None:
    async with talking(studio) as talk:
        await talk.greet("2025-11-25")
        for line in (
            b"x",
            b"[]",
            b"[1]",
            b"{}",
            b"\xff",
            b'{"id":{}}',
            b'{"jsonrpc":"2.0","id":9}',
        ):
            talk.to_server.put_nowait(line)
        talk.say(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        )
        talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7})
        assert (await talk.ask("ping"))["result"] == {}


@pytest.mark.slow
async def test_a_client_that_never_names_its_roots_waits_only_with_a_path(studio: Studio) -> None:
    """It says that it has roots, and does not answer when it is asked for them."""
    (studio.cwd / "red.png").write_bytes(picture(8, 8))
    async with talking(studio) as talk:
        await talk.greet("2025-06-18", capabilities={"roots": {}})
        assert (await talk.from_server.get())["method"] == "roots/list"
        async with asyncio.timeout(4):
            assert "result" in await talk.ask("tools/call", name="spend")
        for _ in range(2):
            arguments = {"path": "red.png", "question": "How large is it?"}
            asked = await talk.ask("tools/call", name="inspect_image", arguments=arguments)
            assert not asked["result"]["isError"]
        assert talk.from_server.empty()


async def test_the_official_client_of_the_first_revision_is_not_asked_for_roots(
    studio: Studio,
) -> None:
    async with talking(studio) as talk:
        client = {"name": "mcp", "version": "0.1.0"}
        await talk.greet("2024-11-05", capabilities={"roots": {}}, clientInfo=client)
        (studio.cwd / "red.png").write_bytes(picture(8, 8))
        arguments = {"path": "red.png", "question": "How large is it?"}
        talk.say(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "inspect_image", "arguments": arguments},
            }
        )
        assert (await talk.from_server.get())["id"] == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there a process is ended, not told to end")
async def test_a_server_at_a_terminal_ends_when_the_user_says_so(studio: Studio) -> None:
    """Its input stays open, as a terminal does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *WORDS, stdin=PIPE, stdout=PIPE, env=environment(studio), cwd=studio.cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    try:
        await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
        process.stdin.close()
        await process.wait()


@pytest.mark.slow
async def test_the_server_starts_without_the_packages_of_an_extra(
    studio: Studio, tmp_path: Path
) -> None:
    """Neither the official SDK nor a web server is there to be imported."""
    for name in ("mcp", "mcp_types", "pydantic", "anyio", "starlette", "uvicorn", "jwt"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')")
    lines = [
        {"id": 1, "method": "tools/list", "params": {"_meta": ALONE}},
        {"id": 2, "method": "tools/call", "params": {"_meta": ALONE, "name": "spend"}},
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *WORDS,
        stdin=PIPE,
        stdout=PIPE,
        env=environment(studio, {"PYTHONPATH": str(tmp_path)}),
        cwd=studio.cwd,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for line in lines:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
    answers = [json.loads(await process.stdout.readline()) for _ in lines]
    process.stdin.close()
    await process.wait()
    assert ["result" in answer for answer in answers] == [True, True]
