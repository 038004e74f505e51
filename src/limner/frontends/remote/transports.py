"""A program to start -> a link to it: whole messages go out and come in, as bytes of JSON."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from limner.content import Discreet
from limner.errors import InputInvalid, LimnerError, MissingExtra
from limner.net.redaction import redact

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


GONE = "SERVER_GONE"
# A history with its pictures in it is one message.
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
EXIT_TIMEOUT_S = 5.0
# Of what a server says about its end.
TOLD_CHARS = 500

_LAST_WORDS_BYTES = 4 * 1024
_READ_BYTES = 64 * 1024


class Link(Protocol):
    """One connection to a server, for as long as it lasts."""

    async def send(self, message: bytes) -> None:
        """Send one message.

        Raises:
            LimnerError: SERVER_GONE.
        """
        ...

    async def receive(self) -> bytes | None:
        """The next message; None once there are no more."""
        ...

    async def obituary(self) -> str:
        """Why there are no more messages, for a reader."""
        ...

    async def aclose(self) -> None:
        """Part in good order; what does not go by itself is made to."""
        ...


class Target(Protocol):
    """Where a server is, and whether it sees the files that are here."""

    @property
    def shares_files(self) -> bool:
        """Whether a path means the same to the server."""
        ...

    async def open(self) -> Link:
        """A new link.

        Raises:
            LimnerError: SERVER_GONE; the server cannot be started or reached.
        """
        ...


class ServerCommand(Discreet, frozen=True, kw_only=True):
    """A server that is started here and spoken to over its standard streams.

    ``env`` is its whole environment; None is that of this process.
    """

    unshown = ("env",)

    words: Sequence[str]
    env: Mapping[str, str] | None = None

    @property
    def shares_files(self) -> bool:
        """What runs on this machine sees its files."""
        return True

    async def open(self) -> Link:
        """Start it."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=self.env,
                limit=MAX_MESSAGE_BYTES,
                # Ctrl-C at the terminal is for this program, which decides what becomes of a turn.
                start_new_session=True,
            )
        except OSError as error:
            raise LimnerError(f"{self.words[0]} cannot be started: {error}", code=GONE) from error
        return ProcessLink(process)


class ProcessLink:
    """The standard streams of a process: a line is a message; its last words are kept."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._to, self._from = process.stdin, process.stdout
        self._last_words = b""
        self._too_long = False
        self._listening = asyncio.create_task(self._listen(process.stderr))

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    async def send(self, message: bytes) -> None:
        """Write one line."""
        try:
            self._to.writelines((message, b"\n"))
            await self._to.drain()
        except (OSError, RuntimeError) as error:  # a closed transport is a RuntimeError
            raise LimnerError("the server no longer listens", code=GONE) from error

    async def receive(self) -> bytes | None:
        """Read one line; blank ones are none."""
        try:
            while line := await self._from.readline():
                if line.strip():
                    return line
        except ValueError:  # what asyncio says of a line beyond the limit
            self._too_long = True
        except OSError:
            pass
        return None

    async def obituary(self) -> str:
        """Its exit status and the end of what it wrote to standard error."""
        if self._too_long:
            return f"the server sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
        await self._end()
        told = redact(self._last_words.decode("utf-8", "replace")).strip()[-TOLD_CHARS:]
        status = f"the server ended with status {self._process.returncode}"
        return f"{status}: {told}" if told else status

    async def aclose(self) -> None:
        """Close its input, which tells it to finish; end it where it does not."""
        self._to.close()
        await self._end()
        with contextlib.suppress(OSError, RuntimeError):
            await self._to.wait_closed()

    async def _end(self) -> None:
        try:
            for stop in (self._process.terminate, self._process.kill):
                try:
                    async with asyncio.timeout(EXIT_TIMEOUT_S):
                        await self._process.wait()
                    break
                except TimeoutError:
                    with contextlib.suppress(ProcessLookupError):
                        stop()
            await self._process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            raise
        finally:
            # What it started may hold the stream open longer than it lives.
            self._listening.cancel()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while part := await stream.read(_READ_BYTES):
            self._last_words = (self._last_words + part)[-_LAST_WORDS_BYTES:]


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
