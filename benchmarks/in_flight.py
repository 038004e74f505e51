"""A hundred pictures in flight at once: limner beside a plain loop of the same libraries.

Both ask a local server in a process of its own for a PNG of about 1.5 MB in base64, decode it,
check its pixels with Pillow and write it to disk. limner also verifies in isolated workers,
journals, settles and syncs.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

AT_ONCE = 100
ROUNDS = 5
SIDE = 704  # noise of this size is about 1.5 MB as PNG
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
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
            _compare(base_url, Path(folder))
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


def _compare(base_url: str, folder: Path) -> None:
    runs: dict[str, list[dict[str, float]]] = {"plain": [], "limner": []}
    for turn in range(ROUNDS):
        for name, results in runs.items():
            home = folder / f"{name}-{turn}"
            home.mkdir()
            command = [sys.executable, "-m", "benchmarks.in_flight", name, base_url, str(home)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results.append(json.loads(done.stdout))
    print(f"{AT_ONCE} in flight, medians of {ROUNDS} runs")
    for name, results in runs.items():
        above = statistics.median(r["peak_mb"] - r["idle_mb"] for r in results)
        print(f"{name:7} peak memory {above:6.1f} MB above idle")
    pairs = zip(runs["limner"], runs["plain"], strict=True)
    ratios = [ours["cpu_ms"] / theirs["cpu_ms"] for ours, theirs in pairs]
    print(f"CPU per call, children included: {statistics.median(ratios):.2f}x the plain loop")


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

    async def plain() -> None:
        await _plain(base_url, folder, 2)
        measure.begin()
        await _plain(base_url, folder, AT_ONCE)
        measure.end()

    asyncio.run(plain())


if __name__ == "__main__":
    _measured(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
