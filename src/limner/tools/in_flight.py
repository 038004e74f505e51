"""Work that has begun -> closing time, which waits for it: what was sent may be paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager


class InFlight:
    """The calls of one program that have begun, in whatever event loops they run."""

    def __init__(self) -> None:
        self._calls: set[Future[None]] = set()
        self._closed = False

    @contextmanager
    def working(self) -> Generator[None]:
        """Have `aclose` wait for what happens inside.

        Raises:
            RuntimeError: it is closing time already.
        """
        done = Future[None]()
        done.set_running_or_notify_cancel()  # whoever gives up waiting for it must not end it
        self._calls.add(done)
        try:
            self.check_open()
            yield
        finally:
            self._calls.discard(done)
            done.set_result(None)

    def check_open(self) -> None:
        """Refuse to go on where it is closing time; asked once more before anything is sent."""
        if self._closed:
            raise RuntimeError("this Limner is closed")

    async def aclose(self) -> None:
        """Let nothing new be sent, and wait for what was."""
        self._closed = True
        while self._calls:
            await asyncio.gather(*map(asyncio.wrap_future, tuple(self._calls)))
