"""Calls in flight: closing waits for those that can end, and a path has one writer."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from limner.errors import OutputExists
from limner.tools.in_flight import InFlight

HOLDER = """
    import sys
    from pathlib import Path
    from limner.tools.in_flight import InFlight

    with InFlight(Path(sys.argv[1])).writing(Path(sys.argv[2])):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def calls(tmp_path: Path) -> InFlight:
    return InFlight(tmp_path / "home" / "path-locks")


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [True, False])
def test_closing_leaves_a_call_whose_loop_is_gone(calls: InFlight, is_closed: bool) -> None:
    loop = asyncio.new_event_loop()

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


async def test_closing_waits_for_a_call_and_refuses_new_ones(calls: InFlight) -> None:
    ended = list[str]()

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


def test_a_path_has_one_writer_at_a_time(calls: InFlight, tmp_path: Path) -> None:
    fox = tmp_path / "fox.png"
    with calls.writing(fox), calls.writing(tmp_path / "wolf.png"), calls.writing(None):
        with pytest.raises(OutputExists) as caught, calls.writing(fox):
            pass
        assert caught.value.message == f"{fox} is being drawn by another call; nothing was sent"
        with calls.writing(None):
            pass
    with calls.writing(fox):
        pass


def test_a_path_has_one_writer_among_all_processes(calls: InFlight, tmp_path: Path) -> None:
    fox, wolf = tmp_path / "fox.png", tmp_path / "wolf.png"
    words = (str(tmp_path / "home" / "path-locks"), str(fox))
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OutputExists, match="is being drawn by another call"):
            calls.writing(fox).__enter__()
        with calls.writing(wolf):
            pass
        holder.kill()
    with calls.writing(fox):
        pass


def test_a_file_that_was_written_since_the_path_was_checked_is_seen(
    calls: InFlight, tmp_path: Path
) -> None:
    fox = tmp_path / "fox.png"
    fox.touch()
    with pytest.raises(OutputExists, match="is there now; nothing was sent"):
        calls.writing(fox).__enter__()
    with calls.writing(fox, overwrite=True):
        pass
