"""Ctrl-C -> a call in the event loop, or an interrupt of the prompt; no press is lost."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

REPEAT_S = 0.02


@contextmanager
def interrupts(stop: Callable[[int], None]) -> Generator[None]:
    """Call ``stop`` with 1, 2, 3 and so on each time the user presses Ctrl-C.

    A press that comes too late for ``stop`` goes to the handler that was there before.
    """
    loop, pressed, delivered = asyncio.get_running_loop(), 0, 0

    # Not `loop.add_signal_handler`, which Windows lacks.
    def handle(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        loop.call_soon_threadsafe(deliver)

    def deliver() -> None:
        nonlocal delivered
        if delivered < pressed:
            delivered += 1
            stop(delivered)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        is_late, delivered = delivered < pressed, pressed
        if is_late:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def interruptible_prompt() -> Generator[None]:
    """Let Ctrl-C end a prompt of readline, even if it comes before the prompt waits for a key.

    Python notices a signal there only if it interrupts the wait. So a thread interrupts the wait
    again, with a signal that does no harm, until the prompt has ended.
    """
    repeated = getattr(signal, "SIGWINCH", None)
    if repeated is None:
        yield
        return
    import socket  # noqa: PLC0415 - only a prompt needs it

    prompt, ended = threading.get_ident(), threading.Event()
    waiting, arrived = socket.socketpair()
    with waiting, arrived:
        arrived.setblocking(False)

        def repeat() -> None:
            waiting.recv(1)
            while not ended.wait(REPEAT_S):
                signal.pthread_kill(prompt, repeated)

        thread = threading.Thread(target=repeat, name="limner-prompt", daemon=True)
        thread.start()
        before = signal.set_wakeup_fd(arrived.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            ended.set()
            signal.set_wakeup_fd(before)
            arrived.send(b"\0")
            thread.join()
