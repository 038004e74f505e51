"""A client that means harm gets errors, and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.acceptance.conftest import Studio, picture
from tests.servers.mcp_process import (
    WORDS,
    Listening,
    by_pipes,
    environment,
    inside,
    listening,
    post,
)

from limner.testing.servers.http_server import LocalServer

SECRET = "a-secret-of-some-length"
GIGABYTE = 1 << 30
GREETING = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"tests","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


@pytest.fixture
def private() -> Iterator[LocalServer]:
    """A service in the private network that nobody must be made to call."""
    with LocalServer() as server:
        yield server


def readings(studio: Studio, private: LocalServer) -> list[str]:
    """Paths that no model may read: a picture lies behind each that could have one."""
    home = Path(studio.env["HOME"])
    keys = home / ".ssh"
    keys.mkdir()
    (keys / "key.png").write_bytes(picture(8, 8))
    (studio.cwd / "link.png").symlink_to(keys / "key.png")
    (studio.cwd / "folder").symlink_to(keys)
    return [
        "/etc/passwd",
        "../" * 30 + "etc/passwd",
        str(keys / "key.png"),
        "~/.ssh/key.png",
        "link.png",
        "folder/key.png",
        "folder/../.ssh/key.png",
        (keys / "key.png").as_uri(),
        f"{private.origin}/picture.png",
        "http://169.254.169.254/latest/meta-data",
        "/proc/self/environ",
        "/dev/stdin",
        "a\0b.png",
        "limner://image/../../etc/passwd",
        "",
    ]


def writings(studio: Studio) -> list[str]:
    """Paths that no model may write."""
    home = Path(studio.env["HOME"])
    keys = home / ".ssh"
    return [
        "/etc/limner.png",
        "../" * 30 + "etc/limner.png",
        str(keys / "new.png"),
        "~/.ssh/new.png",
        "folder/new.png",
        "link.png",
        "/proc/self/mem",
        "a\0b.png",
    ]


def calls(studio: Studio, private: LocalServer) -> list[tuple[str, dict[str, Any]]]:
    """Every path parameter of every tool, with every path."""
    (studio.cwd / "own.png").write_bytes(picture(8, 8))
    found: list[tuple[str, dict[str, Any]]] = []
    for path in readings(studio, private):
        found += [
            ("inspect_image", {"path": path, "question": "what is it?"}),
            ("inspect_image", {"path": "own.png", "paths": [path], "question": "what?"}),
            ("image_edit", {"image": path, "prompt": "x"}),
            ("image_edit", {"image": "own.png", "references": [path], "prompt": "x"}),
            ("image_edit", {"image": "own.png", "mask": path, "prompt": "x"}),
            ("image_fit", {"image": path}),
            ("image_recall", {"handle": path}),
            ("image_job", {"id": path}),
        ]
    for path in writings(studio):
        found.append(
            ("image_generate", {"prompt": "a robot", "output_path": path, "overwrite": True})
        )
    return found


@pytest.mark.slow
async def test_no_path_parameter_of_any_tool_leads_out_of_reach(
    studio: Studio, private: LocalServer
) -> None:
    attempts = calls(studio, private)
    secrets = sorted(Path(studio.env["HOME"], ".ssh").iterdir())
    async with by_pipes(studio) as client:
        for tool, arguments in attempts:
            result = await client.call_tool(tool, arguments)
            assert result.is_error, (tool, arguments, result)
            assert [block.type for block in result.content] == ["text"], (tool, arguments)
            assert isinstance(result.content[0], types.TextContent)
            assert json.loads(result.content[0].text)["error"]["billed"] is False
    assert private.requests == []
    assert sorted(Path(studio.env["HOME"], ".ssh").iterdir()) == secrets
    assert not Path("/etc/limner.png").exists()


FORGED = [
    "limner://image/" + "0" * 64,
    "limner://image/" + "F" * 64,
    "limner://image/../../../etc/passwd",
    "limner://image/" + "0" * 64 + "?width=-1",
    "limner://image/" + "0" * 64 + "?width=99999999999",
    "limner://image/" + "0" * 64 + "?width=10&path=/etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1/",
]


@pytest.mark.parametrize("uri", FORGED)
async def test_a_forged_address_has_no_picture(studio: Studio, uri: str) -> None:
    async with inside(studio) as client:
        with pytest.raises(MCPError, match="There is no such picture"):
            await client.read_resource(uri)


@pytest.fixture
async def server(studio: Studio) -> AsyncGenerator[Listening]:
    async with listening(studio) as server:
        yield server


@pytest.mark.slow
async def test_only_a_page_of_this_machine_may_call(server: Listening) -> None:
    port = server.port
    answers = [
        (await post(server, headers)).status_code
        for headers in (
            {},
            {"Host": f"localhost:{port}"},
            {"Origin": f"http://localhost:{port}"},
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Host": f"127.0.0.1.evil.example:{port}"},
            {"Host": f"127.0.0.1:{port + 1}"},
            {"Origin": "https://evil.example"},
            {"Origin": f"http://localhost.evil.example:{port}"},
            {"Origin": "null"},
        )
    ]
    assert answers == [200, 200, 200, 421, 421, 421, 421, 403, 403, 403]


@pytest.mark.slow
async def test_a_gigabyte_that_is_announced_is_refused_before_it_comes(server: Listening) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = (
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Content-Type: application/json",
        f"Content-Length: {GIGABYTE}",
    )
    writer.write("\r\n".join([*head, "", ""]).encode())
    status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status.split()[1] == b"413"


@pytest.mark.slow
async def test_a_gigabyte_that_is_not_announced_is_refused_on_its_way(server: Listening) -> None:
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        while sent < GIGABYTE:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    try:
        refused = await post(server, {}, content=endless())
    except (httpx2.WriteError, httpx2.ReadError):  # the server hung up on it
        pass
    else:
        assert refused.status_code == 413
    assert sent < GIGABYTE // 8
    assert (await post(server, {})).status_code == 200


@pytest.mark.slow
async def test_a_gigabyte_on_standard_input_is_refused_without_being_kept(studio: Studio) -> None:
    """As one argument of one call, after which the server goes on."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *WORDS, stdin=PIPE, stdout=PIPE, env=environment(studio), cwd=studio.cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(GREETING + b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"')
        piece = b"x" * (1 << 20)
        for _ in range(GIGABYTE // len(piece)):
            process.stdin.write(piece)
            await process.stdin.drain()
        process.stdin.write(b'"}}\n{"jsonrpc":"2.0","id":8,"method":"ping"}\n')
        answers = [json.loads(await process.stdout.readline()) for _ in range(3)]
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.stdin.close()
        await process.wait()
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[7]["error"]["message"] == "Invalid request: longer than 16,777,216 bytes"
    assert by_id[8]["result"] == {}
    peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    assert peak_kb < 400_000


@pytest.mark.slow
async def test_beyond_this_machine_a_caller_needs_the_token(studio: Studio) -> None:
    env = {"LIMNER_MCP_TOKEN": SECRET}
    async with listening(studio, host="0.0.0.0", env=env) as server:
        there = Listening(process=server.process, url=f"http://127.0.0.1:{server.port}/mcp")
        answers = [
            (await post(there, headers)).status_code
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": f"Basic {SECRET}"},
                {"Authorization": f"Bearer {SECRET}"},
                {"Authorization": f"Bearer {SECRET}", "Host": f"evil.example:{server.port}"},
            )
        ]
    assert answers == [401, 401, 401, 200, 421]


@pytest.mark.slow
async def test_a_client_with_the_token_draws(studio: Studio, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    async with listening(studio, "--token-file", str(file)) as server:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {SECRET}"}, timeout=30)
        async with http, Client(streamable_http_client(server.url, http_client=http)) as client:
            drawn = await client.call_tool("image_generate", {"prompt": "a robot"})
    assert not drawn.is_error
