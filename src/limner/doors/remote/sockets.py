"""The address of a server -> a link to it over a web socket, where the extra is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limner.content import Discreet
from limner.doors.remote.links import EXIT_TIMEOUT_S, GONE, MAX_MESSAGE_BYTES, TOLD_CHARS, Link
from limner.errors import InputInvalid, LimnerError, MissingExtra
from limner.net.redact import redact

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_TIMEOUT_S = 20.0


class Address(Discreet, frozen=True, kw_only=True):
    """A server that listens on a web socket: ``ws://…``, ``wss://…`` or ``unix://PATH``."""

    unshown = ("token",)

    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        named = parts.path if parts.scheme == "unix" else parts.netloc
        if parts.scheme not in {"ws", "wss", "unix"} or not named:
            raise InputInvalid(
                f"{self.url[:200]!r} is no address of an app-server",
                field="url",
                hint="Give ws://HOST:PORT, wss://HOST:PORT or unix:///PATH.",
            )

    @property
    def shares_files(self) -> bool:
        """A socket in the file system is on this machine; any other may be anywhere."""
        return urlsplit(self.url).scheme == "unix"

    async def open(self) -> Link:
        """Connect to it."""
        try:
            # Here, since the library is an extra and takes its time to load.
            from websockets.asyncio.client import connect  # noqa: PLC0415
            from websockets.exceptions import WebSocketException  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra(
                "Web sockets need a package that is not installed.",
                hint="pip install 'limner[websocket]'",
            ) from error
        try:
            socket = await connect(
                **_place(self.url),
                additional_headers=None if self.token is None else _bearer(self.token),
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=EXIT_TIMEOUT_S,
                max_size=MAX_MESSAGE_BYTES,
                compression=None,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            told = redact(f"{self.url} cannot be reached: {error}", [self.token or ""])
            raise LimnerError(told, code=GONE) from error
        return SocketLink(socket)


class SocketLink:
    """A web socket: a text frame is a message."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        """Send one frame."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - loaded with the socket

        try:
            await self._socket.send(message, text=True)
        except ConnectionClosed as error:
            raise LimnerError("the server no longer listens", code=GONE) from error

    async def receive(self) -> bytes | None:
        """Take one frame."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - loaded with the socket

        try:
            return await self._socket.recv(decode=False)
        except ConnectionClosed:
            return None

    async def obituary(self) -> str:
        """How the socket was closed."""
        code, reason = self._socket.close_code, self._socket.close_reason
        told = f"the connection was closed ({code})"
        return f"{told}: {redact(reason)[:TOLD_CHARS]}" if reason else told

    async def aclose(self) -> None:
        """Say goodbye."""
        await self._socket.close()


def _place(url: str) -> dict[str, Any]:
    """Where to connect to, as the library wants to be told."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return {"uri": "ws://localhost/", "unix": True, "path": parts.path}
    # Words and pictures go to the address that was given, and through nobody else's hands.
    return {"uri": url, "proxy": None}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
