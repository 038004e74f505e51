"""A program to start -> a link to it: whole messages go out and come in, as bytes of JSON."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from typing import Protocol

from limner.content import Discreet
from limner.errors import LimnerError
from limner.net.redact import redact

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


class Command(Discreet, frozen=True, kw_only=True):
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
