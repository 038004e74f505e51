"""Turns in which a tool returns a screenshot: limner's agent beside those of other libraries.

All of them talk to the same model server, which asks for a screenshot in every turn, and send the
whole conversation again, as the API wants it. limner also verifies each picture in a sandboxed
process, makes it fit for the model, and has every step on the disk before it goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.app_server import SCREEN, model_server, pictures
from benchmarks.comparison import Comparison, compare, one_run
from benchmarks.environments import ROOT, python_with
from benchmarks.metered import cpu_ns
from benchmarks.processes import memory_mb
from benchmarks.tool_turn_peers import PEERS

REQUIREMENTS = ("pydantic-ai-slim[openai]==2.66.0", "openai-agents==0.24.0")
TURNS = 30
LAST = 10


def main(turns: int = TURNS) -> list[Comparison]:
    """What the last turns take, and the memory after them."""
    if sys.platform != "linux":
        print("skipped: the processor time of other processes is read from /proc")
        return []
    theirs = python_with("tool-turns", *REQUIREMENTS)
    cpu: dict[str, list[float]] = {name: [] for name in PEERS}
    memory: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, model_server(1) as base_url:
        paths: list[Path] = []
        for number, shot in enumerate(pictures(SCREEN, turns)):
            paths.append(Path(folder, f"{number}.png"))
            paths[-1].write_bytes(shot)
        pythons = {name: sys.executable if name == "limner" else theirs for name in PEERS}
        programs = {
            name: _start(python, name, base_url, Path(folder)) for name, python in pythons.items()
        }
        for path in paths:
            for name, program in programs.items():
                with one_run(name):
                    cpu[name].append(_turn(program, path))
        for name, program in programs.items():
            if len(cpu[name]) < turns:  # what it took for some of them says nothing
                cpu[name].clear()
            memory[name] = [memory_mb(program.pid)] if cpu[name] else []
            with one_run(name):
                program.communicate()
    last = min(LAST, turns)
    recent = {name: spent[-last:] for name, spent in cpu.items()}
    work = f"turns {turns - last + 1} to {turns} of a conversation, each with a new screenshot"
    return [
        compare(work, recent, unit="ms of CPU a turn"),
        compare(f"memory after {turns} turns, all processes", memory, unit="MB"),
    ]


def _start(python: str, name: str, base_url: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-m", "benchmarks.tool_turn_peers", name, base_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LIMNER_HOME": str(folder / "home")},
        cwd=ROOT,
        text=True,
    )


def _turn(program: subprocess.Popen[str], path: Path) -> float:
    """The milliseconds of CPU that it takes; its processes are counted too."""
    assert program.stdin is not None
    assert program.stdout is not None
    before = cpu_ns(program.pid)
    print(path, file=program.stdin, flush=True)
    if program.stdout.readline() != "done\n":
        raise ChildProcessError(f"{program.args} ended with {program.wait()}")
    used = cpu_ns(program.pid)
    return sum(spent - before.get(pid, 0) for pid, spent in used.items()) / 1e6
