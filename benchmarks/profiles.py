"""Where the time of each hot path goes: tables for `PROFILES.md`.

    python -m benchmarks.profiles [starts] [turns] [worker] [fits]

`starts` sums up the imports of a start, and `worker` and `fits` the steps in the worker. `turns`
runs the app-server with Python's profiler on its main thread; the profiler makes small functions
look larger than they are, so only shares are shown.
"""

from __future__ import annotations

import argparse
import functools
import os
import pstats
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace
from PIL import Image, ImageFile

from benchmarks import app_server_peers as peers
from benchmarks import photos, profiled_server
from benchmarks.app_server import LARGE, LARGE_SCALE, SCREEN, Turn, model_server, pictures, showing
from benchmarks.app_server_client import Client, connected
from benchmarks.corpus import corpus
from benchmarks.drawn_corpus import drawn_corpus
from benchmarks.environments import bench_folder
from limner.imaging import pixels
from limner.imaging.decode import load_decoders, open_picture
from limner.imaging.fit import bands, encoders
from limner.imaging.fit import engine as fit_engine
from limner.imaging.fit import source as fit_source
from limner.imaging.fit.engine import Engine
from limner.imaging.fit.request import FitRequest
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import share_one_heap

ROUNDS = 12
TURNS, LATE = 50, 10
NO_MODEL = "http://127.0.0.1:9/v1"
PACKAGES = {
    "asyncio": ("asyncio", "selectors", "socket", "subprocess", "concurrent", "queue", "threading"),
    "msgspec": ("msgspec", "typing", "uuid", "platform", "datetime", "decimal"),
    "limner": ("limner",),
    "HTTP": ("httpx2", "h11", "ssl", "http", "idna"),
}
# Part of the path of a file -> whose time it is; the first that fits.
OWNERS = (
    (
        re.compile(r"limner/(wires|agent/(prompt|picture|history|untrusted|audio))"),
        "prompt and API",
    ),
    (re.compile(r"limner/agent"), "the turn"),
    (re.compile(r"limner/(money|storage)|sqlite"), "money and storage"),
    (re.compile(r"limner/(frontends|net/jsonrpc)"), "messages to the client"),
    (re.compile(r"limner/(net|models)|httpx2|h11|idna|http/"), "HTTP"),
    (re.compile(r"asyncio|selectors|concurrent|contextlib"), "asyncio"),
    (re.compile(r"limner"), "the rest of limner"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    tables = {"starts": starts, "turns": turns, "worker": worker, "fits": fits}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], metavar="TABLE")
    for name in parser.parse_args().tables or tables:
        print("\n".join(tables[name]()), end="\n\n", flush=True)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|---{'|--:' * (len(names) - 1)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


# --- starts ---


def starts() -> list[str]:
    """Imports by package, in ms, the least of several runs."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        peer = peers.limner(Path(name), base_url=NO_MODEL)
        for _ in range(ROUNDS):
            for path, imports in _imports(peer).items():
                for package, took_ms in imports.items():
                    row = found.setdefault(package, {})
                    row[path] = min(row.get(path, took_ms), took_ms)
    paths = ("initialize", "thread/start", "a dry run")
    rows = (
        [package, *(f"{row[path]:.1f}" if path in row else "" for path in paths)]
        for package, row in found.items()
    )
    return _table(["imports, ms", *paths], rows)


def _imports(peer: peers.Peer) -> dict[str, dict[str, float]]:
    python = (sys.executable, "-X", "importtime", "-m", "limner")
    server = Client(replace(peer, command=(*python, "app-server")), stderr=subprocess.PIPE)
    server.greet()
    first = _until_quiet(server)
    server.start_thread()
    second = _until_quiet(server)
    server.close()
    dry = (*python, "generate", "a robot", "--dry-run")
    done = subprocess.run(dry, cwd=peer.cwd, env=peer.env, capture_output=True, check=True)
    texts = {"initialize": first, "thread/start": second, "a dry run": done.stderr}
    return {path: _by_package(text.decode()) for path, text in texts.items()}


def _until_quiet(server: Client) -> bytes:
    """What the server has written about its imports by its last answer."""
    assert server.process.stderr is not None
    os.set_blocking(server.process.stderr.fileno(), False)
    return server.process.stderr.read() or b""


def _by_package(text: str) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for took_us, module in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", text, re.M):
        top = module.partition(".")[0].lstrip("_")
        package = next((name for name, tops in PACKAGES.items() if top in tops), "the others")
        sums[package] += int(took_us) / 1000
    return {**sums, "all": sum(sums.values())}


# --- turns ---


def turns() -> list[str]:
    """Shares of the main thread of the app-server."""
    kinds: dict[str, tuple[Turn, int]] = {
        "text": (Client.text_turn, 0),
        "1280x800, first ten": (showing(list(pictures(SCREEN, LATE))), 0),
        "1280x800, last ten of 50": (showing(list(pictures(SCREEN, TURNS))), TURNS - LATE),
    }
    shares = {name: _shares(turn, before) for name, (turn, before) in kinds.items()}
    owners = list(dict.fromkeys([owner for _, owner in OWNERS] + ["Python itself"]))
    rows = (
        [owner, *(f"{share.get(owner, 0):.0%}" for share in shares.values())] for owner in owners
    )
    return _table(["main thread", *shares], rows)


def _shares(turn: Turn, before: int) -> dict[str, float]:
    """Whose time ten turns are, after so many that are not looked at."""
    with tempfile.TemporaryDirectory() as name, model_server(1) as base_url:
        record = Path(name, "profile")
        peer = peers.limner(Path(name), base_url=base_url)
        command = (sys.executable, profiled_server.__file__, str(record))
        with connected(replace(peer, command=command)) as client:
            client.text_turn(client.start_thread(), 0)
            thread = client.start_thread()
            for number in range(before + LATE):
                if number == before:
                    os.kill(client.process.pid, profiled_server.BEGIN)
                    time.sleep(0.1)
                turn(client, thread, number)
            os.kill(client.process.pid, profiled_server.END)
            while not record.exists():
                time.sleep(0.05)
        sums: defaultdict[str, float] = defaultdict(float)
        for place, (*_, own_s, _, callers) in _stats(record).items():
            if "'poll'" not in place[2] and "'acquire'" not in place[2]:
                for caller, spent_s in _blamed(place, own_s, callers):
                    sums[_owner(caller)] += spent_s
        return {owner: spent / sum(sums.values()) for owner, spent in sums.items()}


def _stats(record: Path) -> Mapping[Any, Any]:
    return vars(pstats.Stats(str(record)))["stats"]


def _blamed(place: Any, own_s: float, callers: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """Time of what is written in C belongs to its callers."""
    if place[0] != "~":
        return [(place[0], own_s)]
    return [(caller[0], spent[2]) for caller, spent in callers.items()]


def _owner(path: str) -> str:
    return next((owner for known, owner in OWNERS if known.search(path)), "Python itself")


# --- the worker ---


def worker() -> list[str]:
    """What a picture takes in the worker, in ms of CPU."""
    large = next(iter(pictures(LARGE, 1, scale=LARGE_SCALE)))
    samples = {
        "PNG of 1280x800": next(iter(pictures(SCREEN, 1))),
        "PNG of 3840x2160": large,
        "JPEG of 6000x4000": _jpeg(photos.photo((6000, 4000), seed=1)),
    }
    limits = WorkerLimits()
    load_decoders(limits)
    share_one_heap()
    rows: list[list[str]] = []
    for name, data in samples.items():
        _, opened = open_picture(data, limits=limits)
        width, height = (round(edge * 2048 / max(opened.size)) for edge in opened.size)
        size = width, height
        steps: dict[str, Callable[[], object]] = {
            "verify": lambda data=data: pixels.verify(data, limits=limits),
            "decode": lambda data=data: open_picture(data, limits=limits)[1].image.load(),
        }
        opened.image.load()
        small = opened.image
        if max(opened.size) > 2048:
            steps["scale to 2048"] = lambda image=small, size=size: fit_source.resize(
                image, size, (0, 0, *image.size)
            )
            small = fit_source.resize(small, size, (0, 0, *small.size))
        steps["WebP without loss"] = lambda image=small: encoders.lossless_webp(image)
        steps["WebP 75"] = lambda image=small: encoders.webp(image, 75)
        rows += [[name, step, f"{_least_ms(run):.1f}"] for step, run in steps.items()]
    return _table(["picture", "step", "ms of CPU"], rows)


def _jpeg(image: Image.Image) -> bytes:
    return encoders.jpeg(image, 90).data


def _least_ms(run: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(5):
        start = time.process_time()
        run()
        taken.append(1000 * (time.process_time() - start))
    return min(taken)


# --- fits ---


def fits() -> list[str]:
    """What the pictures of both corpora take in the fit engine, by step, in ms of CPU."""
    sums: defaultdict[str, float] = defaultdict(float)
    steps: tuple[tuple[ModuleType | type, str, str], ...] = (
        (ImageFile.ImageFile, "load", "decode"),
        (bands, "decode_and_resize", "decode and scale"),
        (fit_source, "resize", "scale"),
        (encoders, "webp", "WebP"),
        (encoders, "jpeg", "JPEG, also to estimate"),
        (encoders, "png", "PNG, also to estimate"),
        (encoders, "palette_png", "256 colours"),
        (fit_engine, "lossless_webp", "WebP without loss"),
    )
    for holder, name, step in steps:
        setattr(holder, name, _timed(getattr(holder, name), sums, step))
    limits = WorkerLimits()
    load_decoders(limits)
    share_one_heap()
    columns: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(1) as thread:
        engine = Engine(thread=thread, limits=limits)
        for name, make in {"own": corpus, "drawn": drawn_corpus}.items():
            data = [path.read_bytes() for path in make(bench_folder() / name)]
            for mode in ("seed", "fast"):
                for _ in range(2):  # the first warms up
                    sums.clear()
                    start = time.process_time()
                    for one in data:
                        engine.fit(one, FitRequest(mode=mode))
                    sums["all"] = time.process_time() - start
                columns[f"`{mode}`, {name}"] = {k: 1000 * s / len(data) for k, s in sums.items()}
    rows = (
        [step, *(f"{column.get(step, 0):.1f}" for column in columns.values())]
        for step in [step for _, _, step in steps] + ["all"]
    )
    return _table(["a picture, mean, ms of CPU", *columns], rows)


def _timed(run: Callable[..., Any], sums: defaultdict[str, float], step: str) -> Callable[..., Any]:
    @functools.wraps(run)
    def timed(*arguments: Any, **named: Any) -> Any:
        start = time.thread_time()
        try:
            return run(*arguments, **named)
        finally:
            sums[step] += time.thread_time() - start

    return timed


if __name__ == "__main__":
    main()
