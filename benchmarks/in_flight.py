"""A hundred pictures in flight at once: limner beside a plain loop, and beside litellm.

All of them ask a local server in its own process for a PNG of about 1.5 MB in base64, decode it,
check its pixels with Pillow and write it to disk. limner also verifies in isolated workers,
journals, settles and syncs.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from benchmarks.comparison import Comparison, compare, one_run
from benchmarks.environments import ROOT, python_if_possible

AT_ONCE = 100
ROUNDS = 5
SIDE = 704  # noise of this size is about 1.5 MB as PNG
PLAIN = "a plain loop of httpx2 and Pillow"
# litellm does not always end.
GUARD_S = 300.0
LITELLM = ("litellm==1.77.5", "pillow", "msgspec")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def main(rounds: int = ROUNDS) -> list[Comparison]:
    """What a picture takes: processor time, and memory at the peak."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "noise.png")
        _make_picture(picture)
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.servers.process",
                "openai",
                "--picture",
                str(picture),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        try:
            base_url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            return _compare(base_url, Path(folder), rounds)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


def _compare(base_url: str, folder: Path, rounds: int) -> list[Comparison]:
    pythons = {PLAIN: sys.executable, "litellm": python_if_possible("litellm", *LITELLM)}
    pythons["limner"] = sys.executable
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    for turn in range(rounds):
        for name, results in runs.items():
            if (python := pythons[name]) is None:
                continue
            home = folder / f"{name}-{turn}"
            home.mkdir()
            command = [python, "-m", "benchmarks.in_flight", name, base_url, str(home)]
            with one_run(name):
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, check=True, cwd=ROOT, timeout=GUARD_S
                )
                results.append(json.loads(done.stdout))
    cpu = {name: [run["cpu_ms"] for run in results] for name, results in runs.items()}
    above = {
        name: [run["peak_mb"] - run["idle_mb"] for run in results] for name, results in runs.items()
    }
    return [
        compare(
            f"one of {AT_ONCE} pictures of 1.5 MB that are asked for at once",
            cpu,
            unit="ms of CPU",
            peer=PLAIN,
            at_most=1.05,
            why_missed="The rest is what only limner does: it plans, journals and settles each "
            "call, decodes in a sandboxed worker, and stores each picture under its hash.",
        ),
        compare("memory at the peak, above the same process when idle", above, unit="MB"),
    ]


def _make_picture(path: Path) -> None:
    from PIL import Image

    Image.frombytes("RGB", (SIDE, SIDE), os.urandom(3 * SIDE * SIDE)).save(path)


# What runs in the measured process


async def _plain(base_url: str, folder: Path, count: int) -> None:
    import httpx2
    from PIL import Image

    async with httpx2.AsyncClient(
        timeout=60, limits=httpx2.Limits(max_connections=AT_ONCE)
    ) as client:

        async def one(index: int) -> None:
            reply = await client.post(
                f"{base_url}/images/generations",
                json={"model": "gpt-image-2.5-flare", "prompt": "noise", "n": 1},
                headers={"Authorization": "Bearer key"},
            )
            data = base64.b64decode(json.loads(reply.content)["data"][0]["b64_json"])
            Image.open(io.BytesIO(data)).load()
            (folder / f"{index}.png").write_bytes(data)

        await asyncio.gather(*(one(index) for index in range(count)))


async def _litellm(base_url: str, folder: Path, count: int) -> None:
    import litellm  # pyright: ignore[reportMissingImports] - it is in an environment of its own
    from PIL import Image

    async def one(index: int) -> None:
        reply = await litellm.aimage_generation(
            prompt="noise", model="openai/gpt-image-1", api_base=base_url, api_key="key", n=1
        )
        data = base64.b64decode(reply.data[0].b64_json)
        Image.open(io.BytesIO(data)).load()
        (folder / f"{index}.png").write_bytes(data)

    await asyncio.gather(*(one(index) for index in range(count)))


async def _limner(base_url: str, folder: Path, count: int, measure: Measure) -> None:
    import limner
    from limner.settings import load

    env = {"LIMNER_HOME": str(folder), "OPENAI_API_KEY": "key", "OPENAI_BASE_URL": base_url}
    settings = load(env=env, cwd=folder, flags={"images.concurrency": AT_ONCE})
    async with limner.Limner(settings, env=env, cwd=folder) as lim:
        await asyncio.gather(*(lim.generate("noise") for _ in range(2)))
        measure.begin()
        await asyncio.gather(*(lim.generate("noise") for _ in range(count)))
        measure.end()


class Measure:
    """Memory and processor time of this process and the processes it started."""

    def __init__(self) -> None:
        self._done = threading.Event()

    def begin(self) -> None:
        self._idle_mb, self._cpu_ms = _memory_mb(), _cpu_ms()
        self._peak_mb = self._idle_mb
        self._sampler = threading.Thread(target=self._sample)
        self._sampler.start()

    def end(self) -> None:
        cpu_ms = _cpu_ms() - self._cpu_ms
        self._done.set()
        self._sampler.join()
        result = {"idle_mb": self._idle_mb, "peak_mb": self._peak_mb, "cpu_ms": cpu_ms / AT_ONCE}
        print(json.dumps(result))

    def _sample(self) -> None:
        while not self._done.wait(0.02):
            self._peak_mb = max(self._peak_mb, _memory_mb())


def _family() -> list[str]:
    own = str(os.getpid())
    children = Path(f"/proc/{own}/task")
    found = [own]
    for task in children.iterdir():
        found += (task / "children").read_text().split()
    return found


def _memory_mb() -> float:
    pages = 0
    for pid in _family():
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except FileNotFoundError:
            continue
    return pages * PAGE_BYTES / 1e6


def _cpu_ms() -> float:
    ticks = 0
    for pid in _family():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # own and waited-for children, user and system
    return 1000 * ticks / TICKS_PER_S


def _measured(name: str, base_url: str, folder: Path) -> None:
    measure = Measure()
    if name == "limner":
        asyncio.run(_limner(base_url, folder, AT_ONCE, measure))
        return

    work = _litellm if name == "litellm" else _plain

    async def loop() -> None:
        await work(base_url, folder, 2)
        measure.begin()
        await work(base_url, folder, AT_ONCE)
        measure.end()
        sys.stdout.flush()
        # A task of litellm ignores that it is cancelled, so its loop would never close.
        os._exit(0)

    asyncio.run(loop())


if __name__ == "__main__":
    _measured(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
