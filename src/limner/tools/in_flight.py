"""Calls in flight -> a close that waits for them: a request that was sent may be charged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from limner.errors import OutputExists

CHECK_S = 0.1
# A loop that does not run may run again, but a call in it cannot end while this close waits.
STOPPED_LOOP_S = 1.0


class InFlight:
    """The calls of one program that are running, in any number of event loops."""

    def __init__(self) -> None:
        self._calls: dict[Future[None], asyncio.AbstractEventLoop] = {}
        self._targets: set[Path] = set()
        self._closed = False

    @contextmanager
    def track(self) -> Generator[None]:
        """Make `aclose` wait for what happens inside.

        Raises:
            RuntimeError: it is closed.
        """
        done = Future[None]()
        done.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        self._calls[done] = asyncio.get_running_loop()
        try:
            self.check_open()
            yield
        finally:
            self._calls.pop(done, None)
            done.set_result(None)

    @contextmanager
    def writing(self, target: Path | None) -> Generator[None]:
        """Hold the path of a call's file; None or a folder for a new name, which is always free.

        Raises:
            OutputExists: another call of this program will write it.
        """
        if target in self._targets:
            raise OutputExists(
                f"{target} is being drawn by another call; nothing was sent",
                hint="Choose another output_path, or draw several pictures with n.",
            )
        if target is None or target.is_dir():
            yield
            return
        self._targets.add(target)
        try:
            yield
        finally:
            self._targets.discard(target)

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed; called once more before anything is sent."""
        if self._closed:
            raise RuntimeError("this Limner is closed")

    async def aclose(self) -> None:
        """Refuse new requests, and wait for those that were sent.

        A call whose event loop is gone cannot end: it is left behind. Its row in the ledger stays,
        and a later process concludes it.
        """
        self._closed = True
        ran = dict.fromkeys(self._calls, time.monotonic())
        while waiting := [
            call for call, loop in [*self._calls.items()] if _may_end(call, loop, ran)
        ]:
            await asyncio.wait(map(asyncio.wrap_future, waiting), timeout=CHECK_S)


def _may_end(
    call: Future[None], loop: asyncio.AbstractEventLoop, ran: dict[Future[None], float]
) -> bool:
    """Whether a call may still end; ``ran`` is when its event loop was last seen running."""
    now = time.monotonic()
    if loop.is_running():
        ran[call] = now
    return not loop.is_closed() and now - ran.setdefault(call, now) < STOPPED_LOOP_S
