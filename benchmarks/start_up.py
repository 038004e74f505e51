"""How long limner takes to start beside a bare interpreter, and beside the libraries it stands on.

Being ready for a turn is having loaded and built everything but the connection: what is left is
what the libraries themselves load with their first request.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 40
LIBRARIES = "import asyncio, httpx2, msgspec, sqlite3"
READY = "import limner.agents, limner.wires.openai_responses; limner.agents.Limner()"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import limner": [sys.executable, "-c", "import limner"],
    "limner --help": [str(Path(sys.executable).parent / "limner"), "--help"],
    "the libraries": [sys.executable, "-c", LIBRARIES],
    "ready for a turn": [sys.executable, "-c", READY],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        # Interleaved, so that a busy moment of the machine falls on all of them.
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - start)
    bare = statistics.median(times["python -c pass"])
    for name, taken in times.items():
        print(f"{name:16} {statistics.median(taken) / bare:5.2f}x a bare interpreter")
