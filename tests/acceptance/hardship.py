"""What can befall a program from outside, brought about for real."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sqlite3
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer

LIMNER = Path(sys.executable).with_name("limner")
GUARD_S = 60.0
WEEK_S = 7 * 24 * 60 * 60


@contextmanager
def full_disk() -> Generator[None]:
    """No file of this process can grow, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def held_back(server: OpenAIServer, gate: Gate, *, from_piece: int = 0) -> Reply:
    """OpenAI's answer, held back at one of its three pieces: before, within, after the picture."""
    pieces = server.drawn({"model": "dall-e-3", "response_format": "b64_json"}).pieces
    length = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
    return Reply(pieces=(*pieces[:from_piece], gate, *pieces[from_piece:]), length=length)


async def start(*words: str, env: Mapping[str, str], cwd: Path) -> Process:
    """The command line as a process of its own, with nothing in its environment but ``env``."""
    return await asyncio.create_subprocess_exec(
        LIMNER, *words, env=env, cwd=cwd, stdout=PIPE, stderr=PIPE
    )


async def limner(*words: str, env: Mapping[str, str], cwd: Path) -> tuple[int, Any]:
    """Run the command line with ``--json``; its exit status and what it printed."""
    process = await start(*words, "--json", env=env, cwd=cwd)
    out, err = await process.communicate()
    assert process.returncode is not None
    assert out, err.decode()
    return process.returncode, json.loads(out)


async def collect_a_week_later(home: Path, *, env: Mapping[str, str], cwd: Path) -> None:
    """Make everything in a home a week older, then remove all that nothing refers to."""
    for path in (*home.glob("incoming/*"), *home.glob("blobs/*/*")):
        moment_s = path.stat().st_mtime - WEEK_S
        os.utime(path, (moment_s, moment_s))
    with closing(sqlite3.connect(home / "limner.db")) as connection, connection:
        for table in ("ledger", "jobs", "pictures"):
            connection.execute(f"UPDATE {table} SET created_ms = created_ms - {WEEK_S * 1000}")
    await limner("gc", "--all", env=env, cwd=cwd)


async def kill(process: Process) -> None:
    """End a process as a power cut would, and see that it is gone."""
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(process.pid, signal.SIGKILL)
    await process.communicate()


def kill_child(word: str) -> None:
    """End what this process has started with that word, as a power cut would.

    An earlier test may have left one more, which nothing waits for.
    """
    assert kill_children(word) >= 1


def kill_children(word: str) -> int:
    """End every process that this one has started with that word; how many there were."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")  # of each thread its own
    children = [child for each in lists for child in each.read_text().split()]
    ours = [
        int(child)
        for child in children
        if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    ]
    for child in ours:
        os.kill(child, signal.SIGKILL)
    return len(ours)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread is about to do."""
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.001)
