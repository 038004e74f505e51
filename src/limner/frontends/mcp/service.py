"""Calls of clients -> calls of the tools of one `Limner`: start, wait, deliver."""

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
from limner.frontends.mcp.tool_list import LASTING, names_paths
from limner.frontends.mcp.toolbox import FINISH, Toolbox
from limner.settings import load
from limner.tools.base import Question, ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry

FIRST_PROGRESS_S = 0.5
PROGRESS_EVERY_S = 2.0
# More than a server has sessions at once.
MAX_MARKED = 100_000

Ask = Callable[[Question, RunningCall], Awaitable[bool]]


class McpService:
    """Runs the calls of all clients of one server.

    Args:
        env: contains settings, keys and base URLs.
        cwd: the folder in which the server was started.
        folders: more folders that calls may use; None means those that the client names.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        folders: tuple[Path, ...] | None = None,
    ) -> None:
        folder = Path.cwd() if cwd is None else cwd
        variables = os.environ if env is None else env
        self.lim = Limner(load(env=variables, cwd=folder), env=variables, cwd=folder)
        self.running = RunningCalls()
        self.calls = CallStore(store=self.lim.store, clock=self.lim.clock)
        self.results = Results(
            pictures=self.lim.pictures,
            block_images=self.lim.settings.images.block_images,
            form=self.lim.settings.mcp.pictures,
        )
        self._folders = folders
        self._scopes = CallScopes(home=self.lim.home, cwd=folder)
        self._marked_sessions: dict[str, None] = {}
        toolbox = Toolbox(
            lim=self.lim,
            running=self.running,
            calls=self.calls,
            resumer=CallResumer(lim=self.lim, calls=self.calls),
        )
        # Twice the maximum of calls: a call that waits for a picture must not block the call that
        # draws it. Drawing has its own limit.
        self._registry = ToolRegistry(
            toolbox.tools(resume=self.resume),
            concurrency=2 * MAX_RUNNING,
            timeout_s=self.lim.settings.tools.timeout_s,
        )

    async def begin(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> RunningCall:
        """Start a call, or join the call that it repeats.

        Raises:
            LimnerError: too many calls are running.
        """
        has_paths = names_paths(tool, arguments)
        folders = self._folders
        if folders is None:
            folders = await caller.roots(wait=has_paths)
        scope = self._scopes.of(folders)
        # Without a path the folder does not matter, and the client may name it only later.
        cwd = scope.cwd if has_paths else Path()
        digest = digest_of(tool, arguments, cwd=cwd) if tool in LASTING else None
        run = partial(
            self._run,
            tool=tool,
            arguments=arguments,
            scope=scope,
            ask=caller.ask,
            has_read_untrusted=caller.session in self._marked_sessions,
        )
        return self.running.begin(tool, run, digest=digest)

    def note_untrusted(self, session: str) -> None:
        """Record that content from outside went to a session's client.

        From then on, spending and writing need the user's approval, as in every conversation.
        """
        while len(self._marked_sessions) >= MAX_MARKED:
            self._marked_sessions.pop(next(iter(self._marked_sessions)))
        self._marked_sessions[session] = None

    def resume(self, call_id: str) -> RunningCall:
        """Start to fetch the result of a call of an earlier process."""
        scope = self._scopes.of(self._folders or ())
        run = partial(self._run, tool=FINISH, arguments={"id": call_id}, scope=scope, ask=_decline)
        return self.running.begin(IMAGE_JOB.name, run, call_id=call_id)

    async def attend(self, call: RunningCall, caller: Caller) -> ToolResult | None:
        """Wait for a call and report its progress; None if it continues as a job."""
        call.waiting += 1
        try:
            return await self._attend(call, caller)
        except asyncio.CancelledError:
            self.running.abandon(call)
            raise
        finally:
            call.waiting -= 1

    async def deliver(self, call: RunningCall) -> None:
        """Record that the client has the result.

        Call this last: a client that disconnects earlier has no result and repeats the call.
        """
        for call_id in call.answers_for:
            # The picture is paid for: the client gets it even if this cannot be recorded.
            with suppress(StorageError):
                await self.calls.delivered(call_id)
        call.delivered = True
        for call_id in call.answers_for:
            if (same := self.running.get(call_id)) is not None:
                same.delivered = True

    async def promise(self, call: RunningCall) -> None:
        """Record the id of a call, so that a later process finds it."""
        if call.id not in call.answers_for and call.digest is not None:
            await self.calls.note(call.id, tool=call.tool, digest=call.digest, ledger_id=None)
            call.answers_for.add(call.id)

    async def aclose(self) -> None:
        """Wait for calls that may be paid for, and close."""
        try:
            await self.running.aclose()
        finally:
            await self.lim.aclose()

    async def _attend(self, call: RunningCall, caller: Caller) -> ToolResult | None:
        # The client's own clock started when it sent the request.
        waited_s = asyncio.get_running_loop().time() - caller.arrived_s
        left_s = self.lim.settings.mcp.answer_within_s - waited_s
        progress_in_s = FIRST_PROGRESS_S
        while not call.task.done():
            if left_s <= 0 and call.tool in LASTING and not call.asking:
                return None
            step_s = min(progress_in_s, left_s) if left_s > 0 else progress_in_s
            await asyncio.wait({call.task}, timeout=step_s)
            if not call.task.done():
                caller.report_progress(call)
            # The time in which the user answers a question does not count.
            left_s -= 0 if call.asking else step_s
            progress_in_s = PROGRESS_EVERY_S
        return call.task.result()

    async def _run(
        self,
        call: RunningCall,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        scope: CallScope,
        ask: Ask,
        has_read_untrusted: bool = False,
    ) -> ToolResult:
        """Run a call. Every failure is a result, since several clients may wait for it."""
        context = ToolContext(
            call_id=call.id,
            cwd=scope.cwd,
            more_folders=scope.folders[1:],
            reach=scope.reach,
            has_read_untrusted=has_read_untrusted,
            cancel=call.cancel,
            progress=call.update,
            ask=lambda question: ask(question, call),
        )
        tool_call = ToolCall(name=tool, arguments=arguments, call_id=call.id)
        (result,) = await self._registry.execute_parallel([tool_call], context)
        return result


async def _decline(_: Question, __: RunningCall) -> bool:
    """Decline each question: a resumed call pays nothing, so there is nothing to ask."""
    return False
