"""A listening web socket, on TCP or a Unix socket -> clients that the dispatcher serves."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from limner.frontends.appserver.dispatch import Dispatcher
from limner.frontends.appserver.listen_socket import Address, Tcp, bound, require_token
from limner.net.jsonrpc import MAX_MESSAGE_BYTES
from limner.net.jsonrpc_peer import Log
from limner.net.websocket import WebSocketTransport, require_library

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})

OPTIONS: Mapping[str, Any] = {
    # Pictures do not become smaller, and it would cost each idle client a few hundred kilobytes.
    "compression": None,
    "max_size": MAX_MESSAGE_BYTES,
    # One message at a time: what is not read yet waits with the client.
    "max_queue": 1,
    # A ping would need a task for every idle client; TCP keep-alive finds dead ones.
    "ping_interval": None,
    "close_timeout": 1.0,
    "server_header": None,
    # Otherwise bad requests could fill the log.
    "logger": logging.Logger("websockets", logging.CRITICAL + 1),
}


async def serve_websocket(
    dispatcher: Dispatcher, address: Address, *, token: str | None, log: Log
) -> None:
    """Serve every client that connects, until cancelled.

    Raises:
        MissingExtra: the web socket library is not installed.
        UserError: the address cannot be bound, or needs a token.
    """
    require_token(address, token)
    require_library()
    from websockets.asyncio.server import serve, unix_serve  # noqa: PLC0415 - it is an extra

    _allow_many_files()
    is_tcp = isinstance(address, Tcp)

    def check(client: ServerConnection, request: Request) -> Response | None:
        # The mode of a Unix socket's file decides who may connect.
        return _refuse(client, request, token if is_tcp else None)

    with bound(address) as listener:
        server = await (serve if is_tcp else unix_serve)(
            lambda client: _serve_client(dispatcher, client),
            process_request=check,
            sock=listener,
            **OPTIONS,
        )
        log(f"listening on {Tcp(*listener.getsockname()[:2]) if is_tcp else address}")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await dispatcher.aclose()
            server.close()
            await server.wait_closed()


async def _serve_client(dispatcher: Dispatcher, client: ServerConnection) -> None:
    client.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection = dispatcher.connect(WebSocketTransport(client))
    try:
        await connection.run()
    finally:
        connection.close()


def _refuse(client: ServerConnection, request: Request, token: str | None) -> Response | None:
    """The HTTP response to a request that does not become a web socket."""
    if request.headers.get_all("Origin"):
        # A web page in a browser; any page could try this.
        return client.respond(HTTPStatus.FORBIDDEN, "Web pages are not served here.\n")
    if request.path.partition("?")[0] in HEALTH_PATHS:
        return client.respond(HTTPStatus.OK, "ok\n")
    if token is not None and not _has_token(request, token):
        refusal = client.respond(HTTPStatus.UNAUTHORIZED, "A bearer token is needed.\n")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    return None


def _has_token(request: Request, token: str) -> bool:
    headers = [header.partition(" ") for header in request.headers.get_all("Authorization")]
    return len(headers) == 1 and all(
        scheme.lower() == "bearer" and hmac.compare_digest(value.strip().encode(), token.encode())
        for scheme, _, value in headers
    )


def _allow_many_files() -> None:
    """Raise the limit of open files: every client is one."""
    try:
        import resource  # noqa: PLC0415 - not on Windows, which has no such limit
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
