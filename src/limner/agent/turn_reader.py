"""The generator of a turn's events and the task that reads it -> whether the reader has left."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any

# A generator around ours is closed first: each takes a few rounds of the event loop.
_ROUNDS = 10


class TurnReader:
    """Knows whether the events of a turn are still read.

    A caller that breaks out of ``async for`` does not report it: Python closes the generator some
    time later. But the caller has dropped the generator then. A task that has ended, and keeps a
    generator, reads no more either.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._events: weakref.ref[AsyncGenerator[Any]] | None = None

    def watch(self, events: AsyncGenerator[Any]) -> None:
        """The caller gets this generator."""
        self._events = weakref.ref(events)

    def read_on(self) -> None:
        """The current task asks for the next event."""
        self._task = asyncio.current_task()

    async def has_left(self) -> bool:
        """Whether the events are read no more."""
        for _ in range(_ROUNDS):
            is_dropped = self._events is None or self._events() is None
            if is_dropped or self._task is None or self._task.done():
                return True
            if self._task is not asyncio.current_task():
                return False
            await asyncio.sleep(0)
        return False
