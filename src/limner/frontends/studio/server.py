"""A port -> the studio: a server on this machine, until a signal stops it."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from types import FrameType

import msgspec
import uvicorn

from limner.client import Limner
from limner.errors import UserError
from limner.frontends import server_token
from limner.frontends.connection_guard import (
    LIMITS,
    ConnectionGuard,
    ServerLimits,
    allow_many_files,
)
from limner.frontends.http_listener import bind, guarded_protocol, host_names
from limner.frontends.server_token import TokenOptions
from limner.frontends.studio.access import StudioAccess, cookie_key
from limner.frontends.studio.app import StudioApp
from limner.frontends.studio.conversation_socket import (
    MAX_MESSAGE_BYTES,
    StudioConversations,
    guarded_websocket,
)
from limner.frontends.studio.endpoints import StudioParts
from limner.frontends.studio.runs import StudioRuns

HOST = "127.0.0.1"
DEFAULT_PORT = 8799
GRACE_S = 2
TOKEN_NAME = "studio"  # noqa: S105 - the name of the file, not a secret


class StudioOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said about the server.

    Attributes:
        port: 0 means any free port; None the usual one, or any free one if that is taken.
        opens_browser: show the page in the browser of the user.
        proxy_names: the names of a proxy with TLS that stands in front of this server.
    """

    port: int | None = None
    opens_browser: bool = True
    proxy_names: Sequence[str] = ()


async def serve(lim: Limner, options: StudioOptions, *, show: Callable[[str], None]) -> None:
    """Serve the page until the process receives a signal to stop; ``show`` gets its address.

    Raises:
        UserError: the port is in use.
        StorageError: the token cannot be stored.
    """
    # The default would end the process before the file of the token is removed.
    signal.signal(signal.SIGTERM, _exit)
    allow_many_files()
    with _bind(options.port) as bound:
        async with open_server(lim, bound, options) as (server, url):
            # The socket listens already: a program that waits for the address can connect.
            show(url)
            if options.opens_browser:
                webbrowser.open(url)
            await server.serve(sockets=[bound])


@asynccontextmanager
async def open_server(
    lim: Limner, bound: socket.socket, options: StudioOptions, *, limits: ServerLimits = LIMITS
) -> AsyncGenerator[tuple[uvicorn.Server, str]]:
    """The server for a socket that listens, and the address that works once."""
    port = bound.getsockname()[1]
    opened = server_token.open_token(
        TokenOptions(), home=lim.home, server=TOKEN_NAME, host=HOST, port=port
    )
    with opened as token:
        assert token is not None
        access = StudioAccess(
            hosts=host_names(HOST, port, names=options.proxy_names),
            port=port,
            token=token,
            key=cookie_key(lim.home),
            is_secure=bool(options.proxy_names),
        )
        parts, conversations = StudioParts(lim=lim, runs=StudioRuns()), StudioConversations(lim)
        connections = ConnectionGuard(limits)
        config = uvicorn.Config(
            StudioApp(parts, access, conversations),
            http=guarded_protocol(connections),
            log_level="warning",
            limit_concurrency=limits.connections + limits.newcomers,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
            lifespan="off",
            ws=guarded_websocket(connections),
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
        )
        watching = asyncio.create_task(parts.runs.watch_gallery(lim.gallery.mark))
        try:
            yield uvicorn.Server(config), f"http://{HOST}:{port}/?token={access.invite()}"
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await conversations.aclose()
            await parts.runs.aclose()


def _bind(port: int | None) -> socket.socket:
    if port is not None:
        return bind(HOST, port)
    try:
        return bind(HOST, DEFAULT_PORT)
    except UserError:
        return bind(HOST, 0)


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)
