"""Calls in flight: closing waits for those that can end, and a path has one writer."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from limner.errors import OutputExists
from limner.tools.in_flight import InFlight


@pytest.mark.parametrize("is_closed", [True, False])
def test_closing_leaves_a_call_whose_loop_is_gone(is_closed: bool) -> None:
    calls, loop = InFlight(), asyncio.new_event_loop()

    async def wait_forever() -> None:
        with calls.track():
            await asyncio.Event().wait()

    call = loop.create_task(wait_forever())
    loop.run_until_complete(asyncio.sleep(0))
    if is_closed:
        loop.close()
    asyncio.run(calls.aclose())
    assert not call.done()
    with contextlib.suppress(asyncio.CancelledError):
        call.get_coro().throw(asyncio.CancelledError)
    loop.close()


async def test_closing_waits_for_a_call_and_refuses_new_ones() -> None:
    calls, ended = InFlight(), list[str]()

    async def work() -> None:
        with calls.track():
            await asyncio.sleep(0)
            ended.append("call")

    call = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    await calls.aclose()
    assert ended == ["call"]
    await call
    with pytest.raises(RuntimeError, match="closed"), calls.track():
        pass


def test_a_path_has_one_writer_at_a_time(tmp_path: Path) -> None:
    calls, fox = InFlight(), tmp_path / "fox.png"
    with calls.writing(fox), calls.writing(tmp_path / "wolf.png"), calls.writing(None):
        with pytest.raises(OutputExists) as caught, calls.writing(fox):
            pass
        assert caught.value.message == f"{fox} is being drawn by another call; nothing was sent"
        with calls.writing(None):
            pass
    with calls.writing(fox):
        pass
