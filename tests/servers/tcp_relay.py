"""Addresses of pairs -> what comes in at the first of a pair goes on to the second, and back.

Run as ``python -m tests.servers.tcp_relay HOST:PORT=HOST:PORT …``; a line says that it listens.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

PIECE_BYTES = 64 * 1024


async def listen(source: str, target: str) -> asyncio.Server:
    """Relay the connections to one address to another one."""

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*_address(target))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    return await asyncio.start_server(connected, *_address(source), backlog=256)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main(pairs: list[str]) -> None:
    """Relay until the process is ended."""
    servers = [await listen(*pair.split("=")) for pair in pairs]
    sys.stdout.write("relaying\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
