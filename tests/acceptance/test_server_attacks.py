"""Silent connections, many sessions and huge messages keep no good caller out.

Each test prints the memory that the server needed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_process import GREETING, app_server
from tests.frontends.appserver.appserver_process import listening as app_server_listening
from tests.servers.mcp_process import listening
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from limner.frontends.connection_guard import LIMITS

GUARD_S = 60.0
SILENT, SESSIONS, LARGE, LARGE_BYTES = 520, 2_000, 4, 200 * 1024 * 1024
PIECE = b"A" * (1 << 20)
SECRET = "a-secret-of-some-length"
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Authorization": f"Bearer {SECRET}",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Probe = Callable[[], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Report:
    """Notes what a good caller waited and what the server needed, and prints it at the end."""

    def __init__(self, name: str, pid: int, probe: Probe) -> None:
        self._name, self._pid, self._probe = name, pid, probe
        self.quiet_mb = 0
        self.lines: list[str] = []

    @property
    def peak_mb(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) // 1024

    async def note(self, attack: str) -> None:
        """A good caller is served, now."""
        before = time.perf_counter()
        async with asyncio.timeout(GUARD_S):
            await self._probe()
        waited_ms = (time.perf_counter() - before) * 1000
        self.quiet_mb = self.quiet_mb or self.peak_mb
        self.lines.append(
            f"{self._name}: {attack}: a good caller waited {waited_ms:.0f} ms, "
            f"the server has had {self.peak_mb} MB at most"
        )
        assert self.peak_mb < self.quiet_mb + 100


async def open_silent(port: int, head: bytes) -> list[Streams]:
    """Connections that never send the end of their first request."""
    streams: list[Streams] = []
    for _ in range(SILENT):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        streams.append((reader, writer))
    return streams


async def all_closed(streams: list[Streams]) -> None:
    """Wait until the server has closed them."""
    for reader, writer in streams:
        async with asyncio.timeout(GUARD_S):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()


def initialize(name: str) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        },
    }


class McpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server over HTTP with a token, and a report about it."""

    url: str
    port: int
    report: Report

    async def start(self, client: httpx2.AsyncClient, name: str = "good") -> httpx2.Response:
        """Start a session."""
        return await client.post(self.url, headers=HEADERS, json=initialize(name))


@pytest.fixture
async def mcp(
    studio: Studio, many_files: None, capsys: pytest.CaptureFixture[str]
) -> AsyncGenerator[McpTarget]:
    async with listening(studio, env={"LIMNER_MCP_TOKEN": SECRET}) as server:

        async def probe() -> None:
            async with httpx2.AsyncClient(timeout=GUARD_S) as client:
                assert (await target.start(client)).status_code == 200

        report = Report("MCP over HTTP", server.process.pid, probe)
        target = McpTarget(url=server.url, port=server.port, report=report)
        await report.note("no attack")
        yield target
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines, ""]))


async def test_half_requests_keep_no_caller_out_of_mcp(mcp: McpTarget) -> None:
    silent = await open_silent(mcp.port, b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ")
    await mcp.report.note(f"{SILENT} half requests")
    await all_closed(silent)
    await mcp.report.note(f"{SILENT} half requests were closed")


async def test_sessions_without_end_keep_no_caller_out_of_mcp(mcp: McpTarget) -> None:
    opened: list[str] = []
    async with httpx2.AsyncClient(timeout=GUARD_S) as client:
        for number in range(SESSIONS):
            answer = await mcp.start(client)
            assert answer.status_code == 200
            opened.append(answer.headers["mcp-session-id"])
            if number % 500 == 0:
                assert (await mcp.start(client, "n" * 100_000)).status_code == 413
        await mcp.report.note(f"{SESSIONS} sessions")
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        known = [
            (
                await client.post(
                    mcp.url, headers={**HEADERS, "mcp-session-id": session}, json=ping
                )
            ).status_code
            for session in (opened[0], opened[-LIMITS.sessions - 1], opened[-1])
        ]
    assert known == [404, 404, 200]


async def test_huge_messages_before_initialize_keep_no_caller_out_of_mcp(mcp: McpTarget) -> None:
    async def send(more: bytes, piece: bytes) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", mcp.port)
        writer.write(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
            b"Content-Type: application/json\r\n%b\r\n" % (mcp.port, SECRET.encode(), more)
        )
        with suppress(ConnectionError):
            for _ in range(LARGE_BYTES // len(PIECE)):
                writer.write(piece)
                await writer.drain()
        writer.close()

    told = [
        (b"Content-Length: %d\r\n" % LARGE_BYTES, PIECE),
        (b"Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n" % (len(PIECE), PIECE)),
    ]
    attacks = [asyncio.create_task(send(*told[number % 2])) for number in range(LARGE)]
    await mcp.report.note(f"{LARGE} x 200 MB before initialize")
    await asyncio.gather(*attacks)
    await mcp.report.note(f"{LARGE} x 200 MB before initialize, at the end")


class AppTarget(msgspec.Struct, frozen=True, kw_only=True):
    """An app-server on a web socket with a token, and a report about it."""

    address: str
    headers: dict[str, str]
    report: Report

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def come(self) -> connect:
        options: dict[str, Any] = {"compression": None, "ping_interval": None, "proxy": None}
        return connect(self.address, additional_headers=self.headers, **options)


@pytest.fixture
async def app(
    tmp_path: Path, many_files: None, capsys: pytest.CaptureFixture[str]
) -> AsyncGenerator[AppTarget]:
    with app_server_listening(tmp_path, words=[*app_server(), "--listen"]) as server:

        async def probe() -> None:
            async with target.come() as client:
                await client.send(json.dumps({"id": 1, "method": "initialize", "params": GREETING}))
                assert "userAgent" in str(await client.recv())

        report = Report("app-server", server.server.process.pid, probe)
        target = AppTarget(address=server.address, headers=server.headers, report=report)
        await report.note("no attack")
        yield target
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines, ""]))


async def test_half_handshakes_keep_no_client_out_of_the_app_server(app: AppTarget) -> None:
    silent = await open_silent(app.port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ")
    await app.report.note(f"{SILENT} half handshakes")
    await all_closed(silent)
    await app.report.note(f"{SILENT} half handshakes were closed")


async def test_clients_without_initialize_keep_no_client_out_of_the_app_server(
    app: AppTarget,
) -> None:
    idle = [await app.come() for _ in range(SILENT)]
    await app.report.note(f"{SILENT} clients without initialize")
    for client in idle[: SILENT - LIMITS.newcomers]:
        async with asyncio.timeout(GUARD_S):
            await client.wait_closed()
    for client in idle:
        client.transport.abort()


async def test_huge_messages_before_initialize_keep_no_client_out_of_the_app_server(
    app: AppTarget,
) -> None:
    async def send() -> None:
        async with app.come() as client:
            with suppress(WebSocketException):
                await client.send(PIECE.decode() for _ in range(LARGE_BYTES // len(PIECE)))

    attacks = [asyncio.create_task(send()) for _ in range(LARGE)]
    await app.report.note(f"{LARGE} x 200 MB before initialize")
    await asyncio.gather(*attacks)
    await app.report.note(f"{LARGE} x 200 MB before initialize, at the end")
