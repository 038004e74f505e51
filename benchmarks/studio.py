"""The gallery of the studio with 100 and with 100,000 pictures, in a real Chromium, as ratios.

Both servers run at once and the rounds alternate, so that the load of the machine meets both. The
thumbnails are there already: a worker makes each of them once, however many there are.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sqlite3
import statistics
import tempfile
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image
from tests.browser.conftest import installed_chromium
from tests.browser.studio_process import StudioProcess

from benchmarks.processes import memory_mb
from limner import Limner

SIZES = (100, 100_000)
ROUNDS = 15
MOST = 1.5
WORDS = ("fox", "house", "lake", "storm", "tree", "robot", "castle", "river", "moon", "garden")
# What is searched: in some pictures, the same number in both stores; and in all of them.
SOME, EVERY, SOME_PICTURES = "lighthouse", "painting", 60
# Times are taken inside the page, from one frame to another.
SHOWN = """(wanted) => new Promise((resolve) => {
  const look = () => {
    const cells = [...document.querySelectorAll(".cell")];
    const view = document.querySelector(".scroller").getBoundingClientRect();
    const seen = cells.filter((cell) => {
      const box = cell.getBoundingClientRect();
      return box.bottom > view.top && box.top < view.bottom;
    });
    const isDone = seen.length && seen.every((cell) => {
      const image = cell.querySelector("img");
      const link = cell.querySelector("a");
      return image && image.complete && image.naturalWidth && link.title.includes(wanted);
    });
    if (isDone) resolve(performance.now()); else requestAnimationFrame(look);
  };
  look();
})"""
ASK = """async (path) => {
  const start = performance.now();
  await (await fetch(path)).json();
  return performance.now() - start;
}"""
JUMP = """(share) => {
  const view = document.querySelector(".scroller");
  view.scrollTop = view.scrollHeight * share;
}"""


def main() -> None:
    """Print the table."""
    if find_spec("playwright") is None:
        print("Not measured: this needs Playwright, which `make browser` installs.")
        return
    found = {size: defaultdict[str, list[float]](list) for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        studios = {size: _studio(Path(folder, str(size)), size) for size in SIZES}
        try:
            memory = _measure(studios, found)
        finally:
            for studio in studios.values():
                studio.stop()
    few, many = SIZES
    print(f"| | {few:,} pictures | {many:,} pictures | ratio |\n|---|--:|--:|--:|")
    for name in found[few]:
        ratios = [b / a for a, b in zip(found[few][name], found[many][name], strict=True)]
        small, large = (statistics.median(found[size][name]) for size in SIZES)
        ratio = statistics.median(ratios)
        missed = "" if ratio <= MOST else " MISSED"
        print(f"| {name} | {small:.1f} ms | {large:.1f} ms | {ratio:.2f}{missed} |")
    for name, (small, large) in memory.items():
        print(f"| {name} | {small:.1f} MB | {large:.1f} MB | {large / small:.2f} |")


def _measure(studios: dict[int, StudioProcess], found: Any) -> dict[str, tuple[float, float]]:
    from playwright.sync_api import sync_playwright

    words = ["--no-sandbox", "--enable-precise-memory-info"] if os.geteuid() == 0 else []
    memory: dict[str, list[float]] = defaultdict(list)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed_chromium(), args=words)
        contexts = {size: browser.new_context() for size in SIZES}
        for size, context in contexts.items():
            context.new_page().goto(studios[size].url)
        for _ in range(ROUNDS):
            for size, context in contexts.items():
                _round(context, studios[size].origin, found[size])
        for size, context in contexts.items():
            page = context.new_page()
            page.goto(studios[size].origin)
            page.evaluate(SHOWN, "")
            for step in range(40):
                page.evaluate(JUMP, (step * 7 % 40) / 40)
                page.evaluate(SHOWN, "")
            heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
            memory["page, JavaScript heap after 40 jumps"].append(heap)
            memory["server, resident"].append(memory_mb(studios[size].pid))
        browser.close()
    return {name: (values[0], values[1]) for name, values in memory.items()}


def _round(context: Any, origin: str, times: dict[str, list[float]]) -> None:
    # A page of its own for each, since a page keeps what it has loaded.
    for name, share in (("to the middle", 0.5), ("to the end", 1.0)):
        page = context.new_page()
        page.goto(origin)
        painted = page.evaluate(SHOWN, "")
        if share == 1.0:
            times["first paint: the first screen with its thumbnails"].append(painted)
        start = page.evaluate("performance.now()")
        page.evaluate(JUMP, share)
        times[f"scroll: a jump {name}"].append(page.evaluate(SHOWN, "") - start)
        page.close()
    page = context.new_page()
    page.goto(origin)
    page.evaluate(SHOWN, "")
    start = page.evaluate("performance.now()")
    page.get_by_role("searchbox").fill(SOME)
    times["search: a word of 60 pictures, typed"].append(page.evaluate(SHOWN, SOME) - start)
    for word, where in ((SOME, "60 pictures"), (EVERY, "every picture")):
        asked = [page.evaluate(ASK, f"/api/pictures?q={word}") for _ in range(5)]
        times[f"search: a word of {where}, the request alone"].append(min(asked))
    page.close()


def _studio(folder: Path, size: int) -> StudioProcess:
    studio = StudioProcess(folder)
    asyncio.run(_fill(studio, size))
    studio.start()
    return studio


async def _fill(studio: StudioProcess, size: int) -> None:
    """Store so many pictures, each with a prompt and a thumbnail."""
    async with Limner(env=studio.env, cwd=studio.cwd) as lim:
        await lim.store.open()
        folder = lim.home.folder / "thumbnails"
    file = studio.cwd / "thumbnail.webp"
    Image.new("RGB", (384, 384), "seagreen").save(file)
    chance, rows = random.Random(1), []
    for number in range(size):
        words = [chance.choice(WORDS) for _ in range(12)]
        prompt = " ".join([EVERY, *words, SOME if number < SOME_PICTURES else ""])
        handle = hashlib.sha256(str(number).encode()).hexdigest()
        facts = {"provider": f"p{number % 3}", "model": f"m{number % 7}", "prompt": prompt}
        at_ms = 1_700_000_000_000 + number * 60_000
        rows.append((handle, "image/png", 1024, 1024, 1000, None, json.dumps(facts), at_ms))
        (folder / handle[:2]).mkdir(parents=True, exist_ok=True)
        (folder / handle[:2] / f"{handle}.webp").symlink_to(file)
    names = "handle, mime, width, height, size_bytes, parent, lineage, created_ms"
    with sqlite3.connect(studio.home / "limner.db") as store:
        store.executemany(f"INSERT INTO pictures ({names}) VALUES (?,?,?,?,?,?,?,?)", rows)
    store.close()
