"""Silent connections, many sessions and huge messages keep no good caller out.

Each test prints the memory that the server needed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_process import GREETING, app_server
from tests.frontends.appserver.appserver_process import listening as app_server_listening
from tests.servers.mcp_process import listening
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

GUARD_S = 60.0
SILENT, SESSIONS, LARGE, LARGE_BYTES = 520, 2_000, 4, 200 * 1024 * 1024
PIECE = b"A" * (1 << 20)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Probe = Callable[[], Awaitable[None]]


class Report:
    """Notes what a good caller waited and what the server needed, and prints it."""

    def __init__(self, name: str, pid: int, probe: Probe) -> None:
        self._name, self._pid, self._probe = name, pid, probe
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
        self.lines.append(
            f"{self._name}: {attack}: a good caller waited {waited_ms:.0f} ms, "
            f"the server has had {self.peak_mb} MB at most"
        )


async def open_silent(port: int, head: bytes) -> list[asyncio.StreamReader]:
    """Connections that never send the end of their first request."""
    readers: list[asyncio.StreamReader] = []
    for _ in range(SILENT):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        reader.writer = writer  # type: ignore[attr-defined] - it must live as long
        readers.append(reader)
    return readers


async def all_closed(readers: list[asyncio.StreamReader]) -> None:
    for reader in readers:
        async with asyncio.timeout(GUARD_S):
            with suppress(ConnectionError):
                await reader.read()
        reader.writer.close()  # type: ignore[attr-defined] - see open_silent


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


@pytest.mark.usefixtures("many_files")
async def test_mcp_over_http_serves_good_callers_throughout(
    studio: Studio, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "a-secret-of-some-length"
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {secret}",
    }
    async with listening(studio, env={"LIMNER_MCP_TOKEN": secret}) as server:

        async def start(client: httpx2.AsyncClient, name: str = "good") -> httpx2.Response:
            return await client.post(server.url, headers=headers, json=initialize(name))

        async def probe() -> None:
            async with httpx2.AsyncClient(timeout=GUARD_S) as client:
                assert (await start(client)).status_code == 200

        report = Report("MCP over HTTP", server.process.pid, probe)
        await report.note("no attack")
        quiet_mb = report.peak_mb
        silent = await open_silent(server.port, b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ")
        await report.note(f"{SILENT} half requests")
        await all_closed(silent)
        await report.note(f"{SILENT} half requests were closed")

        opened: list[str] = []
        async with httpx2.AsyncClient(timeout=GUARD_S) as client:
            for number in range(SESSIONS):
                answer = await start(client)
                assert answer.status_code == 200
                opened.append(answer.headers["mcp-session-id"])
                if number % 500 == 0:
                    assert (await start(client, "n" * 100_000)).status_code == 413
            await report.note(f"{SESSIONS} sessions")
            known = [
                (await client.get(server.url, headers={**headers, "mcp-session-id": session}))
                for session in opened[:1]
            ]
            assert known[0].status_code == 404

        async def large(more: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(
                b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
                b"Content-Type: application/json\r\n%b\r\n" % (server.port, secret.encode(), more)
            )
            with suppress(ConnectionError):
                for _ in range(LARGE_BYTES // len(PIECE)):
                    writer.write(
                        b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if b"chunk" in more else PIECE
                    )
                    await writer.drain()
            writer.close()
            with suppress(ConnectionError):
                return await reader.readline()
            return b""

        told = [b"Content-Length: %d\r\n" % LARGE_BYTES, b"Transfer-Encoding: chunked\r\n"]
        attacks = [asyncio.create_task(large(told[n % 2])) for n in range(LARGE)]
        await report.note(f"{LARGE} x 200 MB before initialize")
        await asyncio.gather(*attacks)
        await report.note(f"{LARGE} x 200 MB before initialize, at the end")
        assert report.peak_mb < quiet_mb + 150
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines, ""]))


@pytest.mark.usefixtures("many_files")
async def test_the_app_server_serves_good_callers_throughout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with app_server_listening(tmp_path, words=[*app_server(), "--listen"]) as server:
        port = int(server.address.rpartition(":")[2])
        options: dict[str, Any] = {"compression": None, "ping_interval": None, "proxy": None}
        hello = json.dumps({"id": 1, "method": "initialize", "params": GREETING})

        def come() -> Any:
            return connect(server.address, additional_headers=server.headers, **options)

        async def probe() -> None:
            async with come() as client:
                await client.send(hello)
                assert "userAgent" in str(await client.recv())

        report = Report("app-server", server.server.process.pid, probe)
        await report.note("no attack")
        quiet_mb = report.peak_mb
        silent = await open_silent(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ")
        await report.note(f"{SILENT} half handshakes")
        await all_closed(silent)
        await report.note(f"{SILENT} half handshakes were closed")
        idle = [await come() for _ in range(SILENT)]
        await report.note(f"{SILENT} clients without initialize")
        for client in idle:
            client.transport.abort()

        async def large() -> None:
            async with come() as client:
                with suppress(WebSocketException):
                    await client.send(PIECE.decode() for _ in range(LARGE_BYTES // len(PIECE)))

        attacks = [asyncio.create_task(large()) for _ in range(LARGE)]
        await report.note(f"{LARGE} x 200 MB before initialize")
        await asyncio.gather(*attacks)
        await report.note(f"{LARGE} x 200 MB before initialize, at the end")
        assert report.peak_mb < quiet_mb + 150
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *report.lines, ""]))
