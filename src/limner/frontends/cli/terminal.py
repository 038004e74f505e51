"""Progress, questions and notes <-> the person at the terminal, all on standard error."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from limner.display_text import clean_line
from limner.errors import Cancelled, LimnerError, cancellation_cost
from limner.frontends.cli.interrupts import interrupts
from limner.frontends.cli.stderr import CLEAR_LINE, is_live, say, size, write
from limner.pictures.request import Progress
from limner.tools.base import Question

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S = 0.1
# How long presses of Ctrl-C let the work clean up.
PATIENCE_S = 10.0
ANSWER_BYTES = 1024


def wait_for(work: Callable[[], Awaitable[T]]) -> T:
    """Run async work to its end; Ctrl-C cancels it and lets it clean up.

    Each press cancels again, so that the clean-up does not wait for a slow service. If the work
    goes on for a while after the first press, a further press ends the process.

    Raises:
        Cancelled: it was interrupted; the error says what that cost, if that is known.
    """
    cancelled = Cancelled("Interrupted.", hint="limner spend shows what was spent.")
    finished: list[T] = []
    failed: LimnerError | None = None
    stopper = _Stopper()

    async def main() -> None:
        nonlocal cancelled, failed
        try:
            with interrupts(stopper.start(asyncio.current_task())):
                finished.append(await work())
        except (asyncio.CancelledError, KeyboardInterrupt) as stop:
            if (known := cancellation_cost(stop)) is not None:
                cancelled = known
                cancelled.hint = cancelled.hint if known.billed else "It cost nothing."
            raise
        except LimnerError as error:
            failed = error
            raise

    try:
        asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError, OSError, RuntimeError) as trouble:
        # The event loop may fail to close. What the work came to, and cost, is known already.
        if failed is not None:
            raise failed from trouble
        if not finished:
            if isinstance(trouble, OSError | RuntimeError):
                raise
            raise cancelled from trouble
    finally:
        stopper.end()
    return finished[0]


def result_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run async work that waits for nothing, without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise AssertionError("the work waits")


class _Stopper:
    """Cancels a task at each press of Ctrl-C; after its end, presses have no effect."""

    def __init__(self) -> None:
        self._is_early = False
        # Before the event loop runs. It would set a handler of its own, and Python writes each
        # handler that is replaced as text: that one with its task, and therefore with `inspect`.
        self._before = signal.signal(signal.SIGINT, self._press_early)
        self._first_press_s: float | None = None

    def _press_early(self, _: int, __: FrameType | None) -> None:
        self._is_early = True

    def start(self, task: asyncio.Task[Any] | None) -> Callable[[int], None]:
        """Prepare for the presses that a task gets; returns the function to call for each."""

        def press(_: int) -> None:
            now_s = time.monotonic()
            self._first_press_s = self._first_press_s or now_s
            if now_s - self._first_press_s > PATIENCE_S:
                say("limner: Interrupted. limner spend shows what was spent.")
                os._exit(Cancelled.exit_status)
            assert task is not None
            task.cancel()

        # A press after the end of the task must not interrupt the report of what it cost.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._is_early:
            raise KeyboardInterrupt
        return press

    def end(self) -> None:
        """Handle Ctrl-C as before, unless the user has pressed it: then the program ends."""
        if self._first_press_s is None:
            signal.signal(signal.SIGINT, self._before)


async def ask(question: Question) -> bool:
    """Ask the user; without a terminal the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    write(f"{question.text} [y/N] ")
    reply: Future[bytes] = concurrent.futures.Future()

    def read() -> None:
        try:
            reply.set_result(os.read(sys.stdin.fileno(), ANSWER_BYTES))
        except OSError:  # the terminal is gone, or belongs to another program now
            reply.set_result(b"")

    # A daemon thread, so that Ctrl-C ends the program and not just the question.
    threading.Thread(target=read, daemon=True).start()
    line = b""
    try:
        line = await asyncio.wrap_future(reply)
    finally:
        if not line.endswith(b"\n"):
            write("\n")  # neither Ctrl-C nor Ctrl-D ends the line of the question
    return line.strip().lower() in {b"y", b"yes"}


class Waiting:
    """What a user sees while something slow runs: the latest message and the time.

    The line appears with the first news, so that questions asked before it have the terminal to
    themselves.
    """

    def __init__(self) -> None:
        self._message = ""
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first message."""
        return time.monotonic() - self._began

    def progress(self, news: Progress) -> None:
        """Show this message from now on."""
        if not self._message:
            self._began = time.monotonic()
        self._message = clean_line(news.message)

    def say(self, text: str) -> None:
        """Print a line above the status line."""
        if is_live():
            write(CLEAR_LINE)
        say(text)

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None]:
        """Keep the status line up to date; silent if standard error is not a terminal."""
        if not is_live():
            yield
            return
        ticking = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            ticking.cancel()
            if self._message:
                write(CLEAR_LINE)

    async def _tick(self) -> None:
        turn = 0
        while True:
            if self._message:
                line = f"{SPINNER[turn % len(SPINNER)]} {self._message} {self.elapsed_s:.0f} s"
                # A line that wraps could not be cleared again.
                write(f"{CLEAR_LINE}{line[: size().columns - 1]}")
            turn += 1
            await asyncio.sleep(TICK_S)
