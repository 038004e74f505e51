"""Lines of JSON on standard input and output <-> one client; the end of the input ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from queue import SimpleQueue

from limner.errors import LimnerError
from limner.frontends.appserver.dispatch import Dispatcher
from limner.frontends.appserver.line_reader import Line, Lines, Oversized
from limner.frontends.appserver.rpc import MAX_MESSAGE_BYTES

STDIN, STDOUT, STDERR = 0, 1, 2
READ_BYTES = 64 * 1024
JOINED_BYTES = 64 * 1024
LAST_ANSWERS_S = 1.0


@contextmanager
def protocol_streams() -> Generator[tuple[int, int]]:
    """Take standard input and output for the protocol alone.

    Meanwhile whatever prints goes to standard error, and no child can read what is a client's:
    the numbers 0 and 1 lead elsewhere, and the real streams are inherited by nobody.
    """
    source, target = os.dup(STDIN), os.dup(STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    try:
        yield source, target
    finally:
        # The copies stay open: a thread may still be waiting for the client on one of them.
        os.dup2(source, STDIN)
        os.dup2(target, STDOUT)


async def serve_stdio(dispatcher: Dispatcher, *, source: int, target: int) -> None:
    """Serve one client until it closes its end.

    Raises:
        LimnerError: it had to be cut off.
    """
    ended = asyncio.Event()
    connection = dispatcher.connect(_Writer(target, cut=ended.set))

    async def take(lines: Sequence[Line]) -> None:
        for line in lines:
            if isinstance(line, Oversized):
                dispatcher.receive_oversized(connection, line.head)
            else:
                await dispatcher.receive(connection, line)

    _start(_read, source, take, ended.set, asyncio.get_running_loop())
    try:
        await ended.wait()
        # Whoever sends requests and closes (`printf … | limner app-server`) wants the answers.
        await _at_most(LAST_ANSWERS_S, dispatcher.settled())
    finally:
        await dispatcher.aclose()
        await _at_most(LAST_ANSWERS_S, connection.flushed())
        connection.close()
    if connection.failure is not None:
        raise LimnerError(f"The client was cut off: {connection.failure}.")


async def _at_most(seconds: float, work: Awaitable[None]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work


def _start(work: Callable[..., None], *arguments: object) -> None:
    # Threads, since pipes, files and terminals are alike to them, and nobody else's stream has to
    # be made non-blocking. Nobody waits for them: one may be stuck with a client that is.
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _read(
    source: int,
    take: Callable[[Sequence[Line]], Coroutine[None, None, None]],
    ended: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
) -> None:
    lines = Lines(max_bytes=MAX_MESSAGE_BYTES)

    def hand_over(whole: Sequence[Line]) -> None:
        # Only when these are taken is more read: what is not read waits with the client.
        if whole:
            asyncio.run_coroutine_threadsafe(take(whole), loop).result()

    # The loop may be gone, and with it whoever wanted to know.
    with contextlib.suppress(RuntimeError, CancelledError):
        try:
            while chunk := os.read(source, READ_BYTES):
                hand_over(lines.feed(chunk))
        except OSError:
            pass  # a terminal that went away; as good as its end
        hand_over(lines.end())
        loop.call_soon_threadsafe(ended)


class _Writer:
    """Writes messages as lines, from a thread of its own."""

    def __init__(self, target: int, *, cut: Callable[[], None]) -> None:
        self._target = target
        self._waiting: SimpleQueue[tuple[list[bytes], Callable[[OSError | None], None]]] = (
            SimpleQueue()
        )
        self.cut = cut
        _start(self._write)

    async def send(self, messages: list[bytes]) -> None:
        """Write each as a line; return when they are written.

        Raises:
            OSError: nobody reads any more.
        """
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()

        def conclude(error: OSError | None) -> None:
            if not written.done():
                written.set_result(None) if error is None else written.set_exception(error)

        def report(error: OSError | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(conclude, error)

        self._waiting.put((messages, report))
        await written

    def _write(self) -> None:
        while True:
            messages, report = self._waiting.get()
            try:
                for part in _as_lines(messages):
                    self._write_all(part)
            except OSError as error:
                report(error)
            else:
                report(None)
            # Not to be kept until the next message comes.
            del messages, report

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._target, view) :]


def _as_lines(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Few writes for many small messages, and no copy of a large one."""
    small: list[bytes] = []
    for message in messages:
        small.append(message if len(message) < JOINED_BYTES else b"")
        if len(message) >= JOINED_BYTES:
            yield b"\n".join(small)
            yield message
            small = [b""]
    yield b"\n".join([*small, b""])
