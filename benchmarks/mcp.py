"""`limner mcp` beside empty servers of others, and its fitting beside the engine's own.

Start-up is what a process has used when it has answered ``tools/list``: CPU time, which a busy
machine does not change, and memory. Fitting is a hundred
calls of ``image_fit`` at once over HTTP, a picture each, beside the same hundred on the engine.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import Comparison, compare, one_run

START_ROUNDS = 9
FIT_ROUNDS = 5
CALLS = 100
SIZE = (1280, 720)
ALLOWED = {"start-up": 2.5, "throughput": 0.8}

OURS = [sys.executable, "-m", "limner", "mcp"]
BARE_NAME = "import asyncio, msgspec"
BARE = [sys.executable, "-c", BARE_NAME]
SERVERS = {
    "limner mcp": OURS,
    "the official SDK's empty server": [sys.executable, "-m", "benchmarks.mcp", "sdk"],
    "FastMCP's empty server": [sys.executable, "-m", "benchmarks.mcp", "fastmcp"],
}
GREETING: Sequence[dict[str, Any]] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def main() -> list[Comparison]:
    """What a start takes, beside others; the fitting is printed."""
    with tempfile.TemporaryDirectory() as folder:
        found = _start_up(Path(folder))
        _tell_fitting(Path(folder))
    return found


def _start_up(folder: Path) -> list[Comparison]:
    used: dict[str, list[tuple[float, float]]] = {BARE_NAME: [], **{name: [] for name in SERVERS}}
    for _ in range(START_ROUNDS):
        # Interleaved, so that a busy moment of the machine falls on all of them.
        used[BARE_NAME].append(_bare())
        for name, command in SERVERS.items():
            with one_run(name):
                used[name].append(_first_list(command, _env(folder / "home")))
    cpu = {name: [1000 * spent for spent, _ in found] for name, found in used.items()}
    memory = {name: [mb for _, mb in found] for name, found in used.items()}
    return [
        compare(
            "a server until it has answered the first `tools/list`",
            cpu,
            unit="ms of CPU",
            ours="limner mcp",
            peer=BARE_NAME,
            at_most=ALLOWED["start-up"],
        ),
        compare("its memory then", memory, unit="MB", ours="limner mcp"),
    ]


def _bare() -> tuple[float, float]:
    with subprocess.Popen(BARE) as process:
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _first_list(command: Sequence[str], env: dict[str, str]) -> tuple[float, float]:
    """The CPU time and the memory of a server when it has answered the first list."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in GREETING:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        threads = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
        ran_ns = sum(int(thread.read_text().split()[0]) for thread in threads)
        status = Path(f"/proc/{server.pid}/status").read_text()
        server.stdin.close()
    return ran_ns / 1e9, int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _tell_fitting(folder: Path) -> None:
    direct: list[float] = []
    served: list[float] = []
    lost, peak_kb = 0, 0
    pictures = folder / "pictures"
    _draw(pictures)
    command = [sys.executable, "-m", "benchmarks.mcp", "direct", str(pictures)]
    for number in range(FIT_ROUNDS):
        # A home of its own for each: what was fitted once is not fitted again.
        env = _env(folder / f"direct-{number}")
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        direct.append(CALLS / float(done.stdout))
        told = asyncio.run(_served(pictures, _env(folder / f"served-{number}")))
        served.append(CALLS / told["taken_s"])
        lost += told["lost"]
        peak_kb = max(peak_kb, told["peak_kb"])
    ratio = statistics.median(mine / bare for mine, bare in zip(served, direct, strict=True))
    mine, bare = statistics.median(served), statistics.median(direct)
    print(f"image_fit        {ratio:5.2f}x the engine, at least {ALLOWED['throughput']}x")
    print(f"                 {mine:5.1f}/s beside {bare:.1f}/s")
    print(f"                 {lost} of {FIT_ROUNDS * CALLS} lost; {peak_kb / 1024:.0f} MB at most")


def _env(home: Path) -> dict[str, str]:
    return {**os.environ, "LIMNER_HOME": str(home)}


def _draw(folder: Path) -> None:
    """As many pictures as there are calls, none like another, each as large as a screenshot."""
    from PIL import Image

    folder.mkdir()
    for number in range(CALLS):
        small = Image.frombytes("RGB", (80, 45), os.urandom(80 * 45 * 3))
        small.resize(SIZE, Image.Resampling.BICUBIC).save(folder / f"{number}.png")


async def _served(folder: Path, env: dict[str, str]) -> dict[str, Any]:
    from mcp.client.client import Client

    process = await asyncio.create_subprocess_exec(
        # In the folder of the pictures: a model may read where it works, wherever that is.
        *OURS,
        "--http",
        "127.0.0.1:0",
        "--no-token",
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=folder,
    )
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().split()[2]
    try:
        async with Client(url) as client:
            await client.call_tool("spend", {})
            started = time.perf_counter()
            results = await asyncio.gather(
                *(client.call_tool("image_fit", {"image": str(path)}) for path in _files(folder)),
                return_exceptions=True,
            )
            taken = time.perf_counter() - started
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.terminate()
        await process.communicate()
    lost = sum(isinstance(one, BaseException) or one.is_error for one in results)
    peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    return {"taken_s": taken, "lost": lost, "peak_kb": peak_kb}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.png"))


# What runs in the measured processes


async def _direct(folder: Path) -> None:
    from limner.client import Limner

    async with Limner() as lim:
        await lim.money.spend()
        started = time.perf_counter()
        await asyncio.gather(*(lim.fit(path) for path in _files(folder)))
        print(time.perf_counter() - started)


def _fastmcp() -> None:
    from fastmcp import FastMCP

    FastMCP("empty").run(show_banner=False)


async def _sdk() -> None:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    server = Server("empty", on_list_tools=list_tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "fastmcp":
        _fastmcp()
    else:
        asyncio.run(_sdk() if sys.argv[1] == "sdk" else _direct(Path(sys.argv[2])))
