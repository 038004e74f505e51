"""A call -> a task that continues after its client leaves, and that repeated calls join."""

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
# Longer than any id of limner. It limits the size of the ids that clients send.
MAX_ID_CHARS = 64
BUSY = "SERVER_BUSY"
ELSEWHERE = "JOB_RUNNING_ELSEWHERE"


class RunningCall:
    """One call that is running or has ended.

    Attributes:
        id: its id for the client and in the record of calls.
        tool: the tool that was called.
        digest: the same for every repetition of the call; None if calls are not joined.
        task: the task that runs it.
        cancel: stops the call once it is set.
        questions: the questions that the user has not been asked yet, by key.
        answers_for: the ids of the recorded calls that have this result, its own id included.
        message: the latest progress message.
        asking: the user is being asked now; this time does not count.
        sent: a request was sent to a provider, so it may be billed.
        delivered: a client received the result.
        waiting: how many clients wait for it.
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
        """Seconds since it started."""
        return time.monotonic() - self._began_s

    @property
    def result(self) -> ToolResult | None:
        """The result; None while the call runs."""
        return self.task.result() if self.task.done() else None

    def update(self, progress: Progress) -> None:
        """Store the latest progress."""
        self.message, self.changed_at_s = progress.message, time.time()

    def is_worth_joining(self) -> bool:
        """Whether a repeated call gets this result instead of paying again.

        A call that ended without a cost is run again.
        """
        if not self.task.done():
            return not self.cancel.is_set()
        result = self.task.result()
        return not self.delivered and ((self.sent and result.ok) or result.billed)


class RunningCalls:
    """The calls of one server process. Results are small: they contain handles of pictures.

    Args:
        max_running: how many may run at once.
        max_kept: how many ended calls are kept.
    """

    def __init__(self, *, max_running: int = MAX_RUNNING, max_kept: int = MAX_KEPT) -> None:
        self._max_running, self._max_kept = max_running, max_kept
        self._calls: dict[str, RunningCall] = {}

    def begin(
        self,
        tool: str,
        run: Callable[[RunningCall], Awaitable[ToolResult]],
        *,
        digest: str | None = None,
        call_id: str | None = None,
    ) -> RunningCall:
        """Start a call in its own task, or join the call that it repeats.

        Raises:
            LimnerError: too many calls are running (SERVER_BUSY); nothing was started.
        """
        for call in self._calls.values():
            if digest is not None and call.digest == digest and call.is_worth_joining():
                return call
        self._make_room()
        call_id = call_id or f"call_{secrets.token_hex(16)}"
        call = RunningCall(call_id, run, tool=tool, digest=digest)
        self._calls[call.id] = call
        return call

    def get(self, call_id: str) -> RunningCall | None:
        """Return the call with that id, running or ended, if this process has it."""
        return self._calls.get(call_id)

    def abandon(self, call: RunningCall) -> None:
        """Handle a client that stops waiting: cancel the call if it has not sent a paid request.

        The server cannot distinguish a cancelled call from a timeout of the client, so a call
        that may be billed continues.
        """
        if not call.sent and call.waiting <= 1:
            call.cancel.set()

    def handles(self) -> set[str]:
        """Return the handles of the pictures in the results of this process."""
        results = [call.result for call in self._calls.values()]
        return {
            part.handle
            for result in results
            if result is not None
            for part in result.content
            if isinstance(part, Picture)
        }

    async def aclose(self) -> None:
        """Cancel calls that sent no paid request, and wait for the others."""
        for call in self._calls.values():
            if not call.sent:
                call.cancel.set()
        if running := [call.task for call in self._calls.values() if not call.task.done()]:
            await asyncio.wait(running)

    def _make_room(self) -> None:
        ended = [call for call in self._calls.values() if call.task.done()]
        if len(self._calls) - len(ended) >= self._max_running:
            raise LimnerError(
                f"{self._max_running} calls are already running",
                code=BUSY,
                retryable=True,
                hint="Wait until one of them has ended.",
            )
        for call in ended[: max(0, len(ended) - self._max_kept)]:
            del self._calls[call.id]


async def _ended(
    call: RunningCall, run: Callable[[RunningCall], Awaitable[ToolResult]]
) -> ToolResult:
    try:
        return await run(call)
    finally:
        call.changed_at_s = time.time()
