"""App-servers that listen for clients, and where they are found."""

from __future__ import annotations

import asyncio
import re
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers.appserver_side import GUARD_S, Side

POLL_S = 0.01


@asynccontextmanager
async def listening(side: Side, address: str) -> AsyncGenerator[str]:
    """A server at an address, whose port may be 0; where clients reach it."""
    log = side.home.parent / "listening.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            side.program,
            "app-server",
            "--listen",
            address,
            *(["--no-token"] if side.kind == "limner" else []),
            stdin=DEVNULL,
            stdout=out,
            stderr=out,
            env=side.env,
            cwd=side.cwd,
        )
    try:
        async with asyncio.timeout(GUARD_S):
            while (found := _found(address, log)) is None:
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(POLL_S)
        yield found
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def _found(address: str, log: Path) -> str | None:
    """Where it is, once it is there: Codex says so of a port, and nothing of a socket."""
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return address if _takes_clients(parts.path) else None
    told = re.search(r"listening on:? (ws://\S+)\n", log.read_text())
    return None if told is None else told[1]


def _takes_clients(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0
