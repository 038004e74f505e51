"""Calls of clients -> calls of the tools of one `Limner`, each begun, attended and delivered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from limner.client import Limner
from limner.errors import StorageError
from limner.frontends.mcp.call_scope import CallScope, CallScopes
from limner.frontends.mcp.caller import Caller
from limner.frontends.mcp.calls import CallStore, digest_of
from limner.frontends.mcp.image_job import IMAGE_JOB
from limner.frontends.mcp.results import Results
from limner.frontends.mcp.resume import CallResumer
from limner.frontends.mcp.running_calls import MAX_RUNNING, RunningCall, RunningCalls
from limner.frontends.mcp.tool_list import LASTING
from limner.frontends.mcp.toolbox import FINISH, Toolbox
from limner.settings import load
from limner.tools.base import Question, ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry

FIRST_NEWS_S = 0.5
NEWS_EVERY_S = 2.0

Ask = Callable[[Question, RunningCall], Awaitable[bool]]


class McpService:
    """Everything behind the door.

    Args:
        env: where settings, keys and base addresses come from.
        cwd: the folder the server was started in.
    """

    def __init__(self, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        where = Path.cwd() if cwd is None else cwd
        found = os.environ if env is None else env
        self.lim = Limner(load(env=found, cwd=where), env=found, cwd=where)
        self.works = RunningCalls()
        self.calls = CallStore(store=self.lim.store, clock=self.lim.clock)
        self.results = Results(
            pictures=self.lim.pictures, block_images=self.lim.settings.images.block_images
        )
        self._places = CallScopes(home=self.lim.home, cwd=where)
        toolbox = Toolbox(
            lim=self.lim,
            running=self.works,
            calls=self.calls,
            resumer=CallResumer(lim=self.lim, calls=self.calls),
        )
        # As many as may run at all: drawing has a bound of its own, and whoever waits for a
        # picture must not keep it from being drawn.
        self._registry = ToolRegistry(
            toolbox.tools(resume=self.resume),
            concurrency=2 * MAX_RUNNING,
            timeout_s=self.lim.settings.tools.timeout_s,
        )

    async def begin(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> RunningCall:
        """Start a call, or join the one it repeats.

        Raises:
            LimnerError: too many calls are running.
        """
        place = self._places.of(await caller.roots())
        digest = digest_of(tool, arguments, cwd=place.cwd) if tool in LASTING else None
        run = partial(self._run, tool=tool, arguments=arguments, place=place, ask=caller.ask)
        return self.works.begin(tool, run, digest=digest)

    def resume(self, call_id: str) -> RunningCall:
        """Start to bring in what a call of an earlier process paid for."""
        place = self._places.of(())
        run = partial(self._run, tool=FINISH, arguments={"id": call_id}, place=place, ask=_nobody)
        return self.works.begin(IMAGE_JOB.name, run, call_id=call_id)

    async def attend(self, work: RunningCall, caller: Caller) -> ToolResult | None:
        """Wait for a call and tell how it goes; None where it goes on as a job."""
        work.waiting += 1
        try:
            return await self._attend(work, caller)
        except asyncio.CancelledError:
            self.works.abandon(work)
            raise
        finally:
            work.waiting -= 1

    async def deliver(self, work: RunningCall) -> None:
        """Note that the caller has the answer.

        Called last: a caller who leaves before it returns has not got it, and asks again.
        """
        for call_id in work.answers_for:
            # The picture is there and paid for. That this cannot be written down is no reason to
            # keep it from the caller.
            with suppress(StorageError):
                await self.calls.delivered(call_id)
        work.delivered = True
        for call_id in work.answers_for:
            if (same := self.works.get(call_id)) is not None:
                same.delivered = True

    async def promise(self, work: RunningCall) -> None:
        """Make sure that the id of a call is found again, whatever becomes of this process."""
        if work.id not in work.answers_for and work.digest is not None:
            await self.calls.note(work.id, tool=work.tool, digest=work.digest, ledger_id=None)
            work.answers_for.add(work.id)

    async def aclose(self) -> None:
        """Wait for what may be paid for, and close."""
        try:
            await self.works.aclose()
        finally:
            await self.lim.aclose()

    async def _attend(self, work: RunningCall, caller: Caller) -> ToolResult | None:
        left_s = self.lim.settings.mcp.answer_within_s
        news_in_s = FIRST_NEWS_S
        while not work.task.done():
            if left_s <= 0 and work.tool in LASTING and not work.asking:
                return None
            step_s = min(news_in_s, left_s) if left_s > 0 else news_in_s
            await asyncio.wait({work.task}, timeout=step_s)
            if not work.task.done():
                await caller.tell(work)
            # A user who is being asked takes the time it takes.
            left_s -= 0 if work.asking else step_s
            news_in_s = NEWS_EVERY_S
        return work.task.result()

    async def _run(
        self,
        work: RunningCall,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        place: CallScope,
        ask: Ask,
    ) -> ToolResult:
        """The whole of a work; it answers whatever happens, since others wait for it too."""
        context = ToolContext(
            call_id=work.id,
            cwd=place.cwd,
            reach=place.reach,
            cancel=work.cancel,
            progress=work.tell,
            ask=lambda question: ask(question, work),
        )
        call = ToolCall(name=tool, arguments=arguments, call_id=work.id)
        (result,) = await self._registry.execute_parallel([call], context)
        return result


async def _nobody(_: Question, __: RunningCall) -> bool:
    """Nobody is asked about what was paid for long ago."""
    return False
