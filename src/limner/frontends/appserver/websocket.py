"""A web socket, on an address or behind a file <-> clients, one message in each text frame."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from limner.errors import MissingExtra
from limner.frontends.appserver.dispatch import Dispatcher
from limner.frontends.appserver.listen_socket import Address, Tcp, bound, require_token
from limner.frontends.appserver.rpc import MAX_MESSAGE_BYTES

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
    dispatcher: Dispatcher, address: Address, *, token: str | None, log: Callable[[str], None]
) -> None:
    """Serve every client that comes, until cancelled.

    Raises:
        MissingExtra: the library for it is not installed.
        UserError: the address cannot be had, or needs a token.
    """
    require_token(address, token)
    try:
        from websockets.asyncio.server import serve, unix_serve  # noqa: PLC0415 - it is an extra
    except ImportError as error:
        raise MissingExtra(
            "Web sockets need a library that is not installed",
            hint='Run: pip install "limner[websocket]"',
        ) from error
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
    from websockets.exceptions import WebSocketException  # noqa: PLC0415 - as above

    client.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection = dispatcher.connect(_Frames(client))
    try:
        while True:
            # As the bytes they are: turning a picture into text and back would copy it twice.
            await dispatcher.receive(connection, await client.recv(decode=False))
    except WebSocketException:
        pass  # it left, or said something that is no web socket message
    finally:
        connection.close()


class _Frames:
    """Sends each message as a text frame."""

    def __init__(self, client: ServerConnection) -> None:
        self._client = client

    async def send(self, messages: list[bytes]) -> None:
        """Hand them to the system as fast as the client reads.

        Raises:
            OSError: the client is gone.
        """
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - as above

        try:
            for message in messages:
                await self._client.send(message, text=True)
        except ConnectionClosed as error:
            raise ConnectionResetError("the client closed its end") from error

    def cut(self) -> None:
        """Drop the connection."""
        self._client.transport.abort()


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
