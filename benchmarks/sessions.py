"""A thousand turns with a screenshot each: the room they take, and what opening them costs.

A turn is a question, a call, a screenshot of about 0.8 MB and an answer; every tenth screenshot is
the same. They come in as an agent's would: taken, named by handle, appended.
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
from pathlib import Path
from typing import Any

TURNS = {"short": 10, "long": 1000}
ROUNDS = 15
SIDE = 516  # noise of this size is about 0.8 MB as PNG
WORDS = "Look at the screen again and say what changed since the last time. " * 6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        made = asyncio.run(_fill(home))
        _tell_room(home, made)
        times: dict[str, list[dict[str, float]]] = {name: [] for name in TURNS}
        for _ in range(ROUNDS):
            # Interleaved, each in a process of its own: what opening costs begins with nothing.
            for name, results in times.items():
                command = [sys.executable, "-m", "benchmarks.sessions", str(home), made[name]]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results.append(json.loads(done.stdout))
        _tell_times(times)


def _tell_room(home: Path, made: dict[str, Any]) -> None:
    used = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    pictures, items = made["picture_bytes"], made["items"]
    words = (used - pictures) / items
    print(f"{items:,} items, {made['pictures']:,} different pictures of {pictures / 1e6:.0f} MB")
    print(
        f"on disk {used / pictures:.4f}x the different pictures; the rest is {words:.0f} B an item"
    )
    bound = 1.05 * pictures + 2048 * items
    print(f"bound   {bound / pictures:.4f}x: {'kept' if used <= bound else 'BROKEN'}")


def _tell_times(times: dict[str, list[dict[str, float]]]) -> None:
    for what in ("open_ms", "history_ms", "process_ms"):
        pairs = zip(times["long"], times["short"], strict=True)
        ratio = statistics.median(long[what] / short[what] for long, short in pairs)
        few, many = (statistics.median(r[what] for r in times[name]) for name in TURNS)
        print(f"{what:10} {ratio:5.2f}x   {few:7.1f} ms for 10 turns, {many:7.1f} ms for 1,000")
    loaded = max(r["blobs_read"] for results in times.values() for r in results)
    print(f"pictures loaded: {loaded:.0f}")


async def _fill(home: Path) -> dict[str, Any]:
    from limner.client import Limner

    made: dict[str, Any] = {"items": 0, "pictures": 0, "picture_bytes": 0}
    same = _noise()
    seen: set[str] = set()
    async with Limner(env={"LIMNER_HOME": str(home)}, cwd=home.parent) as lim:
        for name, turns in TURNS.items():
            session = await lim.sessions.create(cwd="/")
            made[name] = session.id
            for turn in range(turns):
                with lim.pictures.sink() as sink:
                    sink.write(same if turn % 10 == 0 else _noise())
                    picture = await lim.pictures.take(sink, lineage={"from": "screen"})
                if picture.handle not in seen:
                    seen.add(picture.handle)
                    made["picture_bytes"] += picture.size_bytes
                asked, answered = _turn(turn, picture.handle)
                await session.append(asked)
                await session.append(answered)
                made["items"] += len(asked) + len(answered)
    return {**made, "pictures": len(seen)}


def _turn(turn: int, handle: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from limner.wires import items

    call_id = f"call_{turn:020}"
    call = items.function_call(call_id=call_id, name="take_screenshot", arguments="{}")
    seen = [items.text_part("The screen:"), items.image_part(handle, detail="high")]
    return (
        [items.message("user", items.text_part(WORDS)), call],
        [
            items.function_call_output(call_id=call_id, parts=seen),
            items.message("assistant", items.text_part(WORDS)),
        ],
    )


def _noise() -> bytes:
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), os.urandom(3 * SIDE * SIDE)).save(file, "PNG")
    return file.getvalue()


# What runs in the measured process


async def _measured(home: str, session_id: str) -> None:
    from limner.client import Limner

    read: set[str] = set()
    sys.addaudithook(lambda name, args: read.add(str(args[0])) if name == "open" else None)
    started = time.perf_counter()
    async with Limner(env={"LIMNER_HOME": home}, cwd=Path(home)) as lim:
        session = await lim.sessions.open(session_id)
        about = await session.about()
        await session.page(from_seq=max(0, about.items - 50), limit=50)
        opened = time.perf_counter()
        await session.history()
        ended = time.perf_counter()
    result = {
        "open_ms": 1000 * (opened - started),
        "history_ms": 1000 * (ended - started),
        "process_ms": 1000 * time.process_time(),
        "blobs_read": sum("/blobs/" in path for path in read),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(_measured(sys.argv[1], sys.argv[2]))
