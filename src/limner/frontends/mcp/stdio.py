"""Standard input and output -> the MCP server, one message on each line."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Sequence

import msgspec

from limner.frontends.mcp.server import McpServer, McpSession
from limner.net.jsonrpc import Data, MessageHead, Notification
from limner.net.jsonrpc_lines import DescriptorTransport, standard_streams
from limner.net.jsonrpc_peer import (
    IncomingCall,
    Peer,
    PendingRequests,
    RequestServer,
    Transport,
    overloaded_error,
)

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
MAX_UNANSWERED = 1000
# A client that wants no more answers closes our input and waits about two seconds for our end.
GRACE_S = 1.0
_MAX_LOG_CHARS = 2000
_VERSION = b'{"jsonrpc":"2.0",'


class McpLines:
    """Lines with MCP's form of JSON-RPC: each message states its version.

    The clients of one revision may send several messages in one array.
    """

    def __init__(self, lines: Transport, session: McpSession) -> None:
        self._lines, self._session = lines, session
        self._batch: deque[Data] = deque()
        self.abort = lines.abort

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write each message as a line."""
        await self._lines.send([with_version(message) for message in messages])

    async def receive(self) -> Data | MessageHead | None:
        """Wait for the next message; None is the end."""
        if not self._batch:
            line = await self._lines.receive()
            if line is None or isinstance(line, MessageHead) or not self._takes_batch(line):
                return line
            self._batch.extend(split_batch(line))
        return self._batch.popleft()

    def _takes_batch(self, line: Data) -> bool:
        return self._session.takes_batches and line.lstrip()[:1] == b"["


def with_version(message: bytes) -> bytes:
    """Return an encoded message with the version that MCP requires."""
    return _VERSION + message[1:]


def split_batch(data: Data) -> list[Data]:
    """Return the messages of an array; what is not an array is one message."""
    try:
        return [bytes(one) for one in msgspec.json.decode(data, type=list[msgspec.Raw])] or [data]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return [data]


async def serve_lines(server: McpServer, lines: Transport) -> None:
    """Serve one client until it closes its end."""
    session = McpSession()
    loop = asyncio.get_running_loop()

    async def serve(call: IncomingCall[Peer]) -> object:
        return await server.serve(call.request, session=session, peer=call.connection)

    def notice(notification: Notification) -> None:
        # After the requests that came before it have started.
        loop.call_soon(lambda: server.notice(notification, session=session, peer=peer))

    requests = RequestServer(
        serve, log=log, max_unanswered=MAX_UNANSWERED, overloaded=overloaded_error("Server")
    )
    peer = Peer(
        McpLines(lines, session),
        server=requests,
        pending=PendingRequests(log),
        log=log,
        on_notification=notice,
    )
    try:
        await peer.run()
        async with asyncio.timeout(GRACE_S):
            await requests.settled()
    except TimeoutError:
        pass  # slow calls: those that may be paid for go on
    finally:
        await requests.aclose()
        await peer.flush()
        peer.close()
        await server.aclose()


async def serve(server: McpServer) -> None:
    """Serve the client that started this process, until it closes our standard input.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; calls that may be paid for have ended.
    """
    loop = asyncio.get_running_loop()
    is_interrupted = False
    with standard_streams() as (source, target):
        lines = DescriptorTransport(source, target, max_bytes=MAX_MESSAGE_BYTES)

        def interrupt(_: int, __: object) -> None:
            nonlocal is_interrupted
            is_interrupted = True
            loop.call_soon_threadsafe(lines.abort)

        signal.signal(signal.SIGINT, interrupt)
        await serve_lines(server, lines)
    if is_interrupted:
        raise KeyboardInterrupt


def log(line: str) -> None:
    """Write a line for the user who runs the server."""
    sys.stderr.write(f"limner mcp: {line[:_MAX_LOG_CHARS]}\n")
    sys.stderr.flush()
