"""The web socket of the page <-> the app-server in this process, with the methods the page needs.

The page is one more client of the app-server: streaming, approvals, steering and interruption come
with it. Members that name files or change the rules of the server are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from limner.client import Limner
from limner.frontends.appserver.dispatch import Dispatcher, RpcCall, RpcHandler
from limner.frontends.appserver.methods import Handlers
from limner.frontends.appserver.server import Host
from limner.frontends.connection_guard import ConnectionGuard, GuardedConnection
from limner.net.jsonrpc import INVALID_REQUEST, RpcError
from limner.net.jsonrpc_peer import Transport
from limner.wires.base import HANDLE_URL

PATH = "/api/conversations/socket"
MAX_MESSAGE_BYTES = 1024 * 1024
_CONNECTION = "limner.connection"
_PICTURE = re.compile(f"{HANDLE_URL}[0-9a-f]{{64}}")
_TERMS = frozenset({"model", "approvalPolicy"})

METHODS: Mapping[str, frozenset[str]] = {
    "initialize": frozenset({"clientInfo", "capabilities"}),
    "model/list": frozenset({"cursor", "limit"}),
    "thread/start": _TERMS,
    "thread/resume": frozenset({"threadId", "excludeTurns"}),
    "thread/unsubscribe": frozenset({"threadId"}),
    "turn/start": _TERMS | {"threadId", "input"},
    "turn/steer": frozenset({"threadId", "expectedTurnId", "input"}),
    "turn/interrupt": frozenset({"threadId", "turnId"}),
}
"""What the page may call, and the members it may send."""


class StudioConversations:
    """The app-server for the pages of one studio."""

    def __init__(self, lim: Limner) -> None:
        self._host = Host(env=os.environ, cwd=lim.cwd, config={}, lim=lim)
        self._dispatcher = Dispatcher(
            PageMethods(Handlers(self._host)), pending=self._host.pending, log=self._host.log
        )

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it leaves."""
        connection: GuardedConnection = socket.scope["state"][_CONNECTION]
        await socket.accept()
        client = self._dispatcher.connect(
            SocketTransport(socket, connection),
            meter=connection.hold,
            on_initialize=connection.settle,
        )
        try:
            await client.run()
        finally:
            client.close()

    async def aclose(self) -> None:
        """End the turns and release the sessions."""
        await self._dispatcher.aclose()
        await self._host.closing.aclose()
        self._host.log.close()


class PageMethods(Mapping[str, RpcHandler]):
    """The handlers of the methods that a page may call."""

    def __init__(self, every: Mapping[str, RpcHandler]) -> None:
        self._handlers = {
            name: replace(every[name], serve=partial(_serve, every[name])) for name in METHODS
        }

    def __getitem__(self, name: str) -> RpcHandler:
        return self._handlers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


async def _serve(handler: RpcHandler, call: RpcCall, params: Any) -> object:
    raw = call.request.params
    given: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw, type=dict[str, Any])
    known = METHODS[call.method]
    refused = [name for name, value in given.items() if value is not None and name not in known]
    refused += [str(part["type"]) for part in given.get("input", ()) if not _is_input(part)]
    if refused:
        raise RpcError(INVALID_REQUEST, f"The studio does not take {refused[0][:80]!r} here.")
    return await handler.serve(call, params)


def _is_input(part: Mapping[str, Any]) -> bool:
    """Whether this is text, or a picture by its handle: the other kinds name files."""
    is_picture = part["type"] == "image" and _PICTURE.fullmatch(str(part.get("url")))
    return part["type"] == "text" or bool(is_picture)


class SocketTransport(Transport):
    """The messages of one page, one in each text frame."""

    def __init__(self, socket: WebSocket, connection: GuardedConnection) -> None:
        self._socket, self._connection = socket, connection

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send the messages as fast as the page reads."""
        try:
            for message in messages:
                await self._socket.send_text(message.decode())
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionResetError("the page is gone") from error

    async def receive(self) -> bytes | None:
        """Wait for the next frame; None is the end."""
        if self._socket.client_state is not WebSocketState.CONNECTED:
            return None
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text.encode()

    def abort(self) -> None:
        """Drop the connection."""
        self._connection.drop()


def guarded_websocket(connections: ConnectionGuard) -> type[WebSocketsSansIOProtocol]:
    """The protocol of the web sockets that report to a guard."""

    class OurWebSocket(GuardedWebSocket):
        guard = connections

    return OurWebSocket


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """A web socket that the guard of its server counts. A subclass names the guard."""

    guard: ConnectionGuard
    guarded: GuardedConnection
    _unfinished_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Report that it came, and expect it to introduce itself."""
        super().connection_made(transport)
        self.guarded = self.guard.admit(transport.abort)
        self.guarded.expect(self.guard.limits.request_s)

    def handle_connect(self, event: Request) -> None:
        """Give the application the connection, so that it can count what it holds."""
        if self.guard.is_full:
            self.transport.abort()
            return
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["state"] = {_CONNECTION: self.guarded}

    def data_received(self, data: bytes) -> None:
        """Report how much of an unfinished message it holds."""
        super().data_received(data)
        unfinished = len(self.conn.reader.buffer) + (self.conn.current_size or 0)
        self.guarded.hold(unfinished - self._unfinished_bytes)
        self._unfinished_bytes = unfinished

    async def send(self, message: Any) -> None:
        """Send a message; a refusal with a status is the end of the handshake."""
        await super().send(message)
        # Otherwise uvicorn would write each refusal to the log, as a failure of the application.
        self.handshake_complete = self.handshake_complete or self.close_sent

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that it left."""
        self.guarded.leave()
        super().connection_lost(exc)
