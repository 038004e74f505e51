"""A byte stream <-> messages, one on each line: the standard streams of this or another process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

from limner.net.jsonrpc import HEAD_BYTES, MAX_MESSAGE_BYTES, Data, MessageHead

if sys.platform != "win32":
    import fcntl

STDIN, STDOUT, STDERR = 0, 1, 2
# A picture comes in a few parts, each of which wakes a thread and the event loop.
READ_BYTES = 1024 * 1024
JOINED_BYTES = 64 * 1024

Line: TypeAlias = Data | MessageHead


class LineSplitter:
    """Splits a stream at its newlines, and never holds more than the longest line."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._head_bytes = min(HEAD_BYTES, max_bytes)
        self._partial = bytearray()
        self._skipping: MessageHead | None = None

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that end in this chunk, without blank ones."""
        first, *others = chunk.split(b"\n")
        if not others:
            self._extend(first)
            return []
        *whole, last = others
        lines = self._finish(first)
        for line in whole:
            lines += self._checked(line)
        self._extend(last)
        return lines

    def end(self) -> list[Line]:
        """Return the line that the end of the stream ends."""
        return self._finish(b"")

    def _finish(self, rest: bytes) -> list[Line]:
        if not self._partial and self._skipping is None:
            return self._checked(rest)
        self._extend(rest)
        # A new buffer, since views of the line outlive this call.
        line, self._partial = self._partial, bytearray()
        skipped, self._skipping = self._skipping, None
        return self._checked(line) if skipped is None else [skipped]

    def _extend(self, part: bytes) -> None:
        if self._skipping is not None:
            return
        if len(self._partial) + len(part) > self._max_bytes:
            head = bytes(self._partial[: self._head_bytes]) + part[: self._head_bytes]
            self._skipping = MessageHead(head[: self._head_bytes], self._max_bytes)
            self._partial = bytearray()
        else:
            self._partial += part

    def _checked(self, line: Data) -> list[Line]:
        if len(line) > self._max_bytes:
            return [MessageHead(bytes(line[: self._head_bytes]), self._max_bytes)]
        return [line] if line and not line.isspace() else []


def join_lines(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Write each message as a line: few parts for many small messages, no copy of a large one."""
    small: list[bytes] = []
    for message in messages:
        small.append(message if len(message) < JOINED_BYTES else b"")
        if len(message) >= JOINED_BYTES:
            yield b"\n".join(small)
            yield message
            small = [b""]
    yield b"\n".join([*small, b""])


class LineTransport(ABC):
    """Receives one message from each line; a subclass reads and writes the bytes."""

    def __init__(self, *, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._splitter = LineSplitter(max_bytes=max_bytes)
        self._lines: deque[Line] = deque()
        self._reading: asyncio.Future[bytes] | None = None
        self._is_ended = False

    @abstractmethod
    def _start_reading(self) -> asyncio.Future[bytes]:
        """Start to read the next bytes; no bytes, or an OSError, are the end."""

    @abstractmethod
    async def send(self, messages: Sequence[bytes]) -> None:
        """Write each message as a line; return when they are written.

        Raises:
            OSError: the other side is gone.
        """

    async def receive(self) -> Line | None:
        """Wait for the next line; None is the end."""
        # More is read only when every line is taken: what is not read waits with the other side.
        while not self._lines and not self._is_ended:
            if chunk := await self._read():
                self._lines += self._splitter.feed(chunk)
            else:
                self._is_ended = True
                self._lines += self._splitter.end()
        return self._lines.popleft() if self._lines else None

    def abort(self) -> None:
        """Let `receive` end, also one that waits."""
        self._is_ended = True
        self._lines.clear()
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> bytes:
        self._reading = self._start_reading()
        try:
            return await self._reading
        except OSError:
            return b""  # a terminal that went away; as good as its end
        except asyncio.CancelledError:
            if not self._is_ended:
                raise
            return b""
        finally:
            self._reading = None


class DescriptorTransport(LineTransport):
    """Two file descriptors: pipes, files or a terminal.

    The streams need not become non-blocking for the other programs that share them. The event loop
    reads a pipe when it has something, and writes what fits into one: to wake a thread takes much
    longer. Threads do the rest.
    """

    def __init__(self, source: int, target: int, *, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        super().__init__(max_bytes=max_bytes)
        self._source, self._target = source, target
        _widen(source)
        self._room = _room_in_pipe(target)
        self._reader = None if _says_when_readable(source) else _BlockingThread()
        self._writer = _BlockingThread()

    def _start_reading(self) -> asyncio.Future[bytes]:
        if self._reader is not None:
            return self._reader.start(partial(os.read, self._source, READ_BYTES))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self._source, self._read_now, future)
        future.add_done_callback(lambda _: loop.remove_reader(self._source))
        return future

    def _read_now(self, future: asyncio.Future[bytes]) -> None:
        if future.done():
            return  # what it would read is for the next one
        try:
            future.set_result(os.read(self._source, READ_BYTES))
        except OSError as error:
            future.set_exception(error)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write each message as a line."""
        size_bytes = sum(map(len, messages)) + len(messages)
        if self._room is not None and size_bytes <= select.PIPE_BUF and self._room.poll(0):
            os.write(self._target, b"".join(join_lines(messages)))
            return
        await self._writer.start(partial(_write_lines, self._target, messages))


def _widen(pipe: int) -> None:
    """Let a pipe hold what one read takes, if the system allows it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, READ_BYTES)


def _says_when_readable(source: int) -> bool:
    """Whether an event loop can wait for this stream: a pipe or a socket, but no file."""
    mode = os.fstat(source).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _room_in_pipe(target: int) -> select.poll | None:
    """Says whether a pipe takes `select.PIPE_BUF` bytes without waiting; None for other streams."""
    if sys.platform == "win32" or not stat.S_ISFIFO(os.fstat(target).st_mode):
        return None
    room = select.poll()
    room.register(target, select.POLLOUT)
    return room


def _write_lines(target: int, messages: Sequence[bytes]) -> None:
    for part in join_lines(messages):
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]


class _BlockingThread:
    """A thread that runs one blocking call after another. The program does not wait for it."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def start(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run the call after those that wait; the future gets its result or its OSError."""
        future = asyncio.get_running_loop().create_future()
        self._calls.put((call, future))
        return future

    def _run(self) -> None:
        while True:
            call, future = self._calls.get()
            result, error = None, None
            try:
                result = call()
            except OSError as problem:
                error = problem
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                future.get_loop().call_soon_threadsafe(_conclude, future, result, error)
            # Not to be kept until the next call comes.
            del call, future, result, error


def _conclude(future: asyncio.Future[Any], result: object, error: OSError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class StreamTransport(LineTransport):
    """The two streams of asyncio that lead to another process."""

    def __init__(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        super().__init__()
        self._source, self._target = source, target

    def _start_reading(self) -> asyncio.Future[bytes]:
        return asyncio.ensure_future(self._source.read(READ_BYTES))

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write each message as a line."""
        try:
            for part in join_lines(messages):
                self._target.write(part)
                await self._target.drain()
        except RuntimeError as error:  # a closed transport of asyncio
            raise ConnectionResetError("the other side closed its end") from error


@contextmanager
def standard_streams() -> Generator[tuple[int, int]]:
    """Take standard input and output for messages alone.

    Meanwhile everything that prints goes to standard error, and no child process can read the
    messages: the numbers 0 and 1 lead elsewhere, and the real streams are not inherited.
    """
    source, target = os.dup(STDIN), os.dup(STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    try:
        yield source, target
    finally:
        # The copies stay open: a thread may still wait for the other side on one of them.
        os.dup2(source, STDIN)
        os.dup2(target, STDOUT)
