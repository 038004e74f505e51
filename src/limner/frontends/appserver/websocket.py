"""A listening web socket, on TCP or a Unix socket -> clients that the dispatcher serves.

The library is an extra: import this module after `limner.net.websocket.require_library`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve, unix_serve
from websockets.http11 import Request, Response

from limner.frontends import server_token
from limner.frontends.appserver.dispatch import Dispatcher
from limner.frontends.appserver.listen_socket import Address, Tcp, bound
from limner.frontends.connection_guard import (
    LIMITS,
    ConnectionGuard,
    GuardedConnection,
    ServerLimits,
    allow_many_files,
)
from limner.frontends.server_token import ServerToken, TokenOptions
from limner.net.jsonrpc import MAX_MESSAGE_BYTES
from limner.net.jsonrpc_peer import Log
from limner.net.websocket import WebSocketTransport
from limner.storage.home import Home

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
TOKEN_NAME = "app-server"  # noqa: S105 - the name of the file, not a secret

OPTIONS: Mapping[str, Any] = {
    # Pictures do not become smaller, and it would cost each idle client a few hundred kilobytes.
    "compression": None,
    # One message at a time: what is not read yet waits with the client.
    "max_queue": 1,
    # A ping would need a task for every idle client; TCP keep-alive finds dead ones.
    "ping_interval": None,
    # The guard has the deadline for the handshake.
    "open_timeout": None,
    "close_timeout": 1.0,
    "server_header": None,
    # Otherwise bad requests could fill the log.
    "logger": logging.Logger("websockets", logging.CRITICAL + 1),
}


async def serve_websocket(
    dispatcher: Dispatcher,
    address: Address,
    *,
    token: TokenOptions,
    home: Path,
    log: Log,
    limits: ServerLimits = LIMITS,
) -> None:
    """Serve every client that connects, until cancelled.

    Raises:
        UserError: the address cannot be bound, or needs a token.
        StorageError: the token cannot be stored.
    """
    allow_many_files()
    connections = ConnectionGuard(limits)

    class OurConnection(GuardedServerConnection):
        guard = connections

    with bound(address) as listener, _token(token, listener, home=home) as expected:

        def refuse(client: ServerConnection, request: Request) -> Response | None:
            return _refuse(client, request, expected, connections)

        server = await (serve if isinstance(address, Tcp) else unix_serve)(
            lambda client: _serve_client(dispatcher, client),
            create_connection=OurConnection,
            process_request=refuse,
            sock=listener,
            max_size=limits.opening_bytes,
            **OPTIONS,
        )
        tcp = Tcp(*listener.getsockname()[:2]) if isinstance(address, Tcp) else None
        log(f"listening on {tcp or address}")
        if (line := server_token.describe(expected)) is not None:
            log(line)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await dispatcher.aclose()
            server.close()
            await server.wait_closed()


@contextmanager
def _token(
    options: TokenOptions, listener: socket.socket, *, home: Path
) -> Generator[ServerToken | None]:
    if listener.family not in {socket.AF_INET, socket.AF_INET6}:
        # The mode of a Unix socket's file decides who may connect.
        yield None
        return
    host, port = listener.getsockname()[:2]
    opened = server_token.open_token(
        options, home=Home(home), server=TOKEN_NAME, host=host, port=port
    )
    with opened as token:
        yield token


class GuardedServerConnection(ServerConnection):
    """A connection that the guard of its server counts. A subclass names the guard."""

    guard: ConnectionGuard
    guarded: GuardedConnection
    _unfinished_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report that it came."""
        super().connection_made(transport)
        self.guarded = self.guard.admit(self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Report how much of an unfinished message it holds."""
        super().data_received(data)
        unfinished = len(self.protocol.reader.buffer) + (self.protocol.current_size or 0)
        self.guarded.hold(unfinished - self._unfinished_bytes)
        self._unfinished_bytes = unfinished

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that it left."""
        self.guarded.leave()
        super().connection_lost(exc)


async def _serve_client(dispatcher: Dispatcher, client: ServerConnection) -> None:
    assert isinstance(client, GuardedServerConnection)
    client.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    guarded = client.guarded

    def on_initialize() -> None:
        guarded.settle()
        client.protocol.max_message_size = MAX_MESSAGE_BYTES

    guarded.expect(client.guard.limits.request_s)
    connection = dispatcher.connect(
        WebSocketTransport(client), meter=guarded.hold, on_initialize=on_initialize
    )
    try:
        await connection.run()
    finally:
        connection.close()


def _refuse(
    client: ServerConnection, request: Request, token: ServerToken | None, guard: ConnectionGuard
) -> Response | None:
    """The HTTP response to a request that does not become a web socket."""
    if request.headers.get_all("Origin"):
        # A web page in a browser; any page could try this.
        return client.respond(HTTPStatus.FORBIDDEN, "Web pages are not served here.\n")
    if request.path.partition("?")[0] in HEALTH_PATHS:
        return client.respond(HTTPStatus.OK, "ok\n")
    if token is not None and not token.authorizes(request.headers.get_all("Authorization")):
        refusal = client.respond(HTTPStatus.UNAUTHORIZED, "A bearer token is needed.\n")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    if guard.is_full:
        return client.respond(HTTPStatus.SERVICE_UNAVAILABLE, "Too many clients are connected.\n")
    return None
