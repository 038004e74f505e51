"""Calls in flight -> a close that waits for them: a request that was sent may be charged."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager


class InFlight:
    """The calls of one program that are running, in any number of event loops."""

    def __init__(self) -> None:
        self._calls: set[Future[None]] = set()
        self._closed = False

    @contextmanager
    def track(self) -> Generator[None]:
        """Make `aclose` wait for what happens inside.

        Raises:
            RuntimeError: it is closed.
        """
        done = Future[None]()
        done.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        self._calls.add(done)
        try:
            self.check_open()
            yield
        finally:
            self._calls.discard(done)
            done.set_result(None)

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed; called once more before anything is sent."""
        if self._closed:
            raise RuntimeError("this Limner is closed")

    async def aclose(self) -> None:
        """Refuse new requests, and wait for those that were sent."""
        self._closed = True
        while self._calls:
            await asyncio.gather(*map(asyncio.wrap_future, tuple(self._calls)))
