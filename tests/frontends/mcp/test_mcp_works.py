"""Calls that outlive their callers."""

from __future__ import annotations

import asyncio

import pytest

from limner.content import Picture
from limner.errors import LimnerError
from limner.frontends.mcp.running_calls import RunningCall, RunningCalls
from limner.pictures.request import Progress
from limner.tools.base import ToolResult

FOX = Picture(handle="f" * 64, mime="image/png", width=1, height=1, size_bytes=1)


def answer(*, ok: bool = True, billed: bool = False) -> ToolResult:
    return ToolResult(call_id="1", name="image_generate", ok=ok, billed=billed, content=(FOX,))


class Held:
    """A call that runs until it is let go, or is told to stop."""

    def __init__(self, result: ToolResult, *, sends: bool = True) -> None:
        self.go, self.began = asyncio.Event(), asyncio.Event()
        self.result, self.sends, self.runs = result, sends, 0

    async def __call__(self, work: RunningCall) -> ToolResult:
        self.runs += 1
        work.sent = self.sends
        self.began.set()
        stopped = asyncio.ensure_future(work.cancel.wait())
        gone = asyncio.ensure_future(self.go.wait())
        await asyncio.wait({stopped, gone}, return_when=asyncio.FIRST_COMPLETED)
        for waiter in (stopped, gone):
            waiter.cancel()
        return self.result if self.go.is_set() else answer(ok=False)


async def test_a_repetition_joins_the_call_that_is_running() -> None:
    works, call = RunningCalls(), Held(answer())
    first = works.begin("image_generate", call, digest="same")
    second = works.begin("image_generate", call, digest="same")
    other = works.begin("image_generate", call, digest="other")
    call.go.set()
    await asyncio.wait({first.task, other.task})
    assert (first is second, first is other, call.runs) == (True, False, 2)


@pytest.mark.parametrize(
    ("result", "delivered", "joins"),
    [
        (answer(), False, True),
        (answer(), True, False),
        (answer(ok=False, billed=True), False, True),
        (answer(ok=False), False, False),
    ],
    ids=["undelivered", "delivered", "failed but paid", "failed for free"],
)
async def test_a_repetition_of_a_call_that_ended_gets_what_was_paid_for_and_never_fetched(
    result: ToolResult, delivered: bool, joins: bool
) -> None:
    works, call = RunningCalls(), Held(result)
    call.go.set()
    first = works.begin("image_generate", call, digest="same")
    await first.task
    first.delivered = delivered
    again = works.begin("image_generate", call, digest="same")
    await again.task
    assert (again is first) == joins


@pytest.mark.parametrize("sends", [True, False])
async def test_what_may_be_paid_for_goes_on_when_its_caller_leaves(sends: bool) -> None:
    works, call = RunningCalls(), Held(answer(), sends=sends)
    work = works.begin("image_generate", call, digest="same")
    await call.began.wait()
    works.abandon(work)
    assert work.cancel.is_set() is not sends
    call.go.set()
    await work.task


async def test_a_call_that_another_still_waits_for_is_not_stopped() -> None:
    works, call = RunningCalls(), Held(answer(), sends=False)
    work = works.begin("image_generate", call, digest="same")
    work.waiting = 2
    works.abandon(work)
    assert not work.cancel.is_set()
    call.go.set()
    await work.task


async def test_closing_stops_what_is_not_sent_and_waits_for_the_rest() -> None:
    works = RunningCalls()
    unsent, sent = Held(answer(), sends=False), Held(answer())
    ends = works.begin("image_fit", unsent)
    goes_on = works.begin("image_generate", sent)
    await sent.began.wait()
    closing = asyncio.ensure_future(works.aclose())
    assert (await ends.task).ok is False
    assert not closing.done()
    sent.go.set()
    await closing
    assert goes_on.result == answer()


async def test_too_many_calls_at_once_are_refused() -> None:
    works, call = RunningCalls(max_running=2), Held(answer())
    running = [works.begin("image_generate", call) for _ in range(2)]
    with pytest.raises(LimnerError) as caught:
        works.begin("image_generate", call)
    assert (caught.value.code, caught.value.retryable) == ("SERVER_BUSY", True)
    call.go.set()
    await asyncio.wait({work.task for work in running})
    assert await works.begin("image_generate", call).task == answer()


async def test_only_so_many_answers_are_kept() -> None:
    works, call = RunningCalls(max_kept=2), Held(answer())
    call.go.set()
    made: list[RunningCall] = []
    for _ in range(5):
        made.append(works.begin("image_generate", call))
        await made[-1].task
    assert [works.get(work.id) is not None for work in made] == [False, False, True, True, True]


async def test_a_call_knows_its_latest_news_and_its_pictures() -> None:
    works, call = RunningCalls(), Held(answer())
    work = works.begin("image_generate", call)
    work.update(Progress(message="half way", elapsed_s=1.0))
    assert (work.message, work.result, works.handles()) == ("half way", None, set())
    call.go.set()
    await work.task
    assert works.handles() == {FOX.handle}
