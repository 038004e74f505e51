"""Ctrl-C -> a call in the event loop that says how often it was pressed; and a turn put down."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing, contextmanager
from types import FrameType
from typing import cast

from limner.agent.events import Event


@contextmanager
def interrupts(stop: Callable[[int], None]) -> Generator[None]:
    """Let ``stop`` decide what Ctrl-C does while something runs; it is told 1, 2, 3 and so on."""
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


def closing(events: AsyncIterator[Event]) -> aclosing[AsyncGenerator[Event]]:
    """Have a turn cancelled and tidied up wherever its watcher stops."""
    return aclosing(cast("AsyncGenerator[Event]", events))
