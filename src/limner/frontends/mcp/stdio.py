"""Standard input and output -> the MCP server, with a limit on the size of a message.

The SDK reads whole lines of any length. A line over the limit is discarded in pieces. A small
request that the server rejects replaces it, so that the client gets a response.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import select
import signal
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from limner.frontends.mcp.server import REFUSE, McpFrontend

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 1 << 16
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,200}")')


class BoundedLines(io.TextIOBase):
    """A stream of lines; a line over the limit is read and discarded."""

    def __init__(self, stream: BinaryIO, *, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    def readline(self, _: int = -1, /) -> str:  # type: ignore[override] - text, for the SDK
        """Return the next line, or a request that is rejected in its place."""
        line = self._stream.readline(self._max_bytes + 1)
        if len(line) <= self._max_bytes:
            return line.decode("utf-8", "replace")
        head = tail = line
        while tail and not tail.endswith(b"\n"):
            tail = self._stream.readline(_PIECE_BYTES)
        return self._refusal(head)

    def _refusal(self, head: bytes) -> str:
        """Return the replacement; it has the id of the discarded request, if there is one."""
        message: dict[str, object] = {
            "jsonrpc": "2.0",
            "method": REFUSE,
            "params": {"why": f"A message may have {self._max_bytes:,} bytes at most."},
        }
        if (found := _ID.search(head[:_PIECE_BYTES])) is not None:
            message["id"] = json.loads(found[1])
        return json.dumps(message) + "\n"


class Input(io.RawIOBase):
    """A file descriptor that is read until its end, or until `end` is called.

    A blocked read in a thread cannot be cancelled, and the program would wait for the thread.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wakes, self._waker = os.pipe()
        self.is_ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read the available bytes; nothing after `end`."""
        ready, _, _ = select.select([self._descriptor, self._wakes], [], [])
        if self._wakes in ready:
            return 0
        return os.readv(self._descriptor, [buffer])

    def end(self) -> None:
        """End every read, also one that is blocked in another thread."""
        self.is_ended = True
        os.write(self._waker, b"!")


async def serve(server: Server[McpFrontend]) -> None:
    """Serve one client until it closes our standard input.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; calls that may be paid for have ended.
    """
    # As the SDK does: no child process and no other read may consume the client's messages.
    private = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    if sys.platform == "win32":
        # A blocked read cannot be cancelled on Windows. The store recovers interrupted calls.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        await _run(server, os.fdopen(private, "rb"))
        return
    source = Input(private)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, source.end)
    await _run(server, io.BufferedReader(source, _PIECE_BYTES))
    if source.is_ended:
        raise KeyboardInterrupt


async def _run(server: Server[McpFrontend], stream: BinaryIO) -> None:
    stdin = anyio.wrap_file(cast("io.TextIOWrapper", BoundedLines(stream)))
    async with stdio_server(stdin=stdin) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
