"""`limner mcp` as clients meet it: a process to talk to by pipes or by HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import httpx2
import msgspec
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from tests.acceptance.conftest import Studio

from limner.frontends.mcp.server import McpServer
from limner.frontends.mcp.stdio import serve_lines

GUARD_S = 60.0
WORDS = ("-m", "limner", "mcp")
LEGACY, STATELESS = "2025-11-25", "2026-07-28"

Mode = Literal["legacy", "auto"]


def environment(studio: Studio, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a client that is started from a desktop hands on."""
    return {"PATH": os.environ["PATH"], **studio.env, **(more or {})}


def inside(studio: Studio, *, mode: Mode = "auto", **options: Any) -> Client:
    """A client of a server in this very process."""
    return Client(_wired(studio), mode=mode, **options)


class _Wire:
    """The server's end of two streams of the official client."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    async def send(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            found = jsonrpc_message_adapter.validate_json(message)
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._outgoing.send(SessionMessage(found))

    async def receive(self) -> bytes | None:
        try:
            sent = await self._incoming.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return None
        return sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    def abort(self) -> None:
        self._incoming.close()


@asynccontextmanager
async def _wired(studio: Studio) -> AsyncGenerator[tuple[Any, Any]]:
    to_server, at_server = anyio.create_memory_object_stream[Any](10)
    to_client, at_client = anyio.create_memory_object_stream[Any](10)
    server = McpServer(env=studio.env, cwd=studio.cwd)
    serving = asyncio.create_task(serve_lines(server, _Wire(at_server, to_client)))
    try:
        yield at_client, to_server
    finally:
        to_server.close()
        await serving
        at_client.close()
        to_client.close()


def by_pipes(studio: Studio, *, mode: Mode = "auto", **options: Any) -> Client:
    """A client that starts the server itself."""
    parameters = StdioServerParameters(
        command=sys.executable, args=[*WORDS], env=environment(studio), cwd=studio.cwd
    )
    return Client(stdio_client(parameters), mode=mode, **options)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """A server that listens."""

    process: Process
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])


@asynccontextmanager
async def listening(
    studio: Studio,
    *words: str,
    host: str = "127.0.0.1",
    env: Mapping[str, str] | None = None,
    is_open: bool = True,
) -> AsyncGenerator[Listening]:
    """A server on a port of its own; it is told to stop at the end, unless it is gone by then.

    It has no token if it ``is_open``, unless the words or the variables are about tokens.
    """
    about_tokens = env or any(word.startswith(("--token", "--oauth")) for word in words)
    if is_open and not about_tokens:
        words = ("--no-token", *words)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *WORDS,
        "--http",
        f"{host}:0",
        *words,
        stderr=PIPE,
        env=environment(studio, env),
        cwd=studio.cwd,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(GUARD_S):
            said = (await process.stderr.readline()).decode().split()
        assert said[:2] == ["limner", "mcp:"], said
        yield Listening(process=process, url=said[2])
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def post(server: Listening, headers: dict[str, str], **rest: Any) -> httpx2.Response:
    """One request of the stateless era that lists the tools."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
    usual = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": STATELESS,
        "Mcp-Method": "tools/list",
    }
    content = rest.pop("content", json.dumps(body))
    async with httpx2.AsyncClient(timeout=30) as client:
        return await client.post(server.url, headers=usual | headers, content=content, **rest)
