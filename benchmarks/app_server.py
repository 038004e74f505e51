"""`limner app-server` beside the real Codex: the same client, model, messages and pictures.

Both servers run at the same time and take turns at every step, so that a busy moment of the machine
falls on both; only ratios of medians are compared. Memory and room on disk are taken from runs of
their own, since looking at them would slow the others down. At the end one limner meets a crowd.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks import app_server_peers as peers
from benchmarks import photos, screens
from benchmarks.app_server_client import Client, answer_with, connected
from benchmarks.app_server_crowd import crowd
from benchmarks.app_server_peers import Peer
from benchmarks.app_server_report import Memory, Results, Turns, comparisons
from benchmarks.comparison import Comparison
from benchmarks.metered import cpu_ns
from benchmarks.processes import Peak, memory_mb

SCREEN, LARGE = (1280, 800), (3840, 2160)
LARGE_SCALE = 2
SETTLE_S = 1.0
TURN_SETTLE_S = 0.05
"""What a server does after its answer belongs to the turn too."""

Turn = Callable[[Client, str, int], float]
T = TypeVar("T")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How often everything is done."""

    starts: int = 20
    text_turns: int = 40
    shots: int = 50
    large_shots: int = 10
    disk_shots: int = 10
    memory_rounds: int = 3
    threads: int = 200
    # With the threads, as many clients as a server takes (`ServerLimits.connections`).
    idle: int = 800
    crowd_rounds: int = 5


FULL = Plan()
QUICK = Plan(
    starts=2,
    text_turns=2,
    shots=2,
    large_shots=1,
    disk_shots=1,
    memory_rounds=1,
    threads=3,
    idle=5,
    crowd_rounds=1,
)


def main(plan: Plan = FULL) -> list[Comparison]:
    """What each takes; with REQUIRE=all fail if Codex is missing."""
    if sys.platform != "linux":
        print("skipped: the memory of other processes is read from /proc")
        return []
    try:
        return comparisons(measure(plan))
    except ImportError as error:
        print(f"skipped: the real Codex is not installed ({error})")
        if os.environ.get("REQUIRE") == "all":
            raise SystemExit(1) from error
        return []


def measure(plan: Plan) -> Results:
    """Everything, once.

    Raises:
        ImportError: the real Codex is not installed.
    """
    shots = list(pictures(SCREEN, max(plan.shots, plan.disk_shots)))
    large = list(pictures(LARGE, plan.large_shots, scale=LARGE_SCALE))
    with tempfile.TemporaryDirectory() as name, model_server(plan.threads) as base_url:
        folder = Path(name)
        pair = _pair(folder / "timed", base_url)
        # A home is set up by the first process that uses it, which is nobody's everyday.
        for peer in pair:
            _start_s(peer)
        starts = _taking_turns(pair, plan.starts, lambda peer, _: _start_s(peer))
        first, text, tool, tool_large = _turns(plan, pair, shots, large)
        memory = _memory(plan, folder, base_url, shots, large)
        ours = peers.limner(folder / "crowd", base_url=base_url)
        met = asyncio.run(
            crowd(ours, threads=plan.threads, idle=plan.idle, rounds=plan.crowd_rounds)
        )
    return Results(
        starts=starts,
        first_turns=first,
        text_turns=text,
        tool_turns=tool,
        large_turns=tool_large,
        memory=memory,
        shot_bytes=[len(shot) for shot in shots[: plan.disk_shots]],
        crowd=met,
    )


def _turns(
    plan: Plan, pair: Sequence[Peer], shots: Sequence[bytes], large: Sequence[bytes]
) -> tuple[dict[str, Turns], ...]:
    """What turns take: the first of a process, with text, with a screenshot, with a large one."""
    with contextlib.ExitStack() as stack:
        clients = {peer.name: stack.enter_context(connected(peer)) for peer in pair}
        return (
            take_turns(pair, clients, 1, Client.text_turn),
            take_turns(pair, clients, plan.text_turns, Client.text_turn),
            take_turns(pair, clients, plan.shots, showing(shots)),
            take_turns(pair, clients, plan.large_shots, showing(large)),
        )


def showing(shots: Sequence[bytes]) -> Turn:
    """A turn that looks at the screenshot of its number."""
    answers = [answer_with(shot) for shot in shots]
    return lambda client, thread, number: client.tool_turn(thread, number, answer=answers[number])


def take_turns(
    pair: Sequence[Peer], clients: Mapping[str, Client], count: int, turn: Turn
) -> dict[str, Turns]:
    """What turns of a new thread of each take, one after the other."""
    threads = {name: client.start_thread() for name, client in clients.items()}
    taken = {name: Turns() for name in clients}

    def one(peer: Peer, number: int) -> None:
        client = clients[peer.name]
        before = cpu_ns(client.process.pid)
        wall_s = turn(client, threads[peer.name], number)
        time.sleep(TURN_SETTLE_S)
        taken[peer.name].add(before, cpu_ns(client.process.pid), client.process.pid, wall_s=wall_s)

    _taking_turns(pair, count, one)
    return taken


def _memory(
    plan: Plan, folder: Path, base_url: str, shots: Sequence[bytes], large: Sequence[bytes]
) -> dict[str, list[Memory]]:
    """Memory and room on disk, of new homes each time."""
    found: dict[str, list[Memory]] = {}
    for number in range(plan.memory_rounds):
        for peer in _pair(folder / f"memory-{number}", base_url):
            _start_s(peer)
            before_bytes = peer.room_bytes()
            with connected(peer) as client:
                client.start_thread()
                time.sleep(SETTLE_S)
                idle_mb = memory_mb(client.process.pid)
                peak_mb = _peak_mb(client, shots[: plan.disk_shots])
            room_bytes = peer.room_bytes() - before_bytes
            with connected(peer) as client:
                large_peak_mb = _peak_mb(client, large)
            found.setdefault(peer.name, []).append(
                Memory(
                    idle_mb=idle_mb,
                    peak_mb=peak_mb,
                    large_peak_mb=large_peak_mb,
                    room_bytes=room_bytes,
                )
            )
    return found


def _peak_mb(client: Client, shots: Sequence[bytes]) -> float:
    with Peak(client.process.pid) as peak:
        thread_id = client.start_thread()
        for number, shot in enumerate(shots):
            client.tool_turn(thread_id, number, answer=answer_with(shot))
    return peak.mb


def _taking_turns(
    pair: Sequence[Peer], count: int, work: Callable[[Peer, int], T]
) -> dict[str, list[T]]:
    """What each took, one after the other; who begins changes, since one disturbs the next."""
    taken: dict[str, list[T]] = {peer.name: [] for peer in pair}
    for number in range(count):
        for peer in pair if number % 2 else reversed(pair):
            taken[peer.name].append(work(peer, number))
    return taken


def _pair(folder: Path, base_url: str) -> tuple[Peer, Peer]:
    return peers.codex(folder, base_url=base_url), peers.limner(folder, base_url=base_url)


def _start_s(peer: Peer) -> float:
    client = Client(peer)
    try:
        return client.greet()
    finally:
        client.close()


def pictures(size: tuple[int, int], count: int, *, scale: int = 1) -> Iterator[bytes]:
    """Screens with a photo behind the windows, none like another."""
    wallpaper = photos.photo((640, 400), seed=1)
    for number in range(count):
        sink = io.BytesIO()
        screens.desktop(size, seed=number, scale=scale, wallpaper=wallpaper).save(sink, "PNG")
        yield sink.getvalue()


@contextmanager
def model_server(together: int) -> Generator[str]:
    """The address of a model in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.app_server_model", str(together)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()
