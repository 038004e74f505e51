"""A wire between a client and a server on this machine that a test can cut."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

PIECE_BYTES = 64 * 1024


class Relay:
    """Hands on what comes in at one socket to another, both in the file system."""

    def __init__(self, path: Path, *, to: Path) -> None:
        self.path, self._to = path, to
        self._writers: list[StreamWriter] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Relay]:
        """Listen for as long as the test lasts."""
        server = await asyncio.start_unix_server(self._connected, self.path)
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        """Lose every connection; new ones are taken."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._to)
        self._writers += [writer, far_writer]
        await asyncio.gather(_copied(reader, far_writer), _copied(far_reader, writer))


async def _copied(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()
