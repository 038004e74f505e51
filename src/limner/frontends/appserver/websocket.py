"""A web socket, on an address or behind a file <-> clients, one message in each text frame."""

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
    # Nobody gains by packing pictures, and it would cost each idle client a few hundred kilobytes.
    "compression": None,
    "max_size": MAX_MESSAGE_BYTES,
    # One message at a time: what is not read yet waits with the client.
    "max_queue": 1,
    # A task for every idle client otherwise; the system finds out who is dead.
    "ping_interval": None,
    "close_timeout": 1.0,
    "server_header": None,
    # Whoever knocks wrongly could fill the log.
    "logger": logging.Logger("websockets", logging.CRITICAL + 1),
}


async def serve_websocket(
    dispatcher: Dispatcher, address: Address, *, token: str | None, log: Log
) -> None:
    """Serve every client that comes, until cancelled.

    Raises:
        MissingExtra: the library for it is not installed.
        UserError: the address cannot be had, or needs a token.
    """
    require_token(address, token)
    require_library()
    from websockets.asyncio.server import serve, unix_serve  # noqa: PLC0415 - it is an extra

    _allow_many_files()
    is_tcp = isinstance(address, Tcp)

    def gate(client: ServerConnection, asked: Request) -> Response | None:
        # Who may open a file is settled by its mode.
        return _gate(client, asked, token if is_tcp else None)

    with bound(address) as listener:
        server = await (serve if is_tcp else unix_serve)(
            lambda client: _serve_client(dispatcher, client),
            process_request=gate,
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


def _gate(client: ServerConnection, asked: Request, token: str | None) -> Response | None:
    """What a request over HTTP is answered, where it is not let in."""
    if asked.headers.get_all("Origin"):
        # A web page in a browser, and any page could be the one that tries.
        return client.respond(HTTPStatus.FORBIDDEN, "Web pages are not served here.\n")
    if asked.path.partition("?")[0] in HEALTH_PATHS:
        return client.respond(HTTPStatus.OK, "ok\n")
    if token is not None and not _shows(asked, token):
        refusal = client.respond(HTTPStatus.UNAUTHORIZED, "A bearer token is needed.\n")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    return None


def _shows(asked: Request, token: str) -> bool:
    shown = [words.partition(" ") for words in asked.headers.get_all("Authorization")]
    return len(shown) == 1 and all(
        scheme.lower() == "bearer" and hmac.compare_digest(word.strip().encode(), token.encode())
        for scheme, _, word in shown
    )


def _allow_many_files() -> None:
    """Every client is an open file, and the usual limit is meant for programs with a few."""
    try:
        import resource  # noqa: PLC0415 - not on Windows, which has no such limit
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
