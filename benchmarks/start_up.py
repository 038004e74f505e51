"""What a start takes beside a bare interpreter, and the first answers of app-servers.

The first table is processor time of whole commands, which a busy machine changes little. Being
ready for a turn is having loaded and built everything but the connection: what is left is what the
libraries themselves load with their first request.

The second table is of app-servers: from the start of the process to the answer to `initialize`,
and from there to the answer to a `thread/start` that is sent at once.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import app_server_peers as peers
from benchmarks.app_server_client import Client
from benchmarks.app_server_peers import Peer
from benchmarks.metered import cpu_ns

ROUNDS = 40
LIMNER = str(Path(sys.executable).parent / "limner")
LIBRARIES = "import asyncio, httpx2, msgspec, sqlite3"
READY = "import limner.agents, limner.wires.openai_responses; limner.agents.Limner()"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import limner": [sys.executable, "-c", "import limner"],
    "limner --help": [LIMNER, "--help"],
    "asyncio and msgspec": [sys.executable, "-c", "import asyncio, msgspec"],
    "the libraries": [sys.executable, "-c", LIBRARIES],
    "a dry run": [LIMNER, "generate", "a robot", "--dry-run"],
    "ready for a turn": [sys.executable, "-c", READY],
}
NO_MODEL = "http://127.0.0.1:9/v1"  # nothing is asked before the first turn


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _tell_commands(Path(folder))
        _tell_app_servers(Path(folder))


def _tell_commands(home: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LIMNER_HOME": str(home / "home")}
    used: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(-1, ROUNDS):
        # Interleaved, so that a busy moment of the machine falls on all of them.
        for name, command in COMMANDS.items():
            cpu_s = _cpu_s(command, env)
            if number >= 0:  # the first run sets a home up
                used[name].append(cpu_s)
    bare = statistics.median(used["python -c pass"])
    for name, taken in used.items():
        print(f"{name:20} {statistics.median(taken) / bare:5.2f}x a bare interpreter, by CPU")


def _cpu_s(command: Sequence[str], env: dict[str, str]) -> float:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def _tell_app_servers(folder: Path) -> None:
    if sys.platform != "linux":
        print("app-servers skipped: the time of other processes is read from /proc")
        return
    servers = [peers.limner(folder, base_url=NO_MODEL)]
    try:
        servers.append(peers.codex(folder, base_url=NO_MODEL))
    except ImportError as error:
        print(f"Codex skipped: it is not installed ({error})")
    found: dict[str, list[tuple[float, ...]]] = {peer.name: [] for peer in servers}
    for number in range(-1, ROUNDS):
        for peer in servers if number % 2 else reversed(servers):
            taken = _first_answers_ms(peer)
            if number >= 0:
                found[peer.name].append(taken)
    for name, rows in found.items():
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(
            "{:8} initialize {:6.1f} ms, CPU {:6.1f} ms; "
            "thread/start {:6.1f} ms, CPU {:6.1f} ms".format(name, *medians)
        )


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
