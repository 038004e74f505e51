"""Tool calls -> their results, in order: checked, bounded, timed, and never raising."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches

from msgspec.structs import replace

from limner.errors import (
    Cancelled,
    InputInvalid,
    LimnerError,
    ToolTimeout,
    ToolUnavailable,
    UnexpectedError,
    cancellation_cost,
    shortage_error,
)
from limner.net.per_loop import PerLoop
from limner.net.redaction import redact
from limner.shortage import shortage_behind
from limner.tools import arguments, result_budget
from limner.tools.base import Outcome, Tool, ToolCall, ToolContext, ToolResult

logger = logging.getLogger("limner.tools")

_CRASHED = "TOOL_CRASHED"
_SHOWN_NAME_CHARS = 80


class ToolRegistry:
    """The tools of a program, and the one way to call them.

    The same registry may be used under several event loops, one after another or side by side;
    ``concurrency`` holds for each.

    Args:
        tools: what can be called; names are unique.
        concurrency: how many calls run at once; the others wait their turn.
        timeout_s: how long a tool may run that names no limit of its own.
        cleanup_s: how long a stopped tool may take to clean up. One that takes longer keeps
            running: the call is answered, and its slot is free again.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        concurrency: int = 8,
        timeout_s: float = 300,
        cleanup_s: float = 10,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool
        self._timeout_s, self._cleanup_s = timeout_s, cleanup_s
        self._slots = PerLoop(lambda: asyncio.Semaphore(concurrency))
        self._still_running: set[asyncio.Future[Outcome]] = set()

    def get(self, name: str) -> Tool | None:
        """The tool of that name, available or not."""
        return self._tools.get(name)

    def read(self, call: ToolCall) -> tuple[Tool, Mapping[str, object]]:
        """The tool of a call, and the arguments as its schema means them.

        Raises:
            InputInvalid: there is no such tool, or an argument is missing or wrong.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(self._tools)
            raise InputInvalid(
                f"there is no tool {call.name[:_SHOWN_NAME_CHARS]!r}; the tools: {names}",
                field="tool",
            )
        return tool, _meant(tool, call)

    def definitions(self, allowed: Collection[str] | None = None) -> list[Tool]:
        """The tools a model can be offered: available and allowed, in the order given.

        Args:
            allowed: the names of a toolset. None allows every tool, an empty one none.
        """
        tools = self._tools.values()
        return [t for t in tools if (allowed is None or t.name in allowed) and _is_available(t)]

    async def execute_parallel(
        self, calls: Sequence[ToolCall], context: ToolContext
    ) -> list[ToolResult]:
        """Run the calls and return their results in the same order; a call that fails has one too.

        The results together keep within ``context.result_budget_chars``, and each within its
        tool's ``max_result_chars``. Once ``context.cancel`` is set, what is running or waiting
        ends as CANCELLED.

        Raises:
            asyncio.CancelledError: the caller was cancelled; the tools have cleaned up.
        """
        tasks = [asyncio.create_task(self.execute(call, context)) for call in calls]
        with _cancelled_by(context.cancel, tasks):
            results = await asyncio.gather(*tasks)
        total = context.result_budget_chars
        caps = [
            total
            if (tool := self._tools.get(call.name)) is None
            else tool.max_result_chars * (tool.parts(_meant(tool, call)) if result.value else 1)
            for call, result in zip(calls, results, strict=True)
        ]
        return result_budget.fit_all(results, caps=caps, total=total)

    async def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run one call and return its whole result, for a caller that is no model."""
        try:
            tool = self._tools.get(call.name)
            if tool is None:
                return self._unknown(call, context)
            return _refusal(tool, call, context) or _success(
                call, await self._attempt(tool, call, context)
            )
        except asyncio.CancelledError as stop:
            # If the caller was cancelled, `gather` raises, whatever this returns.
            cancelled = cancellation_cost(stop) or Cancelled(f"{call.name} was cancelled")
            return _failure(call, cancelled)
        except UnexpectedError as error:
            if shortage_behind(error) is None:
                logger.exception("The tool %s crashed.", call.name)
            error.untrusted = True  # the text of an unknown error
            return _failure(call, error)
        except LimnerError as error:
            return _failure(call, error)
        except Exception as error:
            return _crash(call, error)

    async def _attempt(self, tool: Tool, call: ToolCall, context: ToolContext) -> Outcome:
        call = replace(call, arguments=_meant(tool, call))
        async with self._slots.get():
            if context.cancel is not None and context.cancel.is_set():
                raise Cancelled(f"{tool.name} was cancelled before it began")
            return await self._run(tool, call, context)

    async def _run(self, tool: Tool, call: ToolCall, context: ToolContext) -> Outcome:
        limit_s = self._timeout_s if tool.timeout_s is None else tool.timeout_s
        work = asyncio.ensure_future(tool.run(call.arguments, context))
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.wait({work})
        except TimeoutError:
            return await self._stop(
                work, ToolTimeout(f"{tool.name} was stopped after {limit_s:g} seconds")
            )
        except asyncio.CancelledError:
            return await self._stop(work, Cancelled(f"{tool.name} was cancelled"))
        return work.result()

    async def _stop(self, work: asyncio.Future[Outcome], ending: LimnerError) -> Outcome:
        """Cancel the work and wait for its cleanup; raises the ending, with what it had cost.

        Work that finishes all the same is not thrown away: it may have been paid for.
        """
        work.cancel()
        cleanup = asyncio.ensure_future(asyncio.wait({work}, timeout=self._cleanup_s))
        while not cleanup.done():
            # A second cancellation must not stop the cleanup; its time is bounded.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(cleanup)
        if not work.done():
            logger.warning("%s, but it is still running.", ending.message)
            self._still_running.add(work)  # the event loop alone would not keep it alive
            work.add_done_callback(self._forget)
            raise ending
        error = _error_of(work)
        if error is None:
            return work.result()
        if isinstance(error, asyncio.CancelledError):
            raise ending
        if isinstance(error, LimnerError):
            raise _with_last_error(ending, error) from error
        logger.error("%s, and its cleanup failed.", ending.message, exc_info=error)
        raise ending from error

    def _forget(self, work: asyncio.Future[Outcome]) -> None:
        self._still_running.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.error("A tool that was still running failed.", exc_info=error)

    def _unknown(self, call: ToolCall, context: ToolContext) -> ToolResult:
        # Only tools of this turn are named.
        names = [tool.name for tool in self.definitions(context.allowed)]
        close = get_close_matches(call.name[:_SHOWN_NAME_CHARS], names, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]}?" if close else f"The tools here: {', '.join(names)}."
        unknown = ToolUnavailable(
            f"there is no tool {call.name[:_SHOWN_NAME_CHARS]!r}",
            code="UNKNOWN_TOOL",
            hint=hint if names else None,
        )
        return _failure(call, unknown)


def _meant(tool: Tool, call: ToolCall) -> Mapping[str, object]:
    """The arguments of a call as the tool's schema means them.

    Raises:
        InputInvalid: one is missing or wrong.
    """
    if tool.foreign:
        return call.arguments
    # In the tool of a program, an empty text is a text. In limner's own it means "not given".
    is_own = tool.arguments is not None
    return arguments.conform(tool.schema, call.arguments, drop_blank=is_own)


@contextmanager
def _cancelled_by(
    event: asyncio.Event | None, tasks: Sequence[asyncio.Task[ToolResult]]
) -> Generator[None]:
    """Cancel the tasks when the event is set."""
    if event is None:
        yield
        return

    async def watch() -> None:
        await event.wait()
        for task in tasks:
            task.cancel()

    # Created after the tasks: each task has started before the watcher can cancel it, so each task
    # returns a result.
    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()


def _refusal(tool: Tool, call: ToolCall, context: ToolContext) -> ToolResult | None:
    if context.allowed is not None and tool.name not in context.allowed:
        why = f"{tool.name} is not among the tools of this turn"
        return _failure(call, ToolUnavailable(why, code="TOOL_NOT_ALLOWED"))
    if not _is_available(tool):
        return _failure(call, ToolUnavailable(f"{tool.name} is not available right now"))
    return None


def _is_available(tool: Tool) -> bool:
    try:
        return tool.available()
    except Exception:
        logger.exception("Cannot determine whether the tool %s is available.", tool.name)
        return False


def _success(call: ToolCall, outcome: Outcome) -> ToolResult:
    try:
        value = result_budget.to_json(outcome.value)
    except (TypeError, ValueError, RecursionError) as error:
        crash = LimnerError(f"{call.name} answered with something that is not JSON", code=_CRASHED)
        crash.charge(outcome.cost_nano, outcome.cost_source)
        raise crash from error
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        ok=outcome.success,
        value=value,
        content=outcome.content,
        cost_nano=outcome.cost_nano,
        cost_source=outcome.cost_source,
        billed=outcome.cost_nano > 0,
        parts=outcome.parts,
        untrusted=outcome.untrusted,
    )


def _failure(call: ToolCall, error: LimnerError) -> ToolResult:
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        ok=False,
        cost_nano=error.cost_nano,
        cost_source=error.cost_source,
        code=error.kind,
        domain_code=error.code,
        error=error.message,
        hint=error.hint,
        field=getattr(error, "field", None),
        retryable=error.retryable,
        billed=error.billed,
        extras=error.extras,
        untrusted=error.untrusted,
    )


def _error_of(work: asyncio.Future[Outcome]) -> BaseException | None:
    """What the work ended with; a cancellation that knows its cost counts as that error."""
    try:
        return work.exception()
    except asyncio.CancelledError as stop:
        return cancellation_cost(stop) or stop


def _with_last_error(ending: LimnerError, last: LimnerError) -> LimnerError:
    """The ending, with what the tool itself reported last."""
    if isinstance(last, type(ending)):
        return last
    # The registry knows why it stopped the tool; the tool only saw a cancellation.
    more = "" if isinstance(last, Cancelled) else f": {last.message}"
    combined = type(ending)(
        ending.message + more,
        hint=last.hint,
        retryable=ending.retryable and last.retryable,
        extras=last.extras,
    )
    combined.charge(last.cost_nano, last.cost_source)
    combined.billed = last.billed
    combined.untrusted = last.untrusted
    return combined


def _crash(call: ToolCall, error: Exception) -> ToolResult:
    """The result of a call that ended with an unexpected error, which is logged."""
    if (shortage := shortage_behind(error)) is not None:
        return _failure(call, shortage_error(shortage))
    logger.error("The tool %s crashed.", call.name, exc_info=error)
    # Its type and text, without secrets.
    described = redact("".join(traceback.format_exception_only(error)).strip())
    crash = LimnerError(f"{call.name} crashed: {described}", code=_CRASHED)
    crash.untrusted = True
    return _failure(call, crash)
