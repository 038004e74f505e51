"""The same charts and the same diagram by limner, matplotlib, vl-convert alone and Graphviz alone.

Each picture is 1024x768 and goes to a PNG file. "First" is a process from its start to its end with
one picture. "Warm" is one more picture in a process that has drawn one. The programs take turns, so
that a busy moment of the machine falls on all of them. Processor time includes child processes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.comparison import Comparison, compare, one_run
from benchmarks.environments import python_with
from benchmarks.metered import cpu_ns
from benchmarks.rendering_peers import HEIGHT, PICTURES, WIDTH

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ("matplotlib==3.11.2", "pygraphviz==2.0.4", "vl-convert-python==1.9.0.post1")
ROUNDS = 15
Cost = tuple[float, float]


def main(rounds: int = ROUNDS) -> list[Comparison]:
    """What each program takes for each picture."""
    if sys.platform != "linux":
        print("skipped: the processor time of other processes is read from /proc")
        return []
    found: list[Comparison] = []
    python = python_with("rendering-peers", *REQUIREMENTS)
    print(", ".join((*REQUIREMENTS, _dot_version() or "no dot")))
    print(f"{WIDTH}x{HEIGHT}, {rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        for picture, peers in PICTURES.items():
            names = [name for name in peers if name != "Graphviz, dot" or _dot_version()]
            programs: list[_Program] = []
            for name in names:
                with one_run(name):
                    programs.append(_Program(name, picture, python, Path(folder)))
            found.append(
                _compare(f"{picture}, the first of a process", programs, rounds, _Program.first)
            )
            # dot is a new process for each picture, so it is never warm.
            lasting = [program for program in programs if program.name != "Graphviz, dot"]
            found.append(_compare(f"{picture}, one more", lasting, rounds, _Program.warm))
            for program in programs:
                program.close()
        found.append(_demo(Path(folder), rounds))
    return found


class _Program:
    """One of the programs that draw, with its warm process."""

    def __init__(self, name: str, picture: str, peers_python: str, folder: Path) -> None:
        self.name = name
        self._picture = picture
        self._path = folder / f"{picture}.png"
        python = sys.executable if name.startswith("limner") else peers_python
        self._command = [python, "-m", "benchmarks.rendering_peers", name]
        # One home for both processes, as a user has it.
        self._env = {**os.environ, "LIMNER_HOME": str(folder / name)}
        self._process = self._start()
        self._ask(self._process, 0)

    def first(self, number: int) -> Cost:
        start = time.perf_counter()
        process = self._start()
        self._ask(process, number)
        assert process.stdin is not None
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.stdout is not None
        process.stdout.close()
        return taken, used.ru_utime + used.ru_stime

    def warm(self, number: int) -> Cost:
        before = cpu_ns(self._process.pid)
        start = time.perf_counter()
        self._ask(self._process, number)
        taken = time.perf_counter() - start
        used = cpu_ns(self._process.pid)
        return taken, sum(spent - before.get(pid, 0) for pid, spent in used.items()) / 1e9

    def close(self) -> None:
        self._process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self._command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=self._env,
            cwd=ROOT,
            text=True,
        )

    def _ask(self, process: subprocess.Popen[str], number: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        order = f'{{"picture": "{self._picture}", "number": {number}, "path": "{self._path}"}}'
        print(order, file=process.stdin, flush=True)
        if process.stdout.readline() != "drawn\n":
            raise ChildProcessError(f"{self.name} did not draw the picture {self._picture}")
        self._path.unlink()


def _compare(
    work: str, programs: list[_Program], rounds: int, draw: Callable[[_Program, int], Cost]
) -> Comparison:
    costs: dict[str, list[Cost]] = {program.name: [] for program in programs}
    for number in range(1, rounds + 1):
        for program in programs:
            with one_run(program.name):
                costs[program.name].append(draw(program, number))
    cpu = {name: [1000 * used for _, used in found] for name, found in costs.items()}
    walls = {
        name: statistics.median(taken for taken, _ in found)
        for name, found in costs.items()
        if found
    }
    ours = programs[0].name
    told = ", ".join(f"{name} {wall / walls[ours]:.2f}x" for name, wall in walls.items())
    return compare(work, cpu, unit="ms of CPU", ours=ours, note=f"On the clock: {told}.")


def _demo(folder: Path, rounds: int) -> Comparison:
    """The command that `make demo` runs once limner is installed, each time in a new home."""
    costs: list[float] = []
    for number in range(max(1, rounds // 3)):
        work = folder / f"demo-{number}"
        work.mkdir()
        with subprocess.Popen(
            [sys.executable, "-m", "limner", "demo"],
            env={**os.environ, "LIMNER_HOME": str(work / "home")},
            cwd=work,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"limner demo ended with {process.returncode}")
        costs.append(1000 * (used.ru_utime + used.ru_stime))
    return compare(
        "`limner demo` in a new home: a scene, a chart, a diagram and one answer",
        {"limner": costs},
        unit="ms of CPU",
    )


def _dot_version() -> str | None:
    if not shutil.which("dot"):
        return None
    told = subprocess.run(["dot", "-V"], capture_output=True, text=True, check=True).stderr
    return told.strip()
