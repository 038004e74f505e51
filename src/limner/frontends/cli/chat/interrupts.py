"""Ctrl-C -> a call in the event loop with the number of times it was pressed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts(stop: Callable[[int], None]) -> Generator[None]:
    """Call ``stop`` with 1, 2, 3 and so on each time the user presses Ctrl-C."""
    loop, pressed = asyncio.get_running_loop(), 0

    # Not `loop.add_signal_handler`, which Windows lacks.
    def handle(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        loop.call_soon_threadsafe(stop, pressed)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
