"""What a start takes beside a bare interpreter, and the first answers of app-servers.

Commands are compared by the processor time of the whole process, which a busy machine changes
little. Being ready for a turn is having loaded and built everything but the connection: what is
left is what the libraries themselves load with their first request.

App-servers are compared twice: from the start of the process to the answer to `initialize`, and
from there to the answer to a `thread/start` that is sent at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import app_server_peers as peers
from benchmarks.app_server_client import Client
from benchmarks.app_server_peers import Peer
from benchmarks.app_server_report import WHY_START
from benchmarks.comparison import Comparison, compare
from benchmarks.metered import cpu_ns

ROUNDS = 40
LIMNER = str(Path(sys.executable).parent / "limner")
LIBRARIES = "import asyncio, httpx2, msgspec, sqlite3"
READY = "import limner.agents, limner.wires.openai_responses; limner.agents.Limner()"
BARE = "python -c pass"
DRY_RUN = "limner generate --dry-run"
COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    "import limner": [sys.executable, "-c", "import limner"],
    "limner --help": [LIMNER, "--help"],
    "import asyncio, msgspec": [sys.executable, "-c", "import asyncio, msgspec"],
    "asyncio, httpx2, msgspec and sqlite3": [sys.executable, "-c", LIBRARIES],
    DRY_RUN: [LIMNER, "generate", "a robot", "--dry-run"],
    "a Limner that is ready for a turn": [sys.executable, "-c", READY],
}
INITIALIZE = "an app-server from its start to the answer to `initialize`"
FIRST_THREAD = "from there to the answer to the first `thread/start`"
# In the order of `_first_answers_ms`.
ANSWERS = (
    (INITIALIZE, "ms", 1.2),
    (INITIALIZE, "ms of CPU", None),
    (FIRST_THREAD, "ms", 2),
    (FIRST_THREAD, "ms of CPU", None),
)
NO_MODEL = "http://127.0.0.1:9/v1"  # nothing is asked before the first turn


def main(rounds: int = ROUNDS) -> list[Comparison]:
    """What commands take, and the first answers of app-servers."""
    with tempfile.TemporaryDirectory() as folder:
        return [_commands(Path(folder), rounds), *_app_servers(Path(folder), rounds)]


def _commands(home: Path, rounds: int) -> Comparison:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LIMNER_HOME": str(home / "home")}
    used: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(-1, rounds):
        # Interleaved, so that a busy moment of the machine falls on all of them.
        for name, command in COMMANDS.items():
            cpu_s = _cpu_s(command, env)
            if number >= 0:  # the first run sets a home up
                used[name].append(1000 * cpu_s)
    return compare(
        "a command from its start to its end",
        used,
        unit="ms of CPU",
        ours=DRY_RUN,
        peer=BARE,
        at_most=6,
        why_missed="It loads msgspec and 75 of limner's modules, and no `asyncio`.",
    )


def _cpu_s(command: Sequence[str], env: dict[str, str]) -> float:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def _app_servers(folder: Path, rounds: int) -> list[Comparison]:
    if sys.platform != "linux":
        print("app-servers skipped: the time of other processes is read from /proc")
        return []
    try:
        servers = [
            peers.limner(folder, base_url=NO_MODEL),
            peers.codex(folder, base_url=NO_MODEL),
        ]
    except ImportError as error:
        print(f"app-servers skipped: Codex is not installed ({error})")
        return []
    found: dict[str, list[tuple[float, ...]]] = {peer.name: [] for peer in servers}
    for number in range(-1, rounds):
        for peer in servers if number % 2 else reversed(servers):
            taken = _first_answers_ms(peer)
            if number >= 0:
                found[peer.name].append(taken)
    return [
        compare(
            work,
            {name: [row[column] for row in rows] for name, rows in found.items()},
            unit=unit,
            peer="codex",
            at_most=at_most,
            why_missed=WHY_START,
        )
        for column, (work, unit, at_most) in enumerate(ANSWERS)
    ]


def _first_answers_ms(peer: Peer) -> tuple[float, float, float, float]:
    """Time and processor time to the answer to `initialize`, and from there to the next."""
    client = Client(peer)
    try:
        greeted_s, greeted_ns = client.greet(), _used_ns(client)
        start = time.perf_counter()
        client.start_thread()
        opened_s, opened_ns = time.perf_counter() - start, _used_ns(client) - greeted_ns
    finally:
        client.close()
    return 1000 * greeted_s, greeted_ns / 1e6, 1000 * opened_s, opened_ns / 1e6


def _used_ns(client: Client) -> int:
    return sum(cpu_ns(client.process.pid).values())
