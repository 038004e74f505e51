"""What becomes of calls that run too long, or that somebody stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from made_tools import Counted, Run, answering, make_tool

from limner.errors import Cancelled, ProviderUnavailable
from limner.tools.base import Outcome, ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry

SOON_S = 0.01  # short enough to wait for; nothing depends on how long it really takes
CALL = ToolCall(name="draw", call_id="1")


class Endless:
    """A run that ends only when it is cancelled, and then takes a few steps to tidy up."""

    def __init__(self, *, ending: Exception | Outcome | None = None) -> None:
        self.began = asyncio.Event()
        self.tidied = 0
        self._ending = ending

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for _ in range(10):
                await asyncio.sleep(0)
            self.tidied += 1
            if isinstance(self._ending, Exception):
                raise self._ending from None
            if self._ending is not None:
                return self._ending
            raise
        raise AssertionError("the event is never set")


class Stubborn:
    """A run that takes no notice of being cancelled until it is told to end."""

    def __init__(self, *, ending: Exception | None = None) -> None:
        self.began, self.end, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ending = ending

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        self.began.set()
        while not self.end.is_set():
            with suppress(asyncio.CancelledError):
                await self.end.wait()
        self.ended.set()
        if self._ending is not None:
            raise self._ending
        return Outcome(value={})


def paid(error: ProviderUnavailable | Cancelled) -> ProviderUnavailable | Cancelled:
    error.charge(40_000_000, "unknown")
    return error


async def timed_out(run: Run, **registry: Any) -> ToolResult:
    tools = ToolRegistry([make_tool("draw", run)], timeout_s=SOON_S, **registry)
    (result,) = await tools.execute_parallel([CALL], ToolContext())
    return result


async def cancelled(run: Endless, **registry: Any) -> ToolResult:
    """The result of a call that is cancelled by its context while it runs."""
    context = ToolContext(cancel=asyncio.Event())
    tools = ToolRegistry([make_tool("draw", run)], **registry)
    batch = asyncio.create_task(tools.execute_parallel([CALL], context))
    await run.began.wait()
    assert context.cancel is not None
    context.cancel.set()
    (result,) = await batch
    return result


async def test_a_tool_that_runs_too_long_is_stopped_and_tidies_up() -> None:
    run = Endless()
    assert await timed_out(run) == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        code="execution_failed",
        domain_code="TOOL_TIMEOUT",
        error="draw was stopped after 0.01 seconds",
        retryable=True,
    )
    assert run.tidied == 1


async def test_a_limit_of_its_own_goes_before_the_registrys() -> None:
    run = Endless()
    tools = ToolRegistry([make_tool("draw", run, timeout_s=SOON_S)], timeout_s=1_000)
    (result,) = await tools.execute_parallel([CALL], ToolContext())
    assert result.domain_code == "TOOL_TIMEOUT"


async def test_what_was_spent_before_a_time_out_is_not_lost() -> None:
    last = paid(ProviderUnavailable("the job is still running", extras={"job": "j1"}, hint="Ask."))
    last.retryable = False
    assert await timed_out(Endless(ending=last)) == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        cost_nano=40_000_000,
        cost_source="unknown",
        code="execution_failed",
        domain_code="TOOL_TIMEOUT",
        error="draw was stopped after 0.01 seconds: the job is still running",
        hint="Ask.",
        billed=True,
        extras={"job": "j1"},
    )


async def test_a_tool_that_says_it_was_cancelled_after_a_time_out_is_still_timed_out() -> None:
    result = await timed_out(Endless(ending=paid(Cancelled("the call was cancelled"))))
    assert (result.domain_code, result.error) == (
        "TOOL_TIMEOUT",
        "draw was stopped after 0.01 seconds",
    )
    assert (result.cost_nano, result.cost_source, result.retryable) == (
        40_000_000,
        "unknown",
        False,
    )


async def test_a_picture_that_is_finished_during_cleanup_is_not_thrown_away() -> None:
    result = await timed_out(Endless(ending=Outcome(value={"path": "/a.png"}, cost_nano=3)))
    assert (result.ok, result.value, result.cost_nano) == (True, '{"path":"/a.png"}', 3)


async def test_a_cleanup_that_crashes_is_logged_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, logger="limner"):
        result = await timed_out(Endless(ending=KeyError("tidy")))
    assert result.domain_code == "TOOL_TIMEOUT"
    assert "KeyError: 'tidy'" in caplog.text


async def test_waiting_for_a_turn_is_not_running() -> None:
    async def slow(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        await asyncio.sleep(SOON_S * 5)
        return Outcome(value={})

    tools = ToolRegistry(
        [make_tool("slow", slow), make_tool("draw", answering({}), timeout_s=SOON_S)],
        concurrency=1,
    )
    results = await tools.execute_parallel([ToolCall(name="slow"), CALL], ToolContext())
    assert [result.ok for result in results] == [True, True]


async def test_a_tool_that_does_not_stop_keeps_running_and_blocks_no_other_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Stubborn(ending=RuntimeError("too late"))
    tools = ToolRegistry(
        [make_tool("draw", run), make_tool("look", answering({"ok": True}))],
        concurrency=1,
        timeout_s=SOON_S,
        cleanup_s=SOON_S,
    )
    with caplog.at_level(logging.WARNING, logger="limner"):
        draw, look = await tools.execute_parallel([CALL, ToolCall(name="look")], ToolContext())
        run.end.set()
        await run.ended.wait()
        await asyncio.sleep(0)
    assert (draw.domain_code, look.ok) == ("TOOL_TIMEOUT", True)
    assert [record.getMessage() for record in caplog.records] == [
        "draw was stopped after 0.01 seconds, but it is still running.",
        "A tool that was still running failed.",
    ]


async def test_cancelling_ends_what_runs_and_what_waits() -> None:
    run, waiting = Endless(), Counted()
    context = ToolContext(cancel=asyncio.Event())
    tools = ToolRegistry([make_tool("draw", run), make_tool("wait", waiting)], concurrency=1)
    batch = asyncio.create_task(
        tools.execute_parallel([CALL, ToolCall(name="wait", call_id="2")], context)
    )
    await run.began.wait()
    assert context.cancel is not None
    context.cancel.set()
    assert await batch == [
        ToolResult(
            call_id=call_id,
            name=name,
            ok=False,
            code="execution_failed",
            domain_code="CANCELLED",
            error=f"{name} was cancelled",
        )
        for call_id, name in [("1", "draw"), ("2", "wait")]
    ]
    assert (run.tidied, waiting.calls) == (1, 0)


async def test_after_cancelling_nothing_begins() -> None:
    run = Counted()
    context = ToolContext(cancel=asyncio.Event())
    assert context.cancel is not None
    context.cancel.set()
    tools = ToolRegistry([make_tool("draw", run)], concurrency=1)
    results = await tools.execute_parallel([CALL, CALL, CALL], context)
    assert [result.domain_code for result in results] == ["CANCELLED"] * 3
    assert run.calls == 0


async def test_what_was_done_before_cancelling_stays_done() -> None:
    run = Endless()
    context = ToolContext(cancel=asyncio.Event())
    quick = make_tool("quick", answering({"a": 1}))
    tools = ToolRegistry([make_tool("draw", run), quick], concurrency=1)
    batch = asyncio.create_task(tools.execute_parallel([ToolCall(name="quick"), CALL], context))
    await run.began.wait()
    assert context.cancel is not None
    context.cancel.set()
    done, stopped = await batch
    assert (done.value, stopped.domain_code) == ('{"a":1}', "CANCELLED")


async def test_what_was_spent_before_cancelling_is_not_lost() -> None:
    result = await cancelled(Endless(ending=paid(ProviderUnavailable("no answer yet"))))
    assert (result.domain_code, result.error) == (
        "CANCELLED",
        "draw was cancelled: no answer yet",
    )
    assert (result.cost_nano, result.billed, result.retryable) == (40_000_000, True, False)


async def test_a_tool_may_say_itself_that_it_was_cancelled() -> None:
    result = await cancelled(Endless(ending=paid(Cancelled("the job was withdrawn"))))
    assert (result.domain_code, result.error) == ("CANCELLED", "the job was withdrawn")
    assert (result.cost_nano, result.cost_source) == (40_000_000, "unknown")


async def test_cancelling_the_batch_itself_raises_after_every_cleanup() -> None:
    runs = [Endless(), Endless()]
    tools = ToolRegistry([make_tool("a", runs[0]), make_tool("b", runs[1])])
    batch = asyncio.create_task(
        tools.execute_parallel([ToolCall(name="a"), ToolCall(name="b")], ToolContext())
    )
    for run in runs:
        await run.began.wait()
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert [run.tidied for run in runs] == [1, 1]


async def test_cancelling_twice_does_not_cut_the_cleanup_short() -> None:
    run = Endless()
    context = ToolContext(cancel=asyncio.Event())
    batch = asyncio.create_task(
        ToolRegistry([make_tool("draw", run)]).execute_parallel([CALL], context)
    )
    await run.began.wait()
    assert context.cancel is not None
    context.cancel.set()
    batch.cancel()
    await asyncio.sleep(0)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert run.tidied == 1


async def test_cancelling_the_batch_leaves_behind_what_will_not_stop() -> None:
    run = Stubborn()
    tools = ToolRegistry([make_tool("draw", run)], cleanup_s=SOON_S)
    batch = asyncio.create_task(tools.execute_parallel([CALL], ToolContext()))
    await run.began.wait()
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    run.end.set()
    await run.ended.wait()


async def test_a_tool_that_cancels_itself_is_answered_as_cancelled() -> None:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        raise asyncio.CancelledError

    tools = ToolRegistry([make_tool("draw", run)])
    (result,) = await tools.execute_parallel([CALL], ToolContext())
    assert result.domain_code == "CANCELLED"
