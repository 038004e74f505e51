"""The task that reads the events of a turn -> whether it has left the turn before its end."""

from __future__ import annotations

import asyncio


class TurnReader:
    """Remembers which task reads the events of a turn.

    A task that breaks out of ``async for`` does not report it: Python closes the generator some
    time later. But a task reads one turn at a time. So a task that starts another turn has left
    this one, and so has a task that has ended.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()

    def read_on(self) -> None:
        """The current task asks for the next event."""
        self._task = asyncio.current_task()

    @property
    def has_left(self) -> bool:
        """Whether the reader can be expected to read no more, as the current task sees it."""
        return self._task is None or self._task.done() or self._task is asyncio.current_task()
