"""A cheap lane that is killed before each write of its store and at each request -> what it paid.

Run as ``python -m tests.faults.lane_kills [NAME …]``, with names of `VENDORS`: every point.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
from tests.batches.lane_rows import FOX, VENDORS, env_for, limner_for, rows_for, without_waiting
from tests.servers.batch_servers import BatchServer

from limner import Limner
from limner.batches.records import BatchStatus
from limner.settings import load
from limner.storage.store import Store
from limner.testing.servers.http_server import ReceivedRequest, Reply, dropped
from limner.tools.batches import BatchManifest

ROWS = 3
GUARD_S = 300.0
ROUTES = ("upload", "create", "status", "results")


class LaneKill(msgspec.Struct, frozen=True, kw_only=True):
    """What a killed run and the run after it came to."""

    was_killed: bool
    done: int
    settled: int
    spent_nano: int
    billed: int
    created: int
    wrong: tuple[str, ...]


def kill_at_write(name: str, number: int, folder: Path) -> LaneKill:
    """Kill the process before its write of this number, and run the batch again."""
    with VENDORS[name].server(FOX) as server:
        return _killed_and_resumed(name, server, folder, number)


def kill_at_request(name: str, route: str, folder: Path) -> LaneKill:
    """Kill the process when its first request of a kind arrives, which is not processed."""
    with VENDORS[name].server(FOX) as server:
        answer = server.answer
        children: list[subprocess.Popen[bytes]] = []

        def kill_first(seen: ReceivedRequest) -> Reply:
            if server.route(seen) == route and children:
                children.pop().kill()
                return dropped()
            return answer(seen)

        server.answer = kill_first
        return _killed_and_resumed(name, server, folder, 0, children)


def _killed_and_resumed(
    name: str,
    server: BatchServer,
    folder: Path,
    number: int,
    children: list[subprocess.Popen[bytes]] | None = None,
) -> LaneKill:
    command = [sys.executable, "-m", "tests.faults.lane_kills", name, str(number), str(folder)]
    env = {**os.environ, **env_for(name, server, folder)}
    child = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    if children is not None:
        children.append(child)
    was_killed = child.wait(GUARD_S) == -signal.SIGKILL
    status, settled, wrong = asyncio.run(_again(name, server, folder))
    return LaneKill(
        was_killed=was_killed,
        done=status.counts.done,
        settled=settled,
        spent_nano=status.spent_nano,
        billed=len(server.billed),
        created=len(server.batches),
        wrong=tuple(wrong),
    )


async def _again(
    name: str, server: BatchServer, folder: Path
) -> tuple[BatchStatus, int, list[str]]:
    async with limner_for(name, server, folder) as lim:
        status = await _run(name, lim)
        spend = await lim.spend()
        settled = [row for row in spend.recent if row.state == "settled"]
        return status, len(settled), await lim.money.wrong_counters()


async def _run(name: str, lim: Limner) -> BatchStatus:
    batches = without_waiting(lim)
    batch = await batches.open(
        BatchManifest.of_rows(rows_for(name, ROWS)),
        lim.person(),
        budget_nano=10**9,
        approved=True,
        lane="cheap",
    )
    return await batches.run(batch)


def _count_writes(kill_at: int) -> None:
    """Kill this process before its write of that number; 0 is never."""
    submit, counted = Store.submit_write, 0

    def submit_or_die(store: Store, work: Any, **how: bool) -> Future[Any]:
        nonlocal counted
        counted += 1
        if counted == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return submit(store, work, **how)

    setattr(Store, "submit_write", submit_or_die)  # noqa: B010 - the types of the two differ


async def _child(name: str, folder: Path) -> None:
    (folder / "fox.png").write_bytes(FOX)
    env = dict(os.environ)
    async with Limner(
        load(env=env, cwd=folder, flags=VENDORS[name].flags), env=env, cwd=folder
    ) as lim:
        await _run(name, lim)


def sweep(name: str) -> None:
    """Print what every point came to, until a run ends before its write."""
    cost_nano = ROWS * VENDORS[name].cost_nano
    expected = {"done": ROWS, "settled": ROWS, "spent_nano": cost_nano, "billed": ROWS}
    routes = [route for route in ROUTES if name != "anthropic" or route != "upload"]
    for point in [*routes, *range(1, 200)]:
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(point, str):
                found = kill_at_request(name, point, Path(folder))
            else:
                found = kill_at_write(name, point, Path(folder))
        facts = msgspec.structs.asdict(found)
        is_right = not found.wrong and all(facts[key] == value for key, value in expected.items())
        sys.stdout.write(f"{name} {point}: {'right' if is_right else 'WRONG'} {found}\n")
        sys.stdout.flush()
        if not found.was_killed:
            return


if __name__ == "__main__":
    if len(sys.argv) == 4:
        _count_writes(int(sys.argv[2]))
        asyncio.run(_child(sys.argv[1], Path(sys.argv[3])))
    else:
        for vendor in sys.argv[1:] or VENDORS:
            sweep(vendor)
