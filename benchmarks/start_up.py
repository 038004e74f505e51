"""How long `import limner` and `limner --help` take beside a bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 40
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import limner": [sys.executable, "-c", "import limner"],
    "limner --help": [str(Path(sys.executable).parent / "limner"), "--help"],
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
