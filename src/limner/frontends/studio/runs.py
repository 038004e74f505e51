"""Slow requests of the page -> runs: events about their progress, and how they ended.

A run goes on if the page is closed. Its events have numbers, so that a page that lost the stream
continues after the last one it got. After a restart of the server, or if too much was missed, the
page gets all runs at once.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from limner.errors import Cancelled, LimnerError, NotFound, UnexpectedError, cancellation_cost
from limner.net.redaction import redact
from limner.pictures.request import Progress

MAX_RUNS = 100
MAX_EVENTS = 500
PING_S = 15.0
RETRY_MS = 1000
WATCH_S = 2.0

RunEvent: TypeAlias = Literal["started", "progress", "partial", "done", "failed"]


class StudioRun(msgspec.Struct, frozen=True, kw_only=True):
    """A slow request of the page, and what is known about it.

    Attributes:
        id: its name.
        tool: the tool that it calls.
        title: what it is about.
        state: whether it goes on.
        started_ms: when it started.
        message: what it is doing.
        fraction: how much of it is done, from 0 to 1.
        partials: how many unfinished pictures there were; the last one can be shown.
        pictures: the handles of its pictures.
        text: its answer in words.
        cost_usd: what it cost.
        details: its answer as JSON; a check has its verdicts there.
        error: why it failed.
    """

    id: str
    tool: str
    title: str
    state: Literal["running", "done", "failed"]
    started_ms: int
    message: str = ""
    fraction: float | None = None
    partials: int = 0
    pictures: tuple[str, ...] = ()
    text: str = ""
    cost_usd: float | None = None
    details: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run leaves behind."""

    pictures: tuple[str, ...] = ()
    text: str = ""
    cost_usd: float = 0.0
    details: Mapping[str, Any] | None = None


Report: TypeAlias = Callable[[Progress], None]


class StudioRuns:
    """The runs of one server."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, StudioRun] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._partials: dict[str, bytes] = {}
        # An id of an older server means nothing here.
        self._server, self._number = secrets.token_hex(4), 0
        self._events: deque[tuple[int, bytes]] = deque(maxlen=MAX_EVENTS)
        self._changed = asyncio.Event()
        self._listeners = 0

    def start(
        self, tool: str, title: str, work: Callable[[Report], Awaitable[RunResult]]
    ) -> StudioRun:
        """Start a run; ``work`` gets the function that reports its progress."""
        run = StudioRun(
            id=secrets.token_hex(8),
            tool=tool,
            title=title,
            state="running",
            started_ms=time.time_ns() // 1_000_000,
        )
        self._set("started", run)
        self._tasks[run.id] = asyncio.create_task(self._follow(run.id, work))
        ended = [one.id for one in self._runs.values() if one.state != "running"]
        for old in ended[: max(0, len(self._runs) - MAX_RUNS)]:
            del self._runs[old]
            self._partials.pop(old, None)
        return run

    def find(self, run_id: str) -> StudioRun:
        """The run with that id.

        Raises:
            NotFound: there is none.
        """
        if run_id not in self._runs:
            raise NotFound("there is no such run", code="NO_SUCH_RUN")
        return self._runs[run_id]

    def partial(self, run_id: str) -> bytes:
        """The last unfinished picture of a run, as untrusted as the finished one.

        Raises:
            NotFound: there is none.
        """
        if run_id not in self._partials:
            raise NotFound("there is no unfinished picture", code="NO_SUCH_PICTURE")
        return self._partials[run_id]

    def cancel(self, run_id: str) -> StudioRun:
        """Stop a run; raises as `find`."""
        run = self.find(run_id)
        if run_id in self._tasks:
            self._tasks[run_id].cancel()
        return run

    async def events(self, last_id: str) -> AsyncIterator[bytes]:
        """The events after the one with that id, for ever; or first all runs, if they are unknown.

        Each is an event of server-sent events.
        """
        yield f"retry: {RETRY_MS}\n\n".encode()
        server, _, text = last_id.partition(".")
        at = int(text) if text.isascii() and text.isdecimal() else -1
        self._listeners += 1
        try:
            async for event in self._follow_events(server, at):
                yield event
        finally:
            self._listeners -= 1

    async def watch_gallery(self, read: Callable[[], Awaitable[object]]) -> None:
        """Tell the pages, for ever, when another process stored or deleted pictures.

        ``read`` gives a value that changes then. After the start it is asked only while a page
        listens.
        """
        seen: object = None
        # What comes before the first wait ends is news too.
        with suppress(LimnerError):
            seen = await read()
        while True:
            await asyncio.sleep(WATCH_S)
            # A database that cannot be read now is read again later.
            with suppress(LimnerError):
                now = await read() if self._listeners else seen
                if now != seen:
                    self._send("gallery", {})
                seen = now

    async def _follow_events(self, server: str, at: int) -> AsyncIterator[bytes]:
        oldest = self._events[0][0] if self._events else self._number + 1
        if server != self._server or not oldest - 1 <= at <= self._number:
            at = self._number
            yield self._encode("runs", at, [*self._runs.values()])
        while True:
            changed = self._changed
            for number, event in [one for one in self._events if one[0] > at]:
                at = number
                yield event
            try:
                async with asyncio.timeout(PING_S):
                    await changed.wait()
            except TimeoutError:
                yield b": ping\n\n"

    async def aclose(self) -> None:
        """Stop every run and wait for its end, so that the ledger is right."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, run_id: str, work: Callable[[Report], Awaitable[RunResult]]) -> None:
        def report(progress: Progress) -> None:
            run = self._runs[run_id]
            event: RunEvent = "progress"
            if progress.picture is not None:
                self._partials[run_id] = progress.picture
                event, run = "partial", replace(run, partials=run.partials + 1)
            self._set(event, replace(run, message=progress.message, fraction=progress.fraction))

        try:
            done = await work(report)
        except asyncio.CancelledError as stop:
            self._fail(run_id, cancellation_cost(stop) or Cancelled("Stopped."))
        except LimnerError as error:
            self._fail(run_id, error)
        except Exception as bug:
            self._fail(run_id, UnexpectedError(redact(f"{type(bug).__name__}: {bug}")))
        else:
            facts = msgspec.structs.asdict(done)
            self._set("done", replace(self._runs[run_id], state="done", fraction=1.0, **facts))
        finally:
            del self._tasks[run_id]

    def _fail(self, run_id: str, error: LimnerError) -> None:
        failed = replace(
            self._runs[run_id], state="failed", error=error.as_json(), cost_usd=error.cost_usd
        )
        self._set("failed", failed)

    def _set(self, event: RunEvent, run: StudioRun) -> None:
        self._runs[run.id] = run
        self._send(event, run)

    def _send(self, event: str, data: object) -> None:
        self._number += 1
        self._events.append((self._number, self._encode(event, self._number, data)))
        self._changed.set()
        self._changed = asyncio.Event()

    def _encode(self, event: str, number: int, data: object) -> bytes:
        head = f"event: {event}\nid: {self._server}.{number}\ndata: ".encode()
        return head + msgspec.json.encode(data) + b"\n\n"
