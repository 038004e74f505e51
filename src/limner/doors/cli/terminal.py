"""Results, errors, progress and questions <-> the person at the terminal.

Standard output carries the result and nothing else; everything else goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from argparse import Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from limner.errors import Cancelled, LimnerError
from limner.money.spending import told_cost
from limner.pictures.order import Progress
from limner.tools.base import Question

T = TypeVar("T")
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S = 0.1


def print_json(value: Mapping[str, Any]) -> None:
    """Print the one JSON object of this run."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def say(text: str) -> None:
    """Tell the person something that is not the result."""
    print(text, file=sys.stderr)


def guarded(run: Callable[[Namespace], int], args: Namespace) -> int:
    """Run a command; errors become a message, or JSON where that was asked for."""
    try:
        return run(args)
    except LimnerError as error:
        return _report(error, as_json=args.json)
    except KeyboardInterrupt:
        return _report(Cancelled("Interrupted."), as_json=args.json)
    except BrokenPipeError:
        # The reader went away (`| head`): that is no failure, and Python must not flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def wait_for(work: Callable[[], Awaitable[T]]) -> T:
    """Run async work to its end; Ctrl-C cancels it and lets it clean up."""

    async def main() -> T:
        try:
            return await work()
        except asyncio.CancelledError as stop:
            if (told := told_cost(stop)) is not None:
                raise told from stop
            raise

    return asyncio.run(main())


async def ask(question: Question) -> bool:
    """Put a question to the person; where nobody can be asked the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question.text} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = await asyncio.to_thread(sys.stdin.readline)
    return answer.strip().lower() in {"y", "yes"}


class Waiting:
    """What a person sees while something slow runs: the latest news and the time it takes."""

    def __init__(self, first_message: str) -> None:
        self._message = first_message
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the waiting began."""
        return time.monotonic() - self._started

    def progress(self, news: Progress) -> None:
        """Show this message from now on."""
        self._message = news.message

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None]:
        """Keep a line on the terminal up to date; silent where standard error is no terminal."""
        if not sys.stderr.isatty():
            yield
            return
        ticking = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            ticking.cancel()
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    async def _tick(self) -> None:
        turn = 0
        while True:
            sign = SPINNER[turn % len(SPINNER)]
            sys.stderr.write(f"\r\x1b[2K{sign} {self._message} {self.elapsed_s:.0f} s")
            sys.stderr.flush()
            turn += 1
            await asyncio.sleep(TICK_S)


def _report(error: LimnerError, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": error.as_json()})
        return error.exit_status
    say(f"limner: {error.message}")
    if error.billed:
        certainty = "may have cost" if error.cost_source == "unknown" else "cost"
        say(f"  It {certainty} ${error.cost_usd:.4f}.")
    if "job_id" in error.extras:
        say(f"  Job: {error.extras['job_id']}")
    if "kept_at" in error.extras:
        say(f"  The picture is kept at {error.extras['kept_at']}")
    if error.hint is not None:
        say(f"  {error.hint}")
    return error.exit_status
