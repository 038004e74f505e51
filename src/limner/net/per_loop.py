"""The running event loop -> the value that belongs to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for each event loop, made at its first use.

    Programs call ``asyncio.run`` more than once, and the blocking API has its own loop. Connections
    and semaphores must not be shared between loops. Values of closed loops are dropped.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for closed in [known for known in self._values if known.is_closed()]:
                del self._values[closed]
            if loop not in self._values:
                self._values[loop] = self._make()
            return self._values[loop]

    def pop(self) -> T | None:
        """Remove the running loop's value and return it, so that the caller can close it."""
        with self._lock:
            return self._values.pop(asyncio.get_running_loop(), None)
