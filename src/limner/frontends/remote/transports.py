"""A program to start, or an address -> a transport that carries messages to an app-server."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from limner.content import Discreet
from limner.errors import InputInvalid, LimnerError
from limner.frontends.remote.discovery import find_program, safe_environment
from limner.net.jsonrpc import MAX_MESSAGE_BYTES, MessageHead
from limner.net.jsonrpc_lines import Line, StreamTransport
from limner.net.jsonrpc_peer import Transport
from limner.net.redaction import redact
from limner.net.websocket import WebSocketTransport, open_websocket

SERVER_GONE = "SERVER_GONE"
EXIT_TIMEOUT_S = 5.0
LAST_WORDS_TIMEOUT_S = 1.0

_SHOWN_CHARS = 500
_STDERR_TAIL_BYTES = 4 * 1024
_READ_BYTES = 64 * 1024


class ServerTransport(Transport, Protocol):
    """One connection to a server, for as long as it lasts."""

    async def end_reason(self) -> str:
        """Why there are no more messages, for a reader."""
        ...

    async def aclose(self) -> None:
        """Close in good order; a server that does not end by itself is ended."""
        ...


class Target(Protocol):
    """Where a server is."""

    @property
    def is_local(self) -> bool:
        """Whether a path means the same file to the server."""
        ...

    async def open(self) -> ServerTransport:
        """Open a new connection.

        Raises:
            LimnerError: SERVER_GONE; the server cannot be started or reached.
        """
        ...


class ServerCommand(Discreet, frozen=True, kw_only=True):
    """A server that this process starts; messages go over its standard streams.

    ``env`` is its whole environment; None means that of this process.
    """

    unshown = ("env",)

    words: Sequence[str]
    env: Mapping[str, str] | None = None

    @property
    def is_local(self) -> bool:
        """It runs on this machine."""
        return True

    async def open(self) -> ServerTransport:
        """Start it."""
        program, *arguments = self.words
        loop = asyncio.get_running_loop()
        try:
            pipes, protocol = await loop.subprocess_exec(
                partial(_ServerPipes, limit=_READ_BYTES, loop=loop),
                find_program(program) or program,
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=safe_environment(self.env),
                # Ctrl-C at the terminal is for this program, which decides how the turn ends.
                start_new_session=True,
            )
        except OSError as error:
            message = f"{self.words[0]} cannot be started: {error}"
            raise LimnerError(message, code=SERVER_GONE) from error
        return ProcessTransport(Process(pipes, protocol, loop), pipes)


class _ServerPipes(SubprocessStreamProtocol):
    """Closes the pipes of a process after its end, even if a child of it holds them open."""

    _pipes: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pipes = transport

    def process_exited(self) -> None:
        super().process_exited()
        asyncio.get_running_loop().call_later(LAST_WORDS_TIMEOUT_S, self._pipes.close)


class ProcessTransport(StreamTransport):
    """The standard streams of a process; the end of what it writes to standard error is kept."""

    def __init__(self, process: Process, pipes: asyncio.BaseTransport) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        super().__init__(process.stdout, process.stdin)
        self._process, self._pipes, self._stdin = process, pipes, process.stdin
        self._stderr_tail = b""
        self._has_sent_too_much = False
        self._reading_stderr = asyncio.create_task(self._read_stderr(process.stderr))

    async def receive(self) -> Line | None:
        """Wait for the next line; one that is too long is the end, since its content is lost."""
        line = await super().receive()
        if isinstance(line, MessageHead):
            self._has_sent_too_much = True
            return None
        return line

    async def end_reason(self) -> str:
        """Its exit status and the end of what it wrote to standard error."""
        if self._has_sent_too_much:
            return f"the server sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
        await self._wait_for_exit()
        # The last words may still be in the pipe. A child process may hold the pipe open.
        await asyncio.wait({self._reading_stderr}, timeout=LAST_WORDS_TIMEOUT_S)
        self._reading_stderr.cancel()
        stderr = redact(self._stderr_tail.decode("utf-8", "replace")).strip()[-_SHOWN_CHARS:]
        status = f"the server ended with status {self._process.returncode}"
        return f"{status}: {stderr}" if stderr else status

    async def aclose(self) -> None:
        """Close its input, which asks it to end; stop it if it does not."""
        self._stdin.close()
        try:
            await self._wait_for_exit()
        finally:
            self._reading_stderr.cancel()
            self._pipes.close()
        with contextlib.suppress(OSError, RuntimeError):
            await self._stdin.wait_closed()
        await asyncio.sleep(0)  # The loop closes the pipes in its next round.

    async def _wait_for_exit(self) -> None:
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
            self._reading_stderr.cancel()
            raise

    async def _read_stderr(self, stream: asyncio.StreamReader) -> None:
        while part := await stream.read(_READ_BYTES):
            self._stderr_tail = (self._stderr_tail + part)[-_STDERR_TAIL_BYTES:]


class ServerAddress(Discreet, frozen=True, kw_only=True):
    """A server that listens on a web socket: ``ws://…``, ``wss://…`` or ``unix://PATH``."""

    unshown = ("token",)

    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        named = parts.path if parts.scheme == "unix" else parts.netloc
        if parts.scheme not in {"ws", "wss", "unix"} or not named:
            raise InputInvalid(
                f"{self.url[:200]!r} is not an address of an app-server",
                field="url",
                hint="Give ws://HOST:PORT, wss://HOST:PORT or unix:///PATH.",
            )

    @property
    def is_local(self) -> bool:
        """A Unix socket is on this machine; any other socket may be anywhere."""
        return urlsplit(self.url).scheme == "unix"

    async def open(self) -> ServerTransport:
        """Connect to it.

        Raises:
            MissingExtra: the web socket library is not installed.
        """
        headers = None if self.token is None else {"Authorization": f"Bearer {self.token}"}
        try:
            return WebSocketTransport(await open_websocket(self.url, headers=headers))
        except OSError as error:
            message = redact(f"{self.url} cannot be reached: {error}", [self.token or ""])
            raise LimnerError(message, code=SERVER_GONE) from error
