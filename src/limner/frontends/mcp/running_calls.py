"""Calls that outlive whoever made them: begun once, joined by repetitions, waited for by anyone."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable

from limner.content import Picture
from limner.errors import LimnerError
from limner.pictures.request import Progress
from limner.tools.base import Question, ToolResult

MAX_RUNNING = 256
MAX_KEPT = 1000
# Longer than any id that was ever given out; what clients call theirs is kept for a while.
MAX_ID_CHARS = 64
BUSY = "SERVER_BUSY"
ELSEWHERE = "JOB_RUNNING_ELSEWHERE"


class RunningCall:
    """One call on its way, or just ended.

    Attributes:
        id: what names it to the client, and in the record of calls.
        tool: the tool that was called.
        digest: what a repetition of the call has in common with it; None where it has none.
        task: what does it.
        cancel: once set, it stops.
        questions: what only the user can decide and nobody has been asked yet, by key.
        answers_for: the recorded calls whose answer this is, itself included once it is recorded.
        message: the latest news.
        asking: the user is being asked right now, and nobody counts the seconds.
        sent: a service was asked for something: it may be paid for.
        delivered: somebody got the answer.
        waiting: how many callers wait for it.
    """

    def __init__(
        self,
        call_id: str,
        run: Callable[[RunningCall], Awaitable[ToolResult]],
        *,
        tool: str,
        digest: str | None,
    ) -> None:
        self.id, self.tool, self.digest = call_id, tool, digest
        self.cancel = asyncio.Event()
        self.questions: dict[str, Question] = {}
        self.answers_for: set[str] = set()
        self.message = ""
        self.asking = self.sent = self.delivered = False
        self.waiting = 0
        self.began_at_s = self.changed_at_s = time.time()
        self._began_s = time.monotonic()
        self.task = asyncio.ensure_future(_ended(self, run))

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began_s

    @property
    def result(self) -> ToolResult | None:
        """What came of it; None while it runs."""
        return self.task.result() if self.task.done() else None

    def tell(self, news: Progress) -> None:
        """Take the latest news."""
        self.message, self.changed_at_s = news.message, time.time()

    def is_worth_joining(self) -> bool:
        """Whether a repetition of the call gets this answer instead of paying for another.

        What ended without costing anything is simply done again.
        """
        if not self.task.done():
            return not self.cancel.is_set()
        result = self.task.result()
        return not self.delivered and ((self.sent and result.ok) or result.billed)


class RunningCalls:
    """The calls of one server process; results are small, since pictures in them are handles.

    Args:
        max_running: how many may run at once.
        max_kept: how many that have ended are remembered.
    """

    def __init__(self, *, max_running: int = MAX_RUNNING, max_kept: int = MAX_KEPT) -> None:
        self._max_running, self._max_kept = max_running, max_kept
        self._works: dict[str, RunningCall] = {}

    def begin(
        self,
        tool: str,
        run: Callable[[RunningCall], Awaitable[ToolResult]],
        *,
        digest: str | None = None,
        call_id: str | None = None,
    ) -> RunningCall:
        """Start a call in a task of its own, or join the one it repeats.

        Raises:
            LimnerError: too many calls are running (SERVER_BUSY); nothing was begun.
        """
        for work in self._works.values():
            if digest is not None and work.digest == digest and work.is_worth_joining():
                return work
        self._make_room()
        named = call_id or f"call_{secrets.token_hex(16)}"
        work = RunningCall(named, run, tool=tool, digest=digest)
        self._works[work.id] = work
        return work

    def get(self, call_id: str) -> RunningCall | None:
        """The call of that id, running or ended, if this process made it."""
        return self._works.get(call_id)

    def abandon(self, work: RunningCall) -> None:
        """A caller gives up waiting. What may be paid for goes on; what is not yet sent stops.

        Whether the user pressed a key or a client's time ran out cannot be told apart, so a
        picture that is being drawn is not thrown away.
        """
        if not work.sent and work.waiting <= 1:
            work.cancel.set()

    def handles(self) -> set[str]:
        """The pictures that calls of this process have shown."""
        results = [work.result for work in self._works.values()]
        return {
            part.handle
            for result in results
            if result is not None
            for part in result.content
            if isinstance(part, Picture)
        }

    async def aclose(self) -> None:
        """Stop what is not sent, and wait for the rest: it may be paid for."""
        for work in self._works.values():
            if not work.sent:
                work.cancel.set()
        if running := [work.task for work in self._works.values() if not work.task.done()]:
            await asyncio.wait(running)

    def _make_room(self) -> None:
        ended = [work for work in self._works.values() if work.task.done()]
        if len(self._works) - len(ended) >= self._max_running:
            raise LimnerError(
                f"{self._max_running} calls are running already",
                code=BUSY,
                retryable=True,
                hint="Wait until some of them have ended.",
            )
        for work in ended[: max(0, len(ended) - self._max_kept)]:
            del self._works[work.id]


async def _ended(
    work: RunningCall, run: Callable[[RunningCall], Awaitable[ToolResult]]
) -> ToolResult:
    try:
        return await run(work)
    finally:
        work.changed_at_s = time.time()
