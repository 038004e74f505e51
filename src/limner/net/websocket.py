"""A web socket <-> messages, one in each text frame, if the optional library is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limner.errors import MissingExtra
from limner.net.jsonrpc import MAX_MESSAGE_BYTES
from limner.net.redaction import redact

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.asyncio.connection import Connection

# News of a provider are small; JSON-RPC messages carry pictures.
MAX_NEWS_BYTES = 16 * 1024 * 1024
OPEN_TIMEOUT_S = 20.0
CLOSE_TIMEOUT_S = 5.0
_SHOWN_CHARS = 500


def is_installed() -> bool:
    """Whether the library is there."""
    return find_spec("websockets") is not None


def require_library() -> None:
    """Load the library.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import_module("websockets")
    except ImportError as error:
        raise MissingExtra(
            "Web sockets need a library that is not installed",
            hint='Run: pip install "limner[websocket]"',
        ) from error


async def open_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = MAX_MESSAGE_BYTES,
    uses_proxy: bool = False,
) -> ClientConnection:
    """Connect to ``ws://…``, ``wss://…`` or ``unix://PATH``.

    ``uses_proxy`` is for the proxy that the environment names, which reads every message.

    Raises:
        MissingExtra: the library is not installed.
        OSError: the server cannot be reached, or refuses.
    """
    require_library()
    # Here, since the library is an extra and takes its time to load.
    from websockets.asyncio.client import connect  # noqa: PLC0415
    from websockets.exceptions import WebSocketException  # noqa: PLC0415

    options: dict[str, Any] = {"uri": url, "proxy": True if uses_proxy else None}
    if (parts := urlsplit(url)).scheme == "unix":
        options = {"uri": "ws://localhost/", "unix": True, "path": parts.path}
    try:
        return await connect(
            **options,
            additional_headers=headers,
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            max_size=max_bytes,
            # Pictures do not become smaller, and decompressing would only cost trust.
            compression=None,
        )
    except WebSocketException as error:
        raise ConnectionError(str(error)) from error


async def listen(
    url: str, on_message: Callable[[str | bytes], None], headers: Mapping[str, str]
) -> None:
    """Pass on each message until the other side ends or fails; nothing is raised for that.

    Only news about work goes over such a socket, and its end is asked for elsewhere, so losing
    the socket loses nothing.
    """
    from websockets.exceptions import WebSocketException  # noqa: PLC0415 - as above

    with contextlib.suppress(OSError, WebSocketException):
        opening = open_websocket(url, headers=headers, max_bytes=MAX_NEWS_BYTES, uses_proxy=True)
        async with await opening as socket:
            async for message in socket:
                on_message(message)


class WebSocketTransport:
    """An open web socket of either side."""

    def __init__(self, socket: Connection) -> None:
        self._socket = socket

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand the messages to the system as fast as the other side reads.

        Raises:
            OSError: the other side is gone.
        """
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - loaded with the socket

        try:
            for message in messages:
                await self._socket.send(message, text=True)
        except ConnectionClosed as error:
            raise ConnectionResetError("the other side closed its end") from error

    async def receive(self) -> bytes | None:
        """Wait for the next frame; None is the end."""
        from websockets.exceptions import WebSocketException  # noqa: PLC0415 - as above

        try:
            # As bytes: turning a picture into text and back would copy it twice.
            return await self._socket.recv(decode=False)
        except WebSocketException:
            return None  # it left, or sent something that is not a web socket message

    def abort(self) -> None:
        """Drop the connection."""
        self._socket.transport.abort()

    async def end_reason(self) -> str:
        """How the socket was closed."""
        code, reason = self._socket.close_code, self._socket.close_reason
        text = f"the connection was closed ({code})"
        return f"{text}: {redact(reason)[:_SHOWN_CHARS]}" if reason else text

    async def aclose(self) -> None:
        """Close the connection in good order."""
        await self._socket.close()
